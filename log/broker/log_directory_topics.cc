// Topics of a directory: create, list, describe, grow, delete.
#include "log/broker/log_directory.h"
#include "log/metadata/config_records.h"
#include "log/partition/topic_settings.h"

#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace weir::log {
namespace {

constexpr std::int32_t kPartitionsMax = 100'000;

TopicDescription describe(const TopicImage& topic) {
  TopicDescription description;
  description.name = topic.name;
  description.id = topic.id;
  description.partitions = static_cast<std::int32_t>(topic.leader_epochs.size());
  description.internal = is_internal_topic(topic.name);
  description.config = topic.config;
  return description;
}

// The settings go first: a Kafka broker that reads all of the metadata at its start keeps those of
// a removed topic, and a later topic of that name would get them there.
std::vector<MetadataRecord> removal_records(const TopicImage& topic) {
  std::vector<MetadataRecord> records;
  for (const auto& [key, value] : topic.config) {
    const auto settings = config_records(topic.name, topic.config, key, std::nullopt);
    records.insert(records.end(), settings.begin(), settings.end());
  }
  records.emplace_back(RemoveTopicMetadataRecord{topic.id});
  return records;
}

// Metric names cannot tell '.' from '_' (Kafka's Topic.hasCollision).
bool share_metrics(std::string_view a, std::string_view b) {
  const auto metric = [](char c) { return c == '.' ? '_' : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [metric](char x, char y) { return metric(x) == metric(y); });
}

// Of a partition folder that is to be removed.
std::string doomed_name(const std::string& path, const Uuid& topic_id) {
  return fmt::format("{}.{}{}", path, topic_id.to_string(), kDeletedFolderSuffix);
}

}  // namespace

Status LogDirectory::check_name_is_free(const std::string& name) const {
  const MutexLock lock(state_mutex_);
  if (image_.find(name) != nullptr || name == kMetadataTopic) {
    return Error(Errc::kTopicExists, fmt::format("topic {} exists already", name));
  }
  for (const auto& [other, topic] : image_.topics()) {
    if (share_metrics(other, name)) {
      return Error(
          Errc::kInvalidTopic,
          fmt::format(
              "topic {} collides with the existing topic {}: names that differ only in '.' and "
              "'_' share their metrics; choose another name",
              name, other));
    }
  }
  return {};
}

bool LogDirectory::was_deleted(const std::string& name) const {
  const MutexLock lock(state_mutex_);
  return image_.removed_id(name).has_value();
}

Result<TopicDescription> LogDirectory::create_topic(const TopicSpec& spec) {
  WEIR_TRY(check_writable(fmt::format("create topic {}", spec.name)));
  WEIR_TRY(validate_topic_name(spec.name));
  if (spec.partitions < 1 || spec.partitions > kPartitionsMax) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("topic {} cannot have {} partitions; give 1 to {}", spec.name,
                             spec.partitions, kPartitionsMax));
  }
  WEIR_TRY(parse_topic_settings(spec.name, spec.config).status());

  const MutexLock change(change_mutex_);
  WEIR_TRY(begin_change(fmt::format("create topic {}", spec.name)));
  WEIR_TRY(check_name_is_free(spec.name));
  if (was_deleted(spec.name)) {
    // The checkpoint files know topics by name: the former one's positions must not be taken for
    // the new one's after a crash.
    WEIR_TRY(write_checkpoints());
    WEIR_TRY(write_clean_ends());
  }
  const Uuid id = new_topic_id();
  // One batch, as Kafka's controller writes it: topic, settings, partitions.
  std::vector<MetadataRecord> records{TopicMetadataRecord{spec.name, id}};
  for (const auto& [key, value] : spec.config) {
    const auto settings = config_records(spec.name, {}, key, value);
    records.insert(records.end(), settings.begin(), settings.end());
  }
  for (std::int32_t i = 0; i < spec.partitions; ++i) {
    records.emplace_back(
        PartitionMetadataRecord{PartitionId(i), id, kNodeId, LeaderEpoch(0), 0, directory_id_});
  }
  WEIR_TRY(append_metadata(records));
  topics_changed();
  const MutexLock lock(state_mutex_);
  return describe(*image_.find(spec.name));
}

// The write-ahead log knows topics by id alone: two with one would get each other's records.
Uuid LogDirectory::new_topic_id() {
  const MutexLock lock(state_mutex_);
  for (;;) {
    const Uuid id = rng_.uuid();
    if (image_.find(id) == nullptr && !image_.was_removed(id)) {
      return id;
    }
  }
}

std::vector<TopicDescription> LogDirectory::list_topics() {
  const MutexLock lock(state_mutex_);
  std::vector<TopicDescription> topics;
  for (const auto& [name, topic] : image_.topics()) {
    topics.push_back(describe(topic));
  }
  return topics;
}

