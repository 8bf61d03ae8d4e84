#include "log/dump/dump_target.h"
#include "log/durability/wal_reader.h"
#include "log/partition/checkpoint_file.h"
#include "log/partition/partition_folder.h"
#include "log/partition/partition_metadata.h"
#include "log/verify/findings.h"
#include "log/verify/partition_check.h"

#include <weir/log/log_verify.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace weir::log {
namespace {

constexpr std::string_view kRecoveryPoints = "recovery-point-offset-checkpoint";
constexpr std::string_view kHighWatermarks = "replication-offset-checkpoint";
constexpr std::string_view kLogStarts = "log-start-offset-checkpoint";
constexpr std::string_view kCleaned = "cleaner-offset-checkpoint";
constexpr std::string_view kCleanShutdown = ".kafka_cleanshutdown";
constexpr std::string_view kWalFolder = "wal";  // beside log/ in a data directory
constexpr std::string_view kMetaProperties = "meta.properties";
constexpr std::size_t kFindingsMax = 1000;

// What a log directory says about its partitions.
struct DirectoryFacts {
  bool clean = false;
  bool has_write_ahead_log = false;
  OffsetCheckpoint recovery_points;
  OffsetCheckpoint high_watermarks;
  OffsetCheckpoint log_starts;
  OffsetCheckpoint cleaned;
};

// Folders on their way: "orders-3.<id>-delete", -future, -stray.
bool is_in_transition(std::string_view folder) {
  return folder.find('.') != std::string_view::npos &&
         (folder.ends_with("-delete") || folder.ends_with("-future") || folder.ends_with("-stray"));
}

std::optional<Offset> find_offset(const OffsetCheckpoint& offsets, const TopicPartition& name) {
  const auto found = offsets.find(name);
  return found == offsets.end() ? std::nullopt : std::optional(found->second);
}

class DirectoryCheck {
 public:
  DirectoryCheck(FileSystem& files, std::string path,
                 const std::function<void(const VerifyFinding&)>& report)
      : files_(files), path_(std::move(path)), report_(report) {}

  Result<VerifyTotals> run() {
    Findings own(kFindingsMax);
    facts_ = read_facts(own);
    WEIR_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, files_.list(path_));
    for (const DirectoryEntry& entry : entries) {
      if (entry.kind != FileKind::kDirectory) {
        continue;
      }
      if (const std::optional<TopicPartition> name = parse_partition_folder(entry.name)) {
        folders_.insert(*name);
        check_one(*name, join_path(path_, entry.name), own);
      } else if (is_in_transition(entry.name)) {
        own.note(join_path(path_, entry.name), "not checked: it is being deleted or moved");
      }
    }
    check_lost_folders(own);
    totals_.damage += own.damage_count();
    totals_.notes += own.note_count();
    hand_on(own.take(path_));
    return totals_;
  }

  // One partition folder of a log directory.
  Result<VerifyTotals> run_one(const TopicPartition& name, const std::string& folder) {
    Findings own(kFindingsMax);
    facts_ = read_facts(own);
    WEIR_TRY_ASSIGN(const PartitionCheck check,
                    check_partition(files_, folder, options_for(name, folder)));
    compare(name, folder, check, own);
    totals_ += check.totals;
    totals_.damage += own.damage_count();
    totals_.notes += own.note_count();
    hand_on(check.findings);
    hand_on(own.take(path_));
    return totals_;
  }

 private:
  DirectoryFacts read_facts(Findings& own) {
    DirectoryFacts facts;
    facts.clean = path_exists(files_, join_path(path_, kCleanShutdown));
    const Result<WalContents> wal =
        read_wal_files(files_, join_path(parent_path(path_), kWalFolder));
    facts.has_write_ahead_log = wal.ok() && !wal->files.empty();
    for (const auto& [name, offsets] :
         {std::pair(kRecoveryPoints, &facts.recovery_points),
          std::pair(kHighWatermarks, &facts.high_watermarks),
          std::pair(kLogStarts, &facts.log_starts), std::pair(kCleaned, &facts.cleaned)}) {
      const std::string file = join_path(path_, name);
      Result<OffsetCheckpoint> read = read_offset_checkpoint(files_, file);
      if (read.ok()) {
        *offsets = *std::move(read);
      } else {
        own.damage(file, read.error().message());
      }
    }
    return facts;
  }

  PartitionCheckOptions options_for(const TopicPartition& name, const std::string& folder) const {
    PartitionCheckOptions options;
    options.clean = facts_.clean;
    options.recovery_point = find_offset(facts_.recovery_points, name).value_or(Offset(0));
    options.has_write_ahead_log = facts_.has_write_ahead_log;
    options.log_start = find_offset(facts_.log_starts, name).value_or(Offset(0));
    options.compacted = facts_.cleaned.contains(name);
    options.checksum_folder = checksum_folder(name, folder);
    return options;
  }

