#pragma once

#include <weir/runtime/bytes.h>

#include <cstdint>

namespace weir {

// CRC-32C (Castagnoli, reflected 0x82F63B78, init and xorout all ones): crc32c("123456789") is
// 0xe3069283. SSE4.2 with three interleaved streams where the processor has it, else slicing by 8.
std::uint32_t crc32c(ByteView bytes);
// Continues: crc32c(a+b) == crc32c_extend(crc32c(a), b).
std::uint32_t crc32c_extend(std::uint32_t crc, ByteView bytes);

namespace internal {
// The portable path, for tests on machines that have the instruction.
std::uint32_t crc32c_portable(std::uint32_t crc, ByteView bytes);
bool crc32c_uses_hardware();
}  // namespace internal

}  // namespace weir
