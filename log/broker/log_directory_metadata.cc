// The metadata log of a directory: what a start reads of it, how a change is written and takes
// effect, snapshots.
#include "log/broker/kafka_files.h"
#include "log/broker/log_directory.h"
#include "log/metadata/metadata_snapshot.h"
#include "log/partition/await.h"
#include "log/partition/replay.h"
#include "log/record/batch_builder.h"
#include "log/record/wire.h"

#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <utility>

namespace weir::log {
namespace {

constexpr LeaderEpoch kMetadataEpoch(1);

// Kafka's fixed id of the metadata topic (org.apache.kafka.common.Uuid.METADATA_TOPIC_ID).
Uuid metadata_topic_id() {
  Uuid id;
  id.bytes.back() = 1;
  return id;
}

// A topic of many partitions is one batch (Kafka: KafkaRaftClient.MAX_BATCH_SIZE_BYTES).
constexpr std::int64_t kMetadataBatchMax = 8LL << 20U;

}  // namespace

Status LogDirectory::open_metadata() {
  TopicImage topic;
  topic.name = kMetadataTopic;
  topic.id = metadata_topic_id();
  topic.leader_epochs = {kMetadataEpoch};
  Partition::OpenOptions options = open_options({topic.name, PartitionId(0)}, topic);
  if (watermarks_ && !options_.read_only) {
    options.watermark = watermarks_->claim(topic.id, PartitionId(0));
  }
  options.settings.max_message_bytes = kMetadataBatchMax;
  add_wal_tail(options);
  WatermarkSlot* slot = options.watermark;
  WEIR_TRY_ASSIGN(metadata_, Partition::open(environment(), std::move(options)));
  Watermarks::activate(slot);
  report_recovery(*metadata_);
  if (options_.read_only) {
    WEIR_TRY(refresh_partition(*metadata_));
  }
  WEIR_TRY(load_metadata_snapshot());
  WEIR_TRY(replay_metadata());
  {
    // A seed that is the same at every start must not give the ids of the start before.
    const MutexLock lock(change_mutex_);
    rng_ = Rng(options_.seed ^
               (0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(metadata_next_.value() + 1)));
  }
  {
    const MutexLock lock(state_mutex_);
    for (const auto& [name, image] : image_.topics()) {
      topics_at_start_.insert(image.id);
    }
  }
  const PartitionOffsets at = metadata_->offsets();
  if (!options_.read_only && at.log_end == at.log_start) {
    return write_first_metadata();
  }
  return {};
}

// As Kafka's first start: the leader, then the levels of features and this node.
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
  const MutexLock lock(change_mutex_);
  RegisterBrokerMetadataRecord node;
  node.broker_id = kNodeId;
  node.incarnation_id = rng_.uuid();
  node.directory = directory_id_;
  return append_metadata(first_metadata_records(node, metadata_->offsets().log_end));
}

Offset LogDirectory::next_metadata_offset() {
  const MutexLock lock(change_mutex_);
  return metadata_next_;
}

Status LogDirectory::load_metadata_snapshot() {
  const std::string& folder = metadata_->options().path;
  std::vector<std::string> notes;
  WEIR_TRY_ASSIGN(std::optional<LoadedSnapshot> snapshot,
                  load_newest_snapshot(files_, folder, notes));
  for (const std::string& note : notes) {
    WEIR_WARN("metadata {}", note);
  }
  const PartitionOffsets at = metadata_->offsets();
  const Offset end = snapshot ? snapshot->id.end : Offset(0);
  if (end < at.log_start) {
    return Error(Errc::kCorrupt,
                 fmt::format("{} has records from offset {} on and no whole snapshot up to there; "
                             "restore its newest .checkpoint file from a copy of the directory",
                             folder, at.log_start.value()));
  }
  if (end > at.log_end && !options_.read_only) {
    return Error(Errc::kCorrupt,
                 fmt::format("{} ends at offset {}, below its snapshot {}; restore the folder from "
                             "a copy of the directory",
                             folder, at.log_end.value(), snapshot_name(snapshot->id)));
  }
  const MutexLock change(change_mutex_);
  const MutexLock lock(state_mutex_);
  if (snapshot) {
    image_ = std::move(snapshot->image);
  }
  metadata_next_ = end;
  metadata_since_snapshot_ = {};
  return {};
}

Status LogDirectory::replay_metadata() {
  if (metadata_->offsets().log_start > next_metadata_offset()) {
    WEIR_TRY(load_metadata_snapshot());  // the holder of the directory gave up what comes next
  }
  const MutexLock change(change_mutex_);
  if (metadata_->offsets().high_watermark <= metadata_next_) {
    return {};  // a snapshot that its holder has just written is ahead of what is read here
  }
  MetadataTail tail = metadata_since_snapshot_;
  WEIR_TRY_ASSIGN(metadata_next_,
                  replay_records(*metadata_, metadata_next_, [&](const RecordView& record) {
                    if (record.value.is_null()) {
                      return Status();
                    }
                    tail.add(record.value.view().size(), record.timestamp);
                    Result<MetadataRecord> decoded = decode_metadata_record(record.value.view());
                    return decoded.ok() ? apply_metadata({*decoded}) : decoded.status();
                  }));
  metadata_since_snapshot_ = tail;
  return {};
}

