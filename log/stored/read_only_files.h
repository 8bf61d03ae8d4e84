#pragma once

#include <weir/runtime/file_system.h>
#include <weir/runtime/thread_annotations.h>

#include <map>
#include <string>
#include <vector>

namespace weir::log {

// A file system that changes nothing, and shows partition folders as Kafka's start would leave them
// after a crash during compaction (org.apache.kafka.storage.internals.log.LogLoader): files named
// .swap stand under their final names, the segments that they replace are hidden; a .swap at or
// above a .cleaned is unfinished and does not count.
//
// Threading: thread-safe. Ownership: borrows `files`.
// Errors: kReadOnly for everything that would write.
class ReadOnlyFiles final : public FileSystem {
 public:
  explicit ReadOnlyFiles(FileSystem& files) : files_(files) {}

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
  Result<std::vector<DirectoryEntry>> with_swaps_done(const std::string& folder,
                                                      std::vector<DirectoryEntry> entries);
  std::string real_path(const std::string& path);

  FileSystem& files_;
  Mutex mutex_;
  std::map<std::string, std::string> renamed_ WEIR_GUARDED_BY(mutex_);  // final path -> .swap
};

}  // namespace weir::log
