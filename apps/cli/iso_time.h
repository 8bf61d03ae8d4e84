#pragma once

#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <string>
#include <string_view>

namespace weir::cli {

// "2026-03-01", "2026-03-01T12:30", "2026-03-01 12:30:15.250", each with time also with "Z" or
// "+02:00" behind it; UTC without it. Milliseconds; finer digits are cut off.
// Errors: kInvalidArgument says what was expected.
Result<Timestamp> parse_iso_time(std::string_view text);

// The same, or milliseconds since 1970 as a number.
Result<Timestamp> parse_time(std::string_view text);

}  // namespace weir::cli
