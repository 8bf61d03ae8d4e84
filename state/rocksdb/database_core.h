#pragma once

#include "state/rocksdb/file_system_adapter.h"

#include <weir/runtime/thread_annotations.h>
#include <weir/state/checkpoint_store.h>

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::state {

// A column family of an open database. Dies before its database.
class FamilyHandle {
 public:
  FamilyHandle(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* handle) : db_(db), handle_(handle) {}
  ~FamilyHandle() { db_.DestroyColumnFamilyHandle(handle_).PermitUncheckedError(); }
  FamilyHandle(const FamilyHandle&) = delete;
  FamilyHandle& operator=(const FamilyHandle&) = delete;
  rocksdb::ColumnFamilyHandle* get() const { return handle_; }

 private:
  rocksdb::DB& db_;
  rocksdb::ColumnFamilyHandle* handle_;
};

// One open RocksDB. Threading: thread-safe.
class DatabaseCore {
 public:
  // Errors: kLocked, kNotFound (read only), kCorrupt, kIo.
  static Result<std::unique_ptr<DatabaseCore>> open(weir::FileSystem& files,
                                                    const std::string& path,
                                                    const CheckpointDatabaseOptions& settings);
  ~DatabaseCore();
  DatabaseCore(const DatabaseCore&) = delete;
  DatabaseCore& operator=(const DatabaseCore&) = delete;

  rocksdb::DB& db() { return *db_; }
  const rocksdb::Options& options() const { return options_; }
  // Null when there is none. Shared: calls in flight keep a family that clear() replaces.
  std::shared_ptr<FamilyHandle> family(const std::string& name) const;
  std::vector<std::string> family_names() const;
  Status make_family(const std::string& name);
  // An empty family in the place of the old one.
  Status replace_family(const std::string& name);
  // Flushes what is in memory only. Errors: it was not written and is lost.
  Status close();

 private:
  DatabaseCore(weir::FileSystem& files, std::string path,
               const CheckpointDatabaseOptions& settings);
  Status open_database(bool read_only);

  std::string path_;
  std::shared_ptr<FileSystemAdapter> adapter_;  // RocksDB's interface takes it shared
  std::unique_ptr<rocksdb::Env> env_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<FamilyHandle>> families_ WEIR_GUARDED_BY(mutex_);
};

// Keeps a database open across failed writes. After one RocksDB refuses all others, and its own
// Resume() never returns in 7.8 when a compaction is pending (it waits for background work that is
// scheduled again at once, because the error still stands). So it is closed and opened again: what
// was durable is there. Changes of direct stores that were not flushed may be gone; such a store
// is told so and must be restored.
//
// Threading: thread-safe. A reopening waits for the calls in flight; open scans hold nothing.
class DatabaseOwner {
 public:
  DatabaseOwner(weir::FileSystem& files, std::string path,
                const CheckpointDatabaseOptions& settings, std::unique_ptr<DatabaseCore> core);

  // A call in flight.
  class Use {
   public:
    Use(DatabaseOwner* owner, DatabaseCore* core) : owner_(owner), core_(core) {}
    Use(Use&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), core_(other.core_) {}
    Use& operator=(Use&&) = delete;
    ~Use();
    DatabaseCore& operator*() const { return *core_; }
    DatabaseCore* operator->() const { return core_; }

   private:
    DatabaseOwner* owner_;
    DatabaseCore* core_;
  };

  // Errors: kClosed, kIo when it cannot be opened again, or when the store lost commits since it
  // was opened (`epoch`).
  Result<Use> use(const std::string& store, std::uint64_t epoch);
  // As use(), behind a failed write after opening again. Errors: kReadOnly besides.
  Result<Use> use_for_write(const std::string& store, std::uint64_t epoch);
  void write_failed();
  // What the store wrote last; to be found again after a reopening.
  void wrote_position(const std::string& store, const StorePosition& position);
  void forget_position(const std::string& store);
  // Makes it when absent. Returns the epoch to use it with.
  Result<std::uint64_t> open_store(const std::string& store);
  Result<std::vector<std::string>> store_names();
  Status close();

  weir::FileSystem& files() const { return files_; }
  const std::string& path() const { return path_; }
  std::uint64_t next_file() { return next_file_.fetch_add(1); }

 private:
  struct Written {
    std::optional<StorePosition> position;
    std::uint64_t epoch = 0;  // grows when commits were lost
  };
  Status reopen() WEIR_REQUIRES(mutex_);
  Status find_lost() WEIR_REQUIRES(mutex_);
  Result<Use> start_use(const std::string& store, std::uint64_t epoch) WEIR_REQUIRES(mutex_);
  void end_use();

  weir::FileSystem& files_;
  const std::string path_;
  const CheckpointDatabaseOptions settings_;
  std::atomic<std::uint64_t> next_file_{0};
  Mutex mutex_;
  CondVar idle_;
  std::unique_ptr<DatabaseCore> core_ WEIR_GUARDED_BY(mutex_);
  std::map<std::string, Written> written_ WEIR_GUARDED_BY(mutex_);
  int uses_ WEIR_GUARDED_BY(mutex_) = 0;
  bool failed_ WEIR_GUARDED_BY(mutex_) = false;
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;
};

// Position of a family; nullopt when it has none.
Result<std::optional<StorePosition>> read_position(DatabaseCore& core, const std::string& store);

}  // namespace weir::state