  // In a data directory of ours: wal/checksums beside log/.
  std::string checksum_folder(const TopicPartition& name, const std::string& folder) const {
    const std::string all = join_path(parent_path(path_), "wal/checksums");
    const Result<std::string> metadata =
        read_file(files_, join_path(folder, kPartitionMetadataName));
    const Result<Uuid> id = metadata.ok() ? parse_partition_metadata(*metadata) : metadata.error();
    return id.ok() ? join_path(all, fmt::format("{}-{}", id->to_string(), name.partition.value()))
                   : std::string();
  }

  void check_one(const TopicPartition& name, const std::string& folder, Findings& own) {
    const Result<PartitionCheck> check = check_partition(files_, folder, options_for(name, folder));
    if (!check.ok()) {
      note_unchecked(folder, check.error(), own);
      return;
    }
    totals_ += check->totals;
    hand_on(check->findings);
    compare(name, folder, *check, own);
  }

  // What had durable records and has no folder. A crash may have come between the deletion of a
  // topic and the next checkpoint.
  void check_lost_folders(Findings& own) {
    for (const auto& [name, offset] : facts_.recovery_points) {
      const Offset start = find_offset(facts_.log_starts, name).value_or(Offset(0));
      if (offset > start && !folders_.contains(name)) {
        own.add({.severity = facts_.clean ? VerifySeverity::kDamage : VerifySeverity::kNote,
                 .file = join_path(path_, name.to_string()),
                 .first_offset = start,
                 .next_offset = offset,
                 .what = "durable by the recovery point, and the folder is not there"});
      }
    }
  }

  static void note_unchecked(const std::string& folder, const Error& error, Findings& own) {
    if (error.code() == Errc::kNotFound) {
      return;  // a running process took it away meanwhile
    }
    if (error.code() == Errc::kInvalidArgument) {
      own.note(folder, "no file of a log is in it");
    } else {
      own.damage(folder, error.message());
    }
  }

  // Where the checkpoints contradict the end of the log. A recovery point behind it is check's own.
  void compare(const TopicPartition& name, const std::string& folder, const PartitionCheck& check,
               Findings& own) {
    const std::optional<Offset> start = find_offset(facts_.log_starts, name);
    const Offset end = std::max(check.log_end, start.value_or(check.log_end));
    if (start && *start > check.log_end && check.log_end > check.log_start) {
      own.add({.severity = VerifySeverity::kNote,
               .file = join_path(path_, kLogStarts),
               .first_offset = start,
               .what = fmt::format("the log start of {} is behind its last record, all before it "
                                   "are deleted",
                                   name.to_string())});
    }
    const std::optional<Offset> watermark = find_offset(facts_.high_watermarks, name);
    if (watermark && *watermark > end) {
      own.add({.severity = facts_.clean ? VerifySeverity::kDamage : VerifySeverity::kNote,
               .file = join_path(path_, kHighWatermarks),
               .first_offset = end,
               .next_offset = watermark,
               .what = fmt::format("{} ends at {}, its high watermark was {}", folder, end.value(),
                                   watermark->value())});
    }
  }

  void hand_on(const std::vector<VerifyFinding>& findings) {
    for (const VerifyFinding& finding : findings) {
      report_(finding);
    }
  }

  FileSystem& files_;
  const std::string path_;
  const std::function<void(const VerifyFinding&)>& report_;
  DirectoryFacts facts_;
  std::set<TopicPartition> folders_;
  VerifyTotals totals_;
};

// A log directory has Kafka's meta.properties, or at least folders of partitions.
Result<bool> is_log_directory(FileSystem& files, const std::string& path) {
  if (path_exists(files, join_path(path, kMetaProperties))) {
    return true;
  }
  WEIR_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, files.list(path));
  return std::any_of(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
    return entry.kind == FileKind::kDirectory && parse_partition_folder(entry.name);
  });
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) {
    path.pop_back();
  }
  return path;
}

Result<VerifyTotals> verify_alone(FileSystem& files, const std::string& path,
                                  const std::function<void(const VerifyFinding&)>& report) {
  WEIR_TRY_ASSIGN(const PartitionCheck check, check_partition(files, path, {}));
  for (const VerifyFinding& finding : check.findings) {
    report(finding);
  }
  return check.totals;
}

}  // namespace

Result<VerifyTotals> verify_log(FileSystem& files, const std::string& given,
                                const std::function<void(const VerifyFinding&)>& report) {
  const std::string path = without_slashes(given);
  WEIR_TRY_ASSIGN(const FileInfo info, files.info(path));
  if (info.kind != FileKind::kDirectory) {
    return verify_alone(files, path, report);
  }
  const std::string inner = join_path(path, "log");
  if (path_exists(files, join_path(inner, kMetaProperties))) {
    return DirectoryCheck(files, inner, report).run();
  }
  const std::optional<TopicPartition> name = parse_partition_folder(
      path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1));
  const std::string above = parent_path(path);
  if (name && path_exists(files, join_path(above, kMetaProperties))) {
    return DirectoryCheck(files, above, report).run_one(*name, path);
  }
  WEIR_TRY_ASSIGN(const bool is_directory, is_log_directory(files, path));
  return is_directory ? DirectoryCheck(files, path, report).run()
                      : verify_alone(files, path, report);
}

}  // namespace weir::log
