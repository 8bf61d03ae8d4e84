#pragma once

#include <weir/runtime/types.h>

#include <cstdint>

namespace weir {

// Seeded random numbers (xoshiro256**, Blackman & Vigna 2018): one seed replays everything.
// Threading: confined to its owner.
class Rng {
 public:
  explicit Rng(std::uint64_t seed);

  std::uint64_t next();
  // Uniform in [0, bound). Requires: bound > 0.
  std::uint64_t below(std::uint64_t bound);
  // Uniform in [low, high], both inclusive. Requires: low <= high.
  std::int64_t between(std::int64_t low, std::int64_t high);
  // True with probability `numerator / denominator`.
  bool chance(std::uint32_t numerator, std::uint32_t denominator);
  double unit();  // [0, 1)
  Uuid uuid();    // random, version 4; never one of Kafka's two reserved ids

 private:
  std::uint64_t state_[4];
};

// Entropy of the machine, for seeds outside tests.
std::uint64_t entropy_seed();

}  // namespace weir
