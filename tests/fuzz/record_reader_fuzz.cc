#include "log/record/record_reader.h"
#include "tests/fuzz/fuzz.h"

#include <weir/runtime/assert.h>

#include <cstdint>
#include <vector>

// Any bytes as one record. The fast reader and the careful one agree wherever the fast one answers,
// and no view leaves the input.
std::size_t weir::fuzz::allocation_max(std::size_t input) {
  return small_allocation_max(input);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<char> bytes(data, data + size);
  const char* const begin = bytes.data();
  const char* const end = begin + bytes.size();

  weir::log::RawRecord careful;
  const char* fault = nullptr;
  const char* const careful_end = weir::log::read_record_carefully(begin, end, careful, &fault);
  WEIR_ASSERT((careful_end == nullptr) == (fault != nullptr));

  weir::log::RawRecord fast;
  const char* const fast_end = weir::log::internal::read_plain_record(begin, end, fast);
  if (fast_end != nullptr) {
    WEIR_ASSERT(fast_end == careful_end);
    WEIR_ASSERT(fast.key == careful.key);
    WEIR_ASSERT(fast.value == careful.value);
    WEIR_ASSERT(fast.timestamp_delta == careful.timestamp_delta);
    WEIR_ASSERT(fast.offset_delta == careful.offset_delta);
    WEIR_ASSERT(fast.header_count == careful.header_count);
  }

  weir::log::RawRecord record;
  const char* const record_end = weir::log::read_record(begin, end, record);
  WEIR_ASSERT(record_end == careful_end);
  if (record_end == nullptr) {
    return 0;
  }
  WEIR_ASSERT(begin < record_end);
  WEIR_ASSERT(record_end <= end);
  for (const weir::NullableBytes& part : {record.key, record.value}) {
    const weir::ByteView view = part.view_or_empty();
    WEIR_ASSERT(view.empty() || (begin <= view.data() && view.data() + view.size() <= record_end));
  }
  return 0;
}
