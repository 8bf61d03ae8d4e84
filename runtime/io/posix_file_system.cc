#include "runtime/io/errno_error.h"
#include "runtime/io/io_workers.h"

#include <weir/runtime/file_system.h>
#include <weir/runtime/thread_annotations.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <limits>
#include <map>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>

namespace weir {
namespace {

using internal::errno_error;

constexpr mode_t kFileMode = 0644;
constexpr mode_t kFolderMode = 0755;
constexpr std::uint64_t kPositionMax = std::numeric_limits<off_t>::max();

// Repeats a system call that a signal interrupted.
template <class Call>
auto retry_interrupted(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);  // sync() is what reports lost bytes; close promises nothing
    }
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Result<Descriptor> open_descriptor(const char* action, const std::string& path, int flags) {
  const int fd =
      retry_interrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, kFileMode); });
  if (fd < 0) {
    return errno_error(action, path, errno);
  }
  return Descriptor(fd);
}

Status write_all(int fd, const std::string& path, std::uint64_t position, ByteView bytes) {
  if (position > kPositionMax) {
    return errno_error("write", path, EFBIG);
  }
  while (!bytes.empty()) {
    const ssize_t written = retry_interrupted(
        [&] { return ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(position)); });
    if (written <= 0) {
      return errno_error("write", path, written < 0 ? errno : EIO);
    }
    position += static_cast<std::uint64_t>(written);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<std::size_t> read_full(int fd, const std::string& path, std::uint64_t position,
                              std::span<char> out) {
  if (position > kPositionMax) {
    return std::size_t{0};
  }
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t count = retry_interrupted([&] {
      return ::pread(fd, out.data() + filled, out.size() - filled,
                     static_cast<off_t>(position + filled));
    });
    if (count < 0) {
      return errno_error("read", path, errno);
    }
    if (count == 0) {
      break;
    }
    filled += static_cast<std::size_t>(count);
  }
  return filled;
}

Result<struct stat> stat_of(int fd, const char* action, const std::string& path) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) {
    return errno_error(action, path, errno);
  }
  return status;
}

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) {
    return FileKind::kFile;
  }
  return S_ISDIR(mode) ? FileKind::kDirectory : FileKind::kOther;
}

// Allocates [0, size); a file system that cannot answers with a sparse file instead.
Status allocate_blocks(int fd, const char* action, const std::string& path, int mode,
                       std::uint64_t size) {
  if (size > kPositionMax) {
    return errno_error(action, path, EFBIG);
  }
  const int result =
      retry_interrupted([&] { return ::fallocate(fd, mode, 0, static_cast<off_t>(size)); });
  if (result != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
    return errno_error(action, path, errno);
  }
  return {};
}

Status set_size(int fd, const char* action, const std::string& path, std::uint64_t size) {
  if (size > kPositionMax) {
    return errno_error(action, path, EFBIG);
  }
  if (retry_interrupted([&] { return ::ftruncate(fd, static_cast<off_t>(size)); }) != 0) {
    return errno_error(action, path, errno);
  }
  return {};
}

class PosixFile final : public File {
 public:
  PosixFile(Descriptor descriptor, std::string path, bool writable)
      : descriptor_(std::move(descriptor)), path_(std::move(path)), writable_(writable) {}

  Result<std::size_t> read_at(std::uint64_t position, std::span<char> out) override {
    return read_full(descriptor_.get(), path_, position, out);
  }

  Status write_at(std::uint64_t position, ByteView bytes) override {
    if (!writable_) {
      return internal::read_only_error("write", path_);
    }
    return write_all(descriptor_.get(), path_, position, bytes);
  }

  Status sync() override {
    if (retry_interrupted([&] { return ::fdatasync(descriptor_.get()); }) != 0) {
      return errno_error("sync", path_, errno);
    }
    return {};
  }

  Result<std::uint64_t> size() override {
    WEIR_TRY_ASSIGN(const struct stat status, stat_of(descriptor_.get(), "stat", path_));
    return static_cast<std::uint64_t>(status.st_size);
  }

