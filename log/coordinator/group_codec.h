#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::log {

// The record of a classic group in `__consumer_offsets`, as Apache Kafka 4.3.1 writes it
// (GroupMetadataKey, GroupMetadataValue; docs/formats/offsets_topic.md). Immutable value types.

struct GroupMemberValue {
  std::string member_id;
  std::optional<std::string> instance_id;  // group.instance.id; since version 3
  std::string client_id;
  std::string client_host;
  std::int32_t rebalance_timeout_ms = 0;  // since version 1; version 0: the session timeout
  std::int32_t session_timeout_ms = 0;
  std::string subscription;  // what the member said under the chosen protocol
  std::string assignment;
  friend bool operator==(const GroupMemberValue&, const GroupMemberValue&) = default;
};

struct GroupValue {
  std::string protocol_type;  // "consumer"; empty: offsets only
  std::int32_t generation = 0;
  std::optional<std::string> protocol;  // name of the assignor
  std::optional<std::string> leader;
  Timestamp state_timestamp = kNoTimestamp;  // of the last change of state; since version 2
  std::vector<GroupMemberValue> members;
  friend bool operator==(const GroupValue&, const GroupValue&) = default;
};

inline constexpr std::int16_t kGroupValueVersion = 3;  // what is written

std::string encode_group_key(const std::string& group);  // type 2
// Requires: 0 <= version <= 3; strings of at most 32,767 bytes.
std::string encode_group_value(const GroupValue& value, std::int16_t version = kGroupValueVersion);
// A group's first record: generation 0, no members.
std::string encode_empty_group_value(Timestamp now);

// nullopt: a record of another type, to be skipped. Errors: kCorrupt.
Result<std::optional<std::string>> decode_group_key(ByteView key);
// Versions 0 to 3. Errors: kCorrupt, kUnsupported.
Result<GroupValue> decode_group_value(ByteView value);

}  // namespace weir::log
