#pragma once

#include <weir/state/checkpoint_store.h>

#include <string>

namespace weir::state {

// The value under a checkpoint's position key (docs/formats/store.md): a PositionRecord message
// behind its CRC-32C, uint32 big-endian.
std::string encode_position(const StorePosition& position);
// Errors: kCorrupt, kUnsupported (a newer version).
Result<StorePosition> decode_position(ByteView bytes);

}  // namespace weir::state
