#include "state/checkpoint/position_record.h"
#include "state/rocksdb/file_system_adapter.h"
#include "state/rocksdb/key_format.h"
#include "state/rocksdb/status_mapping.h"

#include <weir/runtime/logger.h>
#include <weir/runtime/thread_annotations.h>
#include <weir/state/checkpoint_store.h>

#include <fmt/core.h>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <map>
#include <utility>

namespace weir::state {
namespace {

// RocksDB's own diagnostics: errors only, as lines of ours.
class QuietLogger final : public rocksdb::Logger {
 public:
  QuietLogger() : Logger(rocksdb::InfoLogLevel::ERROR_LEVEL) {}
  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    char text[512];
    if (std::vsnprintf(text, sizeof(text), format, arguments) > 0) {
      WEIR_WARN("rocksdb says text=\"{}\"", text);
    }
  }
};

// An exception of RocksDB or of the standard library under it (out of memory) stops here.
template <class Call>
auto guarded(std::string_view doing, Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& problem) {
    return Error(Errc::kInternal, fmt::format("{}: {}", doing, problem.what()));
  }
}

rocksdb::Slice slice(ByteView bytes) {
  return {bytes.data(), bytes.size()};
}

ByteView bytes_of(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

// The open database. Shared by the stores and iterators on it: the last one closes it.
struct Core {
  Core(weir::FileSystem& files_in, std::string path_in)
      : files(files_in),
        path(std::move(path_in)),
        adapter(std::make_shared<FileSystemAdapter>(files_in)),
        env(rocksdb::NewCompositeEnv(adapter)) {}

  weir::FileSystem& files;
  std::string path;
  std::shared_ptr<FileSystemAdapter> adapter;  // RocksDB's interface takes it shared
  std::unique_ptr<rocksdb::Env> env;
  rocksdb::Options options;
  std::unique_ptr<rocksdb::DB> db;
  bool read_only = false;
  std::atomic<std::uint64_t> next_file{0};
  std::atomic<bool> failed{false};  // a write failed: RocksDB wants Resume() before the next
};

// A column family, alive while a store or an iterator uses it.
class Handle {
 public:
  Handle(std::shared_ptr<Core> core, rocksdb::ColumnFamilyHandle* handle)
      : core_(std::move(core)), handle_(handle) {}
  ~Handle() { core_->db->DestroyColumnFamilyHandle(handle_).PermitUncheckedError(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  rocksdb::ColumnFamilyHandle* get() const { return handle_; }

 private:
  std::shared_ptr<Core> core_;
  rocksdb::ColumnFamilyHandle* handle_;
};

// A store partition. clear() replaces its column family while readers keep the old one.
class Family {
 public:
  Family(std::string name, std::shared_ptr<Handle> handle)
      : name_(std::move(name)), handle_(std::move(handle)) {}
  const std::string& name() const { return name_; }
  std::shared_ptr<Handle> handle() const {
    const MutexLock lock(mutex_);
    return handle_;
  }
  void replace(std::shared_ptr<Handle> handle) {
    const MutexLock lock(mutex_);
    handle_ = std::move(handle);
  }

 private:
  std::string name_;
  mutable Mutex mutex_;
  std::shared_ptr<Handle> handle_ WEIR_GUARDED_BY(mutex_);
};

class RocksIterator final : public CheckpointIterator {
 public:
  RocksIterator(std::shared_ptr<Core> core, std::shared_ptr<Handle> handle, ByteView from,
                std::optional<ByteView> to)
      : core_(std::move(core)), handle_(std::move(handle)), name_("scan of " + core_->path) {
    if (to.has_value()) {
      end_ = stored_key(*to);
      end_slice_ = end_;
    }
    rocksdb::ReadOptions options;
    options.iterate_upper_bound = to.has_value() ? &end_slice_ : nullptr;
    options.auto_prefix_mode = false;
    iterator_.reset(core_->db->NewIterator(options, handle_->get()));
    iterator_->Seek(stored_key(from));
  }

  bool valid() const override { return iterator_->Valid(); }
  ByteView key() const override { return bytes_of(iterator_->key()).substr(1); }
  ByteView value() const override { return bytes_of(iterator_->value()); }
  void next() override { iterator_->Next(); }
  Status status() const override { return to_status(iterator_->status(), name_); }

 private:
  std::shared_ptr<Core> core_;
  std::shared_ptr<Handle> handle_;
  std::string name_;
  std::string end_;
  rocksdb::Slice end_slice_;
  std::unique_ptr<rocksdb::Iterator> iterator_;  // goes before what it reads
};

class RocksStore final : public CheckpointStore {
 public:
  RocksStore(std::shared_ptr<Core> core, std::shared_ptr<Family> family)
      : core_(std::move(core)), family_(std::move(family)) {}

  Result<std::optional<StorePosition>> position() override {
    return guarded(doing("position"), [&]() -> Result<std::optional<StorePosition>> {
      std::string bytes;
      const rocksdb::Status read = core_->db->Get(rocksdb::ReadOptions(), family_->handle()->get(),
                                                  slice(kPositionKey), &bytes);
      if (read.IsNotFound()) {
        return std::optional<StorePosition>();
      }
      WEIR_TRY(to_status(read, doing("position")));
      Result<StorePosition> position = decode_position(bytes);
      if (!position.ok()) {
        return Error(position.error()).with_context(doing("position"));
      }
      return std::optional(*position);
    });
  }

  Result<std::optional<std::string>> get(ByteView key) override {
    return guarded("get", [&]() -> Result<std::optional<std::string>> {
      std::string value;
      const rocksdb::Status read =
          core_->db->Get(rocksdb::ReadOptions(), family_->handle()->get(), stored_key(key), &value);
      if (read.IsNotFound()) {
        return std::optional<std::string>();
      }
      WEIR_TRY(to_status(read, "get"));
      return std::optional(std::move(value));
    });
  }

  Result<std::vector<std::optional<std::string>>> get_many(
      const std::vector<ByteView>& keys) override {
    return guarded("get_many", [&] { return multi_get(keys); });
  }

  Result<std::unique_ptr<CheckpointIterator>> scan(ByteView from,
                                                   std::optional<ByteView> to) override {
    return guarded(doing("scan"), [&]() -> Result<std::unique_ptr<CheckpointIterator>> {
      auto iterator = std::make_unique<RocksIterator>(core_, family_->handle(), from, to);
      WEIR_TRY(iterator->status());
      return std::unique_ptr<CheckpointIterator>(std::move(iterator));
    });
  }

  Status ingest(const std::function<bool(StoreChange&)>& next,
                const StorePosition& position) override {
    return guarded(doing("ingest"), [&] { return guard_write(ingest_file(next, position)); });
  }

  Status write(const std::vector<StoreChange>& changes, const StorePosition& position) override {
    return guarded(doing("write"), [&] { return guard_write(write_batch(changes, position)); });
  }

  Status flush() override {
    return guarded(doing("flush"), [&]() -> Status {
      WEIR_TRY(ready_to_write());
      return guard_write(to_status(
          core_->db->Flush(rocksdb::FlushOptions(), family_->handle()->get()), doing("flush")));
    });
  }

  Status clear() override {
    return guarded(doing("clear"), [&] { return guard_write(replace_family()); });
  }

  std::uint64_t estimated_keys() override {
    std::uint64_t keys = 0;
    core_->db->GetIntProperty(family_->handle()->get(), rocksdb::DB::Properties::kEstimateNumKeys,
                              &keys);
    return keys;
  }

 private:
  std::string doing(std::string_view what) const {
    return fmt::format("{} of checkpoint {} in {}", what, family_->name(), core_->path);
  }

  Status guard_write(Status status) {
    if (!status.ok() && status.error().code() != Errc::kReadOnly) {
      core_->failed.store(true);
    }
    return status;
  }

  // After a failed write RocksDB refuses all others until it is told to go on.
  Status ready_to_write() {
    if (core_->read_only) {
      return Error(Errc::kReadOnly, doing("write") + ": it was opened for reading");
    }
    if (core_->failed.exchange(false)) {
      return guard_write(to_status(core_->db->Resume(), doing("resume")));
    }
    return {};
  }

  Result<std::vector<std::optional<std::string>>> multi_get(const std::vector<ByteView>& keys) {
    std::vector<std::string> owned;
    owned.reserve(keys.size());
    std::transform(keys.begin(), keys.end(), std::back_inserter(owned), &stored_key);
    const std::vector<rocksdb::Slice> slices(owned.begin(), owned.end());
    std::vector<rocksdb::PinnableSlice> found(keys.size());
    std::vector<rocksdb::Status> statuses(keys.size());
    const std::shared_ptr<Handle> handle = family_->handle();
    core_->db->MultiGet(rocksdb::ReadOptions(), handle->get(), keys.size(), slices.data(),
                        found.data(), statuses.data());
    std::vector<std::optional<std::string>> values(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (statuses[i].ok()) {
        values[i].emplace(found[i].data(), found[i].size());
      } else if (!statuses[i].IsNotFound()) {
        return to_error(statuses[i], doing("get_many"));
      }
    }
    return values;
  }

  Status ingest_file(const std::function<bool(StoreChange&)>& next, const StorePosition& position) {
    WEIR_TRY(ready_to_write());
    const std::string path = join_path(
        core_->path,
        fmt::format("{}{}", core_->next_file.fetch_add(1), FileSystemAdapter::kIngestSuffix));
    Status built = build_file(path, next, position);
    if (built.ok()) {
      rocksdb::IngestExternalFileOptions options;
      options.move_files = true;
      options.write_global_seqno = false;
      built = to_status(core_->db->IngestExternalFile(family_->handle()->get(), {path}, options),
                        doing("ingest"));
    }
    if (!built.ok()) {
      core_->files.remove_file(path).ignore("absent when RocksDB took it; else removed at open");
    }
    return built;
  }

  Status build_file(const std::string& path, const std::function<bool(StoreChange&)>& next,
                    const StorePosition& position) {
    const std::shared_ptr<Handle> handle = family_->handle();
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), core_->options, handle->get());
    WEIR_TRY(to_status(writer.Open(path), doing("build")));
    WEIR_TRY(to_status(writer.Put(slice(kPositionKey), encode_position(position)), doing("build")));
    std::string key;
    StoreChange change;
    while (next(change)) {
      key.assign(1, kUserPrefix);
      key += change.key;
      WEIR_TRY(to_status(
          change.value.is_null() ? writer.Delete(key) : writer.Put(key, slice(change.value.view())),
          doing("build")));
    }
    return to_status(writer.Finish(), doing("build"));
  }

  Status write_batch(const std::vector<StoreChange>& changes, const StorePosition& position) {
    WEIR_TRY(ready_to_write());
    const std::shared_ptr<Handle> handle = family_->handle();
    rocksdb::WriteBatch batch;
    batch.Put(handle->get(), slice(kPositionKey), encode_position(position));
    for (const StoreChange& change : changes) {
      const std::string key = stored_key(change.key);
      if (change.value.is_null()) {
        batch.Delete(handle->get(), key);
      } else {
        batch.Put(handle->get(), key, slice(change.value.view()));
      }
    }
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    return to_status(core_->db->Write(options, &batch), doing("write"));
  }

  Status replace_family() {
    WEIR_TRY(ready_to_write());
    const std::shared_ptr<Handle> old = family_->handle();
    WEIR_TRY(to_status(core_->db->DropColumnFamily(old->get()), doing("clear")));
    rocksdb::ColumnFamilyHandle* made = nullptr;
    WEIR_TRY(to_status(core_->db->CreateColumnFamily(core_->options, family_->name(), &made),
                       doing("clear")));
    family_->replace(std::make_shared<Handle>(core_, made));
    return {};
  }

  std::shared_ptr<Core> core_;
  std::shared_ptr<Family> family_;
};

class RocksDatabase final : public CheckpointDatabase {
 public:
  RocksDatabase(std::shared_ptr<Core> core, std::map<std::string, std::shared_ptr<Family>> families)
      : core_(std::move(core)), families_(std::move(families)) {}

  Result<std::unique_ptr<CheckpointStore>> open_store(const std::string& name) override {
    const MutexLock lock(mutex_);
    if (core_ == nullptr) {
      return Error(Errc::kClosed, "open store " + name + ": the checkpoint database is closed");
    }
    auto found = families_.find(name);
    if (found == families_.end()) {
      if (core_->read_only) {
        return Error(Errc::kNotFound, fmt::format("{} has no store {}", core_->path, name));
      }
      rocksdb::ColumnFamilyHandle* made = nullptr;
      WEIR_TRY(to_status(core_->db->CreateColumnFamily(core_->options, name, &made),
                         "make store " + name + " in " + core_->path));
      found =
          families_
              .emplace(name, std::make_shared<Family>(name, std::make_shared<Handle>(core_, made)))
              .first;
    }
    return std::unique_ptr<CheckpointStore>(std::make_unique<RocksStore>(core_, found->second));
  }

  Result<std::vector<std::string>> list_stores() override {
    const MutexLock lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, family] : families_) {
      names.push_back(name);
    }
    return names;
  }

  Status close() override {
    const MutexLock lock(mutex_);
    if (core_ == nullptr) {
      return {};
    }
    families_.clear();
    if (core_.use_count() > 1) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("close of {}: stores or scans on it are still open", core_->path));
    }
    // Before Close(): direct stores may have changes in memory only.
    const Status closed = to_status(core_->db->Close(), "close of " + core_->path);
    core_.reset();
    return closed;
  }

 private:
  Mutex mutex_;
  std::shared_ptr<Core> core_ WEIR_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Family>> families_ WEIR_GUARDED_BY(mutex_);
};

