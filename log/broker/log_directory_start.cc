// The start of a directory: what a folder must be, what a crash left behind, recovery.
#include "log/broker/kafka_files.h"
#include "log/broker/log_directory.h"
#include "log/broker/recover_partitions.h"
#include "log/partition/partition_folder.h"

#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <unistd.h>

namespace weir::log {
namespace {

// Kafka's own files in a log directory.
bool is_known_file(const std::string& name) {
  static constexpr std::string_view kKnown[] = {".lock",
                                                ".kafka_cleanshutdown",
                                                "meta.properties",
                                                "bootstrap.checkpoint",
                                                "recovery-point-offset-checkpoint",
                                                "replication-offset-checkpoint",
                                                "log-start-offset-checkpoint",
                                                "cleaner-offset-checkpoint"};
  return std::any_of(std::begin(kKnown), std::end(kKnown), [&name](std::string_view known) {
    return name == known || name == std::string(known) + ".tmp";
  });
}

Result<Uuid> topic_id_of_folder(FileSystem& files, const std::string& folder) {
  WEIR_TRY_ASSIGN(const std::string text,
                  read_file(files, join_path(folder, "partition.metadata")));
  constexpr std::string_view kKey = "topic_id: ";
  const std::size_t at = text.find(kKey);
  if (at == std::string::npos) {
    return Error(Errc::kCorrupt, fmt::format("{}/partition.metadata has no topic_id", folder));
  }
  return Uuid::parse(text.substr(at + kKey.size(), 22));
}

}  // namespace

Status LogDirectory::start() {
  WEIR_TRY(check_root());
  if (!options_.read_only) {
    for (const std::string* folder : {&layout_.log, &layout_.wal, &layout_.state}) {
      WEIR_TRY(files_.create_directories(*folder));
    }
    WEIR_TRY(files_.sync_directory(layout_.root));
    WEIR_TRY_ASSIGN(lock_, files_.lock(layout_.lock, fmt::format("pid {} ({})", ::getpid(),
                                                                 program_invocation_short_name)));
    // The names that a killed process gave are believed from here on.
    WEIR_TRY(files_.sync_directory(layout_.log));
  }
  WEIR_TRY(read_meta_properties());
  clean_ = first_start_ || path_exists(files_, layout_.clean_shutdown);
  WEIR_TRY(read_checkpoints());
  if (Result<ScrubMemory> memory = read_scrub_memory(files_, layout_.scrub_memory); memory.ok()) {
    scrub_memory_ = *std::move(memory);
  } else {
    WEIR_WARN("scrub begins anew error=\"{}\"", memory.error().message());
  }
  if (Result<ProducersOfPartitions> known = read_producers_file(files_, layout_.producers);
      known.ok()) {
    known_producers_ = *std::move(known);
  } else {
    WEIR_WARN("of each producer the last batch alone is known error=\"{}\"",
              known.error().message());
  }
  if (options_.read_only) {
    Result<std::unique_ptr<Watermarks>> published = Watermarks::open(files_, layout_.watermarks);
    if (published.ok()) {
      watermarks_ = std::move(published).value();
    }
  } else {
    reserve_.stands();
    WEIR_TRY(open_wal());  // while the marker still says that nothing in it is needed
    if (path_exists(files_, layout_.clean_shutdown)) {
      WEIR_TRY(files_.remove_file(layout_.clean_shutdown));
      WEIR_TRY(files_.sync_directory(layout_.log));
    }
    WEIR_TRY_ASSIGN(watermarks_, Watermarks::create(files_, layout_.watermarks));
  }
  WEIR_TRY(open_metadata());
  if (options_.read_only) {
    return {};
  }
  WEIR_TRY(sweep_folders());
  sweep_checksums();
  if (!clean_) {
    WEIR_TRY(recover_all());
  }
  open_scrubber();
  open_cleaner();
  const MutexLock lock(change_mutex_);
  snapshot_metadata_if_due();
  return {};
}

// A folder that is not empty and has no log/meta.properties belongs to somebody else.
Status LogDirectory::check_root() {
  if (path_exists(files_, layout_.meta_properties)) {
    return {};
  }
  if (options_.read_only) {
    return Error(
        Errc::kNotFound,
        fmt::format("{} is no Weir data directory (it has no log/meta.properties); name one with "
                    "--data, or write to it first",
                    layout_.root));
  }
  Result<FileInfo> info = files_.info(layout_.root);
  if (!info.ok()) {
    if (info.error().code() != Errc::kNotFound) {
      return std::move(info).error();
    }
    WEIR_TRY(files_.create_directories(layout_.root));
    return files_.sync_directory(parent_path(layout_.root));
  }
  if (info->kind != FileKind::kDirectory) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("{} is a file; a data directory is a folder, choose another --data",
                             layout_.root));
  }
  WEIR_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, files_.list(layout_.root));
  for (const DirectoryEntry& entry : entries) {
    const bool ours = entry.name == "log" || entry.name == "wal" || entry.name == "state";
    if (!ours && entry.name != "lost+found") {
      return Error(
          Errc::kInvalidArgument,
          fmt::format("{} is not empty and no Weir data directory (it holds '{}'); choose an empty "
                      "or a new folder with --data",
                      layout_.root, entry.name));
    }
  }
  // A process that made it may have been killed before it had done this.
  files_.sync_directory(parent_path(layout_.root))
      .ignore("a folder that somebody else made, in one that we may not open, is theirs to keep");
  return {};
}

