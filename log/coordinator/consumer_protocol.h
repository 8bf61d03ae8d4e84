#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::log {

// What consumers say to each other through the coordinator, which passes it on (Kafka's
// ConsumerProtocolSubscription and ConsumerProtocolAssignment, versions 0 to 3). Readers take a
// higher version too and pass over what they do not know. Immutable value types.

inline constexpr std::string_view kConsumerProtocolType = "consumer";
inline constexpr std::int16_t kConsumerProtocolVersion = 3;  // what is written

struct ConsumerSubscription {
  std::vector<std::string> topics;
  std::optional<std::string> user_data;
  std::vector<TopicPartition> owned;  // since version 1
  std::int32_t generation = -1;       // that `owned` was assigned in; since version 2
  std::optional<std::string> rack;    // since version 3
  friend bool operator==(const ConsumerSubscription&, const ConsumerSubscription&) = default;
};

struct ConsumerAssignment {
  std::vector<TopicPartition> partitions;
  std::optional<std::string> user_data;
  friend bool operator==(const ConsumerAssignment&, const ConsumerAssignment&) = default;
};

// Topics are written in the order of the list, partitions under their topic in the order in which
// the topic first comes. Requires: 0 <= version <= 3.
std::string encode_subscription(const ConsumerSubscription& subscription,
                                std::int16_t version = kConsumerProtocolVersion);
std::string encode_assignment(const ConsumerAssignment& assignment,
                              std::int16_t version = kConsumerProtocolVersion);
// Errors: kCorrupt.
Result<ConsumerSubscription> decode_subscription(ByteView bytes);
// No bytes at all are no partitions: so the coordinator answers a member that the leader left out.
// Errors: kCorrupt.
Result<ConsumerAssignment> decode_assignment(ByteView bytes);

}  // namespace weir::log
