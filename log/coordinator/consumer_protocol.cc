#include "log/coordinator/consumer_protocol.h"

#include "log/record/wire.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace weir::log {
namespace {

void write_nullable_bytes(WireWriter& out, const std::optional<std::string>& bytes) {
  out.integer(bytes ? static_cast<std::int32_t>(bytes->size()) : std::int32_t{-1});
  if (bytes) {
    out.raw(*bytes);
  }
}

std::optional<std::string> read_nullable_bytes(WireReader& in) {
  const auto size = in.integer<std::int32_t>();
  if (size < 0) {
    return std::nullopt;
  }
  return std::string(in.raw(static_cast<std::size_t>(size)));
}

void write_partitions(WireWriter& out, const std::vector<TopicPartition>& partitions) {
  std::vector<std::pair<std::string, std::vector<std::int32_t>>> topics;
  for (const TopicPartition& partition : partitions) {
    auto topic = topics.empty() || topics.back().first != partition.topic
                     ? std::find_if(topics.begin(), topics.end(),
                                    [&](const auto& t) { return t.first == partition.topic; })
                     : topics.end() - 1;
    if (topic == topics.end()) {
      topics.emplace_back(partition.topic, std::vector<std::int32_t>());
      topic = topics.end() - 1;
    }
    topic->second.push_back(partition.partition.value());
  }
  out.integer(static_cast<std::int32_t>(topics.size()));
  for (const auto& [topic, numbers] : topics) {
    out.string(topic);
    out.integer(static_cast<std::int32_t>(numbers.size()));
    for (const std::int32_t number : numbers) {
      out.integer(number);
    }
  }
}

std::vector<TopicPartition> read_partitions(WireReader& in) {
  std::vector<TopicPartition> partitions;
  for (auto topics = in.integer<std::int32_t>(); topics > 0 && in.ok(); --topics) {
    const std::string topic(in.string());
    for (auto left = in.integer<std::int32_t>(); left > 0 && in.ok(); --left) {
      partitions.push_back({topic, PartitionId(in.integer<std::int32_t>())});
    }
  }
  return partitions;
}

Error too_short(std::string_view what, std::int16_t version) {
  return {Errc::kCorrupt, fmt::format("{} of version {} is too short", what, version)};
}

}  // namespace

std::string encode_subscription(const ConsumerSubscription& subscription, std::int16_t version) {
  WEIR_ASSERT(version >= 0 && version <= kConsumerProtocolVersion);
  WireWriter out;
  out.integer(version);
  out.integer(static_cast<std::int32_t>(subscription.topics.size()));
  for (const std::string& topic : subscription.topics) {
    out.string(topic);
  }
  write_nullable_bytes(out, subscription.user_data);
  if (version >= 1) {
    write_partitions(out, subscription.owned);
  }
  if (version >= 2) {
    out.integer(subscription.generation);
  }
  if (version >= 3) {
    if (subscription.rack) {
      out.string(*subscription.rack);
    } else {
      out.integer(std::int16_t{-1});
    }
  }
  return out.take();
}

std::string encode_assignment(const ConsumerAssignment& assignment, std::int16_t version) {
  WEIR_ASSERT(version >= 0 && version <= kConsumerProtocolVersion);
  WireWriter out;
  out.integer(version);
  write_partitions(out, assignment.partitions);
  write_nullable_bytes(out, assignment.user_data);
  return out.take();
}

Result<ConsumerSubscription> decode_subscription(ByteView bytes) {
  WireReader in(bytes);
  const auto version = in.integer<std::int16_t>();
  ConsumerSubscription result;
  for (auto left = in.integer<std::int32_t>(); left > 0 && in.ok(); --left) {
    result.topics.emplace_back(in.string());
  }
  result.user_data = read_nullable_bytes(in);
  if (version >= 1) {
    result.owned = read_partitions(in);
  }
  if (version >= 2) {
    result.generation = in.integer<std::int32_t>();
  }
  if (version >= 3) {
    if (const auto size = in.integer<std::int16_t>(); size >= 0) {
      result.rack = std::string(in.raw(static_cast<std::size_t>(size)));
    }
  }
  if (!in.ok() || version < 0) {
    return too_short("subscription of a consumer", version);
  }
  return result;
}

Result<ConsumerAssignment> decode_assignment(ByteView bytes) {
  ConsumerAssignment result;
  if (bytes.empty()) {
    return result;
  }
  WireReader in(bytes);
  const auto version = in.integer<std::int16_t>();
  result.partitions = read_partitions(in);
  result.user_data = read_nullable_bytes(in);
  if (!in.ok() || version < 0) {
    return too_short("assignment of a consumer", version);
  }
  return result;
}

}  // namespace weir::log
