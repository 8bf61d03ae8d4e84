#pragma once

#include "apps/averages/price.h"

#include <weir/operators/topology.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::averages {

// What the output topic says of a symbol.
struct Average {
  std::string average;  // average_text()
  std::int64_t count = 0;
  friend bool operator==(const Average&, const Average&) = default;
};

// Quotes of the topic `input` (key: symbol, value: price) to the average price of each symbol,
// kept in the store "means", to the topic `output`: what the program runs and what bench measures.
Topology average_prices(std::string_view input, std::string_view output);

}  // namespace weir::averages

// {"average":12.5,"count":2}: JSON for any reader, with all digits.
template <>
struct weir::Serde<weir::averages::Average> {
  static constexpr std::string_view kName = "average";
  static void write(const averages::Average& average, std::string& out);
  static Result<averages::Average> read(ByteView bytes);
};
