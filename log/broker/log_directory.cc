#include "log/broker/log_directory.h"

#include "log/broker/recover_partitions.h"
#include "log/partition/await.h"
#include "log/partition/replay.h"
#include "log/partition/topic_settings.h"
#include "log/record/batch_builder.h"
#include "log/record/wire.h"

#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <unistd.h>

namespace weir::log {
namespace {

constexpr std::string_view kDeletedSuffix = "-delete";
constexpr std::int32_t kNodeId = 1;

// Kafka's fixed id of the metadata topic (org.apache.kafka.common.Uuid.METADATA_TOPIC_ID).
Uuid metadata_topic_id() {
  Uuid id;
  id.bytes.back() = 1;
  return id;
}

// "orders-3" -> orders, 3; nullopt for what is no partition folder.
std::optional<TopicPartition> parse_folder(const std::string& folder) {
  const std::size_t dash = folder.rfind('-');
  if (dash == std::string::npos || dash == 0 || dash + 1 == folder.size()) {
    return std::nullopt;
  }
  std::int32_t partition = 0;
  const char* end = folder.data() + folder.size();
  const auto [stop, error] = std::from_chars(folder.data() + dash + 1, end, partition);
  if (error != std::errc() || stop != end || partition < 0) {
    return std::nullopt;
  }
  return TopicPartition{folder.substr(0, dash), PartitionId(partition)};
}

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

DirectoryLayout::DirectoryLayout(const std::string& path)
    : root(path),
      log(join_path(path, "log")),
      wal(join_path(path, "wal")),
      state(join_path(path, "state")),
      lock(join_path(log, ".lock")),
      meta_properties(join_path(log, "meta.properties")),
      clean_shutdown(join_path(log, ".kafka_cleanshutdown")),
      watermarks(join_path(wal, "watermarks")),
      recovery_points(join_path(log, "recovery-point-offset-checkpoint")),
      high_watermarks(join_path(log, "replication-offset-checkpoint")),
      log_starts(join_path(log, "log-start-offset-checkpoint")) {}

bool is_internal_topic(const std::string& topic) {
  return topic == kMetadataTopic || topic == kOffsetsTopic || topic == "__transaction_state";
}

LogDirectory::LogDirectory(std::string path, LogDirectoryOptions options)
    : layout_(path),
      options_(options),
      files_(*options.files),
      offsets_(*this, *options.clock),
      rng_(options.seed) {}

LogDirectory::~LogDirectory() {
  const MutexLock change(change_mutex_);
  if (closed_) {
    return;
  }
  const MutexLock state(state_mutex_);
  for (auto& [name, opened] : opened_) {
    if (opened.partition) {
      opened.partition->abandon();
    }
  }
  if (metadata_) {
    metadata_->abandon();
  }
}

Result<std::unique_ptr<LogDirectory>> LogDirectory::open(const std::string& path,
                                                         LogDirectoryOptions options) {
  WEIR_ASSERT(options.files != nullptr && options.clock != nullptr);
  std::unique_ptr<LogDirectory> directory(new LogDirectory(path, options));
  if (Status started = directory->start(); !started.ok()) {
    return std::move(started).error();
  }
  return directory;
}

Status LogDirectory::start() {
  WEIR_TRY(check_root());
  if (!options_.read_only) {
    for (const std::string* folder : {&layout_.log, &layout_.wal, &layout_.state}) {
      WEIR_TRY(files_.create_directories(*folder));
    }
    WEIR_TRY(files_.sync_directory(layout_.root));
    WEIR_TRY_ASSIGN(lock_, files_.lock(layout_.lock, fmt::format("pid {} ({})", ::getpid(),
                                                                 program_invocation_short_name)));
    durability_ = make_flusher(files_);
  }
  WEIR_TRY(read_meta_properties());
  clean_ = first_start_ || path_exists(files_, layout_.clean_shutdown);
  WEIR_TRY(read_checkpoints());
  if (options_.read_only) {
    Result<std::unique_ptr<Watermarks>> published = Watermarks::open(files_, layout_.watermarks);
    if (published.ok()) {
      watermarks_ = std::move(published).value();
    }
  } else {
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
  if (!clean_) {
    recover_all();
  }
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
  return {};
}

Status LogDirectory::read_meta_properties() {
  Result<std::string> text = read_file(files_, layout_.meta_properties);
  if (text.ok()) {
    constexpr std::string_view kKey = "directory.id=";
    const std::size_t at = text->find(kKey);
    if (text->find("version=1") == std::string::npos || at == std::string::npos) {
      return Error(Errc::kCorrupt,
                   fmt::format("{} has no 'version=1' or no 'directory.id'; restore it from a copy",
                               layout_.meta_properties));
    }
    Result<Uuid> id = Uuid::parse(text->substr(at + kKey.size(), 22));
    if (!id.ok()) {
      return std::move(id).error().with_context(layout_.meta_properties);
    }
    directory_id_ = *id;
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

Partition::OpenOptions LogDirectory::open_options(const TopicPartition& name,
                                                  const TopicImage& topic) const {
  Partition::OpenOptions options;
  options.name = name;
  options.topic_id = topic.id;
  options.path = join_path(layout_.log, name.to_string());
  const auto value = [&name](const OffsetCheckpoint& offsets) {
    const auto found = offsets.find(name);
    return found == offsets.end() ? Offset(0) : found->second;
  };
  options.log_start = value(log_starts_);
  options.recovery_point = value(recovery_points_);
  options.clean = clean_;
  options.read_only = options_.read_only;
  const auto index = static_cast<std::size_t>(name.partition.value());
  options.leader_epoch =
      index < topic.leader_epochs.size() ? topic.leader_epochs[index] : LeaderEpoch(0);
  const Result<TopicSettings> settings = parse_topic_settings(topic.name, topic.config);
  if (settings.ok()) {
    options.settings = partition_settings(*settings);
  } else {
    // They were legal when they were written, perhaps by a newer version: defaults serve, data
    // stays.
    WEIR_WARN("topic settings ignored topic={} error=\"{}\"", topic.name,
              settings.error().message());
  }
  if (is_internal_topic(name.topic)) {
    options.settings.durability = DurabilityMode::kFsync;
  }
  return options;
}

Status LogDirectory::open_metadata() {
  TopicImage topic;
  topic.name = kMetadataTopic;
  topic.id = metadata_topic_id();
  topic.leader_epochs = {LeaderEpoch(1)};
  Partition::OpenOptions options = open_options({topic.name, PartitionId(0)}, topic);
  if (watermarks_ && !options_.read_only) {
    options.watermark = watermarks_->claim(topic.id, PartitionId(0));
  }
  const Partition::Environment environment{files_, *options_.clock, durability_.get(),
                                           options_.tail_cache_bytes};
  WatermarkSlot* slot = options.watermark;
  WEIR_TRY_ASSIGN(metadata_, Partition::open(environment, std::move(options)));
  Watermarks::activate(slot);
  report_recovery(*metadata_);
  if (options_.read_only) {
    WEIR_TRY(refresh_partition(*metadata_));
  }
  {
    const MutexLock lock(change_mutex_);
    metadata_next_ = metadata_->offsets().log_start;
  }
  WEIR_TRY(replay_metadata());
  const PartitionOffsets at = metadata_->offsets();
  if (!options_.read_only && at.log_end == at.log_start) {
    return write_first_metadata();
  }
  return {};
}

Status LogDirectory::replay_metadata() {
  const MutexLock change(change_mutex_);
  WEIR_TRY_ASSIGN(metadata_next_,
                  replay_records(*metadata_, metadata_next_, [this](const RecordView& record) {
                    if (record.value.is_null()) {
                      return Status();
                    }
                    Result<MetadataRecord> decoded = decode_metadata_record(record.value.view());
                    return decoded.ok() ? apply_metadata({*decoded}) : decoded.status();
                  }));
  return {};
}

Status LogDirectory::apply_metadata(const std::vector<MetadataRecord>& records) {
  const MutexLock lock(state_mutex_);
  for (const MetadataRecord& record : records) {
    WEIR_TRY(image_.apply(record));
  }
  return {};
}

// As Kafka's first start: the leader, then the level of the records (30 is 4.3-IV0).
Status LogDirectory::write_first_metadata() {
  WireWriter key;
  key.integer(std::int16_t{0});
  key.integer(std::int16_t{2});  // LEADER_CHANGE
  WireWriter value;
  value.integer(std::int16_t{0});
  value.integer(kNodeId);
  for (int list = 0; list < 2; ++list) {  // voters, granting voters: this node
    value.uvarint(2);
    value.integer(kNodeId);
    value.uvarint(0);
  }
  value.uvarint(0);
  WEIR_TRY(metadata_
               ->append(build_control_batch(key.bytes(), value.bytes(), options_.clock->now(), {}),
                        AppendOrigin::kCoordinator)
               .status());
  constexpr std::int16_t kMetadataLevel = 30;
  const MutexLock lock(change_mutex_);
  return append_metadata({FeatureLevelMetadataRecord{"metadata.version", kMetadataLevel}});
}

// One batch, durable before it takes effect.
Status LogDirectory::append_metadata(const std::vector<MetadataRecord>& records) {
  constexpr auto kTimeout = std::chrono::seconds(30);
  BatchBuilder builder(64U << 20U);
  const Timestamp now = options_.clock->now();
  for (const MetadataRecord& record : records) {
    const std::string value = encode_metadata_record(record);
    WEIR_ASSERT(builder.append(RecordRef{{}, ByteView(value), now, {}}));
  }
  WEIR_TRY_ASSIGN(const Partition::Appended appended,
                  metadata_->append(builder.seal(), AppendOrigin::kBuilder));
  WEIR_TRY(await_high_watermark(metadata_, appended.next_offset, kTimeout));
  metadata_next_ = appended.next_offset;
  return apply_metadata(records);
}

Status LogDirectory::remove_partition_folder(const std::string& folder, const Uuid& topic_id) {
  // First the new name, so that a crash while files go leaves nothing that looks like a partition.
  const std::string path = join_path(layout_.log, folder);
  const std::string doomed = fmt::format("{}.{}{}", path, topic_id.to_string(), kDeletedSuffix);
  WEIR_TRY(files_.rename(path, doomed));
  WEIR_TRY(files_.sync_directory(layout_.log));
  return remove_tree(files_, doomed);
}

// Finishes deletions that a crash cut short, and names what is not ours, once.
Status LogDirectory::sweep_folders() {
  WEIR_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, files_.list(layout_.log));
  std::string foreign;
  for (const DirectoryEntry& entry : entries) {
    if (entry.kind == FileKind::kDirectory && entry.name.ends_with(kDeletedSuffix) &&
        entry.name.find('.') != std::string::npos) {
      WEIR_TRY(remove_tree(files_, join_path(layout_.log, entry.name)));
      continue;
    }
    const std::optional<TopicPartition> name =
        entry.kind == FileKind::kDirectory ? parse_folder(entry.name) : std::nullopt;
    if (!name) {
      if (!is_known_file(entry.name)) {
        foreign += (foreign.empty() ? "" : ", ") + entry.name;
      }
      continue;
    }
    if (name->topic == kMetadataTopic) {
      continue;
    }
    const Result<Uuid> id = topic_id_of_folder(files_, join_path(layout_.log, entry.name));
    bool removed = false;
    bool known = false;
    {
      const MutexLock lock(state_mutex_);
      const TopicImage* topic = image_.find(name->topic);
      removed = id.ok() && image_.was_removed(*id);
      known = topic != nullptr && (!id.ok() || topic->id == *id);
    }
    if (removed) {
      WEIR_INFO("finished the deletion of a partition folder={} topic_id={}", entry.name,
                id->to_string());
      WEIR_TRY(remove_partition_folder(entry.name, *id));
    } else if (!known) {
      foreign += (foreign.empty() ? "" : ", ") + entry.name;
    }
  }
  if (!foreign.empty()) {
    WEIR_WARN("entries of {} that are not this log's are left alone: {}", layout_.log, foreign);
  }
  return {};
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

void LogDirectory::recover_all() {
  std::vector<Partition::OpenOptions> todo;
  {
    const MutexLock lock(state_mutex_);
    for (const auto& [name, topic] : image_.topics()) {
      for (std::size_t i = 0; i < topic.leader_epochs.size(); ++i) {
        Partition::OpenOptions options =
            open_options({name, PartitionId(static_cast<std::int32_t>(i))}, topic);
        if (path_exists(files_, options.path)) {
          options.watermark = watermarks_->claim(topic.id, options.name.partition);
          todo.push_back(std::move(options));
        }
      }
    }
  }
  const MonotonicTime began = options_.clock->monotonic();
  const Partition::Environment environment{files_, *options_.clock, durability_.get(),
                                           options_.tail_cache_bytes};
  std::vector<RecoveredPartition> recovered = recover_partitions(environment, std::move(todo));
  std::uint64_t scanned = 0;
  std::uint64_t cut = 0;
  std::size_t failed = 0;
  const std::size_t count = recovered.size();
  for (RecoveredPartition& one : recovered) {
    Opened opened;
    opened.slot = one.slot;
    if (one.partition.ok()) {
      opened.partition = std::move(one.partition).value();
      opened.raise_epoch = opened.partition->offsets().log_end > Offset(0);
      Watermarks::activate(one.slot);
      report_recovery(*opened.partition);
      scanned += opened.partition->recovery().scanned_bytes;
      cut += opened.partition->recovery().truncated_bytes;
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
      "failed={} took_ms={}",
      layout_.root, count, scanned, cut, failed, took.count());
}

Result<std::optional<TopicImage>> LogDirectory::image_of(const TopicPartition& name) const {
  const MutexLock lock(state_mutex_);
  const TopicImage* topic = image_.find(name.topic);
  if (topic == nullptr) {
    return Error(Errc::kUnknownTopic, fmt::format("topic {} does not exist", name.topic));
  }
  const auto count = static_cast<std::int64_t>(topic->leader_epochs.size());
  if (name.partition.value() < 0 || name.partition.value() >= count) {
    return Error(Errc::kUnknownTopic, fmt::format("topic {} has partitions 0 to {}, not {}",
                                                  name.topic, count - 1, name.partition.value()));
  }
  return std::optional<TopicImage>(*topic);
}

Result<std::shared_ptr<Partition>> LogDirectory::partition(const TopicPartition& name) {
  if (name.topic == kMetadataTopic) {
    return metadata_;
  }
  {
    const MutexLock lock(state_mutex_);
    const auto found = opened_.find(name);
    if (found != opened_.end()) {
      if (!found->second.partition) {
        return found->second.failure.error();
      }
      return found->second.partition;
    }
  }
  WEIR_TRY_ASSIGN(const std::optional<TopicImage> topic, image_of(name));
  return open_partition(name, *topic);
}

Result<std::shared_ptr<Partition>> LogDirectory::open_partition(const TopicPartition& name,
                                                                const TopicImage& topic) {
  const MutexLock opening(open_mutex_);
  {
    const MutexLock lock(state_mutex_);
    if (const auto found = opened_.find(name); found != opened_.end() && found->second.partition) {
      return found->second.partition;
    }
  }
  Opened opened;
  Partition::OpenOptions options = open_options(name, topic);
  if (!options_.read_only) {
    opened.slot = watermarks_->claim(topic.id, name.partition);
    options.watermark = opened.slot;
  }
  const Partition::Environment environment{files_, *options_.clock, durability_.get(),
                                           options_.tail_cache_bytes};
  Result<std::shared_ptr<Partition>> partition = Partition::open(environment, std::move(options));
  if (!partition.ok()) {
    watermarks_->release(opened.slot);
    return std::move(partition).error().with_context(
        fmt::format("open partition {}", name.to_string()));
  }
  Watermarks::activate(opened.slot);
  report_recovery(**partition);
  if (options_.read_only) {
    WEIR_TRY(refresh_partition(**partition));
  }
  opened.partition = *partition;
  const MutexLock lock(state_mutex_);
  // Deleted while it was opened: the caller must not write into a folder that goes away.
  const TopicImage* now = image_.find(name.topic);
  if (now == nullptr || now->id != topic.id) {
    opened.partition->abandon();
    return Error(Errc::kUnknownTopic, fmt::format("topic {} was deleted", name.topic));
  }
  opened_[name] = std::move(opened);
  return partition;
}

Result<std::shared_ptr<Partition>> LogDirectory::partition_for_append(const TopicPartition& name) {
  WEIR_TRY(check_writable(fmt::format("write to {}", name.to_string())));
  WEIR_TRY_ASSIGN(std::shared_ptr<Partition> result, partition(name));
  {
    const MutexLock lock(state_mutex_);
    const auto found = opened_.find(name);
    if (found == opened_.end() || !found->second.raise_epoch) {
      return result;
    }
  }
  const MutexLock change(change_mutex_);
  LeaderEpoch epoch;
  {
    const MutexLock lock(state_mutex_);
    const auto found = opened_.find(name);
    if (found == opened_.end() || !found->second.raise_epoch) {
      return result;
    }
    found->second.raise_epoch = false;
    const TopicImage* topic = image_.find(name.topic);
    WEIR_ASSERT(topic != nullptr);
    epoch = topic->leader_epochs[static_cast<std::size_t>(name.partition.value())].next();
  }
  WEIR_TRY(append_metadata(
      {PartitionChangeMetadataRecord{name.partition, result->options().topic_id, kNodeId}}));
  WEIR_TRY(result->set_leader_epoch(epoch));
  return result;
}

Status LogDirectory::check_writable(std::string_view action) const {
  if (options_.read_only) {
    return Error(Errc::kReadOnly,
                 fmt::format("cannot {}: {} was opened for reading", action, layout_.root));
  }
  return {};
}

Status LogDirectory::refresh() {
  if (!options_.read_only) {
    return {};
  }
  if (!watermarks_) {
    Result<std::unique_ptr<Watermarks>> published = Watermarks::open(files_, layout_.watermarks);
    if (published.ok()) {
      watermarks_ = std::move(published).value();
    }
  }
  const Offset before = metadata_->offsets().high_watermark;
  WEIR_TRY(refresh_partition(*metadata_));
  if (metadata_->offsets().high_watermark == before) {
    return {};
  }
  WEIR_TRY(replay_metadata());
  {
    const MutexLock lock(state_mutex_);
    std::erase_if(opened_, [this](const auto& entry) WEIR_NO_THREAD_SAFETY_ANALYSIS {
      const TopicImage* topic = image_.find(entry.first.topic);
      return topic == nullptr ||
             (entry.second.partition && entry.second.partition->options().topic_id != topic->id);
    });
  }
  topics_changed();
  return {};
}

Status LogDirectory::refresh_partition(Partition& partition) {
  if (!options_.read_only) {
    return {};
  }
  const Partition::OpenOptions& options = partition.options();
  if (watermarks_) {
    if (const auto published = watermarks_->find(options.topic_id, options.name.partition)) {
      return partition.refresh(published->log_start, published->high_watermark);
    }
  }
  // Not opened by the holder since its start: what its last close or checkpoint said, else, without
  // a holder, all that is whole.
  const PartitionOffsets at = partition.offsets();
  const auto checkpointed = high_watermarks_.find(options.name);
  const Offset high =
      clean_ && checkpointed != high_watermarks_.end() ? checkpointed->second : at.log_end;
  return partition.refresh(at.log_start, std::max(high, at.high_watermark));
}

Status LogDirectory::write_checkpoints() {
  if (options_.read_only) {
    return {};
  }
  OffsetCheckpoint recovery = recovery_points_;
  OffsetCheckpoint high = high_watermarks_;
  OffsetCheckpoint starts = log_starts_;
  const auto add = [&](const TopicPartition& name, const Partition& partition) {
    const PartitionOffsets at = partition.offsets();
    recovery[name] = partition.recovery_point();
    high[name] = at.high_watermark;
    starts[name] = at.log_start;
  };
  {
    const MutexLock lock(state_mutex_);
    const auto gone = [this](const auto& entry) WEIR_NO_THREAD_SAFETY_ANALYSIS {
      return entry.first.topic != kMetadataTopic && image_.find(entry.first.topic) == nullptr;
    };
    std::erase_if(recovery, gone);
    std::erase_if(high, gone);
    std::erase_if(starts, gone);
    for (const auto& [name, opened] : opened_) {
      if (opened.partition) {
        add(name, *opened.partition);
      }
    }
  }
  if (metadata_) {
    add(metadata_->options().name, *metadata_);
  }
  WEIR_TRY(write_offset_checkpoint(files_, layout_.recovery_points, recovery));
  WEIR_TRY(write_offset_checkpoint(files_, layout_.high_watermarks, high));
  return write_offset_checkpoint(files_, layout_.log_starts, starts);
}

Status LogDirectory::close() {
  const MutexLock change(change_mutex_);
  if (closed_) {
    return {};
  }
  closed_ = true;
  std::vector<std::shared_ptr<Partition>> partitions;
  bool failed = false;
  {
    const MutexLock lock(state_mutex_);
    for (const auto& [name, opened] : opened_) {
      if (opened.partition) {
        partitions.push_back(opened.partition);
      } else {
        failed = true;
      }
    }
  }
  partitions.push_back(metadata_);
  Status first;
  for (const auto& partition : partitions) {
    Status closed = partition->close();
    if (!closed.ok() && first.ok()) {
      first = std::move(closed);
    }
  }
  if (options_.read_only) {
    return first;
  }
  durability_->drain();
  WEIR_TRY(first);
  WEIR_TRY(write_checkpoints());
  if (!failed) {  // an unreadable partition must be scanned when it is readable again
    WEIR_TRY(replace_file(files_, layout_.clean_shutdown, "{\"version\":0,\"brokerEpoch\":-1}"));
  }
  lock_.reset();
  return {};
}

}  // namespace weir::log
