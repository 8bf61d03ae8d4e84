#include "state/checkpoint/position_record.h"

#include "position_record.pb.h"

#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>

#include <fmt/core.h>

#include <algorithm>

namespace weir::state {
namespace {

constexpr std::uint32_t kFormat = 1;
constexpr std::size_t kCrcSize = sizeof(std::uint32_t);

Error damaged(std::size_t size) {
  return {Errc::kCorrupt,
          fmt::format("position record of {} bytes is damaged; remove the state directory of the "
                      "application to restore it from its changelogs",
                      size)};
}

}  // namespace

std::string encode_position(const StorePosition& position) {
  PositionRecord record;
  record.set_format(kFormat);
  const Uuid& id = position.changelog_topic_id;
  if (!id.is_zero()) {
    record.set_changelog_topic_id(std::string(id.bytes.begin(), id.bytes.end()));
  }
  record.set_next_offset(position.next_offset.value());
  record.set_leader_epoch(position.leader_epoch.value());
  record.set_time(position.time);
  std::string bytes(kCrcSize, '\0');
  record.AppendToString(&bytes);
  store_be(bytes.data(), crc32c(ByteView(bytes).substr(kCrcSize)));
  return bytes;
}

Result<StorePosition> decode_position(ByteView bytes) {
  if (bytes.size() < kCrcSize || bytes.size() > INT32_MAX ||
      load_be<std::uint32_t>(bytes.data()) != crc32c(bytes.substr(kCrcSize))) {
    return damaged(bytes.size());
  }
  const ByteView message = bytes.substr(kCrcSize);
  PositionRecord record;
  if (!record.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return damaged(bytes.size());
  }
  if (record.format() > kFormat) {
    return Error(Errc::kUnsupported,
                 fmt::format("position record has format {}, this program reads {}; was the "
                             "checkpoint written by a newer one?",
                             record.format(), kFormat));
  }
  StorePosition position;
  const std::string& id = record.changelog_topic_id();
  if (record.format() != kFormat ||
      (!id.empty() && id.size() != position.changelog_topic_id.bytes.size())) {
    return damaged(bytes.size());
  }
  std::copy(id.begin(), id.end(), position.changelog_topic_id.bytes.begin());
  position.next_offset = Offset(record.next_offset());
  position.leader_epoch = LeaderEpoch(record.leader_epoch());
  position.time = record.time();
  return position;
}

}  // namespace weir::state
