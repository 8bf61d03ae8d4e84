#pragma once

#include "bench/harness.h"

#include <cstdint>

// What the machine can do at best with the same bytes: a file, no format, no log.

namespace weir::bench {

// Copies records into 64 KB blocks and writes them to a preallocated file.
Status write_plain_file(Run& run, std::uint64_t record_bytes);
// Reads a file of as many bytes in 64 KB blocks, with the CRC-32C of each.
Status read_plain_file(Run& run, std::uint64_t record_bytes);

}  // namespace weir::bench
