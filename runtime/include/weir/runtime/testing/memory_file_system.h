#pragma once

#include <weir/runtime/file_system.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace weir::testing {

// A disk in memory that tells page cache from durable bytes.
//
// Model. Each file has cached content (what reads see) and durable content in blocks of
// `block_bytes`. A write dirties blocks; sync() makes the file's content and size durable. Names
// (create, rename, remove) take effect in the cache at once and become durable by sync_directory()
// of the folder (in order, per folder), all of both by sync_disk() (an operation kSync).
// power_cut() throws the cache away and keeps, as the seed decides, any subset of the unsynced
// blocks (a kept block may itself be torn at a 512-byte border), any length between the durable and
// the cached one, and any prefix of each folder's unsynced name changes. Bytes never written but
// inside a kept length read as zeros.
//
// Threading: thread-safe. submit() completes on the caller's thread before it returns, unless
//            hold_submits(true): then run_submitted() completes them, in order.
class MemoryFileSystem : public FileSystem {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::size_t block_bytes = 4096;
    std::uint64_t capacity_bytes = UINT64_MAX;  // ENOSPC beyond it
  };
  MemoryFileSystem();
  explicit MemoryFileSystem(Options options);
  ~MemoryFileSystem() override;

  // What an operation is, for counting and for faults.
  enum class Operation {
    kWrite,
    kSync,
    kRename,
    kCreate,
    kRemove,
    kTruncate,
    kSyncDirectory,
    kRead
  };
  // Called before each operation; an error makes the operation fail with it (EIO, ENOSPC), having
  // done nothing. Return Status() to let it pass.
  using Fault = std::function<Status(Operation operation, const std::string& path)>;
  void set_fault(Fault fault);

  // The power goes before mutating operation number `operation` (counted from now, from 0; reads
  // are not counted): that one and all later calls fail with kIo until power_cut(), or until
  // process_crash(), when it was the process that ended there. An interrupted write may have
  // reached the cache in part.
  void cut_power_at(std::uint64_t operation);
  bool power_is_off() const;
  // Mutating operations since construction.
  std::uint64_t operations() const;
  // Loses what was not durable, as the seed decides; the disk then works again. All open File,
  // SharedMapping and FileLock objects are dead (kIo); locks are released.
  void power_cut();
  // As `kill -9`: the cache survives, locks and open files do not.
  void process_crash();

  void set_capacity(std::uint64_t bytes);
  void hold_submits(bool hold);
  // Completes held requests; returns how many.
  std::size_t run_submitted();
  // Flips one bit of cached and durable content. Requires: the file is that long.
  void flip_bit(const std::string& path, std::uint64_t position, int bit);
  // Deep copy of the present state (cache and durable), with no open files and no locks.
  std::unique_ptr<MemoryFileSystem> clone(std::uint64_t seed) const;

  Result<std::shared_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Status create_directories(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Status sync_disk(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> list(const std::string& path) override;
  Result<FileInfo> info(const std::string& path) override;
  Result<DiskSpace> disk_space(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path, std::string_view holder) override;
  Result<std::unique_ptr<SharedMapping>> map(const std::string& path, std::size_t size,
                                             bool writable) override;
  void submit(IoRequest request, std::function<void(Status)> done) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weir::testing
