#include "tests/fuzz/batch_decoder_fuzz.h"

#include "tests/fuzz/fuzz.h"

#include <cstddef>
#include <cstdint>

// Any bytes as a record batch. A corpus: the batches of tests/data/log.
std::size_t weir::fuzz::allocation_max(std::size_t input) {
  // Decompressed records of 7 bytes and more, each a view of about 100.
  return input + 32 * log::fuzz::kDecompressedMax;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weir::log::fuzz::check_batch_bytes({reinterpret_cast<const char*>(data), size});
  return 0;
}