  Status truncate(std::uint64_t size) override {
    if (!writable_) {
      return internal::read_only_error("truncate", path_);
    }
    return set_size(descriptor_.get(), "truncate", path_, size);
  }

  Status reserve(std::uint64_t size) override {
    if (!writable_) {
      return internal::read_only_error("reserve", path_);
    }
    if (size == 0) {
      return {};
    }
    return allocate_blocks(descriptor_.get(), "reserve", path_, FALLOC_FL_KEEP_SIZE, size);
  }

  const std::string& path() const override { return path_; }

 private:
  const Descriptor descriptor_;
  const std::string path_;
  const bool writable_;
};

class PosixMapping final : public SharedMapping {
 public:
  PosixMapping(void* data, std::size_t size) : data_(data), size_(size) {}
  PosixMapping(const PosixMapping&) = delete;
  PosixMapping& operator=(const PosixMapping&) = delete;
  ~PosixMapping() override { ::munmap(data_, size_); }
  char* data() override { return static_cast<char*>(data_); }
  std::size_t size() const override { return size_; }

 private:
  void* const data_;
  const std::size_t size_;
};

// The lock belongs to the open file, so closing it, also by the end of the process, gives it up.
// The file stays: removing it would let two processes lock two files of one name.
class PosixLock final : public FileLock {
 public:
  explicit PosixLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  const Descriptor descriptor_;
};

class PosixFileSystem final : public FileSystem {
 public:
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

  void stop_workers();
  // In the child of a fork the threads do not exist and the lock may be held by one of them.
  void forget_workers() { forgotten_workers_ = workers_.exchange(nullptr); }

 private:
  internal::IoWorkers& workers();
  Result<int> disk_descriptor(const std::string& path);

  // By device. syncfs() tells a descriptor only of failures since it was opened, so each is opened
  // before the first write (lock()) and kept.
  Mutex disks_mutex_;
  std::map<dev_t, Descriptor> disks_ WEIR_GUARDED_BY(disks_mutex_);

  std::atomic<internal::IoWorkers*> workers_{nullptr};
  internal::IoWorkers* forgotten_workers_ = nullptr;  // the parent's, never touched
};

int open_flags(OpenMode mode) {
  switch (mode) {
    case OpenMode::kRead:
      return O_RDONLY;
    case OpenMode::kReadWrite:
      return O_RDWR;
    case OpenMode::kReadWriteDurable:
      return O_RDWR | O_DSYNC | O_DIRECT;
    case OpenMode::kCreateOrOpen:
      return O_RDWR | O_CREAT;
    case OpenMode::kCreateNew:
      return O_RDWR | O_CREAT | O_EXCL;
    case OpenMode::kCreateTruncate:
      return O_RDWR | O_CREAT | O_TRUNC;
  }
  return O_RDONLY;
}

Result<Descriptor> open_for(const std::string& path, OpenMode mode) {
  if (mode != OpenMode::kReadWriteDurable) {
    return open_descriptor("open", path, open_flags(mode));
  }
  const int fd =
      retry_interrupted([&] { return ::open(path.c_str(), open_flags(mode) | O_CLOEXEC); });
  if (fd < 0 && errno == EINVAL) {  // this file system has no direct I/O
    return open_descriptor("open", path, O_RDWR | O_DSYNC);
  }
  if (fd < 0) {
    return errno_error("open", path, errno);
  }
  return Descriptor(fd);
}

Result<std::shared_ptr<File>> PosixFileSystem::open(const std::string& path, OpenMode mode) {
  WEIR_TRY_ASSIGN(Descriptor descriptor, open_for(path, mode));
  if (mode == OpenMode::kRead) {  // the other modes refuse a folder by themselves
    WEIR_TRY_ASSIGN(const struct stat status, stat_of(descriptor.get(), "open", path));
    if (S_ISDIR(status.st_mode)) {
      return errno_error("open", path, EISDIR);
    }
  }
  return std::shared_ptr<File>(
      std::make_shared<PosixFile>(std::move(descriptor), path, mode != OpenMode::kRead));
}