rocksdb::Options make_options(const Core& core, const CheckpointDatabaseOptions& settings) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(settings.block_cache_bytes);
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = true;
  table.format_version = 5;

  rocksdb::Options options;
  options.env = core.env.get();
  options.create_if_missing = !settings.read_only;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.info_log = std::make_shared<QuietLogger>();
  // Its default depends on NDEBUG in the file that includes RocksDB's headers.
  options.info_log_level = rocksdb::InfoLogLevel::ERROR_LEVEL;
  options.max_background_jobs = 2;
  options.max_open_files = settings.read_only ? -1 : 512;
  options.max_file_opening_threads = 2;
  options.write_buffer_size = 8U << 20U;
  options.db_write_buffer_size = 32U << 20U;
  options.max_manifest_file_size = 4U << 20U;
  options.compression = rocksdb::kNoCompression;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.skip_stats_update_on_db_open = true;
  // We decide when a failed write is tried again, not a thread of RocksDB.
  options.max_bgerror_resume_count = 0;
  return options;
}

bool is_ingest_leftover(const DirectoryEntry& entry) {
  return entry.kind == FileKind::kFile && entry.name.ends_with(FileSystemAdapter::kIngestSuffix);
}

// Checkpoints that a crash interrupted before they were ingested.
Status remove_leftovers(weir::FileSystem& files, const std::string& path) {
  WEIR_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, files.list(path));
  for (const DirectoryEntry& entry : entries) {
    if (is_ingest_leftover(entry)) {
      WEIR_TRY(files.remove_file(join_path(path, entry.name)));
    }
  }
  return {};
}

