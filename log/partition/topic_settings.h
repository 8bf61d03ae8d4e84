#pragma once

#include "log/partition/partition.h"

#include <weir/runtime/backend.h>
#include <weir/runtime/settings.h>

#include <span>
#include <string>
#include <vector>

namespace weir::log {

// Settings of a topic: Kafka's names, defaults and ranges (TopicConfig, LogConfig of 4.3), and
// ours, which start with `weir.`. Numbers are bytes or milliseconds as the name says.
struct TopicSettings {
  std::string cleanup_policy = "delete";
  std::string compression_type = "producer";
  std::string compression_gzip_level = "-1";
  std::int64_t compression_lz4_level = 9;
  std::int64_t compression_zstd_level = 3;
  std::int64_t delete_retention_ms = 86'400'000;
  std::int64_t file_delete_delay_ms = 60'000;
  std::int64_t flush_messages = INT64_MAX;
  std::int64_t flush_ms = INT64_MAX;
  std::int64_t index_interval_bytes = 4096;
  std::int64_t max_compaction_lag_ms = INT64_MAX;
  std::int64_t max_message_bytes = 1'048'588;
  std::int64_t message_timestamp_after_max_ms = 3'600'000;
  std::int64_t message_timestamp_before_max_ms = INT64_MAX;
  std::string message_timestamp_type = "CreateTime";
  std::string min_cleanable_dirty_ratio = "0.5";
  std::int64_t min_compaction_lag_ms = 0;
  std::int64_t min_insync_replicas = 1;
  bool preallocate = false;
  std::int64_t retention_bytes = -1;
  std::int64_t retention_ms = 604'800'000;
  std::int64_t segment_bytes = 1LL << 30;
  std::int64_t segment_index_bytes = 10LL << 20;
  std::int64_t segment_jitter_ms = 0;
  std::int64_t segment_ms = 604'800'000;
  bool unclean_leader_election_enable = false;
  std::string weir_durability = "fsync";
  bool weir_ordered = false;
};

std::span<const Property<TopicSettings>> topic_properties();

// `problems`: mistakes that the caller found. Errors: kInvalidConfig with every mistake, unknown
// keys with the nearest valid name.
Result<TopicSettings> parse_topic_settings(const std::string& topic, const TopicConfig& config,
                                           std::vector<std::string> problems = {});

PartitionSettings partition_settings(const TopicSettings& settings);
// Every known setting by name with what is in force under `config`, and those of `config` that are
// not known.
std::vector<TopicSetting> list_topic_settings(const TopicConfig& config);

// Legal names are 1 to 249 of [A-Za-z0-9._-], neither "." nor ".."
// (org.apache.kafka.common.internals.Topic). Errors: kInvalidTopic.
Status validate_topic_name(const std::string& name);

}  // namespace weir::log