Status LogDirectory::apply_metadata(const std::vector<MetadataRecord>& records) {
  const MutexLock lock(state_mutex_);
  for (const MetadataRecord& record : records) {
    WEIR_TRY(image_.apply(record));
  }
  return {};
}

Status LogDirectory::begin_change(std::string_view action) {
  if (closed_) {
    return Error(Errc::kClosed, fmt::format("cannot {}: {} is closed", action, layout_.root));
  }
  Status settled = settle_metadata();
  return settled.ok() ? Status()
                      : Status(std::move(settled).error().with_context(fmt::format("{}", action)));
}

// Has the change take effect whose time ran out, if it is durable now.
Status LogDirectory::settle_metadata() {
  if (!undecided_) {
    return {};
  }
  if (metadata_->offsets().high_watermark < undecided_->end) {
    WEIR_TRY(metadata_->health());
    return Error(Errc::kTimedOut, "an earlier change of topics is not durable yet; try again");
  }
  const Undecided decided = *std::exchange(undecided_, std::nullopt);
  metadata_next_ = decided.end;
  WEIR_TRY(apply_metadata(decided.records));
  std::optional<TopicDescription> removed;
  std::vector<std::pair<std::shared_ptr<Partition>, PartitionSettings>> settings;
  {
    const MutexLock lock(state_mutex_);
    removed = std::exchange(maybe_removed_, std::nullopt);
    for (const auto& [name, opened] : opened_) {
      const TopicImage* topic = image_.find(name.topic);
      if (opened.partition && topic != nullptr) {
        settings.emplace_back(opened.partition, settings_of(*topic));
      }
    }
  }
  for (const auto& [partition, wanted] : settings) {
    if (!(partition->settings() == wanted)) {
      WEIR_TRY(partition->set_settings(wanted));
    }
  }
  if (removed) {
    WEIR_TRY_ASSIGN(const std::vector<std::string> folders, set_folders_aside(*removed));
    remove_garbage(*removed, folders);
  }
  topics_changed();
  return {};
}

// One batch, durable before it takes effect.
Status LogDirectory::append_metadata(std::vector<MetadataRecord> records) {
  WEIR_TRY(settle_metadata());
  snapshot_metadata_if_due();  // every earlier change is complete here, its folders too
  BatchBuilder builder(64U << 20U);
  const Timestamp now = options_.clock->now();
  for (const MetadataRecord& record : records) {
    const std::string value = encode_metadata_record(record);
    metadata_since_snapshot_.add(value.size(), now);
    WEIR_ASSERT(builder.append(RecordRef{{}, ByteView(value), now, {}}));
  }
  WEIR_TRY_ASSIGN(const Partition::Appended appended,
                  metadata_->append(builder.seal(), AppendOrigin::kBuilder));
  Status durable = await_high_watermark(metadata_, appended.next_offset, options_.metadata_timeout);
  if (!durable.ok()) {
    undecided_ = Undecided{std::move(records), appended.next_offset};
    return durable;
  }
  metadata_next_ = appended.next_offset;
  return apply_metadata(records);
}

void LogDirectory::snapshot_metadata_if_due() {
  if (metadata_since_snapshot_.bytes < options_.metadata_snapshot_bytes || folders_remain_) {
    return;
  }
  if (Status written = snapshot_metadata(); !written.ok()) {
    WEIR_WARN("no snapshot of the metadata log directory={} error=\"{}\"", layout_.root,
              written.error().message());
    metadata_since_snapshot_.bytes = 0;  // tried again when as much was written once more
  }
}

Status LogDirectory::snapshot_metadata() {
  std::vector<MetadataRecord> records;
  bool forgets = false;
  {
    const MutexLock lock(state_mutex_);
    records = image_.records(kNodeId, directory_id_);
    forgets = image_.has_removed();
  }
  if (forgets) {
    // The checkpoint files know topics by name, and a snapshot does not know which were removed.
    WEIR_TRY(write_checkpoints());
    WEIR_TRY(write_clean_ends());
  }
  const std::string& folder = metadata_->options().path;
  const SnapshotId id{metadata_next_, kMetadataEpoch};
  WEIR_TRY(replace_file(
      files_, join_path(folder, snapshot_name(id)),
      encode_snapshot(records, metadata_since_snapshot_.last_timestamp, options_.clock->now())));
  metadata_since_snapshot_.bytes = 0;
  if (forgets) {
    const MutexLock lock(state_mutex_);
    image_.forget_removed();
  }
  WEIR_TRY(metadata_->roll_active());
  return give_up_old_metadata(folder);
}

// The newest two snapshots stay, and the log from the older one on: should one of them be damaged,
// the other and the log say the same.
Status LogDirectory::give_up_old_metadata(const std::string& folder) {
  constexpr std::size_t kKept = 2;
  WEIR_TRY_ASSIGN(const std::vector<SnapshotId> all, list_snapshots(files_, folder));
  if (all.size() < kKept) {
    return {};
  }
  const std::size_t old = all.size() - kKept;
  WEIR_TRY(give_up_records(*metadata_, all[old].end));
  for (std::size_t i = 0; i < old; ++i) {
    WEIR_TRY(files_.remove_file(join_path(folder, snapshot_name(all[i]))));
  }
  return {};
}

}  // namespace weir::log
