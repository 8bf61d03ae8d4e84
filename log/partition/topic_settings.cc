#include "log/partition/topic_settings.h"

#include <weir/log/settings.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

namespace weir::log {
namespace {

using P = Property<TopicSettings>;
using S = TopicSettings;

constexpr std::int64_t kMaxInt = INT32_MAX;

const std::array kProperties{
    P{.name = "cleanup.policy",
      .member = &S::cleanup_policy,
      .one_of = "delete,compact,compact+delete",
      .doc = "What happens to old segments: delete, compact, or both."},
    P{.name = "compression.gzip.level",
      .member = &S::compression_gzip_level,
      .one_of = CompressionSettings::kGzipLevels,
      .doc = "Level of gzip where the log compresses; -1 is zlib's own choice."},
    P{.name = "compression.lz4.level",
      .member = &S::compression_lz4_level,
      .min = CompressionSettings::kLz4LevelMin,
      .max = CompressionSettings::kLz4LevelMax,
      .doc = "Level of lz4 where the log compresses; 9 is the fast compressor."},
    P{.name = "compression.type",
      .member = &S::compression_type,
      .one_of = "producer,uncompressed,gzip,snappy,lz4,zstd",
      .doc = "Codec of stored batches; producer keeps the bytes as they came."},
    P{.name = "compression.zstd.level",
      .member = &S::compression_zstd_level,
      .min = CompressionSettings::kZstdLevelMin,
      .max = CompressionSettings::kZstdLevelMax,
      .doc = "Level of zstd where the log compresses."},
    P{.name = "delete.retention.ms",
      .member = &S::delete_retention_ms,
      .min = 0,
      .doc = "How long tombstones stay in a compacted topic."},
    P{.name = "file.delete.delay.ms",
      .member = &S::file_delete_delay_ms,
      .min = 0,
      .doc = "Wait before a deleted file is removed."},
    P{.name = "flush.messages",
      .member = &S::flush_messages,
      .min = 1,
      .doc = "Kafka's forced sync by count; weir.durability decides here."},
    P{.name = "flush.ms",
      .member = &S::flush_ms,
      .min = 0,
      .doc = "Kafka's forced sync by time; weir.durability decides here."},
    P{.name = "index.interval.bytes",
      .member = &S::index_interval_bytes,
      .min = 0,
      .max = kMaxInt,
      .doc = "Appended bytes between two index entries."},
    P{.name = "max.compaction.lag.ms",
      .member = &S::max_compaction_lag_ms,
      .min = 1,
      .doc = "Longest time a record stays uncompacted."},
    P{.name = "max.message.bytes",
      .member = &S::max_message_bytes,
      .min = 0,
      .max = kMaxInt,
      .doc = "Largest record batch."},
    P{.name = "message.timestamp.after.max.ms",
      .member = &S::message_timestamp_after_max_ms,
      .min = 0,
      .doc = "How far a record's timestamp may lie in the future."},
    P{.name = "message.timestamp.before.max.ms",
      .member = &S::message_timestamp_before_max_ms,
      .min = 0,
      .doc = "How far a record's timestamp may lie in the past."},
    P{.name = "message.timestamp.type",
      .member = &S::message_timestamp_type,
      .one_of = "CreateTime,LogAppendTime",
      .doc = "Whose clock stamps records."},
    P{.name = "min.cleanable.dirty.ratio",
      .member = &S::min_cleanable_dirty_ratio,
      .doc = "Share of uncompacted bytes that starts compaction."},
    P{.name = "min.compaction.lag.ms",
      .member = &S::min_compaction_lag_ms,
      .min = 0,
      .doc = "Shortest time a record stays uncompacted."},
    P{.name = "min.insync.replicas",
      .member = &S::min_insync_replicas,
      .min = 1,
      .max = kMaxInt,
      .doc = "Replicas that must hold a batch for acks=all."},
    P{.name = "preallocate",
      .member = &S::preallocate,
      .doc = "Kafka's preallocation; segments are always reserved in growing steps here."},
    P{.name = "retention.bytes",
      .member = &S::retention_bytes,
      .min = -1,
      .doc = "Size of a partition above which old segments go; -1 no limit."},
    P{.name = "retention.ms",
      .member = &S::retention_ms,
      .min = -1,
      .doc = "Age above which segments go; -1 no limit."},
    P{.name = "segment.bytes",
      .member = &S::segment_bytes,
      .min = 14,
      .max = kMaxInt,
      .doc = "Size at which a segment is rolled."},
    P{.name = "segment.index.bytes",
      .member = &S::segment_index_bytes,
      .min = 4,
      .max = kMaxInt,
      .doc = "Size of an index at which a segment is rolled."},
    P{.name = "segment.jitter.ms",
      .member = &S::segment_jitter_ms,
      .min = 0,
      .doc = "Random part taken from segment.ms."},
    P{.name = "segment.ms",
      .member = &S::segment_ms,
      .min = 1,
      .doc = "Age at which a segment is rolled, by record timestamps."},
    P{.name = "unclean.leader.election.enable",
      .member = &S::unclean_leader_election_enable,
      .doc = "Whether a replica that lacks acknowledged records may lead."},
    P{.name = "weir.durability",
      .member = &S::weir_durability,
      .one_of = "fsync,memory",
      .doc = "fsync: acknowledged means on disk. memory: acknowledged means in the page cache."},
    P{.name = "weir.ordered",
      .member = &S::weir_ordered,
      .doc = "Keys must stay in their partitions: the topic does not grow unless it is forced."},
};

bool is_ratio(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && value >= 0 && value <= 1;
}

}  // namespace

std::span<const Property<TopicSettings>> topic_properties() {
  return kProperties;
}

std::vector<SettingDescription> topic_settings() {
  return describe_settings<TopicSettings>(kProperties);
}

Result<TopicSettings> parse_topic_settings(const std::string& topic, const TopicConfig& config,
                                           std::vector<std::string> problems) {
  // "compact,delete" is one value in Kafka; the choice list is comma-separated, so it is judged
  // here.
  TopicConfig judged = config;
  const auto policy = judged.find("cleanup.policy");
  const bool both = policy != judged.end() &&
                    (policy->second == "compact,delete" || policy->second == "delete,compact");
  if (both) {
    policy->second = "compact+delete";
  }
  if (const auto ratio = config.find("min.cleanable.dirty.ratio");
      ratio != config.end() && !is_ratio(ratio->second)) {
    problems.push_back(fmt::format(
        "min.cleanable.dirty.ratio={} is not a number from 0 to 1, such as 0.5", ratio->second));
  }
  Result<TopicSettings> settings = parse_settings<TopicSettings>(
      fmt::format("topic {}", topic), kProperties, judged, {}, std::move(problems));
  if (settings.ok() && both) {
    settings->cleanup_policy = "compact,delete";
  }
  return settings;
}

namespace {

std::optional<Compression> stored_compression(const TopicSettings& settings) {
  if (settings.compression_type == "producer") {
    return std::nullopt;
  }
  CompressionSettings named;
  named.type = settings.compression_type;
  named.gzip_level = settings.compression_gzip_level;
  named.lz4_level = settings.compression_lz4_level;
  named.zstd_level = settings.compression_zstd_level;
  return named.compression();
}

CleanupSettings cleanup_settings(const TopicSettings& settings) {
  CleanupSettings result;
  result.compacts = settings.cleanup_policy != "delete";
  result.deletes = settings.cleanup_policy != "compact";
  result.retention_ms = settings.retention_ms;
  result.retention_bytes = settings.retention_bytes;
  result.delete_retention_ms = settings.delete_retention_ms;
  result.min_compaction_lag_ms = settings.min_compaction_lag_ms;
  result.max_compaction_lag_ms = settings.max_compaction_lag_ms;
  const std::string& ratio = settings.min_cleanable_dirty_ratio;  // it was judged when it was set
  std::from_chars(ratio.data(), ratio.data() + ratio.size(), result.min_cleanable_dirty_ratio);
  return result;
}

}  // namespace

PartitionSettings partition_settings(const TopicSettings& settings) {
  PartitionSettings result;
  result.segment_bytes = settings.segment_bytes;
  result.segment_ms = settings.segment_ms;
  result.segment_index_bytes = settings.segment_index_bytes;
  result.index_interval_bytes = settings.index_interval_bytes;
  result.max_message_bytes = settings.max_message_bytes;
  result.timestamp_type = settings.message_timestamp_type == "LogAppendTime"
                              ? TimestampType::kLogAppendTime
                              : TimestampType::kCreateTime;
  result.timestamp_before_max_ms = settings.message_timestamp_before_max_ms;
  result.timestamp_after_max_ms = settings.message_timestamp_after_max_ms;
  result.durability =
      settings.weir_durability == "memory" ? DurabilityMode::kMemory : DurabilityMode::kFsync;
  result.compression = stored_compression(settings);
  result.segment_jitter_ms = settings.segment_jitter_ms;
  result.cleanup = cleanup_settings(settings);
  if (result.cleanup.compacts) {
    // The active segment is never compacted: it must not be active for longer (Kafka's
    // LogConfig.maxSegmentMs).
    result.segment_ms = std::min(result.segment_ms, settings.max_compaction_lag_ms);
  }
  return result;
}

std::vector<TopicSetting> list_topic_settings(const TopicConfig& config) {
  std::map<std::string, TopicSetting> all;
  const TopicSettings defaults;
  for (const Property<TopicSettings>& property : topic_properties()) {
    const std::string key(property.name);
    const std::string text = property_text(property, defaults);
    all[key] = {key, text, text, SettingSource::kDefault, std::string(property.doc)};
  }
  for (const auto& [key, value] : config) {
    TopicSetting& setting = all[key];
    setting.name = key;
    setting.value = value;
    setting.source = SettingSource::kTopic;
  }
  std::vector<TopicSetting> listed;
  listed.reserve(all.size());
  for (auto& [key, setting] : all) {
    listed.push_back(std::move(setting));
  }
  return listed;
}

Status validate_topic_name(const std::string& name) {
  constexpr std::size_t kLongest = 249;
  if (name.empty()) {
    return Error(Errc::kInvalidTopic, "a topic name cannot be empty; give 1 to 249 characters");
  }
  if (name == "." || name == "..") {
    return Error(Errc::kInvalidTopic,
                 fmt::format("a topic cannot be called '{}'; choose another name", name));
  }
  if (name.size() > kLongest) {
    return Error(Errc::kInvalidTopic,
                 fmt::format("the topic name '{}...' has {} characters, at most {} are legal",
                             name.substr(0, 32), name.size(), kLongest));
  }
  constexpr std::string_view kLegal =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  if (name.find_first_not_of(kLegal) != std::string::npos) {
    return Error(Errc::kInvalidTopic,
                 fmt::format("the topic name '{}' has characters outside A-Z a-z 0-9 . _ -", name));
  }
  return {};
}

}  // namespace weir::log
