#include "log/metadata/config_records.h"

#include <charconv>

namespace weir::log {
namespace {

const std::string kSegmentBytes = "segment.bytes";
const std::string kInternalSegmentBytes = "internal.segment.bytes";

bool is_below_kafkas_minimum(const std::string& segment_bytes) {
  constexpr std::int64_t kMinimum = 1 << 20;  // of segment.bytes in LogConfig of Kafka 4
  std::int64_t bytes = 0;
  const char* const end = segment_bytes.data() + segment_bytes.size();
  const auto [stop, error] = std::from_chars(segment_bytes.data(), end, bytes);
  return error == std::errc() && stop == end && bytes < kMinimum;
}

}  // namespace

std::vector<MetadataRecord> config_records(const std::string& topic, const TopicConfig& present,
                                           const std::string& key,
                                           const std::optional<std::string>& value) {
  const auto found = present.find(key);
  const bool is_set = found != present.end();
  if (is_set ? value == found->second : !value) {
    return {};
  }
  std::vector<MetadataRecord> records;
  const auto add = [&](const std::string& name, const std::optional<std::string>& text) {
    records.emplace_back(
        ConfigMetadataRecord{ConfigMetadataRecord::kTopicResource, topic, name, text});
  };
  if (key != kSegmentBytes) {
    add(key, value);
    return records;
  }
  const bool is_small = value && is_below_kafkas_minimum(*value);
  if (is_set) {
    add(is_small ? kSegmentBytes : kInternalSegmentBytes, std::nullopt);
  }
  add(is_small ? kInternalSegmentBytes : kSegmentBytes, value);
  return records;
}

const std::string& setting_of_config(const std::string& record_name) {
  return record_name == kInternalSegmentBytes ? kSegmentBytes : record_name;
}

}  // namespace weir::log
