#include <weir/runtime/rng.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace weir {
namespace {

// First outputs of the authors' xoshiro256starstar.c with the state filled by their splitmix64.c
// from seed 0 and 42.
TEST(Rng, GivesTheReferenceSequence) {
  Rng zero(0);
  Rng forty_two(42);

  EXPECT_EQ(zero.next(), 0x99ec5f36cb75f2b4U);
  EXPECT_EQ(zero.next(), 0xbf6e1f784956452aU);
  EXPECT_EQ(zero.next(), 0x1a5f849d4933e6e0U);
  EXPECT_EQ(forty_two.next(), 0x15780b2e0c2ec716U);
  EXPECT_EQ(forty_two.next(), 0x6104d9866d113a7eU);
  EXPECT_EQ(forty_two.next(), 0xae17533239e499a1U);
}

TEST(Rng, SameSeedSameSequence) {
  Rng a(7);
  Rng b(7);
  Rng c(8);
  bool has_difference = false;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = a.next();
    ASSERT_EQ(value, b.next());
    has_difference = has_difference || value != c.next();
  }

  EXPECT_TRUE(has_difference);
}

TEST(Rng, BelowIsUniform) {
  constexpr std::uint64_t kSeed = 11;
  constexpr std::size_t kBound = 7;
  constexpr int kDraws = 70'000;
  Rng rng(kSeed);
  std::array<int, kBound> counts{};
  for (int i = 0; i < kDraws; ++i) {
    ++counts.at(rng.below(kBound));
  }

  // Chi-square with 6 degrees of freedom: over 22.5 happens once in a thousand seeds.
  double chi_square = 0;
  for (const int count : counts) {
    chi_square += std::pow(count - kDraws / 7.0, 2) / (kDraws / 7.0);
  }
  EXPECT_LT(chi_square, 22.5) << "seed " << kSeed;
}

TEST(Rng, BelowKeepsToHugeBounds) {
  Rng rng(3);
  constexpr std::uint64_t kBound = (1ULL << 63U) + 1;
  bool has_upper_half = false;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = rng.below(kBound);
    ASSERT_LT(value, kBound);
    has_upper_half = has_upper_half || value > kBound / 2;
  }

  EXPECT_TRUE(has_upper_half);
  EXPECT_EQ(rng.below(1), 0U);
}

TEST(Rng, BetweenReachesBothEndsAndTheWholeRange) {
  Rng rng(5);
  std::set<std::int64_t> small;
  bool has_negative = false;
  bool has_positive = false;
  for (int i = 0; i < 200; ++i) {
    small.insert(rng.between(-2, 2));
    const std::int64_t any = rng.between(INT64_MIN, INT64_MAX);
    has_negative = has_negative || any < 0;
    has_positive = has_positive || any > 0;
  }

  EXPECT_EQ(small, (std::set<std::int64_t>{-2, -1, 0, 1, 2}));
  EXPECT_TRUE(has_negative && has_positive);
  EXPECT_EQ(rng.between(9, 9), 9);
}

TEST(Rng, ChanceAndUnitKeepTheirProbability) {
  Rng rng(9);
  int hits = 0;
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    hits += rng.chance(1, 4) ? 1 : 0;
    const double unit = rng.unit();
    ASSERT_GE(unit, 0.0);
    ASSERT_LT(unit, 1.0);
    sum += unit;
  }

  EXPECT_NEAR(hits, 2500, 200);
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
  EXPECT_FALSE(rng.chance(0, 5));
  EXPECT_TRUE(rng.chance(5, 5));
}

TEST(Rng, UuidsAreVersion4AndNeverStartWithADash) {
  Rng rng(1);
  std::set<Uuid> ids;
  for (int i = 0; i < 2000; ++i) {
    const Uuid id = rng.uuid();
    ASSERT_EQ(id.bytes[6] >> 4U, 4);
    ASSERT_EQ(id.bytes[8] >> 6U, 2);
    ASSERT_NE(id.to_string().front(), '-');
    ids.insert(id);
  }

  EXPECT_EQ(ids.size(), 2000U);
}

TEST(EntropySeed, DiffersFromCallToCall) {
  EXPECT_NE(entropy_seed(), entropy_seed());
}

}  // namespace
}  // namespace weir
