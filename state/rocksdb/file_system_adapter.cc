#include "state/rocksdb/file_system_adapter.h"

#include "state/rocksdb/status_mapping.h"

#include <algorithm>
#include <span>
#include <utility>

namespace weir::state {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

IOStatus read_into(File& file, std::uint64_t position, std::size_t size, Slice* result,
                   char* scratch) {
  const Result<std::size_t> read = file.read_at(position, std::span(scratch, size));
  if (!read.ok()) {
    *result = Slice();
    return to_io_status(read.error());
  }
  *result = Slice(scratch, *read);
  return IOStatus::OK();
}

class SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  explicit SequentialFile(std::shared_ptr<File> file) : file_(std::move(file)) {}
  IOStatus Read(std::size_t size, const IOOptions& /*options*/, Slice* result, char* scratch,
                IODebugContext* /*debug*/) override {
    IOStatus read = read_into(*file_, position_, size, result, scratch);
    position_ += result->size();
    return read;
  }
  IOStatus Skip(std::uint64_t size) override {
    position_ += size;
    return IOStatus::OK();
  }

 private:
  std::shared_ptr<File> file_;  // the port hands files out shared
  std::uint64_t position_ = 0;
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  explicit RandomAccessFile(std::shared_ptr<File> file) : file_(std::move(file)) {}
  IOStatus Read(std::uint64_t position, std::size_t size, const IOOptions& /*options*/,
                Slice* result, char* scratch, IODebugContext* /*debug*/) const override {
    return read_into(*file_, position, size, result, scratch);
  }

 private:
  std::shared_ptr<File> file_;
};

class WritableFile final : public rocksdb::FSWritableFile {
 public:
  WritableFile(std::shared_ptr<File> file, std::uint64_t size, const FileOptions& options)
      : FSWritableFile(options), file_(std::move(file)), size_(size) {}

  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions& /*options*/,
                  IODebugContext* /*debug*/) override {
    const Status written = file_->write_at(size_, ByteView(data.data(), data.size()));
    if (written.ok()) {
      size_ += data.size();
    }
    return to_io_status(written);
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*info*/, IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions& /*options*/,
                    IODebugContext* /*debug*/) override {
    const Status truncated = file_->truncate(size);
    if (truncated.ok()) {
      size_ = size;
    }
    return to_io_status(truncated);
  }
  IOStatus Close(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return IOStatus::OK();  // the descriptor goes with the object; nothing is buffered here
  }
  IOStatus Flush(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return to_io_status(file_->sync());
  }
  bool IsSyncThreadSafe() const override { return true; }
  std::uint64_t GetFileSize(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return size_;
  }

 private:
  std::shared_ptr<File> file_;
  std::uint64_t size_;
};

class RandomRwFile final : public rocksdb::FSRandomRWFile {
 public:
  explicit RandomRwFile(std::shared_ptr<File> file) : file_(std::move(file)) {}
  IOStatus Write(std::uint64_t position, const Slice& data, const IOOptions& /*options*/,
                 IODebugContext* /*debug*/) override {
    return to_io_status(file_->write_at(position, ByteView(data.data(), data.size())));
  }
  IOStatus Read(std::uint64_t position, std::size_t size, const IOOptions& /*options*/,
                Slice* result, char* scratch, IODebugContext* /*debug*/) const override {
    return read_into(*file_, position, size, result, scratch);
  }
  IOStatus Flush(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return to_io_status(file_->sync());
  }
  IOStatus Close(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }

 private:
  std::shared_ptr<File> file_;
};

class Directory final : public rocksdb::FSDirectory {
 public:
  Directory(weir::FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  IOStatus Fsync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return to_io_status(files_.sync_directory(path_));
  }
  IOStatus Close(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }

 private:
  weir::FileSystem& files_;
  std::string path_;
};

class HeldLock final : public rocksdb::FileLock {
 public:
  explicit HeldLock(std::unique_ptr<weir::FileLock> lock) : lock_(std::move(lock)) {}

 private:
  std::unique_ptr<weir::FileLock> lock_;
};

}  // namespace

std::optional<Error> FileSystemAdapter::lock_failure() const {
  const MutexLock lock(mutex_);
  return lock_failure_;
}

