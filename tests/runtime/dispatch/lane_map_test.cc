#include <weir/runtime/lane_map.h>
#include <weir/runtime/rng.h>

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace weir {
namespace {

constexpr std::size_t kRoom = 3'000;

// Records of one partition and which of them are unfinished, so that both forms describe the same.
struct Window {
  LaneMap offsets;
  LaneMap sessions{.form = LaneMap::Form::kSessions};

  std::vector<LaneMap> forms() const { return {offsets, sessions}; }
};

// `waiting` sessions of `all` are stuck since their first record; one record an offset.
Window stuck_sessions(Offset base, std::int64_t span, std::int64_t waiting, std::int64_t all) {
  Window window;
  window.offsets.base = window.sessions.base = base;
  window.offsets.last = window.sessions.last = base.plus(span - 1);
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < span; ++i) {
    const std::int64_t session = i % all;
    if (session < waiting) {
      window.offsets.unfinished.push_back(base.plus(i));
      if (seen.insert(session).second) {
        window.sessions.heads.push_back(
            {0x1234567800ULL + static_cast<std::uint64_t>(session), base.plus(i)});
      }
    }
  }
  return window;
}

TEST(LaneMap, RoundTripsEachForm) {
  Window window = stuck_sessions(Offset(5), 100, 2, 10);
  window.offsets.attempts = window.sessions.attempts = {{Offset(6), 3}, {Offset(15), 255}};
  window.sessions.extractor = 0xbeef;
  for (const LaneMap& map : window.forms()) {
    const Result<LaneMap> read = decode_lane_map(encode_lane_map({&map, 1}, kRoom));
    ASSERT_TRUE(read.ok()) << read.error().to_string();
    EXPECT_EQ(*read, map);
  }
}

// T7 (PC #62): off by one at the base.
TEST(LaneMap, T7_KeepsBaseAndEndAtTheBoundaries) {
  for (const std::int64_t base :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 31, std::int64_t{1} << 53}) {
    for (const std::int64_t span : {1, 2, 7, 8, 9}) {
      const Window window = stuck_sessions(Offset(base), span, 1, 3);
      for (const LaneMap& map : window.forms()) {
        EXPECT_EQ(*decode_lane_map(encode_lane_map({&map, 1}, kRoom)), map)
            << "base " << base << " span " << span;
      }
    }
  }
}

// T5 (PC #328/#329), T11 (PC #37/#35): compaction and markers make spans of billions.
TEST(LaneMap, T5_T11_TakesASpanOfBillionsWithFewUnfinishedRecords) {
  LaneMap map{.base = Offset(7), .last = Offset(9'000'000'000'000)};
  map.unfinished = {Offset(7), Offset(40'000), Offset(8'000'000'000'000)};

  EXPECT_EQ(*decode_lane_map(encode_lane_map({&map, 1}, 64)), map);
}

// The table of S 2.4, raw bytes of the session form (they leave out head and CRC there): a stuck
// session costs 6 bytes whatever waits behind it.
TEST(LaneMap, StuckSessionsCostBytesBySessionNotByRecord) {
  const auto bytes = [](std::int64_t span, std::int64_t waiting, std::int64_t all) {
    return encode_lane_map(stuck_sessions(Offset(1'000'000), span, waiting, all).forms(), kRoom)
        .size();
  };
  constexpr std::size_t kHeadMax = 1 + 4 + 1 + 4 + 2;

  EXPECT_LE(bytes(1'200'000, 1, 1'000), 6 + kHeadMax);
  EXPECT_LE(bytes(1'200'000, 10, 1'000), 65 + kHeadMax);
  EXPECT_LE(bytes(300'000, 100, 1'000), 608 + kHeadMax);
  EXPECT_LE(bytes(100'000, 300, 10'000), 1'879 + kHeadMax);
}

// E2: a prefix cut at an offset is a prefix, so what is left is still true.
TEST(LaneMap, E2_ShrinksToTheLargestPrefixThatFits) {
  const Window window = stuck_sessions(Offset(1'000), 200'000, 2'000, 4'000);
  Offset before = Offset(0);
  for (std::size_t room = 20; room <= 3'072; room += 61) {
    for (const LaneMap& map : window.forms()) {
      const std::string bytes = encode_lane_map({&map, 1}, room);
      ASSERT_LE(bytes.size(), room);
    }
    const std::string bytes = encode_lane_map(window.forms(), room);
    ASSERT_FALSE(bytes.empty());
    const Result<LaneMap> read = decode_lane_map(bytes);
    ASSERT_TRUE(read.ok());
    EXPECT_GE(read->last, before);
    before = read->last;
  }
  EXPECT_LT(before, window.offsets.last);
}

TEST(LaneMap, E2_SaysNothingWhenNothingFits) {
  const Window window = stuck_sessions(Offset(1'000), 10, 1, 2);

  EXPECT_EQ(encode_lane_map(window.forms(), 4), "");
}

// E3 and T8 (PC-fork #207): foreign or damaged bytes end in an error, and lengths that they claim
// allocate nothing.
TEST(LaneMap, E3_T8_RefusesDamagedBytes) {
  EXPECT_EQ(decode_lane_map("").error().code(), Errc::kCorrupt);
  EXPECT_EQ(decode_lane_map(std::string("\x02\0\0\x01", 4)).error().code(), Errc::kUnsupported);
  EXPECT_EQ(decode_lane_map("\x83 zstd").error().code(), Errc::kUnsupported);
  // A bitmap that claims 2^56 bits in one byte.
  EXPECT_EQ(decode_lane_map(std::string("\x01\0\0\x80\x80\x80\x80\x80\x80\x80\x80\x01\xff", 13))
                .error()
                .code(),
            Errc::kCorrupt);
  // Deltas that go back, and beyond the end.
  EXPECT_FALSE(decode_lane_map(std::string("\0\0\0\x05\x01\0", 6)).ok());
  EXPECT_FALSE(decode_lane_map(std::string("\0\0\0\x05\x06", 5)).ok());
}

// T6 (PC #546/#563): what is written is what is read, for random windows of every density.
TEST(LaneMap, T6_RoundTripsRandomWindows) {
  constexpr std::uint64_t kSeed = 17;
  Rng rng(kSeed);
  for (int round = 0; round < 2'000; ++round) {
    LaneMap map{.base = Offset(rng.between(0, 1'000'000))};
    map.unfinished.push_back(map.base);
    const auto gap_max = static_cast<std::int64_t>(1 + rng.below(200));
    for (std::uint64_t i = rng.below(400); i > 0; --i) {
      map.unfinished.push_back(map.unfinished.back().plus(rng.between(1, gap_max)));
    }
    map.last = map.unfinished.back().plus(rng.between(0, 1'000));
    const std::size_t room = 8 + rng.below(3'000);

    const std::string bytes = encode_lane_map({&map, 1}, room);
    if (bytes.empty()) {
      ASSERT_LT(room, 24U) << "seed " << kSeed << " round " << round;
      continue;
    }
    const Result<LaneMap> read = decode_lane_map(bytes);
    ASSERT_TRUE(read.ok()) << "seed " << kSeed << " round " << round;
    const auto end = std::upper_bound(map.unfinished.begin(), map.unfinished.end(), read->last);
    EXPECT_EQ(read->unfinished, std::vector<Offset>(map.unfinished.begin(), end))
        << "seed " << kSeed << " round " << round;
  }
}

}  // namespace
}  // namespace weir
