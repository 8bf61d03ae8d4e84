#pragma once

#include <weir/state/checkpoint_store.h>

#include <string>

namespace weir::state {

// The value under a checkpoint's position key, 45 bytes big-endian (docs/formats/store.md):
//   int8 version (1) | uuid 16 | int64 next offset | int32 leader epoch | int64 time ms |
//   int32 reserved (0) | uint32 crc32c of all before
std::string encode_position(const StorePosition& position);
// Errors: kCorrupt, kUnsupported (a newer version).
Result<StorePosition> decode_position(ByteView bytes);

}  // namespace weir::state
