#include <weir/log/consumer.h>
#include <weir/runtime/logger.h>
#include <weir/runtime/settings.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace weir::log {
namespace {

struct ConsumerSettings {
  std::string group_id;
  std::string auto_offset_reset = "latest";
  std::int64_t fetch_max_bytes = 1 << 20;
  std::int64_t max_partition_fetch_bytes = 1 << 20;
  bool check_crcs = true;
};

using P = Property<ConsumerSettings>;
const std::array kProperties{
    P{.name = "group.id",
      .member = &ConsumerSettings::group_id,
      .doc = "Group of the committed offsets."},
    P{.name = "auto.offset.reset",
      .member = &ConsumerSettings::auto_offset_reset,
      .one_of = "earliest,latest,none",
      .doc = "Where to start without a committed offset."},
    P{.name = "fetch.max.bytes",
      .member = &ConsumerSettings::fetch_max_bytes,
      .min = 1,
      .max = INT32_MAX,
      .doc = "Bytes that one poll returns at most, about."},
    P{.name = "max.partition.fetch.bytes",
      .member = &ConsumerSettings::max_partition_fetch_bytes,
      .min = 1,
      .max = INT32_MAX,
      .doc = "The same for one partition."},
    P{.name = "check.crcs",
      .member = &ConsumerSettings::check_crcs,
      .doc = "Verify batches read from disk."},
};

}  // namespace

Result<ConsumerOptions> ConsumerOptions::parse(const std::map<std::string, std::string>& settings) {
  WEIR_TRY_ASSIGN(const ConsumerSettings read,
                  parse_settings<ConsumerSettings>("consumer", kProperties, settings));
  ConsumerOptions options;
  options.group_id = read.group_id;
  options.auto_offset_reset = read.auto_offset_reset;
  options.poll_bytes_max = static_cast<std::size_t>(read.fetch_max_bytes);
  options.partition_bytes_max = static_cast<std::size_t>(read.max_partition_fetch_bytes);
  options.check_crcs = read.check_crcs;
  return options;
}

Consumer::Consumer(Backend& backend, ConsumerOptions options)
    : backend_(backend), options_(std::move(options)) {}

Result<std::unique_ptr<Consumer>> Consumer::open(Backend& backend, ConsumerOptions options) {
  std::unique_ptr<Consumer> consumer(new Consumer(backend, std::move(options)));
  SourceOptions source;
  source.poll_bytes_max = consumer->options_.poll_bytes_max;
  source.partition_bytes_max = consumer->options_.partition_bytes_max;
  source.check_crcs = consumer->options_.check_crcs;
  WEIR_TRY_ASSIGN(consumer->source_, backend.make_source(source));
  if (!consumer->options_.group_id.empty()) {
    WEIR_TRY_ASSIGN(consumer->group_, backend.make_group(consumer->options_.group_id));
  }
  return consumer;
}

Result<std::uint32_t> Consumer::index_of(const TopicPartition& partition) const {
  const auto found = std::find(assigned_.begin(), assigned_.end(), partition);
  if (found == assigned_.end()) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("{} is not assigned to this consumer; call assign() first",
                             partition.to_string()));
  }
  return static_cast<std::uint32_t>(found - assigned_.begin());
}

Status Consumer::reset(std::uint32_t index, const std::string& why) {
  const TopicPartition& partition = assigned_[index];
  if (options_.auto_offset_reset == "none") {
    return Error(
        Errc::kOffsetOutOfRange,
        fmt::format("{} of group '{}': {}; set auto.offset.reset to earliest or latest, or seek",
                    partition.to_string(), options_.group_id, why));
  }
  WEIR_TRY_ASSIGN(const PartitionOffsets at, backend_.admin().offsets(partition));
  return source_->seek(index,
                       options_.auto_offset_reset == "earliest" ? at.log_start : at.high_watermark);
}

Status Consumer::assign(std::vector<TopicPartition> partitions) {
  assigned_ = std::move(partitions);
  epochs_.assign(assigned_.size(), kNoLeaderEpoch);
  WEIR_TRY(source_->assign(assigned_));
  std::vector<std::optional<CommittedOffset>> committed(assigned_.size());
  if (group_) {
    WEIR_TRY_ASSIGN(committed, group_->committed(assigned_));
  }
  for (std::uint32_t i = 0; i < assigned_.size(); ++i) {
    if (committed[i]) {
      WEIR_TRY(source_->seek(i, committed[i]->offset));
    } else {
      WEIR_TRY(reset(i, "no offset is committed"));
    }
  }
  return {};
}

