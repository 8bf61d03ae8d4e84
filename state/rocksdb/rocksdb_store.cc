#include "state/rocksdb/rocksdb_store.h"

#include "state/checkpoint/position_record.h"
#include "state/rocksdb/key_format.h"
#include "state/rocksdb/status_mapping.h"

#include <fmt/core.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

namespace weir::state {
namespace {

// An exception of RocksDB or of the standard library under it (out of memory) stops here.
template <class Call>
auto guarded(const std::string& doing, Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& problem) {
    return Error(Errc::kInternal, fmt::format("{}: {}", doing, problem.what()));
  }
}

rocksdb::Slice slice(ByteView bytes) {
  return {bytes.data(), bytes.size()};
}

// Reads rows in blocks and holds nothing of RocksDB between them: however long a scan stays open,
// it keeps no file, no memory table and no lock, and the database can be opened again under it.
class RocksDbIterator final : public CheckpointIterator {
 public:
  RocksDbIterator(std::shared_ptr<DatabaseOwner> owner, std::string name, std::uint64_t epoch,
                  ByteView from, std::optional<ByteView> to)
      : owner_(std::move(owner)), name_(std::move(name)), epoch_(epoch), from_(stored_key(from)) {
    if (to.has_value()) {
      end_ = stored_key(*to);
    }
    fetch();
  }

  bool valid() const override { return at_ < rows_.size(); }
  ByteView key() const override { return ByteView(rows_[at_].first).substr(1); }
  ByteView value() const override { return rows_[at_].second; }
  Status status() const override { return status_; }

  void next() override {
    if (++at_ == rows_.size() && !at_end_) {
      from_ = std::move(rows_.back().first);
      from_.push_back('\0');  // the next key in byte order
      fetch();
    }
  }

 private:
  // Small at first, for the many scans that stop early.
  static constexpr std::size_t kFirstRows = 16;
  static constexpr std::size_t kRowsMax = 2048;
  static constexpr std::size_t kBlockBytes = 256U << 10U;

  void fetch() {
    rows_.clear();
    at_ = 0;
    status_ = guarded(name_, [&] { return read_block(); });
    if (!status_.ok()) {
      rows_.clear();
      at_end_ = true;
    }
  }

  Status read_block() {
    WEIR_TRY_ASSIGN(const DatabaseOwner::Use core, owner_->use(name_, epoch_));
    const std::shared_ptr<FamilyHandle> family = core->family(name_);
    rocksdb::ReadOptions options;
    const rocksdb::Slice end = end_.has_value() ? rocksdb::Slice(*end_) : rocksdb::Slice();
    options.iterate_upper_bound = end_.has_value() ? &end : nullptr;
    const std::unique_ptr<rocksdb::Iterator> rows(core->db().NewIterator(options, family->get()));
    std::size_t bytes = 0;
    for (rows->Seek(from_); rows->Valid() && rows_.size() < block_rows_ && bytes < kBlockBytes;
         rows->Next()) {
      rows_.emplace_back(rows->key().ToString(), rows->value().ToString());
      bytes += rows->key().size() + rows->value().size();
    }
    at_end_ = !rows->Valid();
    block_rows_ = std::min(block_rows_ * 4, kRowsMax);
    return to_status(rows->status(), "scan checkpoint " + name_);
  }

  std::shared_ptr<DatabaseOwner> owner_;
  std::string name_;
  std::uint64_t epoch_;
  std::string from_;
  std::optional<std::string> end_;
  std::vector<std::pair<std::string, std::string>> rows_;
  std::size_t at_ = 0;
  std::size_t block_rows_ = kFirstRows;
  bool at_end_ = false;
  Status status_;
};

}  // namespace

RocksDbStore::RocksDbStore(std::shared_ptr<DatabaseOwner> owner, std::string name,
                           std::uint64_t epoch)
    : owner_(std::move(owner)), name_(std::move(name)), epoch_(epoch) {}

std::string RocksDbStore::doing(std::string_view what) const {
  return fmt::format("{} checkpoint {} in {}", what, name_, owner_->path());
}

Result<std::optional<StorePosition>> RocksDbStore::position() {
  return guarded(doing("read"), [&]() -> Result<std::optional<StorePosition>> {
    WEIR_TRY_ASSIGN(const DatabaseOwner::Use core, owner_->use(name_, epoch_));
    return read_position(*core, name_);
  });
}

Result<std::optional<std::string>> RocksDbStore::get(ByteView key) {
  return guarded(name_, [&]() -> Result<std::optional<std::string>> {
    WEIR_TRY_ASSIGN(const DatabaseOwner::Use core, owner_->use(name_, epoch_));
    std::string value;
    const rocksdb::Status read =
        core->db().Get(rocksdb::ReadOptions(), core->family(name_)->get(), stored_key(key), &value);
    if (read.IsNotFound()) {
      return std::optional<std::string>();
    }
    if (!read.ok()) {
      return to_error(read, doing("read"));
    }
    return std::optional(std::move(value));
  });
}

