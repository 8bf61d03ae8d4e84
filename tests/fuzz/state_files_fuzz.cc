#include "operators/plan/recorded_plan.h"
#include "state/checkpoint/position_record.h"
#include "tests/fuzz/fuzz.h"

#include <weir/runtime/assert.h>
#include <weir/runtime/commit_metadata.h>
#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>
#include <weir/runtime/lane_map.h>

#include <cstdint>
#include <string>

// What an application keeps beside the log: the first byte chooses a reader, the rest is its input.
// What was read and written again is read as the same.
namespace {

using weir::ByteView;

void fuzz_position(ByteView bytes) {
  const auto position = weir::state::decode_position(bytes);
  if (position.ok()) {
    const auto again = weir::state::decode_position(weir::state::encode_position(*position));
    WEIR_ASSERT(again.ok());
    WEIR_ASSERT(*again == *position);
  }
}

// The same with a right CRC in front: a fuzzer rarely guesses one.
void fuzz_position_message(ByteView bytes) {
  char crc[4];
  weir::store_be(crc, weir::crc32c(bytes));
  fuzz_position(std::string(crc, sizeof(crc)).append(bytes));
}

void fuzz_plan(ByteView bytes) {
  const auto plan = weir::internal::decode_recorded_plan(bytes);
  if (plan.ok()) {
    const auto again =
        weir::internal::decode_recorded_plan(weir::internal::encode_recorded_plan(*plan));
    WEIR_ASSERT(again.ok());
    WEIR_ASSERT(*again == *plan);
  }
}

void fuzz_commit_metadata(ByteView bytes) {
  const auto metadata = weir::decode_commit_metadata(bytes);
  if (metadata.ok()) {
    const auto again = weir::decode_commit_metadata(weir::encode_commit_metadata(*metadata));
    WEIR_ASSERT(again.ok());
    WEIR_ASSERT(*again == *metadata);
  }
  const auto map = weir::decode_lane_map(bytes);
  if (map.ok()) {
    // Of the forms that can say it the writer may take another one.
    const auto again = weir::decode_lane_map(weir::encode_lane_map({&*map, 1}, bytes.size() + 32));
    WEIR_ASSERT(map->last < map->base || again.ok());
  }
}

}  // namespace

// libprotobuf reserves what the length of a string in a damaged message says, up to 50 MB
// (EpsCopyInputStream::kSafeStringSize).
std::size_t weir::fuzz::allocation_max(std::size_t input) {
  return std::size_t{50'000'000} + small_allocation_max(input);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string copy(data + 1, data + size);
  constexpr void (*kReaders[])(ByteView) = {fuzz_position, fuzz_position_message, fuzz_plan,
                                            fuzz_commit_metadata};
  kReaders[data[0] % std::size(kReaders)](copy);
  return 0;
}
