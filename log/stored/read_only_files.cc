#include "log/stored/read_only_files.h"

#include "log/segment/batch_scanner.h"
#include "log/segment/segment_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

namespace weir::log {
namespace {

constexpr std::size_t kDigits = 20;

Error refused(std::string_view action, const std::string& path) {
  return {Errc::kReadOnly, fmt::format("cannot {} {}: the folder is only read", action, path)};
}

// Base offset in the name of any file of a segment.
std::optional<Offset> base_of(const std::string& name) {
  return name.size() < kDigits
             ? std::nullopt
             : parse_log_file_name(name.substr(0, kDigits) + std::string(kLogSuffix));
}

// Behind the last whole batch.
Result<Offset> next_offset_of(FileSystem& files, const std::string& path, Offset base) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, files.open(path, OpenMode::kRead));
  WEIR_TRY_ASSIGN(const std::uint64_t size, file->size());
  BatchScanner scanner(*file, 0, size);
  Offset next = base;
  while (true) {
    const Result<std::optional<BatchHeader>> header = scanner.peek();
    if (!header.ok() && header.error().code() == Errc::kIo) {
      return header.error();
    }
    if (!header.ok() || !*header) {
      return next;
    }
    next = std::max(next, (*header)->next_offset());
    scanner.skip(**header);
  }
}

}  // namespace

Result<std::shared_ptr<File>> ReadOnlyFiles::open(const std::string& path, OpenMode mode) {
  if (mode != OpenMode::kRead) {
    return refused("write to", path);
  }
  return files_.open(real_path(path), mode);
}

Status ReadOnlyFiles::rename(const std::string& from, const std::string& /*to*/) {
  return refused("rename", from);
}
Status ReadOnlyFiles::remove_file(const std::string& path) {
  return refused("remove", path);
}
Status ReadOnlyFiles::remove_directory(const std::string& path) {
  return refused("remove", path);
}
Status ReadOnlyFiles::create_directories(const std::string& path) {
  return refused("make", path);
}
Status ReadOnlyFiles::sync_directory(const std::string& path) {
  return refused("sync", path);
}

Status ReadOnlyFiles::sync_disk(const std::string& path) {
  return refused("sync", path);
}

Result<FileInfo> ReadOnlyFiles::info(const std::string& path) {
  return files_.info(real_path(path));
}

Result<DiskSpace> ReadOnlyFiles::disk_space(const std::string& path) {
  return files_.disk_space(path);
}

Result<std::unique_ptr<FileLock>> ReadOnlyFiles::lock(const std::string& path,
                                                      std::string_view /*holder*/) {
  return refused("lock", path);
}

Result<std::unique_ptr<SharedMapping>> ReadOnlyFiles::map(const std::string& path, std::size_t size,
                                                          bool writable) {
  if (writable) {
    return refused("write to", path);
  }
  return files_.map(path, size, false);
}

void ReadOnlyFiles::submit(IoRequest request, std::function<void(Status)> done) {
  done(refused("write to", request.file->path()));
}

std::string ReadOnlyFiles::real_path(const std::string& path) {
  const MutexLock lock(mutex_);
  const auto found = renamed_.find(path);
  return found == renamed_.end() ? path : found->second;
}

Result<std::vector<DirectoryEntry>> ReadOnlyFiles::list(const std::string& path) {
  WEIR_TRY_ASSIGN(std::vector<DirectoryEntry> entries, files_.list(path));
  const bool has_swap = std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.name.ends_with(kSwapSuffix) && base_of(entry.name);
  });
  return has_swap ? with_swaps_done(path, std::move(entries))
                  : Result<std::vector<DirectoryEntry>>(std::move(entries));
}

Result<std::vector<DirectoryEntry>> ReadOnlyFiles::with_swaps_done(
    const std::string& folder, std::vector<DirectoryEntry> entries) {
  Offset unfinished(INT64_MAX);  // swaps from here on do not count
  for (const DirectoryEntry& entry : entries) {
    if (const auto base = base_of(entry.name); base && entry.name.ends_with(kCleanedSuffix)) {
      unfinished = std::min(unfinished, *base);
    }
  }
  std::map<std::string, DirectoryEntry> shown;  // by final name
  std::map<std::string, std::string> renamed;
  Offset first(INT64_MAX);  // the replaced segments have their base in [first, end)
  Offset end(0);
  for (const DirectoryEntry& entry : entries) {
    const std::optional<Offset> base = base_of(entry.name);
    if (!entry.name.ends_with(kSwapSuffix) || !base || *base >= unfinished) {
      continue;
    }
    const std::string name = entry.name.substr(0, entry.name.size() - kSwapSuffix.size());
    shown[name] = {name, entry.kind};
    renamed[join_path(folder, name)] = join_path(folder, entry.name);
    if (name.ends_with(kLogSuffix)) {
      WEIR_TRY_ASSIGN(const Offset next,
                      next_offset_of(files_, join_path(folder, entry.name), *base));
      first = std::min(first, *base);
      end = std::max(end, next);
    }
  }
  for (DirectoryEntry& entry : entries) {
    const std::optional<Offset> base = base_of(entry.name);
    const bool replaced =
        base && *base >= first && *base < end && !entry.name.ends_with(kSnapshotSuffix);
    if (!replaced) {
      shown.try_emplace(entry.name, entry);
    }
  }
  std::vector<DirectoryEntry> result;
  for (auto& [name, entry] : shown) {
    result.push_back(std::move(entry));
  }
  const MutexLock lock(mutex_);
  for (auto& [to, from] : renamed) {
    renamed_[to] = std::move(from);
  }
  return result;
}

}  // namespace weir::log