Result<TopicImage> LogDirectory::image_of(const std::string& name) const {
  const MutexLock lock(state_mutex_);
  const TopicImage* topic = image_.find(name);
  if (topic == nullptr) {
    std::vector<std::string_view> names;
    for (const auto& [other, image] : image_.topics()) {
      names.push_back(other);
    }
    const std::string nearest = nearest_name(name, names);
    return Error(Errc::kUnknownTopic,
                 nearest.empty()
                     ? fmt::format("topic {} does not exist", name)
                     : fmt::format("topic {} does not exist; did you mean {}?", name, nearest));
  }
  return *topic;
}

Result<TopicDescription> LogDirectory::describe_topic(const std::string& name) {
  WEIR_TRY_ASSIGN(const TopicImage topic, image_of(name));
  return describe(topic);
}

Result<TopicImage> LogDirectory::image_to_change(const std::string& name, std::string_view action) {
  WEIR_TRY(begin_change(fmt::format("{} topic {}", action, name)));
  return image_of(name);
}

Status LogDirectory::delete_topic(const std::string& name) {
  WEIR_TRY(check_writable(fmt::format("delete topic {}", name)));
  if (is_internal_topic(name)) {
    return Error(Errc::kInvalidTopic,
                 fmt::format("topic {} is the log's own and cannot be deleted", name));
  }
  TopicDescription topic;
  Result<std::vector<std::string>> garbage = std::vector<std::string>();
  {
    const MutexLock change(change_mutex_);
    WEIR_TRY_ASSIGN(const TopicImage image, image_to_change(name, "delete"));
    topic = describe(image);
    if (Status written = append_metadata(removal_records(image)); !written.ok()) {
      if (undecided_) {
        // It may be gone with the next start: nothing more is acknowledged for it.
        {
          const MutexLock lock(state_mutex_);
          maybe_removed_ = topic;
        }
        abandon_partitions(topic);
      }
      return written;
    }
    garbage = set_folders_aside(topic);
  }
  topics_changed();  // gone it is, wherever its folders are
  WEIR_TRY(garbage.status());
  remove_garbage(topic, garbage.value());
  return offsets_.forget_topic(name, topic.id);
}

void LogDirectory::abandon_partitions(const TopicDescription& topic) {
  std::vector<Opened> doomed;
  {
    const MutexLock lock(state_mutex_);
    for (std::int32_t i = 0; i < topic.partitions; ++i) {
      if (auto opened = opened_.extract({topic.name, PartitionId(i)}); !opened.empty()) {
        doomed.push_back(std::move(opened.mapped()));
      }
    }
  }
  for (const Opened& opened : doomed) {
    if (opened.partition) {
      opened.partition->abandon();
    }
    watermarks_->release(opened.slot);
  }
}

Result<std::vector<std::string>> LogDirectory::set_folders_aside(const TopicDescription& removed) {
  const bool did_remain = std::exchange(folders_remain_, true);
  abandon_partitions(removed);
  cleaner_->forget(removed.id);
  std::vector<std::string> aside;
  Status first;
  for (std::int32_t i = 0; i < removed.partitions; ++i) {
    const std::string path =
        join_path(layout_.log, TopicPartition{removed.name, PartitionId(i)}.to_string());
    const std::string doomed = doomed_name(path, removed.id);
    Status renamed = path_exists(files_, path) ? files_.rename(path, doomed) : Status();
    if (renamed.ok()) {
      aside.push_back(doomed);
    } else if (first.ok()) {
      first = std::move(renamed);
    }
  }
  if (!aside.empty()) {
    WEIR_TRY(files_.sync_directory(layout_.log));
  }
  WEIR_TRY(first);
  folders_remain_ = did_remain;
  return aside;
}

// What fails stays until a start finds it.
void LogDirectory::remove_garbage(const TopicDescription& removed,
                                  const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    if (Status gone = remove_tree(files_, folder); !gone.ok()) {
      WEIR_WARN("a removed partition's files stay until the next start folder={} error=\"{}\"",
                folder, gone.error().message());
    }
  }
  for (std::int32_t i = 0; i < removed.partitions; ++i) {
    remove_tree(files_, layout_.checksum_folder(removed.id, PartitionId(i)))
        .ignore("a start removes what belongs to no topic");
  }
}

Status LogDirectory::remove_partition_folder(const std::string& folder, const Uuid& topic_id) {
  // First the new name, so that a crash while files go leaves nothing that looks like a partition.
  const std::string path = join_path(layout_.log, folder);
  const std::string doomed = doomed_name(path, topic_id);
  WEIR_TRY(files_.rename(path, doomed));
  WEIR_TRY(files_.sync_directory(layout_.log));
  return remove_tree(files_, doomed);
}