Result<std::vector<std::optional<std::string>>> RocksDbStore::get_many(
    const std::vector<ByteView>& keys) {
  using Values = std::vector<std::optional<std::string>>;
  return guarded(name_, [&]() -> Result<Values> {
    WEIR_TRY_ASSIGN(const DatabaseOwner::Use core, owner_->use(name_, epoch_));
    std::vector<std::string> owned;
    owned.reserve(keys.size());
    std::transform(keys.begin(), keys.end(), std::back_inserter(owned), &stored_key);
    const std::vector<rocksdb::Slice> slices(owned.begin(), owned.end());
    std::vector<rocksdb::PinnableSlice> found(keys.size());
    std::vector<rocksdb::Status> statuses(keys.size());
    const std::shared_ptr<FamilyHandle> family = core->family(name_);
    core->db().MultiGet(rocksdb::ReadOptions(), family->get(), keys.size(), slices.data(),
                        found.data(), statuses.data());
    Values values(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (statuses[i].ok()) {
        values[i].emplace(found[i].data(), found[i].size());
      } else if (!statuses[i].IsNotFound()) {
        return to_error(statuses[i], doing("read"));
      }
    }
    return values;
  });
}

Result<std::unique_ptr<CheckpointIterator>> RocksDbStore::scan(ByteView from,
                                                               std::optional<ByteView> to) {
  return guarded(doing("scan"), [&]() -> Result<std::unique_ptr<CheckpointIterator>> {
    auto iterator = std::make_unique<RocksDbIterator>(owner_, name_, epoch_, from, to);
    WEIR_TRY(iterator->status());
    return std::unique_ptr<CheckpointIterator>(std::move(iterator));
  });
}

template <class Call>
Status RocksDbStore::writing(std::string_view what, Call call) {
  return guarded(doing(what), [&]() -> Status {
    WEIR_TRY_ASSIGN(const DatabaseOwner::Use core, owner_->use_for_write(name_, epoch_));
    Status written = call(*core);
    if (!written.ok()) {
      owner_->write_failed();
    }
    return written;
  });
}

Status RocksDbStore::ingest(const std::function<bool(StoreChange&)>& next,
                            const StorePosition& position) {
  return writing("ingest into",
                 [&](DatabaseCore& core) { return ingest_file(core, next, position); });
}

Status RocksDbStore::ingest_file(DatabaseCore& core, const std::function<bool(StoreChange&)>& next,
                                 const StorePosition& position) {
  const std::string path = join_path(
      owner_->path(), fmt::format("{}{}", owner_->next_file(), FileSystemAdapter::kIngestSuffix));
  Status built = build_file(core, path, next, position);
  if (built.ok()) {
    rocksdb::IngestExternalFileOptions options;
    options.move_files = true;  // FileSystemAdapter::LinkFile() renames
    options.write_global_seqno = false;
    built = to_status(core.db().IngestExternalFile(core.family(name_)->get(), {path}, options),
                      doing("ingest into"));
  }
  if (!built.ok()) {
    owner_->files().remove_file(path).ignore("RocksDB may have it; a leftover is removed at open");
    return built;
  }
  owner_->wrote_position(name_, position);
  return {};
}

Status RocksDbStore::build_file(DatabaseCore& core, const std::string& path,
                                const std::function<bool(StoreChange&)>& next,
                                const StorePosition& position) {
  const std::shared_ptr<FamilyHandle> family = core.family(name_);
  const std::string building = doing("build a file of");
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), core.options(), family->get());
  WEIR_TRY(to_status(writer.Open(path), building));
  WEIR_TRY(to_status(writer.Put(slice(kPositionKey), encode_position(position)), building));
  std::string key;
  StoreChange change;
  while (next(change)) {
    key.assign(1, kUserPrefix);
    key += change.key;
    const rocksdb::Status added =
        change.value.is_null() ? writer.Delete(key) : writer.Put(key, slice(change.value.view()));
    if (!added.ok()) {
      return to_error(added, building);
    }
  }
  return to_status(writer.Finish(), building);
}

Status RocksDbStore::write(const std::vector<StoreChange>& changes, const StorePosition& position) {
  return writing("write to",
                 [&](DatabaseCore& core) { return write_batch(core, changes, position); });
}

Status RocksDbStore::write_batch(DatabaseCore& core, const std::vector<StoreChange>& changes,
                                 const StorePosition& position) {
  const std::shared_ptr<FamilyHandle> family = core.family(name_);
  rocksdb::WriteBatch batch;
  WEIR_TRY(to_status(batch.Put(family->get(), slice(kPositionKey), encode_position(position)),
                     doing("write to")));
  for (const StoreChange& change : changes) {
    const std::string key = stored_key(change.key);
    const rocksdb::Status added = change.value.is_null()
                                      ? batch.Delete(family->get(), key)
                                      : batch.Put(family->get(), key, slice(change.value.view()));
    if (!added.ok()) {
      return to_error(added, doing("write to"));
    }
  }
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  WEIR_TRY(to_status(core.db().Write(options, &batch), doing("write to")));
  owner_->wrote_position(name_, position);
  return {};
}

Status RocksDbStore::flush() {
  return writing("flush", [&](DatabaseCore& core) {
    return to_status(core.db().Flush(rocksdb::FlushOptions(), core.family(name_)->get()),
                     doing("flush"));
  });
}

Status RocksDbStore::clear() {
  return writing("clear", [&](DatabaseCore& core) -> Status {
    WEIR_TRY(core.replace_family(name_));
    owner_->forget_position(name_);
    return {};
  });
}

std::uint64_t RocksDbStore::estimated_keys() {
  const auto core = owner_->use(name_, epoch_);
  std::uint64_t keys = 0;
  if (core.ok()) {
    (**core).db().GetIntProperty((**core).family(name_)->get(),
                                 rocksdb::DB::Properties::kEstimateNumKeys, &keys);
  }
  return keys;
}

}  // namespace weir::state
