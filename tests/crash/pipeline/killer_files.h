#pragma once

#include "tests/crash/pipeline/kill_switch.h"

#include <weir/runtime/file_system.h>

namespace weir::crash {

// The machine's disk, on which the process dies where the switch says. Borrows both.
class KillerFiles final : public FileSystem {
 public:
  KillerFiles(FileSystem& inner, KillSwitch& kill) : inner_(inner), kill_(kill) {}

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
  FileSystem& inner_;
  KillSwitch& kill_;
};

}  // namespace weir::crash
