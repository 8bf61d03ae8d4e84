#include <weir/runtime/rng.h>

#include <bit>

namespace weir {

namespace {

__extension__ using Uint128 = unsigned __int128;

// splitmix64 (Steele, Lea, Flood 2014): the authors of xoshiro ask for it to spread a small seed
// over the state, which must not be all zero.
std::uint64_t split_mix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

}  // namespace

Rng::Rng(std::uint64_t seed) {
  for (std::uint64_t& word : state_) {
    word = split_mix(seed);
  }
}

std::uint64_t Rng::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5U, 7) * 9U;
  const std::uint64_t shifted = state_[1] << 17U;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Rng::below(std::uint64_t bound) {
  WEIR_ASSERT(bound > 0);
  // Lemire 2019: multiply instead of divide; the few low products that would favour some results
  // are drawn again.
  Uint128 product = static_cast<Uint128>(next()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) {
      product = static_cast<Uint128>(next()) * bound;
    }
  }
  return static_cast<std::uint64_t>(product >> 64U);
}

std::int64_t Rng::between(std::int64_t low, std::int64_t high) {
  WEIR_ASSERT(low <= high);
  const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const std::uint64_t step = span == UINT64_MAX ? next() : below(span + 1);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + step);
}

bool Rng::chance(std::uint32_t numerator, std::uint32_t denominator) {
  return below(denominator) < numerator;
}

double Rng::unit() {
  return static_cast<double>(next() >> 11U) * 0x1.0p-53;
}

Uuid Rng::uuid() {
  // The version bits alone rule out Kafka's reserved ids 0 and 1. An id whose text starts with '-'
  // is drawn again, as Kafka does: it would look like an option on a command line.
  constexpr std::uint8_t kDash = 62;
  Uuid id;
  do {
    for (std::size_t half = 0; half < 2; ++half) {
      std::uint64_t word = next();
      for (std::size_t i = 0; i < 8; ++i) {
        id.bytes[half * 8 + i] = static_cast<std::uint8_t>(word);
        word >>= 8U;
      }
    }
    id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0fU) | 0x40U);
    id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3fU) | 0x80U);
  } while ((id.bytes[0] >> 2U) == kDash);
  return id;
}

}  // namespace weir
