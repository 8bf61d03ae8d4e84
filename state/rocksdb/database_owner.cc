#include "state/rocksdb/database_core.h"

#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <utility>

namespace weir::state {

DatabaseOwner::DatabaseOwner(weir::FileSystem& files, std::string path,
                             const CheckpointDatabaseOptions& settings,
                             std::unique_ptr<DatabaseCore> core)
    : files_(files), path_(std::move(path)), settings_(settings), core_(std::move(core)) {}

DatabaseOwner::Use::~Use() {
  if (owner_ != nullptr) {
    owner_->end_use();
  }
}

void DatabaseOwner::end_use() {
  const MutexLock lock(mutex_);
  --uses_;
  idle_.notify_all();
}

Result<DatabaseOwner::Use> DatabaseOwner::start_use(const std::string& store, std::uint64_t epoch) {
  if (written_[store].epoch != epoch) {
    return Error(Errc::kIo,
                 fmt::format("checkpoint {} in {} lost commits that were not flushed when a write "
                             "failed; give the store up, its next owner restores it from the "
                             "changelog",
                             store, path_));
  }
  ++uses_;
  return Use(this, core_.get());
}

Result<DatabaseOwner::Use> DatabaseOwner::use(const std::string& store, std::uint64_t epoch) {
  const MutexLock lock(mutex_);
  if (closed_) {
    return Error(Errc::kClosed, "checkpoints in " + path_ + " are closed");
  }
  if (core_ == nullptr) {
    WEIR_TRY(reopen());
  }
  return start_use(store, epoch);
}

Result<DatabaseOwner::Use> DatabaseOwner::use_for_write(const std::string& store,
                                                        std::uint64_t epoch) {
  const MutexLock lock(mutex_);
  if (settings_.read_only) {
    return Error(Errc::kReadOnly,
                 fmt::format("checkpoint {} in {} was opened for reading", store, path_));
  }
  if (closed_) {
    return Error(Errc::kClosed, "checkpoints in " + path_ + " are closed");
  }
  if (failed_ || core_ == nullptr) {
    WEIR_TRY(reopen());
  }
  return start_use(store, epoch);
}

void DatabaseOwner::write_failed() {
  const MutexLock lock(mutex_);
  failed_ = true;
}

void DatabaseOwner::wrote_position(const std::string& store, const StorePosition& position) {
  const MutexLock lock(mutex_);
  written_[store].position = position;
}

void DatabaseOwner::forget_position(const std::string& store) {
  const MutexLock lock(mutex_);
  written_[store].position.reset();
}

// The mutex is held while it is opened: nobody can do anything without it anyway.
Status DatabaseOwner::reopen() {
  while (uses_ > 0) {
    idle_.wait(mutex_);
  }
  if (core_ != nullptr) {
    WEIR_WARN("checkpoint database is opened again after a failed write path={}", path_);
    core_->close().ignore("find_lost() tells what is missing");
    core_.reset();
  }
  WEIR_TRY_ASSIGN(core_, DatabaseCore::open(files_, path_, settings_));
  if (Status found = find_lost(); !found.ok()) {
    core_.reset();
    return found;
  }
  failed_ = false;
  return {};
}

Status DatabaseOwner::find_lost() {
  for (auto& [store, written] : written_) {
    if (!written.position.has_value()) {
      continue;
    }
    WEIR_TRY_ASSIGN(const std::optional<StorePosition> found, read_position(*core_, store));
    if (found != written.position) {
      WEIR_ERROR("checkpoint lost commits store={} path={} had_offset={} has_offset={}", store,
                 path_, written.position->next_offset.value(),
                 found.has_value() ? found->next_offset.value() : -1);
      ++written.epoch;
      written.position = found;
    }
  }
  return {};
}

Result<std::uint64_t> DatabaseOwner::open_store(const std::string& store) {
  const MutexLock lock(mutex_);
  if (closed_) {
    return Error(Errc::kClosed, "checkpoints in " + path_ + " are closed");
  }
  if (core_ == nullptr || failed_) {
    WEIR_TRY(reopen());
  }
  if (core_->family(store) == nullptr) {
    if (settings_.read_only) {
      return Error(Errc::kNotFound, fmt::format("{} has no checkpoint {}", path_, store));
    }
    if (Status made = core_->make_family(store); !made.ok()) {
      failed_ = true;
      return std::move(made).error();
    }
  }
  return written_[store].epoch;
}

Result<std::vector<std::string>> DatabaseOwner::store_names() {
  const MutexLock lock(mutex_);
  if (closed_) {
    return Error(Errc::kClosed, "checkpoints in " + path_ + " are closed");
  }
  if (core_ == nullptr) {
    WEIR_TRY(reopen());
  }
  return core_->family_names();
}

Status DatabaseOwner::close() {
  const MutexLock lock(mutex_);
  while (uses_ > 0) {
    idle_.wait(mutex_);
  }
  closed_ = true;
  if (core_ == nullptr) {
    return {};
  }
  const Status closed = core_->close();
  core_.reset();
  return closed;
}

}  // namespace weir::state