IOStatus FileSystemAdapter::NewSequentialFile(const std::string& path,
                                              const FileOptions& /*options*/,
                                              std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                              IODebugContext* /*debug*/) {
  auto file = files_.open(path, OpenMode::kRead);
  if (!file.ok()) {
    return to_io_status(file.error());
  }
  *result = std::make_unique<SequentialFile>(std::move(file).value());
  return IOStatus::OK();
}

IOStatus FileSystemAdapter::NewRandomAccessFile(
    const std::string& path, const FileOptions& /*options*/,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext* /*debug*/) {
  auto file = files_.open(path, OpenMode::kRead);
  if (!file.ok()) {
    return to_io_status(file.error());
  }
  *result = std::make_unique<RandomAccessFile>(std::move(file).value());
  return IOStatus::OK();
}

IOStatus FileSystemAdapter::NewWritableFile(const std::string& path, const FileOptions& options,
                                            std::unique_ptr<rocksdb::FSWritableFile>* result,
                                            IODebugContext* /*debug*/) {
  auto file = files_.open(path, OpenMode::kCreateTruncate);
  if (!file.ok()) {
    return to_io_status(file.error());
  }
  *result = std::make_unique<WritableFile>(std::move(file).value(), 0, options);
  return IOStatus::OK();
}

IOStatus FileSystemAdapter::ReopenWritableFile(const std::string& path, const FileOptions& options,
                                               std::unique_ptr<rocksdb::FSWritableFile>* result,
                                               IODebugContext* /*debug*/) {
  auto file = files_.open(path, OpenMode::kCreateOrOpen);
  if (!file.ok()) {
    return to_io_status(file.error());
  }
  const Result<std::uint64_t> size = (*file)->size();
  if (!size.ok()) {
    return to_io_status(size.error());
  }
  *result = std::make_unique<WritableFile>(std::move(file).value(), *size, options);
  return IOStatus::OK();
}

IOStatus FileSystemAdapter::NewRandomRWFile(const std::string& path, const FileOptions& /*options*/,
                                            std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                                            IODebugContext* /*debug*/) {
  auto file = files_.open(path, OpenMode::kReadWrite);
  if (!file.ok()) {
    return to_io_status(file.error());
  }
  *result = std::make_unique<RandomRwFile>(std::move(file).value());
  return IOStatus::OK();
}

IOStatus FileSystemAdapter::NewDirectory(const std::string& path, const IOOptions& /*options*/,
                                         std::unique_ptr<rocksdb::FSDirectory>* result,
                                         IODebugContext* /*debug*/) {
  const Result<FileInfo> info = files_.info(path);
  if (!info.ok()) {
    return to_io_status(info.error());
  }
  if (info->kind != FileKind::kDirectory) {
    return IOStatus::IOError(path, "is no directory");
  }
  *result = std::make_unique<Directory>(files_, path);
  return IOStatus::OK();
}

IOStatus FileSystemAdapter::FileExists(const std::string& path, const IOOptions& /*options*/,
                                       IODebugContext* /*debug*/) {
  const Result<FileInfo> info = files_.info(path);
  if (info.ok()) {
    return IOStatus::OK();
  }
  // "Absent" must be told from "unknown": RocksDB makes a new database where none is.
  return info.error().code() == Errc::kNotFound ? IOStatus::NotFound(path)
                                                : to_io_status(info.error());
}

IOStatus FileSystemAdapter::GetChildren(const std::string& path, const IOOptions& /*options*/,
                                        std::vector<std::string>* result,
                                        IODebugContext* /*debug*/) {
  result->clear();
  auto entries = files_.list(path);
  if (!entries.ok()) {
    return to_io_status(entries.error());
  }
  for (DirectoryEntry& entry : *entries) {
    result->push_back(std::move(entry.name));
  }
  return IOStatus::OK();
}

IOStatus FileSystemAdapter::DeleteFile(const std::string& path, const IOOptions& /*options*/,
                                       IODebugContext* /*debug*/) {
  return to_io_status(files_.remove_file(path));
}

IOStatus FileSystemAdapter::Truncate(const std::string& path, std::size_t size,
                                     const IOOptions& /*options*/, IODebugContext* /*debug*/) {
  auto file = files_.open(path, OpenMode::kReadWrite);
  return file.ok() ? to_io_status((*file)->truncate(size)) : to_io_status(file.error());
}

