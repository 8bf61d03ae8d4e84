#include "tests/operators/support/app_world.h"

#include <weir/runtime/rng.h>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

// At least once: whatever fails and wherever the process dies, no count is ever too low, and what
// is too high was repeated behind the last commit.

namespace weir::test {
namespace {

using std::chrono::milliseconds;

std::vector<std::string> text(int lines) {
  std::vector<std::string> made;
  for (int i = 0; i < lines; ++i) {
    made.push_back("w" + std::to_string(i % 5) + " common w" + std::to_string(i % 11));
  }
  return made;
}

void expect_never_too_low(const Counts& counted, const Counts& truth, const std::string& where) {
  for (const auto& [word, count] : truth) {
    const auto found = counted.find(word);
    ASSERT_NE(found, counted.end()) << where << " lost " << word;
    EXPECT_GE(found->second, count) << where << " " << word;
  }
  for (const auto& [word, count] : counted) {
    EXPECT_TRUE(truth.contains(word)) << where << " invented " << word;
  }
}

AppOptions small_commits(const World& world, const std::string& mode) {
  AppOptions options = world.options();
  options.commit_interval_ms = 30;
  options.checkpoint_interval_ms = 100;
  options.store_mode = mode;
  return options;
}

struct Fault {
  testing::MemoryBackend::FaultPoint point;
  Errc code;
};

class AppWithAFault : public ::testing::TestWithParam<Fault> {};

// The application heals itself without being started again.
TEST_P(AppWithAFault, NeverCountsTooLittle) {
  World world;
  world.make_topic("lines", 2);
  world.make_topic("word-counts", 1);
  std::vector<std::string> all;
  const std::unique_ptr<App> app = world.make_app(word_count(), small_commits(world, "hot"));
  ASSERT_TRUE(app->start().ok());
  for (int round = 0; round < 6; ++round) {
    const std::vector<std::string> lines = text(20);
    all.insert(all.end(), lines.begin(), lines.end());
    world.produce_lines(lines);
    ASSERT_EQ(step_until(world, *app, [] { return false; }, round).error().code(), Errc::kTimedOut);
    world.memory.fail_next(GetParam().point, Error(GetParam().code, "a fault of the test"));
    const Status drained = drain(world, *app);
    ASSERT_TRUE(drained.ok()) << drained.error().to_string();
  }

  expect_never_too_low(world.last_counts("word-counts"), count_words(all), "word-counts");
  expect_never_too_low(world.last_counts("wc-counts-changelog"), count_words(all), "changelog");
}

using Point = testing::MemoryBackend::FaultPoint;
INSTANTIATE_TEST_SUITE_P(
    Faults, AppWithAFault,
    ::testing::Values(Fault{Point::kSend, Errc::kIo}, Fault{Point::kSend, Errc::kNoSpace},
                      Fault{Point::kFlush, Errc::kIo}, Fault{Point::kFlush, Errc::kTimedOut},
                      Fault{Point::kCommit, Errc::kIo}, Fault{Point::kCommit, Errc::kNoSpace},
                      Fault{Point::kPoll, Errc::kIo}));

// A commit that fails in a way that passes is tried again and repeats nothing.
TEST(AppCommit, IsTriedAgainWithoutProcessingAnythingTwice) {
  World world;
  world.make_topic("lines", 1);
  world.make_topic("word-counts", 1);
  const std::unique_ptr<App> app = world.make_app(word_count(), small_commits(world, "hot"));
  ASSERT_TRUE(app->start().ok());
  world.produce_lines(text(20));
  world.memory.fail_next(Point::kCommit, Error(Errc::kNoSpace, "for a moment"));
  world.memory.fail_next(Point::kFlush, Error(Errc::kTimedOut, "for a moment"));

  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_EQ(world.last_counts("word-counts"), count_words(text(20)));
}

// The process dies at each call of the log in turn: at a poll, between two sends, between changelog
// and flush, between flush and offsets, behind the offsets.
class AppThatDies : public ::testing::TestWithParam<const char*> {};

TEST_P(AppThatDies, NeverCountsTooLittleWhateverTheLastCallWas) {
  std::uint64_t deaths = 0;
  std::uint64_t repeated = 0;
  for (std::uint64_t call = 0;; ++call) {
    World world;
    world.make_topic("lines", 2);
    world.make_topic("word-counts", 1);
    world.produce_lines(text(15));
    DyingBackend dying(world.memory);
    world.backend = &dying;
    dying.die_at(call);
    {
      const std::unique_ptr<App> app =
          world.make_app(word_count(), small_commits(world, GetParam()));
      if (app->start().ok()) {
        step_until(world, *app, [&] { return dying.is_dead(); }, 60).ignore("it dies or is done");
      }
    }  // without stop()
    world.files.process_crash();
    const bool died = dying.is_dead();
    deaths += died ? 1U : 0U;

    world.backend = &world.memory;
    world.produce_lines(text(5));
    std::vector<std::string> all = text(15);
    const std::vector<std::string> more = text(5);
    all.insert(all.end(), more.begin(), more.end());
    const std::unique_ptr<App> app = world.make_app(word_count(), small_commits(world, GetParam()));
    ASSERT_TRUE(app->start().ok()) << "call " << call;
    const Status drained = drain(world, *app);
    ASSERT_TRUE(drained.ok()) << "call " << call << " " << drained.error().to_string();
    const Counts truth = count_words(all);
    const Counts counted = world.last_counts("word-counts");
    expect_never_too_low(counted, truth, "call " + std::to_string(call));
    repeated += counted != truth ? 1U : 0U;
    if (!died) {
      EXPECT_EQ(counted, truth);
      break;
    }
  }
  EXPECT_GT(deaths, 10U);
  EXPECT_GT(repeated, 0U) << "no death fell between changelog and offsets: the test is blind";
}

INSTANTIATE_TEST_SUITE_P(Modes, AppThatDies, ::testing::Values("hot", "memory", "direct"));

// A seeded life: records, crashes, clean stops and faults in any order.
TEST(AppRandomLife, NeverCountsTooLittle) {
  const std::uint64_t seed = 20260801;
  std::cout << "seed " << seed << "\n";
  Rng rng(seed);
  World world;
  world.make_topic("lines", 3);
  world.make_topic("word-counts", 2);
  std::vector<std::string> all;
  for (int life = 0; life < 40; ++life) {
    AppOptions options = small_commits(world, "hot");
    options.num_stream_threads = rng.between(1, 3);
    options.statestore_cache_max_bytes = rng.chance(1, 2) ? 0 : rng.between(100, 5000);
    const std::unique_ptr<App> app = world.make_app(word_count(), options);
    ASSERT_TRUE(app->start().ok());
    const auto rounds = static_cast<int>(rng.between(1, 4));
    for (int round = 0; round < rounds; ++round) {
      const std::vector<std::string> lines = text(static_cast<int>(rng.between(1, 30)));
      all.insert(all.end(), lines.begin(), lines.end());
      world.produce_lines(lines);
      if (rng.chance(1, 3)) {
        world.memory.fail_next(static_cast<Point>(rng.below(4)), Error(Errc::kIo, "random"));
      }
      step_until(
          world, *app, [] { return false; }, static_cast<int>(rng.below(20)))
          .ignore("it only has to live for a while");
    }
    ASSERT_TRUE(app->error().ok()) << app->error().error().to_string();
    if (rng.chance(1, 2)) {
      app->stop(milliseconds(1000)).ignore("a fault may hit it");
    }
  }
  const std::unique_ptr<App> app = world.make_app(word_count(), small_commits(world, "hot"));
  ASSERT_TRUE(app->start().ok());
  const Status drained = drain(world, *app);
  ASSERT_TRUE(drained.ok()) << drained.error().to_string();

  expect_never_too_low(world.last_counts("word-counts"), count_words(all), "word-counts");
}

}  // namespace
}  // namespace weir::test
