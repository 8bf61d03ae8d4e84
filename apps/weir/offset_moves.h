#pragma once

#include <weir/runtime/backend.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::cli {

struct OffsetTargetOptions {
  bool to_earliest = false;
  bool to_latest = false;
  std::optional<std::int64_t> to_offset;
  std::optional<std::string> to_time;
};

// Where the offsets of a group are moved to.
struct OffsetTarget {
  enum class Kind { kEarliest, kLatest, kOffset, kTime };
  Kind kind = Kind::kEarliest;
  Offset offset;
  Timestamp time = kNoTimestamp;
};

// nullopt when no target is given. Errors: kInvalidArgument (several, or a bad one).
Result<std::optional<OffsetTarget>> parse_offset_target(const OffsetTargetOptions& options);

struct OffsetMove {
  TopicPartition partition;
  std::optional<Offset> current;
  Offset next;
};

// What moving a group's offsets to `target` means for each partition. A time behind the last record
// is the end. Errors: kUnknownTopic; kOffsetOutOfRange names what the partition holds.
Result<std::vector<OffsetMove>> plan_offset_moves(Admin& admin, const std::string& group,
                                                  const std::vector<TopicPartition>& partitions,
                                                  const OffsetTarget& target);

// All or nothing; durable when ok.
Status commit_offset_moves(Backend& log, const std::string& group,
                           const std::vector<OffsetMove>& moves);

// Every partition of a topic, or those named. Errors: kUnknownTopic.
Result<std::vector<TopicPartition>> partitions_of(Admin& admin, const std::string& topic,
                                                  const std::vector<std::int32_t>& only = {});

// "5", or nothing.
std::string offset_text(const std::optional<Offset>& offset);
// 5, or null.
std::string offset_json(const std::optional<Offset>& offset);

}  // namespace weir::cli
