#include "state/rocksdb/database_core.h"

#include "state/checkpoint/position_record.h"
#include "state/rocksdb/key_format.h"
#include "state/rocksdb/status_mapping.h"

#include <weir/runtime/logger.h>

#include <fmt/core.h>
#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <cstdarg>
#include <cstdio>
#include <utility>

namespace weir::state {
namespace {

// RocksDB's own diagnostics: errors only, as lines of ours.
class QuietLogger final : public rocksdb::Logger {
 public:
  QuietLogger() : Logger(rocksdb::InfoLogLevel::ERROR_LEVEL) {}
  using Logger::Logv;
  __attribute__((format(printf, 2, 0))) void Logv(const char* format, va_list arguments) override {
    char text[512];
    if (std::vsnprintf(text, sizeof(text), format, arguments) > 0) {
      WEIR_WARN("rocksdb says text=\"{}\"", text);
    }
  }
};

rocksdb::Options make_options(rocksdb::Env* env, const CheckpointDatabaseOptions& settings) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(settings.block_cache_bytes);
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = true;
  table.format_version = 5;

  rocksdb::Options options;
  options.env = env;
  options.create_if_missing = !settings.read_only;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.info_log = std::make_shared<QuietLogger>();
  // Its default depends on NDEBUG in the file that includes RocksDB's headers.
  options.info_log_level = rocksdb::InfoLogLevel::ERROR_LEVEL;
  options.max_background_jobs = 2;
  // A reader beside a running owner opens all files at once: they may be removed later.
  options.max_open_files = settings.read_only ? -1 : 512;
  options.max_file_opening_threads = 2;
  options.write_buffer_size = 8U << 20U;
  options.db_write_buffer_size = 32U << 20U;
  options.max_manifest_file_size = 4U << 20U;
  options.compression = rocksdb::kNoCompression;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.skip_stats_update_on_db_open = true;
  // close() flushes; an object that is only destroyed is a crash as far as data goes.
  options.avoid_flush_during_shutdown = true;
  // We open it again (DatabaseOwner), no thread of RocksDB's tries on its own.
  options.max_bgerror_resume_count = 0;
  return options;
}

}  // namespace

DatabaseCore::DatabaseCore(weir::FileSystem& files, std::string path,
                           const CheckpointDatabaseOptions& settings)
    : path_(std::move(path)),
      adapter_(std::make_shared<FileSystemAdapter>(files)),
      env_(rocksdb::NewCompositeEnv(adapter_)),
      options_(make_options(env_.get(), settings)) {}

DatabaseCore::~DatabaseCore() {
  const MutexLock lock(mutex_);
  families_.clear();
}

Result<std::unique_ptr<DatabaseCore>> DatabaseCore::open(
    weir::FileSystem& files, const std::string& path, const CheckpointDatabaseOptions& settings) {
  std::unique_ptr<DatabaseCore> core(new DatabaseCore(files, path, settings));
  if (settings.read_only && !path_exists(files, join_path(path, "CURRENT"))) {
    return Error(Errc::kNotFound,
                 fmt::format("there are no checkpoints in {}; has the application run?", path));
  }
  WEIR_TRY(core->open_database(settings.read_only));
  return core;
}

Status DatabaseCore::open_database(bool read_only) {
  const std::string doing = "open checkpoints in " + path_;
  std::vector<std::string> names{rocksdb::kDefaultColumnFamilyName};
  // "Absent" must be told from "unreadable": the former is made anew.
  const rocksdb::IOStatus current =
      adapter_->FileExists(join_path(path_, "CURRENT"), rocksdb::IOOptions(), nullptr);
  if (current.ok()) {
    WEIR_TRY(to_status(rocksdb::DB::ListColumnFamilies(options_, path_, &names), doing));
  } else if (!current.IsNotFound()) {
    return to_error(current, doing);
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : names) {
    descriptors.emplace_back(name, options_);
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      read_only ? rocksdb::DB::OpenForReadOnly(options_, path_, descriptors, &handles, &db)
                : rocksdb::DB::Open(options_, path_, descriptors, &handles, &db);
  if (!opened.ok()) {
    if (std::optional<Error> locked = adapter_->lock_failure()) {
      return std::move(*locked).with_context(doing);
    }
    return to_error(opened, doing);
  }
  db_.reset(db);
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < names.size(); ++i) {
    families_.emplace(names[i], std::make_shared<FamilyHandle>(*db_, handles[i]));
  }
  return {};
}

std::shared_ptr<FamilyHandle> DatabaseCore::family(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = families_.find(name);
  return found == families_.end() ? nullptr : found->second;
}

std::vector<std::string> DatabaseCore::family_names() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, handle] : families_) {
    if (name != rocksdb::kDefaultColumnFamilyName) {
      names.push_back(name);
    }
  }
  return names;
}

Status DatabaseCore::make_family(const std::string& name) {
  rocksdb::ColumnFamilyHandle* made = nullptr;
  WEIR_TRY(to_status(db_->CreateColumnFamily(options_, name, &made),
                     fmt::format("make checkpoint {} in {}", name, path_)));
  const MutexLock lock(mutex_);
  families_.insert_or_assign(name, std::make_shared<FamilyHandle>(*db_, made));
  return {};
}

Status DatabaseCore::replace_family(const std::string& name) {
  if (const std::shared_ptr<FamilyHandle> old = family(name); old != nullptr) {
    WEIR_TRY(to_status(db_->DropColumnFamily(old->get()),
                       fmt::format("clear checkpoint {} in {}", name, path_)));
  }
  return make_family(name);
}

Status DatabaseCore::close() {
  std::map<std::string, std::shared_ptr<FamilyHandle>> families;
  {
    const MutexLock lock(mutex_);
    families.swap(families_);
  }
  const std::string doing = "close checkpoints in " + path_;
  Status flushed;
  if (options_.create_if_missing) {  // opened for writing
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    for (const auto& [name, family] : families) {
      handles.push_back(family->get());
    }
    flushed = to_status(db_->Flush(rocksdb::FlushOptions(), handles), doing);
  }
  families.clear();
  Status closed = to_status(db_->Close(), doing);
  return flushed.ok() ? std::move(closed) : std::move(flushed);
}

Result<std::optional<StorePosition>> read_position(DatabaseCore& core, const std::string& store) {
  const std::shared_ptr<FamilyHandle> family = core.family(store);
  if (family == nullptr) {
    return std::optional<StorePosition>();
  }
  std::string bytes;
  const rocksdb::Status read =
      core.db().Get(rocksdb::ReadOptions(), family->get(),
                    rocksdb::Slice(kPositionKey.data(), kPositionKey.size()), &bytes);
  if (read.IsNotFound()) {
    return std::optional<StorePosition>();
  }
  const std::string doing = "read the position of checkpoint " + store;
  WEIR_TRY(to_status(read, doing));
  Result<StorePosition> position = decode_position(bytes);
  if (!position.ok()) {
    return Error(position.error()).with_context(doing);
  }
  return std::optional(*position);
}

}  // namespace weir::state
