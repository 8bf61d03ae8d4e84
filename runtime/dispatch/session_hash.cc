#include <weir/runtime/session_hash.h>

#include <bit>
#include <cstring>

namespace weir {

namespace {

// Multiply and fold, as wyhash (Wang Yi) does; the constants are its own. What is multiplied goes
// in as well, so that a zero on one side, which a chosen id can bring about, does not hide the
// other.
constexpr std::uint64_t kSecret[] = {0xa0761d6478bd642fULL, 0xe7037ed1a0b428dbULL,
                                     0x8ebc6af09c88c6e3ULL};

std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return a ^ b ^ static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

// Little-endian on every machine.
std::uint64_t word_at(const char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  if constexpr (std::endian::native == std::endian::big) {
    word = __builtin_bswap64(word);
  }
  return word;
}

std::uint64_t tail_at(const char* bytes, std::size_t size) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return word;
}

}  // namespace

std::uint64_t session_hash(ByteView session) {
  const char* in = session.data();
  std::size_t left = session.size();
  std::uint64_t hash = fold(kSecret[0] ^ left, kSecret[1]);
  for (; left >= 16; left -= 16, in += 16) {
    hash = fold(word_at(in) ^ kSecret[1], word_at(in + 8) ^ hash);
  }
  const std::uint64_t low = left >= 8 ? word_at(in) : tail_at(in, left);
  const std::uint64_t high = left > 8 ? tail_at(in + 8, left - 8) : 0;
  return fold(fold(low ^ kSecret[2], high ^ hash), kSecret[0]);
}

}  // namespace weir