IOStatus FileSystemAdapter::CreateDir(const std::string& path, const IOOptions& /*options*/,
                                      IODebugContext* /*debug*/) {
  if (path_exists(files_, path)) {
    return IOStatus::IOError(path, "exists");
  }
  return to_io_status(files_.create_directories(path));
}

IOStatus FileSystemAdapter::CreateDirIfMissing(const std::string& path,
                                               const IOOptions& /*options*/,
                                               IODebugContext* /*debug*/) {
  return to_io_status(files_.create_directories(path));
}

IOStatus FileSystemAdapter::DeleteDir(const std::string& path, const IOOptions& /*options*/,
                                      IODebugContext* /*debug*/) {
  return to_io_status(files_.remove_directory(path));
}

IOStatus FileSystemAdapter::GetFileSize(const std::string& path, const IOOptions& /*options*/,
                                        std::uint64_t* size, IODebugContext* /*debug*/) {
  const Result<FileInfo> info = files_.info(path);
  if (!info.ok()) {
    return to_io_status(info.error());
  }
  *size = info->size;
  return IOStatus::OK();
}

IOStatus FileSystemAdapter::GetFileModificationTime(const std::string& path,
                                                    const IOOptions& /*options*/,
                                                    std::uint64_t* seconds,
                                                    IODebugContext* /*debug*/) {
  const Result<FileInfo> info = files_.info(path);
  if (!info.ok()) {
    return to_io_status(info.error());
  }
  *seconds = static_cast<std::uint64_t>(std::max<Timestamp>(info->modified, 0)) / 1000U;
  return IOStatus::OK();
}

IOStatus FileSystemAdapter::RenameFile(const std::string& from, const std::string& to,
                                       const IOOptions& /*options*/, IODebugContext* /*debug*/) {
  return to_io_status(files_.rename(from, to));
}

IOStatus FileSystemAdapter::LinkFile(const std::string& from, const std::string& to,
                                     const IOOptions& /*options*/, IODebugContext* /*debug*/) {
  if (!from.ends_with(kIngestSuffix)) {
    return IOStatus::NotSupported("LinkFile", from);
  }
  return to_io_status(files_.rename(from, to));
}

IOStatus FileSystemAdapter::LockFile(const std::string& path, const IOOptions& /*options*/,
                                     rocksdb::FileLock** lock, IODebugContext* /*debug*/) {
  *lock = nullptr;
  auto held = files_.lock(path, "weir state");
  const MutexLock guard(mutex_);
  lock_failure_.reset();
  if (!held.ok()) {
    if (held.error().code() == Errc::kLocked) {
      lock_failure_ = held.error();
    }
    return to_io_status(held.error());
  }
  *lock = new HeldLock(std::move(held).value());
  return IOStatus::OK();
}

IOStatus FileSystemAdapter::UnlockFile(rocksdb::FileLock* lock, const IOOptions& /*options*/,
                                       IODebugContext* /*debug*/) {
  delete static_cast<HeldLock*>(lock);
  return IOStatus::OK();
}

IOStatus FileSystemAdapter::GetTestDirectory(const IOOptions& /*options*/, std::string* /*path*/,
                                             IODebugContext* /*debug*/) {
  return IOStatus::NotSupported("GetTestDirectory");
}

IOStatus FileSystemAdapter::GetAbsolutePath(const std::string& path, const IOOptions& /*options*/,
                                            std::string* result, IODebugContext* /*debug*/) {
  *result = path;  // ours are relative to the process, as everywhere
  return IOStatus::OK();
}

IOStatus FileSystemAdapter::GetFreeSpace(const std::string& path, const IOOptions& /*options*/,
                                         std::uint64_t* bytes, IODebugContext* /*debug*/) {
  const Result<DiskSpace> space = files_.disk_space(path);
  if (!space.ok()) {
    return to_io_status(space.error());
  }
  *bytes = space->available_bytes;
  return IOStatus::OK();
}

IOStatus FileSystemAdapter::IsDirectory(const std::string& path, const IOOptions& /*options*/,
                                        bool* is_directory, IODebugContext* /*debug*/) {
  const Result<FileInfo> info = files_.info(path);
  if (!info.ok()) {
    return to_io_status(info.error());
  }
  *is_directory = info->kind == FileKind::kDirectory;
  return IOStatus::OK();
}

}  // namespace weir::state