Status LogDirectory::read_meta_properties() {
  Result<std::string> text = read_file(files_, layout_.meta_properties);
  if (text.ok()) {
    WEIR_TRY_ASSIGN(directory_id_, parse_meta_properties(*text, layout_.meta_properties));
    return {};
  }
  if (text.error().code() != Errc::kNotFound || options_.read_only) {
    return std::move(text).error();
  }
  first_start_ = !path_exists(files_, join_path(layout_.log, fmt::format("{}-0", kMetadataTopic)));
  const MutexLock lock(change_mutex_);
  directory_id_ = rng_.uuid();
  return replace_file(files_, layout_.meta_properties,
                      fmt::format("version=1\ncluster.id={}\nnode.id={}\ndirectory.id={}\n",
                                  rng_.uuid().to_string(), kNodeId, directory_id_.to_string()));
}

Status LogDirectory::read_checkpoints() {
  const std::pair<const std::string*, OffsetCheckpoint*> all[] = {
      {&layout_.recovery_points, &recovery_points_},
      {&layout_.high_watermarks, &high_watermarks_},
      {&layout_.log_starts, &log_starts_}};
  for (const auto& [path, offsets] : all) {
    Result<OffsetCheckpoint> read = read_offset_checkpoint(files_, *path);
    if (read.ok()) {
      *offsets = std::move(read).value();
      // A file that is gone says nothing; before the first checkpoint there is none.
      recovery_points_known_ |= offsets == &recovery_points_ && !offsets->empty();
    } else if (read.error().code() == Errc::kCorrupt) {
      // Checkpoints only save work: without one more of the log is scanned.
      WEIR_WARN("checkpoint file ignored error=\"{}\"", read.error().message());
      clean_ = false;
    } else {
      return std::move(read).error();
    }
  }
  return {};
}

// On a small disk the write-ahead log takes no more than a quarter.
WalOptions LogDirectory::wal_options() const {
  WalOptions wal = options_.wal;
  const Result<DiskSpace> space = files_.disk_space(layout_.wal);
  if (!space.ok() || space->capacity_bytes / 4 >= wal.total_bytes_max) {
    return wal;
  }
  constexpr std::uint64_t kFiles = 4;
  constexpr std::uint64_t kFileBytesMin = 16 * kWalBlockBytes;
  const std::uint64_t file = std::max<std::uint64_t>(
      space->capacity_bytes / 4 / kFiles / kWalBlockBytes * kWalBlockBytes, kFileBytesMin);
  wal.file_bytes_min = std::min<std::size_t>(wal.file_bytes_min, file);
  wal.file_bytes_max = std::min<std::size_t>(wal.file_bytes_max, file);
  wal.total_bytes_max = std::min<std::size_t>(wal.total_bytes_max, kFiles * file);
  wal.checkpoint_bytes = std::min<std::size_t>(wal.checkpoint_bytes, file);
  return wal;
}