Status PosixFileSystem::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    const int error_number = errno;
    return errno_error("rename", from + " to " + to, error_number);
  }
  return {};
}

Status PosixFileSystem::remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0) {
    return errno_error("remove", path, errno);
  }
  return {};
}

Status PosixFileSystem::remove_directory(const std::string& path) {
  if (::rmdir(path.c_str()) != 0) {
    return errno_error("remove folder", path, errno);
  }
  return {};
}

Status PosixFileSystem::create_directories(const std::string& path) {
  for (std::size_t end = path.find_first_not_of('/'); end != std::string::npos;
       end = path.find_first_not_of('/', end)) {
    end = path.find('/', end);
    const std::string folder = path.substr(0, end);
    if (::mkdir(folder.c_str(), kFolderMode) == 0) {
      continue;
    }
    // A parent that exists may answer EACCES or EROFS instead of EEXIST.
    const int error_number = errno;
    struct stat status{};
    if (::stat(folder.c_str(), &status) != 0) {
      return errno_error("create folder", folder, error_number);
    }
    if (!S_ISDIR(status.st_mode)) {
      return errno_error("create folder", folder, ENOTDIR);
    }
  }
  return {};
}

Status PosixFileSystem::sync_directory(const std::string& path) {
  WEIR_TRY_ASSIGN(const Descriptor descriptor,
                  open_descriptor("sync folder", path, O_RDONLY | O_DIRECTORY));
  if (retry_interrupted([&] { return ::fsync(descriptor.get()); }) != 0) {
    return errno_error("sync folder", path, errno);
  }
  return {};
}

Status PosixFileSystem::sync_disk(const std::string& path) {
  WEIR_TRY_ASSIGN(const int descriptor, disk_descriptor(path));
  if (retry_interrupted([&] { return ::syncfs(descriptor); }) != 0) {
    return errno_error("sync the disk of", path, errno);
  }
  return {};
}

Result<int> PosixFileSystem::disk_descriptor(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return errno_error("sync the disk of", path, errno);
  }
  const MutexLock lock(disks_mutex_);
  auto found = disks_.find(status.st_dev);
  if (found == disks_.end()) {
    WEIR_TRY_ASSIGN(Descriptor descriptor,
                    open_descriptor("sync the disk of", path, O_RDONLY | O_DIRECTORY));
    found = disks_.emplace(status.st_dev, std::move(descriptor)).first;
  }
  return found->second.get();
}

FileKind kind_of_entry(DIR* folder, const dirent& entry) {
  if (entry.d_type == DT_UNKNOWN) {
    struct stat status{};
    const int fd = ::dirfd(folder);
    const bool known = fd >= 0 && ::fstatat(fd, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    return known ? kind_of(status.st_mode) : FileKind::kOther;
  }
  if (entry.d_type == DT_REG) {
    return FileKind::kFile;
  }
  return entry.d_type == DT_DIR ? FileKind::kDirectory : FileKind::kOther;
}

Result<std::vector<DirectoryEntry>> PosixFileSystem::list(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (folder == nullptr) {
    return errno_error("list", path, errno);
  }
  std::vector<DirectoryEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) {
      break;
    }
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") {
      entries.push_back({std::string(name), kind_of_entry(folder.get(), *entry)});
    }
  }
  if (errno != 0) {
    return errno_error("list", path, errno);
  }
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  return entries;
}

Result<FileInfo> PosixFileSystem::info(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return errno_error("stat", path, errno);
  }
  FileInfo info;
  info.kind = kind_of(status.st_mode);
  info.size = info.kind == FileKind::kFile ? static_cast<std::uint64_t>(status.st_size) : 0;
  info.modified =
      static_cast<Timestamp>(status.st_mtim.tv_sec) * 1000 + status.st_mtim.tv_nsec / 1'000'000;
  return info;
}

Result<DiskSpace> PosixFileSystem::disk_space(const std::string& path) {
  struct statvfs status{};
  if (retry_interrupted([&] { return ::statvfs(path.c_str(), &status); }) != 0) {
    return errno_error("statvfs", path, errno);
  }
  const auto unit = static_cast<std::uint64_t>(status.f_frsize);
  return DiskSpace{.capacity_bytes = unit * status.f_blocks,
                   .available_bytes = unit * status.f_bavail};
}

