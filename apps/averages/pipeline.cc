#include "apps/averages/pipeline.h"

#include <weir/operators/stream_builder.h>
#include <weir/state/aggregate_serde.h>

#include <fmt/core.h>

#include <charconv>

namespace weir::averages {

Topology average_prices(std::string_view input, std::string_view output) {
  StreamBuilder builder;
  builder.from(Topic<std::string, Price>::named(input))
      .group_by_key()
      .aggregate(
          KvStore<std::string, Mean>{"means"}, [] { return Mean{}; },
          [](const Price& price, const Mean& mean) { return add(mean, price); })
      .to_stream()
      .map_values([](const Mean& mean) { return Average{average_text(mean), mean.count}; })
      .to(Topic<std::string, Average>::named(output));
  return std::move(builder).build();
}

}  // namespace weir::averages

namespace weir {
namespace {

constexpr std::string_view kBegin = "{\"average\":";
constexpr std::string_view kMiddle = ",\"count\":";

}  // namespace

void Serde<averages::Average>::write(const averages::Average& average, std::string& out) {
  out += fmt::format("{}{}{}{}}}", kBegin, average.average, kMiddle, average.count);
}

Result<averages::Average> Serde<averages::Average>::read(ByteView bytes) {
  const std::size_t middle = bytes.find(kMiddle);
  averages::Average average;
  if (bytes.starts_with(kBegin) && bytes.ends_with('}') && middle != ByteView::npos) {
    average.average = bytes.substr(kBegin.size(), middle - kBegin.size());
    const ByteView count = bytes.substr(middle + kMiddle.size());
    const char* const end = count.data() + count.size() - 1;
    const auto [stop, error] = std::from_chars(count.data(), end, average.count);
    const bool is_number = !average.average.empty() &&
                           average.average.find_first_not_of("-.0123456789") == std::string::npos;
    if (error == std::errc() && stop == end && is_number) {
      return average;
    }
  }
  return Error(Errc::kCorrupt, fmt::format("'{}' is no average; it is written as {}12.5{}2}}",
                                           bytes.substr(0, 64), kBegin, kMiddle));
}

}  // namespace weir