Status LogDirectory::open_wal() {
  const MonotonicTime began = options_.clock->monotonic();
  WEIR_TRY_ASSIGN(WalContents contents,
                  clean_ ? read_wal_files(files_, layout_.wal) : read_wal(files_, layout_.wal));
  if (!clean_) {
    const MutexLock lock(checkpoint_mutex_);
    WEIR_TRY(unserved_.add_to(contents));
  }
  // A directory from before it had a write-ahead log is recovered from its files alone.
  has_wal_contents_ = !clean_ && (!contents.files.empty() || !contents.tails.empty());
  if (has_wal_contents_) {
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(options_.clock->monotonic() - began);
    WEIR_INFO("write-ahead log read directory={} batches={} bytes={} took_ms={}", layout_.root,
              contents.batches, contents.bytes, took.count());
    for (const std::string& text : contents.headless) {
      WEIR_WARN("write-ahead log read without a header what=\"{}\"", text);
    }
    for (const std::string& text : contents.damaged) {
      WEIR_WARN("durable bytes damaged what=\"{}\"", text);
    }
  }
  // Up to the first checkpoint it has everything.
  recovery_points_known_ |= has_wal_contents_ && contents.generation == 1 &&
                            contents.files.front().header.first_sequence == 0;
  std::uint64_t seed = 0;
  {
    const MutexLock lock(change_mutex_);
    seed = rng_.next();
  }
  WEIR_TRY_ASSIGN(durability_, WriteAheadLog::open(files_, layout_.wal, wal_options(), contents,
                                                   !has_wal_contents_, seed));
  durability_->attach({[this] { return write_recovery_points(); }, options_.checkpoint_due,
                       [this] { return reserve_.give_up(); }, layout_.log});
  wal_contents_ = std::move(contents);
  return {};
}

// What the write-ahead log has of a partition that is recovered; once.
void LogDirectory::add_wal_tail(Partition::OpenOptions& options) {
  if (has_wal_contents_ && !options_.read_only) {
    options.wal_tail = wal_contents_.tail(options.topic_id, options.name.partition);
  }
}

// Finishes deletions that a crash cut short, and names what is not ours, once.
Status LogDirectory::sweep_folders() {
  WEIR_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, files_.list(layout_.log));
  std::string foreign;
  for (const DirectoryEntry& entry : entries) {
    bool is_ours = is_known_file(entry.name);
    if (entry.kind == FileKind::kDirectory) {
      WEIR_TRY_ASSIGN(is_ours, sweep_folder(entry.name));
    }
    if (!is_ours) {
      foreign += (foreign.empty() ? "" : ", ") + entry.name;
    }
  }
  if (!foreign.empty()) {
    WEIR_WARN("entries of {} that are not this log's are left alone: {}", layout_.log, foreign);
  }
  return {};
}

// False: the folder is not this log's.
Result<bool> LogDirectory::sweep_folder(const std::string& folder) {
  if (folder.ends_with(kDeletedFolderSuffix) && folder.find('.') != std::string::npos) {
    WEIR_TRY(remove_tree(files_, join_path(layout_.log, folder)));
    return true;
  }
  const std::optional<TopicPartition> name = parse_partition_folder(folder);
  if (!name) {
    return is_known_file(folder);
  }
  if (name->topic == kMetadataTopic) {
    return true;
  }
  if (clean_) {  // no deletion was cut short: its name is enough, if no other topic had it
    const MutexLock lock(state_mutex_);
    if (image_.find(name->topic) != nullptr && !image_.was_removed(name->topic)) {
      return true;
    }
  }
  Result<Uuid> id = topic_id_of_folder(files_, join_path(layout_.log, folder));
  bool removed = false;
  bool known = false;
  {
    const MutexLock lock(state_mutex_);
    if (!id.ok() && id.error().code() != Errc::kIo) {
      // A power cut may leave a folder without its id: the name is known to have been deleted.
      if (const std::optional<Uuid> removed_id = image_.removed_id(name->topic)) {
        id = *removed_id;
      }
    }
    const TopicImage* topic = image_.find(name->topic);
    removed = id.ok() && image_.was_removed(*id);
    known = topic != nullptr && (!id.ok() || topic->id == *id);
  }
  if (removed) {
    WEIR_INFO("finished the deletion of a partition folder={} topic_id={}", folder,
              id->to_string());
    WEIR_TRY(remove_partition_folder(folder, *id));
  }
  return removed || known;
}

