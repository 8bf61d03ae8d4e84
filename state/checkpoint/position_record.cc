#include "state/checkpoint/position_record.h"

#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>

#include <fmt/core.h>

#include <algorithm>

namespace weir::state {
namespace {

constexpr char kVersion = 1;
constexpr std::size_t kSize = 45;
constexpr std::size_t kIdAt = 1;
constexpr std::size_t kOffsetAt = 17;
constexpr std::size_t kEpochAt = 25;
constexpr std::size_t kTimeAt = 29;
constexpr std::size_t kCrcAt = 41;

}  // namespace

std::string encode_position(const StorePosition& position) {
  std::string bytes(kSize, '\0');
  bytes[0] = kVersion;
  std::copy(position.changelog_topic_id.bytes.begin(), position.changelog_topic_id.bytes.end(),
            bytes.begin() + kIdAt);
  store_be(bytes.data() + kOffsetAt, position.next_offset.value());
  store_be(bytes.data() + kEpochAt, position.leader_epoch.value());
  store_be(bytes.data() + kTimeAt, position.time);
  store_be(bytes.data() + kCrcAt, crc32c(ByteView(bytes).substr(0, kCrcAt)));
  return bytes;
}

Result<StorePosition> decode_position(ByteView bytes) {
  if (!bytes.empty() && bytes.front() != kVersion) {
    return Error(Errc::kUnsupported,
                 fmt::format("position record has version {}, this program reads 1; was the "
                             "checkpoint written by a newer one?",
                             static_cast<int>(bytes.front())));
  }
  if (bytes.size() != kSize ||
      load_be<std::uint32_t>(bytes.data() + kCrcAt) != crc32c(bytes.substr(0, kCrcAt))) {
    return Error(
        Errc::kCorrupt,
        fmt::format("position record of {} bytes is damaged; remove the state directory of "
                    "the application to restore it from its changelogs",
                    bytes.size()));
  }
  StorePosition position;
  std::copy_n(bytes.begin() + kIdAt, position.changelog_topic_id.bytes.size(),
              position.changelog_topic_id.bytes.begin());
  position.next_offset = Offset(load_be<std::int64_t>(bytes.data() + kOffsetAt));
  position.leader_epoch = LeaderEpoch(load_be<std::int32_t>(bytes.data() + kEpochAt));
  position.time = load_be<Timestamp>(bytes.data() + kTimeAt);
  return position;
}

}  // namespace weir::state
