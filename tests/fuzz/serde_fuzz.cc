#include <weir/runtime/assert.h>
#include <weir/state/aggregate_serde.h>
#include <weir/state/serde.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Any bytes as a value of a type that has every kind of member. What is read, written and read
// again is written the same.
namespace {

struct Line {
  std::string item;
  std::optional<std::int32_t> count;
};

struct Order {
  std::int64_t id = 0;
  double price = 0;
  bool paid = false;
  std::optional<std::string> note;
  std::vector<Line> lines;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(data, data + size);
  const weir::Result<Order> order = weir::Serde<Order>::read(bytes);
  if (!order.ok()) {
    return 0;
  }
  std::string again;
  weir::Serde<Order>::write(order.value(), again);
  const weir::Result<Order> second = weir::Serde<Order>::read(again);
  WEIR_ASSERT(second.ok());
  std::string third;
  weir::Serde<Order>::write(second.value(), third);
  WEIR_ASSERT(third == again);
  return 0;
}
