// Random producers, delays, repetitions, timeouts and crashes against the coordinator's core.
#include "tests/log/coordinator/transaction_world.h"
#include "tests/support/size_of_run.h"

#include <gtest/gtest.h>

namespace weir::log {
namespace {

constexpr int kStepsPerSeed = 5'000;

class TransactionModel : public ::testing::TestWithParam<int> {};

TEST_P(TransactionModel, KeepsItsPromises) {
  const std::optional<std::uint64_t> given = weir::testing::given_seed();
  const std::uint64_t first = given.value_or(1);
  // At least a million steps of version 2 in a full run.
  const std::uint64_t seeds = given ? 1 : weir::testing::rounds<std::uint64_t>(12, 210);
  TransactionWorld::Counts counts;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    TransactionWorld world(seed, static_cast<std::int16_t>(GetParam()));
    for (int step = 0; step < kStepsPerSeed; ++step) {
      world.step();
      ASSERT_TRUE(world.violations().empty())
          << "WEIR_TEST_SEED=" << seed << " step " << step << ": " << world.violations().front();
    }
    world.quiesce();
    ASSERT_TRUE(world.violations().empty())
        << "WEIR_TEST_SEED=" << seed << " at rest: " << world.violations().front();
    counts.committed += world.counts().committed;
    counts.aborted += world.counts().aborted;
    counts.fenced += world.counts().fenced;
    counts.crashes += world.counts().crashes;
    counts.rotations += world.counts().rotations;
    counts.tombstones += world.counts().tombstones;
  }
  std::cout << "seeds " << first << " to " << first + seeds - 1 << ": " << counts.committed
            << " committed, " << counts.aborted << " aborted, " << counts.fenced << " fenced, "
            << counts.crashes << " crashes, " << counts.rotations << " rotations, "
            << counts.tombstones << " tombstones\n";
  // The runs have what they are meant to have.
  EXPECT_GT(counts.committed, seeds * 10);
  EXPECT_GT(counts.aborted, seeds * 5);
  EXPECT_GT(counts.crashes, seeds);
  EXPECT_GT(counts.rotations, 0U);
}

INSTANTIATE_TEST_SUITE_P(Versions, TransactionModel, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace weir::log
