#pragma once

#include "runtime/testing/name_tree.h"

#include <weir/runtime/file_system.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/testing/memory_file_system.h>
#include <weir/runtime/thread_annotations.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing::internal {

// The disk behind MemoryFileSystem: one lock, the tree of names, the count of operations, faults,
// power. Its rules are those of memory_file_system.h.
//
// Threading: thread-safe. The fault hook runs outside the lock.
class MemoryDisk {
 public:
  using Options = MemoryFileSystem::Options;
  using Operation = MemoryFileSystem::Operation;
  using Fault = MemoryFileSystem::Fault;

  // An open file: it is good until the process or the power ends.
  struct Handle {
    NodePointer node;
    std::uint64_t generation = 0;
    bool writable = false;
    bool durable = false;  // OpenMode::kReadWriteDurable
    std::string path;
  };
  struct Mapping {
    Handle handle;
    char* data = nullptr;  // unmapped by close_mapping
    std::size_t size = 0;
  };

  explicit MemoryDisk(Options options);

  void set_fault(Fault fault);
  void cut_power_at(std::uint64_t operation);
  bool power_is_off() const;
  std::uint64_t operations() const;
  void power_cut();
  void process_crash();
  void set_capacity(std::uint64_t bytes);
  void flip_bit(const std::string& path, std::uint64_t position, int bit);
  std::shared_ptr<MemoryDisk> clone(std::uint64_t seed);

  Result<Handle> open(const std::string& path, OpenMode mode);
  void close(const Handle& handle);
  Result<std::size_t> read(const Handle& handle, std::uint64_t position, std::span<char> out);
  Status write(const Handle& handle, std::uint64_t position, ByteView bytes);
  Status sync(const Handle& handle);
  Result<std::uint64_t> size(const Handle& handle);
  Status truncate(const Handle& handle, std::uint64_t size);
  Status reserve(const Handle& handle, std::uint64_t size);

  Status rename(const std::string& from, const std::string& to);
  Status remove_file(const std::string& path);
  Status remove_directory(const std::string& path);
  Status create_directories(const std::string& path);
  Status sync_directory(const std::string& path);
  Status sync_disk(const std::string& path);
  Result<std::vector<DirectoryEntry>> list(const std::string& path);
  Result<FileInfo> info(const std::string& path);
  Result<DiskSpace> disk_space(const std::string& path);

  // The handle holds the lock until unlock().
  Result<Handle> lock(const std::string& path, std::string_view holder);
  void unlock(const Handle& handle);
  Result<Mapping> map(const std::string& path, std::size_t size, bool writable);
  void close_mapping(const Mapping& mapping);

 private:
  // What became of an operation before it did anything.
  enum class Verdict { kPass, kDead, kPowerCut, kFaulted };
  struct Admission {
    Verdict verdict = Verdict::kPass;
    Status status;
    bool ok() const { return verdict == Verdict::kPass; }
  };

  // Counts the operation, cuts the power when it is its turn, asks the fault hook.
  Admission admit(Operation operation, const std::string& path) WEIR_EXCLUDES(mutex_);
  Admission admit(Operation operation, const Handle& handle) WEIR_EXCLUDES(mutex_);
  Admission admit(Operation operation, const std::string& path,
                  std::optional<std::uint64_t> generation) WEIR_EXCLUDES(mutex_);
  Status check_power(const std::string& path) const WEIR_REQUIRES(mutex_);
  Status check_generation(std::uint64_t generation, const std::string& path) const
      WEIR_REQUIRES(mutex_);
  Status check_alive(const Handle& handle) const WEIR_REQUIRES(mutex_);

  // What open() will do to the name: kCreate, kTruncate, or nothing.
  Result<std::optional<Operation>> plan_open(const std::string& path, OpenMode mode)
      WEIR_EXCLUDES(mutex_);
  Result<NameTree::Place> find_file(std::string_view action, const std::string& path,
                                    bool must_exist) WEIR_REQUIRES(mutex_);
  Result<NameTree::Place> find_folder(std::string_view action, const std::string& path)
      WEIR_REQUIRES(mutex_);
  Status create_folder(const std::string& path) WEIR_EXCLUDES(mutex_);
  Status check_rename(const NameTree::Place& from, const NameTree::Place& to,
                      const std::string& path) const WEIR_REQUIRES(mutex_);
  Status check_unlocked(const Handle& handle) WEIR_REQUIRES(mutex_);
  Status extend_for_mapping(const Handle& handle, std::size_t size) WEIR_EXCLUDES(mutex_);
  Result<char*> attach_mapping(const Handle& handle, std::size_t size) WEIR_EXCLUDES(mutex_);

  std::uint64_t free_blocks() const WEIR_REQUIRES(mutex_);
  // Writes what fits. Errors: kNoSpace, kIo beyond the largest file.
  Status store(Node& node, const std::string& path, std::uint64_t position, ByteView bytes)
      WEIR_REQUIRES(mutex_);
  Status reserve_blocks(Node& node, std::string_view action, const std::string& path,
                        std::uint64_t size) WEIR_REQUIRES(mutex_);
  void set_size(Node& node, std::uint64_t size) WEIR_REQUIRES(mutex_);
  // A file with neither a name nor an opener gives its blocks back.
  void free_if_unused(const Node& node) WEIR_REQUIRES(mutex_);
  void touch(Node& node) const WEIR_REQUIRES(mutex_);
  void close_locked(const Handle& handle) WEIR_REQUIRES(mutex_);
  void end_processes() WEIR_REQUIRES(mutex_);
  void count_used_blocks() WEIR_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Options options_ WEIR_GUARDED_BY(mutex_);
  Rng rng_ WEIR_GUARDED_BY(mutex_);
  std::unique_ptr<NameTree> tree_ WEIR_GUARDED_BY(mutex_);
  std::shared_ptr<const Fault> fault_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t operations_ WEIR_GUARDED_BY(mutex_) = 0;
  std::optional<std::uint64_t> cut_at_ WEIR_GUARDED_BY(mutex_);
  bool power_off_ WEIR_GUARDED_BY(mutex_) = false;
  std::uint64_t generation_ WEIR_GUARDED_BY(mutex_) = 0;  // of processes; handles carry it
  std::uint64_t used_blocks_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::testing::internal
