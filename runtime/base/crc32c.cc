#include <weir/runtime/crc32c.h>

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define WEIR_CRC32C_X86 1
#endif

namespace weir {

namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78U;  // Castagnoli, reflected

using ByteTable = std::array<std::uint32_t, 256>;

// kTables[k][b]: the register after byte b and then k zero bytes.
constexpr std::array<ByteTable, 8> make_tables() {
  std::array<ByteTable, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0U);
    }
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8U) ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}

constexpr std::array<ByteTable, 8> kTables = make_tables();

constexpr std::uint32_t step_byte(std::uint32_t crc, char byte) {
  return (crc >> 8U) ^ kTables[0][(crc ^ static_cast<unsigned char>(byte)) & 0xffU];
}

// The register after 8 more bytes, given as a little-endian number.
constexpr std::uint32_t step_word(std::uint32_t crc, std::uint64_t word) {
  word ^= crc;
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    next ^= kTables[7 - i][(word >> (8 * i)) & 0xffU];
  }
  return next;
}

std::uint64_t load_word(const char* in) {
  std::uint64_t word;
  std::memcpy(&word, in, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

#if defined(WEIR_CRC32C_X86)

// The instruction has a latency of 3 cycles and a throughput of 1, so three registers over three
// thirds of the input run three times as fast as one. Merging them costs two carry-less
// multiplications: with bit 0 as the highest power, as the instruction sees it,
//   crc32(0, a * b) = a * b * x^33 mod P,
// so moving a register over n words of zeros, which is * x^(64 n), is a product with
// kShift[n] = x^(64 n - 33) mod P. kShift[1] = x^31, which is the number 1.
constexpr std::size_t kStreamWordsMax = 1024;
constexpr std::size_t kSingleStreamBytes = 384;

constexpr std::array<std::uint32_t, 2 * kStreamWordsMax + 1> make_shifts() {
  std::array<std::uint32_t, 2 * kStreamWordsMax + 1> shifts{};
  shifts[1] = 1;
  for (std::size_t n = 2; n < shifts.size(); ++n) {
    shifts[n] = step_word(shifts[n - 1], 0);
  }
  return shifts;
}

constexpr std::array<std::uint32_t, 2 * kStreamWordsMax + 1> kShift = make_shifts();

__attribute__((target("sse4.2,pclmul"))) inline std::uint64_t shift_product(std::uint64_t crc,
                                                                            std::size_t words) {
  const __m128i product =
      _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(crc)),
                           _mm_cvtsi32_si128(static_cast<int>(kShift[words])), 0);
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul"))) std::uint32_t extend_hardware(std::uint32_t crc,
                                                                       ByteView bytes) {
  const char* in = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t first = ~crc;
  while (left >= kSingleStreamBytes) {
    const std::size_t words = std::min(left / 24, kStreamWordsMax);
    const std::size_t stride = words * 8;
    const char* const end = in + stride;
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (; in != end; in += 8) {
      first = _mm_crc32_u64(first, load_word(in));
      second = _mm_crc32_u64(second, load_word(in + stride));
      third = _mm_crc32_u64(third, load_word(in + 2 * stride));
    }
    first =
        _mm_crc32_u64(0, shift_product(first, 2 * words) ^ shift_product(second, words)) ^ third;
    in += 2 * stride;
    left -= 3 * stride;
  }
  for (; left >= 8; left -= 8, in += 8) {
    first = _mm_crc32_u64(first, load_word(in));
  }
  auto tail = static_cast<std::uint32_t>(first);
  for (; left > 0; --left, ++in) {
    tail = _mm_crc32_u8(tail, static_cast<unsigned char>(*in));
  }
  return ~tail;
}

#endif

}  // namespace

namespace internal {

std::uint32_t crc32c_portable(std::uint32_t crc, ByteView bytes) {
  crc = ~crc;
  const char* in = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, in += 8) {
    crc = step_word(crc, load_word(in));
  }
  for (; left > 0; --left, ++in) {
    crc = step_byte(crc, *in);
  }
  return ~crc;
}

bool crc32c_uses_hardware() {
#if defined(WEIR_CRC32C_X86)
  static const bool has_instructions = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
  }();
  return has_instructions;
#else
  return false;
#endif
}

}  // namespace internal

std::uint32_t crc32c_extend(std::uint32_t crc, ByteView bytes) {
#if defined(WEIR_CRC32C_X86)
  if (internal::crc32c_uses_hardware()) [[likely]] {
    return extend_hardware(crc, bytes);
  }
#endif
  return internal::crc32c_portable(crc, bytes);
}

std::uint32_t crc32c(ByteView bytes) {
  return crc32c_extend(0, bytes);
}

}  // namespace weir