void LogDirectory::report_recovery(const Partition& partition) const {
  const RecoveryReport& report = partition.recovery();
  if (report.truncated_bytes > 0 || report.segments_removed > 0) {
    WEIR_WARN(
        "recovered partition={} cut_bytes={} cut_from_offset={} segments_removed={} reason=\"{}\"",
        partition.options().name.to_string(), report.truncated_bytes, report.truncated_from.value(),
        report.segments_removed, report.reason);
  }
}

// After an unclean start. A `memory` log that is empty may have had records that were read.
bool LogDirectory::must_raise_epoch(const Partition& partition) const {
  return partition.offsets().log_end > Offset(0) ||
         partition.settings().durability == DurabilityMode::kMemory;
}

// Before anything can make the write-ahead log forget what it has of those that failed.
Status LogDirectory::keep_unserved(const std::vector<RecoveredPartition>& recovered) {
  const MutexLock lock(checkpoint_mutex_);
  for (const RecoveredPartition& one : recovered) {
    if (one.partition.ok()) {
      unserved_.served(one.id);
    } else if (!one.batches.empty()) {
      Status kept = unserved_.keep(one.id, one.batches);
      if (!kept.ok()) {
        return std::move(kept).error().with_context(
            fmt::format("keep what the write-ahead log has of {}, which cannot be opened",
                        one.name.to_string()));
      }
      WEIR_WARN("kept for a later start partition={} batches={} folder={}", one.name.to_string(),
                one.batches.size(), layout_.unserved);
    }
  }
  for (const auto& [gone, tail] : wal_contents_.tails) {  // of topics that were deleted
    unserved_.served(gone);
  }
  return {};
}

Status LogDirectory::recover_all() {
  std::vector<Partition::OpenOptions> todo;
  {
    const MutexLock lock(state_mutex_);
    for (const auto& [name, topic] : image_.topics()) {
      for (std::size_t i = 0; i < topic.leader_epochs.size(); ++i) {
        Partition::OpenOptions options =
            open_options({name, PartitionId(static_cast<std::int32_t>(i))}, topic);
        add_wal_tail(options);
        const bool replays = options.wal_tail && !options.wal_tail->batches.empty();
        if (replays || path_exists(files_, options.path)) {
          options.watermark = watermarks_->claim(topic.id, options.name.partition);
          todo.push_back(std::move(options));
        }
      }
    }
  }
  const MonotonicTime began = options_.clock->monotonic();
  std::vector<RecoveredPartition> recovered = recover_partitions(environment(), std::move(todo));
  WEIR_TRY(keep_unserved(recovered));
  std::uint64_t scanned = 0;
  std::uint64_t cut = 0;
  std::uint64_t replayed = 0;
  std::size_t failed = 0;
  const std::size_t count = recovered.size();
  for (RecoveredPartition& one : recovered) {
    Opened opened;
    opened.slot = one.slot;
    if (one.partition.ok()) {
      opened.partition = std::move(one.partition).value();
      opened.raise_epoch = must_raise_epoch(*opened.partition);
      Watermarks::activate(one.slot);
      report_recovery(*opened.partition);
      scanned += opened.partition->recovery().scanned_bytes;
      cut += opened.partition->recovery().truncated_bytes;
      replayed += opened.partition->recovery().replayed_bytes;
    } else {
      opened.failure = one.partition.status();
      ++failed;
      WEIR_ERROR("partition is not served partition={} error=\"{}\"", one.name.to_string(),
                 opened.failure.error().to_string());
    }
    const MutexLock lock(state_mutex_);
    opened_[one.name] = std::move(opened);
  }
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.clock->monotonic() - began);
  WEIR_INFO(
      "recovered after an unclean end directory={} partitions={} scanned_bytes={} cut_bytes={} "
      "replayed_bytes={} failed={} took_ms={}",
      layout_.root, count, scanned, cut, replayed, failed, took.count());
  wal_contents_ = WalContents();
  return {};
}

}  // namespace weir::log
