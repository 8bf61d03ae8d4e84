#include "runtime/lane/chunked_pool.h"
#include "runtime/lane/lane_table.h"

#include <weir/runtime/retry_policy.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/session_hash.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

namespace weir::internal {
namespace {

using std::chrono::milliseconds;

struct Element {
  std::uint32_t next = kNone;
  int value = 0;
};

TEST(ChunkedPool, GivesEveryElementOnceAndFreesEmptyChunks) {
  ChunkedPool<Element, 8> pool;
  std::set<std::uint32_t> held;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(held.insert(pool.acquire()).second);
  }
  EXPECT_EQ(pool.live(), 100U);
  EXPECT_EQ(pool.capacity(), 104U);

  for (const std::uint32_t index : held) {
    pool.release(index);
  }
  EXPECT_EQ(pool.live(), 0U);
  EXPECT_EQ(pool.capacity(), 8U);
  held.clear();
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(held.insert(pool.acquire()).second);
  }
}

// T29 (Pulsar #23315): equal hashes are told apart by the caller's compare.
TEST(LaneTable, T29_KeepsEntriesOfEqualHashesApart) {
  LaneTable table;
  for (std::uint32_t lane = 0; lane < 50; ++lane) {
    table.insert(7, lane);
  }
  for (std::uint32_t lane = 0; lane < 50; lane += 2) {
    table.erase(7, lane);
  }
  for (std::uint32_t lane = 0; lane < 50; ++lane) {
    const std::uint32_t found = table.find(7, [&](std::uint32_t l) { return l == lane; });
    EXPECT_EQ(found, lane % 2 == 1 ? lane : kNone);
  }
}

TEST(LaneTable, AgreesWithAMapAndShrinks) {
  constexpr std::uint64_t kSeed = 41;
  Rng rng(kSeed);
  LaneTable table;
  std::unordered_map<std::uint32_t, std::uint32_t> model;  // lane to hash
  for (int step = 0; step < 60'000; ++step) {
    const auto lane = static_cast<std::uint32_t>(rng.below(step < 30'000 ? 6'000 : 200));
    const auto hash = static_cast<std::uint32_t>(lane * 2'654'435'761U) >> (lane % 3 == 0 ? 18 : 0);
    const std::uint32_t found = table.find(hash, [&](std::uint32_t l) { return l == lane; });
    ASSERT_EQ(found, model.contains(lane) ? lane : kNone) << "seed " << kSeed << " step " << step;
    if (found == kNone) {
      table.insert(hash, lane);
      model.emplace(lane, hash);
    } else {
      table.erase(hash, lane);
      model.erase(lane);
    }
  }
  while (!model.empty()) {
    table.erase(model.begin()->second, model.begin()->first);
    model.erase(model.begin());
  }
  EXPECT_EQ(table.size(), 0U);
  EXPECT_LE(table.bytes(), 2'048U);
}

TEST(RetryPolicy, DoublesUpToItsMaximum) {
  Rng rng(1);
  const RetryPolicy policy{.backoff_max = milliseconds(400), .jitter = 0};

  EXPECT_EQ(policy.backoff(1, rng), milliseconds(50));
  EXPECT_EQ(policy.backoff(2, rng), milliseconds(100));
  EXPECT_EQ(policy.backoff(4, rng), milliseconds(400));
  EXPECT_EQ(policy.backoff(5, rng), milliseconds(400));
  EXPECT_EQ(policy.backoff(5'000, rng), milliseconds(400));
}

// C5: jitter, from the seed.
TEST(RetryPolicy, C5_JitterKeepsToItsRangeAndFollowsTheSeed) {
  const RetryPolicy policy;
  Rng a(3);
  Rng b(3);
  Duration least = Duration::max();
  Duration most{};
  for (int i = 0; i < 1'000; ++i) {
    const Duration delay = policy.backoff(1, a);
    ASSERT_EQ(delay, policy.backoff(1, b));
    least = std::min(least, delay);
    most = std::max(most, delay);
  }
  EXPECT_GE(least, milliseconds(40));
  EXPECT_LT(least, milliseconds(41));
  EXPECT_LE(most, milliseconds(60));
  EXPECT_GT(most, milliseconds(59));
}

TEST(RetryPolicy, IsExhaustedByAttemptsOrByTime) {
  const RetryPolicy policy{.attempts_max = 3, .elapsed_max = milliseconds(10)};
  EXPECT_FALSE(policy.is_exhausted(2, milliseconds(9)));
  EXPECT_TRUE(policy.is_exhausted(3, milliseconds(0)));
  EXPECT_TRUE(policy.is_exhausted(1, milliseconds(10)));
  const RetryPolicy endless{.attempts_max = 0, .elapsed_max = Duration::zero()};
  EXPECT_FALSE(endless.is_exhausted(1'000'000, std::chrono::hours(1'000)));
}

// It is stored in commits: these values must stay.
TEST(SessionHash, StaysTheSame) {
  std::set<std::uint64_t> hashes;
  for (std::size_t size = 0; size < 200; ++size) {
    hashes.insert(session_hash(std::string(size, 'a')));
    hashes.insert(session_hash(std::string(size, 'a') + "b"));
  }
  EXPECT_EQ(hashes.size(), 400U);
  EXPECT_EQ(session_hash("session-1"), 8526130737826528808U);
  EXPECT_EQ(session_hash(""), 11229632124464654718U);
  EXPECT_EQ(session_hash("a-session-of-more-than-sixteen-bytes"), 8339315123322236518U);
}

// T29: ids that bring a factor of the hash to zero do not all have one hash.
TEST(SessionHash, T29_HostileIdsDoNotCollapse) {
  const auto word = [](std::uint64_t value) {
    std::string bytes;
    for (unsigned i = 0; i < 8; ++i) {
      bytes.push_back(static_cast<char>(value >> (8 * i)));
    }
    return bytes;
  };
  std::set<std::uint64_t> hashes;
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    hashes.insert(session_hash(word(0xe7037ed1a0b428dbULL) + word(i)));
    hashes.insert(session_hash(word(i) + word(i) + word(0xe7037ed1a0b428dbULL) + word(7)));
    hashes.insert(session_hash(word(0x8ebc6af09c88c6e3ULL) + word(i).substr(0, 7)));
  }
  EXPECT_EQ(hashes.size(), 3'000U);
}

TEST(SessionHash, SpreadsCountedSessionsEvenly) {
  constexpr int kSessions = 100'000;
  int counts[64] = {};
  for (int i = 0; i < kSessions; ++i) {
    ++counts[session_hash("session-" + std::to_string(i)) & 63U];
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, kSessions / 64, 200);  // five standard deviations
  }
}

}  // namespace
}  // namespace weir::internal
