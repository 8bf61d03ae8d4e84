#pragma once

#include <weir/runtime/result.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace weir {

// An integer that only mixes with its own kind: an Offset and a LeaderEpoch cannot be swapped in a
// call, added together or compared. Immutable value type.
template <class Tag, class Rep>
class StrongInt {
 public:
  using Representation = Rep;

  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }
  constexpr StrongInt next() const { return StrongInt(static_cast<Rep>(value_ + 1)); }
  constexpr StrongInt plus(Rep delta) const { return StrongInt(static_cast<Rep>(value_ + delta)); }
  friend constexpr auto operator<=>(StrongInt, StrongInt) = default;

 private:
  Rep value_{};
};

// Position of a record in a partition, from 0. "Next offset" and "end" are exclusive.
using Offset = StrongInt<struct OffsetTag, std::int64_t>;
// Reign of a partition's leader; -1 is unknown (Kafka's NO_PARTITION_LEADER_EPOCH).
using LeaderEpoch = StrongInt<struct LeaderEpochTag, std::int32_t>;
// Idempotent producer; -1 is none.
using ProducerId = StrongInt<struct ProducerIdTag, std::int64_t>;
using ProducerEpoch = StrongInt<struct ProducerEpochTag, std::int16_t>;
using PartitionId = StrongInt<struct PartitionIdTag, std::int32_t>;
// Byte position in a file.
using FilePosition = StrongInt<struct FilePositionTag, std::uint64_t>;

inline constexpr Offset kNoOffset{-1};
inline constexpr LeaderEpoch kNoLeaderEpoch{-1};
inline constexpr ProducerId kNoProducerId{-1};
inline constexpr ProducerEpoch kNoProducerEpoch{-1};

// Milliseconds since 1970-01-01 UTC; -1 is "none" (Kafka's RecordBatch.NO_TIMESTAMP).
using Timestamp = std::int64_t;
inline constexpr Timestamp kNoTimestamp = -1;

// 128-bit id. Text form is Kafka's: 22 characters of URL-safe Base64 without padding
// (org.apache.kafka.common.Uuid). All zero means "none".
struct Uuid {
  std::array<std::uint8_t, 16> bytes{};

  friend constexpr auto operator<=>(const Uuid&, const Uuid&) = default;
  bool is_zero() const { return *this == Uuid{}; }
  std::string to_string() const;
  // Errors: kInvalidArgument when `text` is not 22 characters of URL-safe Base64.
  static Result<Uuid> parse(std::string_view text);
};

// One partition of a topic, by name.
struct TopicPartition {
  std::string topic;
  PartitionId partition;

  friend auto operator<=>(const TopicPartition&, const TopicPartition&) = default;
  // "orders-3", Kafka's folder name.
  std::string to_string() const;
};

}  // namespace weir

template <class Tag, class Rep>
struct std::hash<weir::StrongInt<Tag, Rep>> {
  std::size_t operator()(weir::StrongInt<Tag, Rep> value) const noexcept {
    return std::hash<Rep>{}(value.value());
  }
};

template <>
struct std::hash<weir::Uuid> {
  std::size_t operator()(const weir::Uuid& id) const noexcept {
    return std::hash<std::string_view>{}(
        std::string_view(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()));
  }
};

template <>
struct std::hash<weir::TopicPartition> {
  std::size_t operator()(const weir::TopicPartition& tp) const noexcept {
    return std::hash<std::string>{}(tp.topic) * 31U + std::hash<weir::PartitionId>{}(tp.partition);
  }
};
