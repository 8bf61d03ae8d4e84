#pragma once

#include <weir/runtime/result.h>
#include <weir/state/serde.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::averages {

__extension__ using Int128 = __int128;

// A decimal, exactly: `units` of 10^-18. Less than 10^18 in absolute value.
struct Price {
  static constexpr int kDecimals = 18;
  static constexpr int kIntegerDigits = 18;

  Int128 units = 0;
  friend bool operator==(const Price&, const Price&) = default;
};

// "12.34", "-0.5", "1e16": digits with an optional sign, point and exponent; at most 18 digits in
// front of the point and 18 decimals. Errors: kInvalidArgument says what is wrong with `text`.
Result<Price> parse_price(std::string_view text);

// What the store keeps of a symbol: the exact sum of its prices and their number. The sum is a
// whole number of 10^-18 in 192 bits, two's complement: more than 2^63 prices of any size fit.
struct Mean {
  std::int64_t high = 0;
  std::uint64_t middle = 0;
  std::uint64_t low = 0;
  std::int64_t count = 0;

  friend bool operator==(const Mean&, const Mean&) = default;
};
Mean add(Mean mean, const Price& price);

// The average as a decimal: every digit where it ends within 18 decimals; otherwise rounded half to
// even to 16 significant digits, or to 16 decimals where that is finer. Requires: count > 0.
std::string average_text(const Mean& mean);

}  // namespace weir::averages

// The text of the decimal, so that any program can write and read a topic of prices.
template <>
struct weir::Serde<weir::averages::Price> {
  static constexpr std::string_view kName = "decimal";
  static void write(const averages::Price& price, std::string& out);
  static Result<averages::Price> read(ByteView bytes);
};
