#include "log/coordinator/group_codec.h"

#include "log/record/wire.h"

#include <fmt/core.h>

namespace weir::log {
namespace {

constexpr std::int16_t kGroupKeyType = 2;

void write_nullable(WireWriter& out, const std::optional<std::string>& text) {
  if (text) {
    out.string(*text);
  } else {
    out.integer(std::int16_t{-1});
  }
}

std::optional<std::string> read_nullable(WireReader& in) {
  const auto size = in.integer<std::int16_t>();
  if (size < 0) {
    return std::nullopt;
  }
  return std::string(in.raw(static_cast<std::size_t>(size)));
}

void write_bytes(WireWriter& out, const std::string& bytes) {
  out.integer(static_cast<std::int32_t>(bytes.size()));
  out.raw(bytes);
}

std::string read_bytes(WireReader& in) {
  const auto size = in.integer<std::int32_t>();
  return size < 0 ? std::string() : std::string(in.raw(static_cast<std::size_t>(size)));
}

GroupMemberValue read_member(WireReader& in, std::int16_t version) {
  GroupMemberValue member;
  member.member_id = in.string();
  if (version >= 3) {
    member.instance_id = read_nullable(in);
  }
  member.client_id = in.string();
  member.client_host = in.string();
  if (version >= 1) {
    member.rebalance_timeout_ms = in.integer<std::int32_t>();
  }
  member.session_timeout_ms = in.integer<std::int32_t>();
  if (version == 0) {
    member.rebalance_timeout_ms = member.session_timeout_ms;
  }
  member.subscription = read_bytes(in);
  member.assignment = read_bytes(in);
  return member;
}

}  // namespace

std::string encode_group_key(const std::string& group) {
  WireWriter out;
  out.integer(kGroupKeyType);
  out.string(group);
  return out.take();
}

std::string encode_group_value(const GroupValue& value, std::int16_t version) {
  WEIR_ASSERT(version >= 0 && version <= kGroupValueVersion);
  WireWriter out;
  out.integer(version);
  out.string(value.protocol_type);
  out.integer(value.generation);
  write_nullable(out, value.protocol);
  write_nullable(out, value.leader);
  if (version >= 2) {
    out.integer(value.state_timestamp);
  }
  out.integer(static_cast<std::int32_t>(value.members.size()));
  for (const GroupMemberValue& member : value.members) {
    out.string(member.member_id);
    if (version >= 3) {
      write_nullable(out, member.instance_id);
    }
    out.string(member.client_id);
    out.string(member.client_host);
    if (version >= 1) {
      out.integer(member.rebalance_timeout_ms);
    }
    out.integer(member.session_timeout_ms);
    write_bytes(out, member.subscription);
    write_bytes(out, member.assignment);
  }
  return out.take();
}

std::string encode_empty_group_value(Timestamp now) {
  GroupValue empty;
  empty.state_timestamp = now;
  return encode_group_value(empty);
}

Result<std::optional<std::string>> decode_group_key(ByteView key) {
  WireReader in(key);
  const auto type = in.integer<std::int16_t>();
  if (!in.ok()) {
    return Error(Errc::kCorrupt, "offsets record has a key of fewer than two bytes");
  }
  if (type != kGroupKeyType) {
    return std::optional<std::string>();
  }
  std::string group(in.string());
  if (!in.ok()) {
    return Error(Errc::kCorrupt, "group record has a short key");
  }
  return std::optional<std::string>(std::move(group));
}

Result<GroupValue> decode_group_value(ByteView value) {
  WireReader in(value);
  const auto version = in.integer<std::int16_t>();
  if (in.ok() && (version < 0 || version > kGroupValueVersion)) {
    return Error(Errc::kUnsupported,
                 fmt::format("group record of version {}, this program reads 0 to {}", version,
                             kGroupValueVersion));
  }
  GroupValue result;
  result.protocol_type = in.string();
  result.generation = in.integer<std::int32_t>();
  result.protocol = read_nullable(in);
  result.leader = read_nullable(in);
  if (version >= 2) {
    result.state_timestamp = in.integer<std::int64_t>();
  }
  for (auto left = in.integer<std::int32_t>(); left > 0 && in.ok(); --left) {
    result.members.push_back(read_member(in, version));
  }
  if (!in.ok()) {
    return Error(Errc::kCorrupt, fmt::format("group record of version {} is too short", version));
  }
  return result;
}

}  // namespace weir::log
