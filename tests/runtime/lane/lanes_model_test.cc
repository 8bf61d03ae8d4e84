#include "tests/runtime/lane/lanes_model.h"

#include "tests/support/size_of_run.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

namespace weir::internal {
namespace {

constexpr std::uint64_t kStepsOfAWorld = 4'000;

// Must-show 1 of the design: rules C1 to C8, D2 to D5, R1 to R3, rows T12, T14, T15, T16, T18, T20,
// T21, T22, T27, T28, T31, T35, T36, T41, T45, T46, T48, T52, T53, T56, T60, T61, T62, T63, T64.
TEST(LanesModelTest, KeepsEveryRuleUnderRandomInterleavings) {
  const auto steps = weir::testing::rounds<std::uint64_t>(240'000, 4'000'000);
  const std::uint64_t first_seed = weir::testing::given_seed().value_or(1);
  std::uint64_t seed = first_seed;
  std::map<std::string, std::uint64_t> counts;
  for (std::uint64_t done = 0; done < steps; done += kStepsOfAWorld, ++seed) {
    LanesModel world(seed);
    for (std::uint64_t step = 0; step < kStepsOfAWorld; ++step) {
      world.step();
      ASSERT_EQ(world.problem(), "") << "step " << step << "; again with WEIR_TEST_SEED=" << seed;
    }
    world.finish_everything();
    ASSERT_EQ(world.problem(), "") << "at the end; again with WEIR_TEST_SEED=" << seed;
    for (const auto& [what, count] : world.counts()) {
      counts[what] += count;
    }
  }
  std::string text = "seeds " + std::to_string(first_seed) + " to " + std::to_string(seed - 1);
  for (const auto& [what, count] : counts) {
    text += ", " + std::to_string(count) + " " + what;
  }
  RecordProperty("counts", text);
  std::puts(text.c_str());
  for (const char* what : {"attempts", "oks", "dead letters", "drops", "gaps skipped", "commits",
                           "crashes", "drained", "deadlines", "lost", "replay skipped", "stops"}) {
    EXPECT_GT(counts[what], 0U) << what << " never happened";
  }
}

}  // namespace
}  // namespace weir::internal