Status LogDirectory::grow_topic(const std::string& name, std::int32_t partitions,
                                OrderedGrowth ordered) {
  WEIR_TRY(check_writable(fmt::format("grow topic {}", name)));
  if (is_internal_topic(name)) {
    return Error(Errc::kInvalidTopic,
                 fmt::format("topic {} is the log's own: what it holds is found by its partition "
                             "count, which stays",
                             name));
  }
  const MutexLock change(change_mutex_);
  WEIR_TRY_ASSIGN(const TopicImage topic, image_to_change(name, "grow"));
  const auto present = static_cast<std::int32_t>(topic.leader_epochs.size());
  if (partitions <= present || partitions > kPartitionsMax) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("topic {} has {} partitions and cannot have {}: they are only added; "
                             "give {} to {}",
                             name, present, partitions, present + 1, kPartitionsMax));
  }
  const auto is_ordered = topic.config.find("weir.ordered");
  if (ordered == OrderedGrowth::kRefuse && is_ordered != topic.config.end() &&
      is_ordered->second == "true") {
    return Error(Errc::kInvalidArgument,
                 fmt::format("topic {} has weir.ordered=true: with more partitions a key's next "
                             "records would go to another partition than its former ones; copy the "
                             "records to a new topic, or force it",
                             name));
  }
  std::vector<MetadataRecord> records;
  for (std::int32_t i = present; i < partitions; ++i) {
    records.emplace_back(PartitionMetadataRecord{PartitionId(i), topic.id, kNodeId, LeaderEpoch(0),
                                                 0, directory_id_});
  }
  WEIR_TRY(append_metadata(records));
  topics_changed();
  return {};
}

Status LogDirectory::keep_producers(Partition& partition, Offset before) {
  if (partition.producers().empty()) {
    return {};
  }
  const std::optional<ProducersAt> known = partition.flushed_producers();
  if (!known || known->offset < before) {
    WEIR_TRY(partition.flush());
  }
  WEIR_TRY(write_recovery_points());  // what is known above them is not believed
  return write_producers();           // also what an earlier flush knew: it may be in memory alone
}

Status LogDirectory::delete_records(const TopicPartition& name, Offset before) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> partition, partition_for_append(name));
  WEIR_TRY(check_policy_deletes(name.topic));
  if (before == kNoOffset) {
    before = partition->offsets().high_watermark;
  }
  return give_up_records(*partition, before);
}

void LogDirectory::topics_changed() {
  topic_generation_.fetch_add(1, std::memory_order_acq_rel);
  std::vector<std::shared_ptr<Notifier>> waiters;
  {
    const MutexLock lock(state_mutex_);
    waiters.assign(topic_waiters_.begin(), topic_waiters_.end());
  }
  for (const auto& waiter : waiters) {
    waiter->notify();
  }
}

void LogDirectory::add_topic_waiter(std::shared_ptr<Notifier> waiter) {
  const MutexLock lock(state_mutex_);
  topic_waiters_.insert(std::move(waiter));
}

void LogDirectory::remove_topic_waiter(const std::shared_ptr<Notifier>& waiter) {
  const MutexLock lock(state_mutex_);
  topic_waiters_.erase(waiter);
}

// --- The log's own topics

std::int32_t LogDirectory::partitions_of(std::string_view name) const {
  const MutexLock lock(state_mutex_);
  const TopicImage* topic = image_.find(std::string(name));
  return topic == nullptr ? 0 : static_cast<std::int32_t>(topic->leader_epochs.size());
}

Status LogDirectory::ensure_topic(std::string_view name, std::int32_t partitions,
                                  TopicConfig config) {
  if (partitions_of(name) > 0) {
    return {};
  }
  config.emplace("cleanup.policy", "compact");
  config.emplace("segment.bytes", "104857600");
  TopicSpec spec;
  spec.name = name;
  spec.partitions = partitions;
  spec.config = std::move(config);
  Result<TopicDescription> made = create_topic(spec);
  if (!made.ok() && made.error().code() != Errc::kTopicExists) {
    return std::move(made).error();
  }
  return {};
}

std::int32_t LogDirectory::partition_count() {
  return partitions_of(kOffsetsTopic);
}

Status LogDirectory::ensure_exists() {
  return ensure_topic(kOffsetsTopic, options_.offsets_partitions,
                      {{"compression.type", "producer"}});
}

std::int32_t LogDirectory::state_partitions() {
  return partitions_of(kTransactionTopic);
}

Status LogDirectory::ensure_state_topic() {
  return ensure_topic(kTransactionTopic, options_.transaction_partitions,
                      {{"compression.type", "uncompressed"}});
}

Result<std::shared_ptr<Partition>> LogDirectory::open_to_append(const TopicPartition& name) {
  return partition_for_append(name);
}

Result<std::shared_ptr<Partition>> LogDirectory::open(PartitionId index) {
  const TopicPartition name{std::string(kOffsetsTopic), index};
  if (!options_.read_only) {
    return partition_for_append(name);
  }
  WEIR_TRY_ASSIGN(std::shared_ptr<Partition> log, partition(name));
  WEIR_TRY(refresh_partition(*log));  // what the holder committed since it was opened
  return log;
}

Uuid LogDirectory::topic_id(const std::string& topic) {
  const MutexLock lock(state_mutex_);
  const TopicImage* image = image_.find(topic);
  return image == nullptr ? Uuid{} : image->id;
}

}  // namespace weir::log
