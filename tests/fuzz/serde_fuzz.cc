#include "tests/fuzz/fuzz.h"

#include <weir/runtime/assert.h>
#include <weir/state/aggregate_serde.h>
#include <weir/state/serde.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Any bytes as a value of each type of the library and of one that has every kind of member. What
// is read, written and read again is written the same.
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

template <class T>
void check(const std::string& bytes) {
  const weir::Result<T> value = weir::Serde<T>::read(bytes);
  if (!value.ok()) {
    return;
  }
  std::string again;
  weir::Serde<T>::write(value.value(), again);
  const weir::Result<T> second = weir::Serde<T>::read(again);
  WEIR_ASSERT(second.ok());
  std::string third;
  weir::Serde<T>::write(second.value(), third);
  WEIR_ASSERT(third == again);
}

}  // namespace

std::size_t weir::fuzz::allocation_max(std::size_t input) {
  return small_allocation_max(input);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(data, data + size);
  check<std::string>(bytes);
  check<weir::Bytes>(bytes);
  check<std::int16_t>(bytes);
  check<std::int32_t>(bytes);
  check<std::int64_t>(bytes);
  check<float>(bytes);
  check<double>(bytes);
  check<std::optional<std::int64_t>>(bytes);
  check<Order>(bytes);
  return 0;
}
