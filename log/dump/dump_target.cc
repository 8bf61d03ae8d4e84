#include "log/dump/dump_target.h"

#include "log/dump/record_decoder.h"
#include "log/segment/segment_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

namespace weir::log {
namespace {

constexpr std::size_t kDigits = 20;
constexpr std::string_view kBootstrapName = "bootstrap.checkpoint";

DumpFileKind kind_of_suffix(std::string_view suffix) {
  if (suffix == kLogSuffix) {
    return DumpFileKind::kLog;
  }
  if (suffix == kOffsetIndexSuffix) {
    return DumpFileKind::kOffsetIndex;
  }
  if (suffix == kTimeIndexSuffix) {
    return DumpFileKind::kTimeIndex;
  }
  if (suffix == kTransactionIndexSuffix) {
    return DumpFileKind::kTransactionIndex;
  }
  return suffix == kSnapshotSuffix ? DumpFileKind::kSnapshot : DumpFileKind::kOther;
}

// "%020d-%010d.checkpoint": end offset and epoch; bootstrap.checkpoint has none.
bool classify_snapshot(DumpFile& file) {
  constexpr std::string_view kSuffix = ".checkpoint";
  constexpr std::size_t kEpochDigits = 10;
  file.kind = DumpFileKind::kMetadataSnapshot;
  if (file.name == kBootstrapName) {
    return true;
  }
  const std::string_view name = file.name;
  std::int32_t epoch = 0;
  const std::optional<Offset> end =
      parse_log_file_name(std::string(name.substr(0, kDigits)) + std::string(kLogSuffix));
  if (!end || name.size() != kDigits + 1 + kEpochDigits + kSuffix.size() || name[kDigits] != '-' ||
      !name.ends_with(kSuffix)) {
    return false;
  }
  const char* const digits = name.data() + kDigits + 1;
  const auto [stop, error] = std::from_chars(digits, digits + kEpochDigits, epoch);
  file.base = *end;
  file.epoch = LeaderEpoch(epoch);
  return error == std::errc() && stop == digits + kEpochDigits && epoch >= 0;
}

bool is_offset_checkpoint(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
      "log-start-offset-checkpoint", "cleaner-offset-checkpoint"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

DumpFile classify(const std::string& name) {
  DumpFile file{.name = name,
                .kind = DumpFileKind::kOther,
                .base = Offset(0),
                .epoch = kNoLeaderEpoch,
                .size = 0};
  if (name.ends_with(".checkpoint") && classify_snapshot(file)) {
    return file;
  }
  file = {.name = name,
          .kind = DumpFileKind::kOther,
          .base = Offset(0),
          .epoch = kNoLeaderEpoch,
          .size = 0};
  if (name == "leader-epoch-checkpoint") {
    file.kind = DumpFileKind::kLeaderEpochs;
  } else if (name == "partition.metadata") {
    file.kind = DumpFileKind::kPartitionMetadata;
  } else if (is_offset_checkpoint(name)) {
    file.kind = DumpFileKind::kOffsetCheckpoint;
  } else if (name.size() > kDigits) {
    const std::string stem = name.substr(0, kDigits);
    if (const std::optional<Offset> base = parse_log_file_name(stem + std::string(kLogSuffix))) {
      file.kind = kind_of_suffix(std::string_view(name).substr(kDigits));
      file.base = *base;
    }
  }
  return file;
}

// What compaction and deletion put behind a name while they work.
std::string without_transition_suffix(std::string name) {
  for (const std::string_view suffix : {".deleted", ".cleaned", ".swap"}) {
    if (name.ends_with(suffix)) {
      name.erase(name.size() - suffix.size());
      break;
    }
  }
  return name;
}

std::string last_part(std::string_view path) {
  const std::size_t end = path.find_last_not_of('/');
  if (end == std::string_view::npos) {
    return std::string(path);
  }
  path = path.substr(0, end + 1);
  const std::size_t slash = path.find_last_of('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

Result<DumpTarget> file_target(const std::string& path, std::uint64_t size) {
  DumpTarget target;
  target.path = path;
  target.folder_name = last_part(parent_path(path));
  const std::string name = last_part(path);
  DumpFile file = classify(without_transition_suffix(name));
  if (file.kind == DumpFileKind::kOther) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("{} is no file of a log; give a partition folder, or a file such as "
                             "{}, .index, .timeindex, .txnindex, .snapshot, .checkpoint or "
                             "leader-epoch-checkpoint",
                             path, segment_file_name(Offset(0), kLogSuffix)));
  }
  file.name = name;
  file.size = size;
  target.files.push_back(std::move(file));
  return target;
}

Result<DumpTarget> folder_target(FileSystem& files, const std::string& path) {
  DumpTarget target;
  target.path = path;
  target.folder_name = last_part(path);
  target.is_folder = true;
  WEIR_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, files.list(path));
  bool is_partition = false;
  for (const DirectoryEntry& entry : entries) {
    if (entry.kind != FileKind::kFile) {
      continue;
    }
    DumpFile file = classify(entry.name);
    const Result<FileInfo> info = files.info(join_path(path, entry.name));
    if (!info.ok()) {
      if (info.error().code() == Errc::kNotFound) {
        continue;  // a running process took it away meanwhile
      }
      return info.error();
    }
    file.size = info->size;
    is_partition |= file.kind != DumpFileKind::kOther;
    target.files.push_back(std::move(file));
  }
  if (!is_partition) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("{} is no partition folder: no {} or other file of a partition is in "
                             "it; give a folder such as DATA/log/TOPIC-0",
                             path, segment_file_name(Offset(0), kLogSuffix)));
  }
  return target;
}

}  // namespace

bool is_index(DumpFileKind kind) {
  return kind == DumpFileKind::kOffsetIndex || kind == DumpFileKind::kTimeIndex ||
         kind == DumpFileKind::kTransactionIndex;
}

bool DumpTarget::is_partition() const {
  return is_folder && std::any_of(files.begin(), files.end(), [](const DumpFile& file) {
           return file.kind != DumpFileKind::kOther &&
                  file.kind != DumpFileKind::kOffsetCheckpoint && file.name != kBootstrapName;
         });
}

RecordDecoder DumpTarget::decoder(RecordDecoder wanted) const {
  const bool is_snapshot = !is_folder && files.front().kind == DumpFileKind::kMetadataSnapshot;
  return wanted == RecordDecoder::kByTopic && is_snapshot ? RecordDecoder::kClusterMetadata
                                                          : decoder_for(wanted, folder_name);
}

const DumpFile* DumpTarget::find(std::string_view name) const {
  const auto found = std::lower_bound(
      files.begin(), files.end(), name,
      [](const DumpFile& file, std::string_view wanted) { return file.name < wanted; });
  return found != files.end() && found->name == name ? &*found : nullptr;
}

Result<DumpTarget> find_dump_target(FileSystem& files, const std::string& path) {
  WEIR_TRY_ASSIGN(const FileInfo info, files.info(path));
  switch (info.kind) {
    case FileKind::kDirectory:
      return folder_target(files, path);
    case FileKind::kFile:
      return file_target(path, info.size);
    case FileKind::kOther:
      break;
  }
  return Error(Errc::kInvalidArgument,
               fmt::format("{} is neither a file nor a folder; give a partition folder or one of "
                           "its files",
                           path));
}

}  // namespace weir::log