// Makes the folder with its parents, durably: a checkpoint must not vanish with a folder's name.
Status make_folder(weir::FileSystem& files, const std::string& path) {
  std::vector<std::string> made;
  for (std::string at = path; at != "." && at != "/" && !path_exists(files, at);
       at = parent_path(at)) {
    made.push_back(at);
  }
  WEIR_TRY(files.create_directories(path));
  for (auto at = made.rbegin(); at != made.rend(); ++at) {
    WEIR_TRY(files.sync_directory(parent_path(*at)));
  }
  return {};
}

Result<std::unique_ptr<CheckpointDatabase>> open_once(weir::FileSystem& files,
                                                      const std::string& path,
                                                      const CheckpointDatabaseOptions& settings) {
  auto core = std::make_shared<Core>(files, path);
  core->read_only = settings.read_only;
  core->options = make_options(*core, settings);
  const std::string doing = "open checkpoints in " + path;

  std::vector<std::string> names{rocksdb::kDefaultColumnFamilyName};
  if (path_exists(files, join_path(path, "CURRENT"))) {
    WEIR_TRY(to_status(rocksdb::DB::ListColumnFamilies(core->options, path, &names), doing));
  } else if (settings.read_only) {
    return Error(Errc::kNotFound,
                 fmt::format("{}: there are none; has the application run?", doing));
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : names) {
    descriptors.emplace_back(name, core->options);
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      settings.read_only
          ? rocksdb::DB::OpenForReadOnly(core->options, path, descriptors, &handles, &db)
          : rocksdb::DB::Open(core->options, path, descriptors, &handles, &db);
  if (!opened.ok()) {
    if (std::optional<Error> locked = core->adapter->lock_failure()) {
      return std::move(*locked).with_context(doing);
    }
    return to_error(opened, doing);
  }
  core->db.reset(db);
  std::map<std::string, std::shared_ptr<Family>> families;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto handle = std::make_shared<Handle>(core, handles[i]);
    if (names[i] != rocksdb::kDefaultColumnFamilyName) {
      families.emplace(names[i], std::make_shared<Family>(names[i], std::move(handle)));
    }
  }
  return std::unique_ptr<CheckpointDatabase>(
      std::make_unique<RocksDatabase>(std::move(core), std::move(families)));
}

// Beside a running owner files may vanish between the reading of the manifest and their opening.
bool may_pass(Errc code) {
  return code == Errc::kNotFound || code == Errc::kIo || code == Errc::kCorrupt;
}

}  // namespace

Result<std::unique_ptr<CheckpointDatabase>> open_rocksdb_checkpoints(
    weir::FileSystem& files, const std::string& path, const CheckpointDatabaseOptions& options) {
  constexpr int kReadOnlyAttempts = 20;
  return guarded(
      "open checkpoints in " + path, [&]() -> Result<std::unique_ptr<CheckpointDatabase>> {
        if (!options.read_only) {
          WEIR_TRY(make_folder(files, path));
          auto opened = open_once(files, path, options);
          if (opened.ok()) {  // the lock is ours
            WEIR_TRY(remove_leftovers(files, path));
          }
          return opened;
        }
        for (int attempt = 1;; ++attempt) {
          auto opened = open_once(files, path, options);
          if (opened.ok() || attempt == kReadOnlyAttempts || !may_pass(opened.error().code()) ||
              !path_exists(files, join_path(path, "CURRENT"))) {
            return opened;
          }
        }
      });
}

}  // namespace weir::state