Result<std::unique_ptr<FileLock>> PosixFileSystem::lock(const std::string& path,
                                                        std::string_view holder) {
  WEIR_TRY_ASSIGN(Descriptor descriptor, open_descriptor("lock", path, O_RDWR | O_CREAT));
  if (retry_interrupted([&] { return ::flock(descriptor.get(), LOCK_EX | LOCK_NB); }) != 0) {
    if (errno != EWOULDBLOCK) {
      return errno_error("lock", path, errno);
    }
    std::array<char, 4096> text{};
    WEIR_TRY_ASSIGN(const std::size_t length, read_full(descriptor.get(), path, 0, text));
    return internal::locked_error(path, std::string_view(text.data(), length));
  }
  WEIR_TRY(set_size(descriptor.get(), "lock", path, 0));
  WEIR_TRY(write_all(descriptor.get(), path, 0, holder));
  WEIR_TRY(disk_descriptor(parent_path(path)).status());
  return std::unique_ptr<FileLock>(std::make_unique<PosixLock>(std::move(descriptor)));
}

// Blocks are allocated here: a sparse file on a full disk would kill the process with SIGBUS at the
// first touch.
Status extend_for_mapping(int fd, const std::string& path, std::size_t size) {
  WEIR_TRY(allocate_blocks(fd, "map", path, 0, size));
  WEIR_TRY_ASSIGN(const struct stat status, stat_of(fd, "map", path));
  if (static_cast<std::uint64_t>(status.st_size) < size) {
    return set_size(fd, "map", path, size);
  }
  return {};
}

Result<std::unique_ptr<SharedMapping>> PosixFileSystem::map(const std::string& path,
                                                            std::size_t size, bool writable) {
  if (size == 0) {
    return errno_error("map 0 bytes of", path, EINVAL);
  }
  WEIR_TRY_ASSIGN(const Descriptor descriptor,
                  open_descriptor("map", path, writable ? O_RDWR | O_CREAT : O_RDONLY));
  if (writable) {
    WEIR_TRY(extend_for_mapping(descriptor.get(), path, size));
  } else {
    WEIR_TRY_ASSIGN(const struct stat status, stat_of(descriptor.get(), "map", path));
    if (S_ISDIR(status.st_mode)) {
      return errno_error("map", path, EISDIR);
    }
    if (static_cast<std::uint64_t>(status.st_size) < size) {
      return internal::short_mapping_error(path, static_cast<std::size_t>(status.st_size), size);
    }
  }
  void* data = ::mmap(nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                      descriptor.get(), 0);
  if (data == MAP_FAILED) {
    return errno_error("map", path, errno);
  }
  return std::unique_ptr<SharedMapping>(std::make_unique<PosixMapping>(data, size));
}

void PosixFileSystem::submit(IoRequest request, std::function<void(Status)> done) {
  workers().submit(std::move(request), std::move(done));
}

internal::IoWorkers& PosixFileSystem::workers() {
  internal::IoWorkers* present = workers_.load(std::memory_order_acquire);
  if (present != nullptr) {
    return *present;
  }
  auto fresh = std::make_unique<internal::IoWorkers>();
  if (workers_.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel)) {
    return *fresh.release();  // for the whole process; in a fork's child it cannot be destroyed
  }
  return *present;
}

void PosixFileSystem::stop_workers() {
  if (internal::IoWorkers* present = workers_.load(std::memory_order_acquire)) {
    present->stop();
  }
}

PosixFileSystem& the_file_system() {
  static auto& files = *new PosixFileSystem();
  return files;
}

bool register_process_hooks() {
  std::atexit([] { the_file_system().stop_workers(); });
  ::pthread_atfork(nullptr, nullptr, [] { the_file_system().forget_workers(); });
  return true;
}

}  // namespace

FileSystem& posix_file_system() {
  [[maybe_unused]] static const bool registered = register_process_hooks();
  return the_file_system();
}

}  // namespace weir
