#include "log/coordinator/offsets_codec.h"

#include "log/record/wire.h"

#include <fmt/core.h>

namespace weir::log {
namespace {

constexpr std::int16_t kOffsetKeyType = 1;
constexpr std::int16_t kOffsetValueVersion = 4;

// One UTF-16 code unit of Java's hash.
std::uint32_t hash_step(std::uint32_t hash, std::uint32_t unit) {
  return hash * 31U + unit;
}

// Next code point of UTF-8; malformed bytes give U+FFFD one by one, as Java's decoder does.
std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  constexpr std::uint32_t kReplacement = 0xFFFD;
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t first = byte(at++);
  if (first < 0x80U) {
    return first;
  }
  const std::size_t more = first >= 0xF0U ? 3 : first >= 0xE0U ? 2 : first >= 0xC2U ? 1 : 0;
  if (more == 0 || first > 0xF4U || at + more > text.size()) {
    return kReplacement;
  }
  std::uint32_t point = first & (0x3FU >> more);
  for (std::size_t i = 0; i < more; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) {
      return kReplacement;
    }
    point = (point << 6U) | (byte(at + i) & 0x3FU);
  }
  at += more;
  return point;
}

std::int32_t java_string_hash(std::string_view text) {
  std::uint32_t hash = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t point = next_code_point(text, at);
    if (point >= 0x10000U) {
      hash = hash_step(hash, 0xD800U + ((point - 0x10000U) >> 10U));
      hash = hash_step(hash, 0xDC00U + ((point - 0x10000U) & 0x3FFU));
    } else {
      hash = hash_step(hash, point);
    }
  }
  return static_cast<std::int32_t>(hash);
}

}  // namespace

std::string encode_offset_key(const OffsetKey& key) {
  WireWriter out;
  out.integer(kOffsetKeyType);
  out.string(key.group);
  out.string(key.partition.topic);
  out.integer(key.partition.partition.value());
  return out.take();
}

std::string encode_offset_value(const OffsetValue& value) {
  WireWriter out;
  out.integer(kOffsetValueVersion);
  out.integer(value.committed.offset.value());
  out.integer(value.committed.leader_epoch.value());
  out.compact_string(value.committed.metadata);
  out.integer(value.commit_timestamp);
  if (value.topic_id.is_zero()) {
    out.uvarint(0);
  } else {
    out.uvarint(1);
    out.uvarint(0);  // tag of topicId
    out.uvarint(value.topic_id.bytes.size());
    out.uuid(value.topic_id);
  }
  return out.take();
}

Result<std::optional<OffsetKey>> decode_offset_key(ByteView key) {
  WireReader in(key);
  const auto type = in.integer<std::int16_t>();
  if (!in.ok()) {
    return Error(Errc::kCorrupt, "offsets record has a key of fewer than two bytes");
  }
  if (type != 0 && type != kOffsetKeyType) {
    return std::optional<OffsetKey>();
  }
  OffsetKey result;
  result.group = in.string();
  result.partition.topic = in.string();
  result.partition.partition = PartitionId(in.integer<std::int32_t>());
  if (!in.ok()) {
    return Error(Errc::kCorrupt, fmt::format("offsets record of type {} has a short key", type));
  }
  return std::optional<OffsetKey>(std::move(result));
}

Result<OffsetValue> decode_offset_value(ByteView value) {
  WireReader in(value);
  const auto version = in.integer<std::int16_t>();
  if (in.ok() && (version < 0 || version > kOffsetValueVersion)) {
    return Error(Errc::kUnsupported,
                 fmt::format("offset commit of version {}, this program reads 0 to {}", version,
                             kOffsetValueVersion));
  }
  OffsetValue result;
  result.committed.offset = Offset(in.integer<std::int64_t>());
  if (version >= 3) {
    result.committed.leader_epoch = LeaderEpoch(in.integer<std::int32_t>());
  }
  result.committed.metadata = version >= 4 ? in.compact_string() : in.string();
  result.commit_timestamp = in.integer<std::int64_t>();
  if (version == 1) {
    in.integer<std::int64_t>();  // expireTimestamp
  }
  if (version >= 4) {
    in.tagged_fields([&result](std::uint32_t tag, WireReader& field) {
      if (tag == 0) {
        result.topic_id = field.uuid();
      }
    });
  }
  if (!in.ok()) {
    return Error(Errc::kCorrupt, fmt::format("offset commit of version {} is too short", version));
  }
  return result;
}

PartitionId partition_for_group(std::string_view group_utf8, std::int32_t partitions) {
  WEIR_ASSERT(partitions > 0);
  const std::int32_t hash = java_string_hash(group_utf8);
  const std::int32_t positive = hash == INT32_MIN ? 0 : (hash < 0 ? -hash : hash);
  return PartitionId(positive % partitions);
}

}  // namespace weir::log
