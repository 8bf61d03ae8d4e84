#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

// Port: disk. Everything that touches a file goes through it, RocksDB included, so that one
// in-memory twin can cut the power at any write, sync or rename (testing/memory_file_system.h).
//
// Durability contract (that of POSIX on ext4/xfs, and no better):
//   - written bytes are durable after sync() of their file returned ok;
//   - a created, renamed or removed name is durable after sync_directory() of its folder;
//   - until then a power cut keeps any subset of the unsynced blocks and of the unsynced names.
// Paths are plain strings with '/'; relative ones are relative to the process.

enum class OpenMode {
  kRead,            // must exist
  kReadWrite,       // must exist
  kCreateOrOpen,    // read and write; made if absent
  kCreateNew,       // read and write; kExists if present
  kCreateTruncate,  // read and write; emptied if present
  // Read and write, must exist: a write that returned ok is durable (O_DSYNC), and it goes past the
  // page cache where the file system can (O_DIRECT), so that its failure is seen by the writer and
  // hidden by no clean page. Position, size and memory of every transfer are multiples of
  // kDurableAlignment. Only bytes inside the present size: truncation and extension need a sync().
  kReadWriteDurable,
};

inline constexpr std::size_t kDurableAlignment = 4096;

// An open file. Threading: thread-safe; overlapping writes race as they do in POSIX.
class File {
 public:
  virtual ~File() = default;
  // Reads up to out.size() bytes at `position`; fewer only at the end of the file.
  virtual Result<std::size_t> read_at(std::uint64_t position, std::span<char> out) = 0;
  // Writes all bytes or fails; on failure an unknown part was written.
  // Errors: kNoSpace (disk full), kIo.
  virtual Status write_at(std::uint64_t position, ByteView bytes) = 0;
  // fdatasync. An error means that unknown bytes are lost: never try again into success.
  virtual Status sync() = 0;
  virtual Result<std::uint64_t> size() = 0;
  virtual Status truncate(std::uint64_t size) = 0;
  // Reserves blocks for [0, size) without changing the file's size; a hint, but kNoSpace is real.
  virtual Status reserve(std::uint64_t size) = 0;
  virtual const std::string& path() const = 0;
};

// A file mapped into memory, shared with other processes that map it.
class SharedMapping {
 public:
  virtual ~SharedMapping() = default;
  virtual char* data() = 0;
  virtual std::size_t size() const = 0;
};

// Held while it lives.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

enum class FileKind { kFile, kDirectory, kOther };

struct DirectoryEntry {
  std::string name;
  FileKind kind = FileKind::kFile;
};

struct FileInfo {
  FileKind kind = FileKind::kFile;
  std::uint64_t size = 0;
  Timestamp modified = 0;  // milliseconds
};

struct DiskSpace {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t available_bytes = 0;
};

// Work that finishes later, so that one thread can simulate a slow disk.
struct IoRequest {
  enum class Kind { kWrite, kSync };
  Kind kind = Kind::kSync;
  std::shared_ptr<File> file;
  std::uint64_t position = 0;  // kWrite
  // kWrite. All of the owner's bytes when the view is null. The owner may be null: then the caller
  // keeps the bytes until `done` runs.
  SharedSlice bytes;
};

// Threading: thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Errors: kNotFound, kExists, kIo (names the path and errno's text), kNoSpace.
  virtual Result<std::shared_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  // Replaces `to` if it exists. Atomic.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove_file(const std::string& path) = 0;
  // Removes an empty folder.
  virtual Status remove_directory(const std::string& path) = 0;
  // With all parents; ok when it exists.
  virtual Status create_directories(const std::string& path) = 0;
  virtual Status sync_directory(const std::string& path) = 0;
  // All that was written, made, renamed and removed so far on the disk that holds the folder `path`
  // is durable (syncfs): one call for many files. An error means what File::sync()'s does; writes
  // that failed before the first lock() or sync_disk() on that disk are not reported.
  virtual Status sync_disk(const std::string& path) = 0;
  // Sorted by name, without "." and "..". Errors: kNotFound.
  virtual Result<std::vector<DirectoryEntry>> list(const std::string& path) = 0;
  // Errors: kNotFound.
  virtual Result<FileInfo> info(const std::string& path) = 0;
  virtual Result<DiskSpace> disk_space(const std::string& path) = 0;

  // Exclusive lock on `path` (made if absent) that ends with the process. Its text is replaced by
  // `holder`. Errors: kLocked, the message holds the text that the present holder wrote.
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path,
                                                 std::string_view holder) = 0;
  // Maps `size` bytes; `writable` makes or extends the file. Errors: kNotFound, kIo; kCorrupt when
  // a read-only file is shorter than `size`. Never durable: what must survive is written and
  // synced.
  virtual Result<std::unique_ptr<SharedMapping>> map(const std::string& path, std::size_t size,
                                                     bool writable) = 0;

  // Starts `request`; `done` runs exactly once, on any thread, also when it fails.
  virtual void submit(IoRequest request, std::function<void(Status)> done) = 0;
};

// The machine's disk. Lives for the whole process.
FileSystem& posix_file_system();

// Helpers over the port.
bool path_exists(FileSystem& files, const std::string& path);
Result<std::string> read_file(FileSystem& files, const std::string& path,
                              std::size_t bytes_max = 64U << 20U);
// Writes `path`.tmp, syncs, renames, syncs the folder: after ok the new text survives power loss,
// before that the old one does. Kafka's AtomicFileWriter order.
Status replace_file(FileSystem& files, const std::string& path, ByteView text);
// The same without a sync: other processes see the old text or the new one; a power cut may leave
// either, or an empty file.
Status replace_file_unsynced(FileSystem& files, const std::string& path, ByteView text);
// Removes a folder and all that is in it. ok when absent.
Status remove_tree(FileSystem& files, const std::string& path);
std::string parent_path(const std::string& path);
std::string join_path(std::string_view folder, std::string_view name);

}  // namespace weir
