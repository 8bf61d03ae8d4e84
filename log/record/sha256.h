#pragma once

#include <weir/runtime/bytes.h>

#include <array>
#include <cstdint>

namespace weir::log {

// SHA-256 (FIPS 180-4): names long values in dumps. Not for secrets: it is not constant in time.
std::array<std::uint8_t, 32> sha256(ByteView bytes);

}  // namespace weir::log
