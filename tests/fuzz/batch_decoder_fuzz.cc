#include "tests/fuzz/batch_decoder_fuzz.h"

#include <cstddef>
#include <cstdint>

// Any bytes as a record batch. A corpus: the batches of tests/data/log.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weir::log::fuzz::check_batch_bytes({reinterpret_cast<const char*>(data), size});
  return 0;
}