Status Consumer::seek(const TopicPartition& partition, Offset offset) {
  WEIR_TRY_ASSIGN(const std::uint32_t index, index_of(partition));
  return source_->seek(index, offset);
}

Status Consumer::seek_to_beginning(const TopicPartition& partition) {
  WEIR_TRY_ASSIGN(const std::uint32_t index, index_of(partition));
  WEIR_TRY_ASSIGN(const PartitionOffsets at, backend_.admin().offsets(partition));
  return source_->seek(index, at.log_start);
}

Status Consumer::seek_to_end(const TopicPartition& partition) {
  WEIR_TRY_ASSIGN(const std::uint32_t index, index_of(partition));
  WEIR_TRY_ASSIGN(const PartitionOffsets at, backend_.admin().offsets(partition));
  return source_->seek(index, at.high_watermark);
}

Status Consumer::seek_to_time(const TopicPartition& partition, Timestamp time) {
  WEIR_TRY_ASSIGN(const std::uint32_t index, index_of(partition));
  WEIR_TRY_ASSIGN(const std::optional<Offset> found,
                  backend_.admin().offset_for_time(partition, time));
  if (!found) {
    return seek_to_end(partition);
  }
  return source_->seek(index, *found);
}

Status Consumer::pause(const TopicPartition& partition) {
  WEIR_TRY_ASSIGN(const std::uint32_t index, index_of(partition));
  source_->pause(index);
  return {};
}

Status Consumer::resume(const TopicPartition& partition) {
  WEIR_TRY_ASSIGN(const std::uint32_t index, index_of(partition));
  source_->resume(index);
  return {};
}

Status Consumer::recover_position(std::uint32_t index, const Error& error) {
  if (error.code() != Errc::kOffsetOutOfRange || !group_) {
    return error;
  }
  const Offset lost = source_->position(index);
  WEIR_TRY(reset(index, error.message()));
  const Offset now = source_->position(index);
  WEIR_WARN(
      "position was outside the log partition={} group={} position={} records_gone={} "
      "continues_at={}",
      assigned_[index].to_string(), options_.group_id, lost.value(),
      std::max<std::int64_t>(0, now.value() - lost.value()), now.value());
  return {};
}

Result<std::vector<Consumer::Batch>> Consumer::poll(Duration timeout) {
  WEIR_TRY_ASSIGN(std::vector<RecordBlock> blocks, source_->poll(timeout));
  std::vector<Batch> batches;
  for (RecordBlock& block : blocks) {
    if (!block.status.ok()) {
      WEIR_TRY(recover_position(block.assignment, block.status.error()));
      continue;
    }
    epochs_[block.assignment] = block.leader_epoch;
    batches.push_back({&assigned_[block.assignment], std::move(block)});
  }
  return batches;
}

Offset Consumer::position(const TopicPartition& partition) const {
  const Result<std::uint32_t> index = index_of(partition);
  return index.ok() ? source_->position(*index) : kNoOffset;
}

Status Consumer::commit() {
  if (!group_) {
    return Error(Errc::kInvalidArgument,
                 "a consumer without group.id has nowhere to commit; set one");
  }
  std::vector<std::pair<TopicPartition, CommittedOffset>> offsets;
  for (std::uint32_t i = 0; i < assigned_.size(); ++i) {
    const Offset position = source_->position(i);
    if (position >= Offset(0)) {
      offsets.emplace_back(assigned_[i], CommittedOffset{position, epochs_[i], ""});
    }
  }
  return group_->commit(offsets);
}

Result<std::optional<CommittedOffset>> Consumer::committed(const TopicPartition& partition) {
  if (!group_) {
    return std::optional<CommittedOffset>();
  }
  const TopicPartition one[] = {partition};
  WEIR_TRY_ASSIGN(std::vector<std::optional<CommittedOffset>> offsets, group_->committed(one));
  return std::move(offsets[0]);
}

void Consumer::wakeup() {
  source_->wakeup();
}

}  // namespace weir::log
