#include "runtime/testing/file_content.h"

#include <weir/runtime/rng.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace weir::testing::internal {
namespace {

constexpr std::size_t kBlock = 4096;
constexpr std::size_t kSector = 512;

std::string text_of(const FileContent& content) {
  std::string text(content.size(), '?');
  EXPECT_EQ(content.read(0, text), text.size());
  return text;
}

std::string after_power_cut(const FileContent& content, std::uint64_t seed) {
  FileContent copy = content;
  Rng rng(seed);
  copy.power_cut(rng);
  return text_of(copy);
}

// The text behind its end is zeros.
std::string part(const std::string& text, std::size_t position, std::size_t count) {
  std::string result = position < text.size() ? text.substr(position, count) : std::string();
  result.resize(count, '\0');
  return result;
}

TEST(FileContent, KeepsASyncedFileOverAnyPowerCut) {
  FileContent content(kBlock);
  content.write(100, std::string(30'000, 'a'));
  content.sync();

  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    ASSERT_EQ(after_power_cut(content, seed), text_of(content)) << "seed " << seed;
  }
}

TEST(FileContent, LosesKeepsOrTearsAnUnsyncedBlock) {
  FileContent content(kBlock);
  content.write(0, std::string(kBlock, 'o'));
  content.sync();
  content.write(0, std::string(kBlock, 'n'));

  std::set<std::string> outcomes;
  std::set<std::size_t> prefixes;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const std::string text = after_power_cut(content, seed);
    ASSERT_EQ(text.size(), kBlock);
    for (std::size_t at = 0; at < kBlock; at += kSector) {
      ASSERT_EQ(text.substr(at, kSector), std::string(kSector, text[at])) << "seed " << seed;
    }
    const std::size_t fresh = static_cast<std::size_t>(std::count(text.begin(), text.end(), 'n'));
    if (fresh == 0 || fresh == kBlock) {
      outcomes.insert(fresh == 0 ? "lost" : "kept");
    } else if (text.find('o') == fresh) {
      prefixes.insert(fresh / kSector);
      outcomes.insert("torn, the front is new");
    } else if (text.rfind('o') == kBlock - fresh - 1) {
      outcomes.insert("torn, the back is new");
    } else {
      outcomes.insert("torn, mixed");
    }
  }

  EXPECT_EQ(outcomes, (std::set<std::string>{"lost", "kept", "torn, the front is new",
                                             "torn, the back is new", "torn, mixed"}));
  EXPECT_EQ(prefixes, (std::set<std::size_t>{1, 2, 3, 4, 5, 6, 7}));
}

TEST(FileContent, KeepsAnySubsetOfUnsyncedBlocks) {
  FileContent content(kSector);  // too small to tear
  content.write(0, std::string(3 * kSector, 'o'));
  content.sync();
  content.write(0, std::string(3 * kSector, 'n'));

  std::set<std::string> outcomes;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const std::string text = after_power_cut(content, seed);
    outcomes.insert({text[0], text[kSector], text[2 * kSector]});
  }

  EXPECT_EQ(outcomes,
            (std::set<std::string>{"ooo", "oon", "ono", "onn", "noo", "non", "nno", "nnn"}));
}

TEST(FileContent, EndsAnywhereBetweenTheDurableAndTheCachedSize) {
  FileContent grown(kBlock);
  grown.write(0, std::string(1000, 'a'));
  grown.sync();
  grown.write(1000, std::string(5000, 'b'));
  FileContent shrunk(kBlock);
  shrunk.write(0, std::string(6000, 'a'));
  shrunk.sync();
  shrunk.truncate(1000);

  for (const FileContent* content : {&grown, &shrunk}) {
    std::set<std::size_t> sizes;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      sizes.insert(after_power_cut(*content, seed).size());
    }
    EXPECT_EQ(*sizes.begin(), 1000U);
    EXPECT_EQ(*sizes.rbegin(), 6000U);
    EXPECT_GT(sizes.size(), 20U);
  }
}

TEST(FileContent, HasZerosWhereALongerFileLostItsBytes) {
  FileContent content(kBlock);
  content.write(0, std::string(kBlock, 'a'));

  bool zeros_seen = false;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = after_power_cut(content, seed);
    ASSERT_EQ(text.find_first_not_of(std::string("a\0", 2)), std::string::npos);
    zeros_seen = zeros_seen || (!text.empty() && text == std::string(text.size(), '\0'));
  }

  EXPECT_TRUE(zeros_seen);
}

// Expected: every sector is the durable or the newest one, and reads agree with plain strings.
TEST(FileContent, AgreesWithTwoStringsUnderRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    FileContent content(kBlock);
    std::string cached;
    std::string durable;
    for (int step = 0; step < 200; ++step) {
      const std::size_t position = static_cast<std::size_t>(rng.below(60'000));
      switch (rng.below(8)) {
        case 0:
          content.truncate(position);
          cached.resize(position, '\0');
          break;
        case 1:
          content.sync();
          durable = cached;
          break;
        case 2:
          content.reserve(position);
          break;
        default: {
          const std::string text(1 + rng.below(9000), static_cast<char>('a' + rng.below(26)));
          content.write(position, text);
          cached.resize(std::max(cached.size(), position + text.size()), '\0');
          cached.replace(position, text.size(), text);
        }
      }
      ASSERT_TRUE(text_of(content) == cached);
    }

    const std::string text = after_power_cut(content, seed);

    ASSERT_GE(text.size(), std::min(cached.size(), durable.size()));
    ASSERT_LE(text.size(), std::max(cached.size(), durable.size()));
    for (std::size_t at = 0; at < text.size(); at += kSector) {
      const std::size_t count = std::min(kSector, text.size() - at);
      const std::string sector = text.substr(at, count);
      ASSERT_TRUE(sector == part(cached, at, count) || sector == part(durable, at, count)) << at;
    }
  }
}

TEST(FileContent, CountsTheBlocksThatItTakes) {
  FileContent content(kBlock);
  content.write(3 * kBlock, "x");
  EXPECT_EQ(content.allocated_blocks(), 1U);
  content.write(3 * kBlock, std::string(kBlock + 1, 'y'));
  EXPECT_EQ(content.allocated_blocks(), 2U);
  EXPECT_EQ(content.blocks_to_reserve(6 * kBlock), 4U);
  content.reserve(6 * kBlock);
  EXPECT_EQ(content.allocated_blocks(), 6U);
  content.write(0, std::string(6 * kBlock, 'z'));
  EXPECT_EQ(content.allocated_blocks(), 6U);
  content.write(6 * kBlock, "z");
  EXPECT_EQ(content.allocated_blocks(), 7U);
  content.truncate(2 * kBlock);
  EXPECT_EQ(content.allocated_blocks(), 2U);
  content.truncate(0);
  EXPECT_EQ(content.allocated_blocks(), 0U);
  content.sync();
  EXPECT_EQ(content.allocated_blocks(), 0U);
}

TEST(FileContent, TellsHowMuchFitsIntoTheFreeBlocks) {
  FileContent content(kBlock);
  content.write(kBlock, std::string(kBlock, 'x'));

  EXPECT_EQ(content.writable_bytes(0, 4 * kBlock, 4), 4 * kBlock);
  EXPECT_EQ(content.writable_bytes(0, 4 * kBlock, 3), 4 * kBlock);
  EXPECT_EQ(content.writable_bytes(0, 4 * kBlock, 1), 2 * kBlock);
  EXPECT_EQ(content.writable_bytes(100, 4 * kBlock, 1), 2 * kBlock - 100);
  EXPECT_EQ(content.writable_bytes(100, 10, 0), 0U);
  EXPECT_EQ(content.writable_bytes(kBlock + 5, kBlock, 0), kBlock - 5);
}

TEST(FileContent, NeverMakesDurableWhatAFailedSyncLost) {
  FileContent content(kBlock);
  content.write(0, std::string(2 * kBlock, 'o'));
  content.sync();
  content.write(0, std::string(2 * kBlock, 'n'));
  content.fail_sync();
  content.write(kBlock, "N");
  content.sync();
  EXPECT_EQ(text_of(content), std::string(kBlock, 'n') + "N" + std::string(kBlock - 1, 'n'));

  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    ASSERT_EQ(after_power_cut(content, seed),
              std::string(kBlock, 'o') + "N" + std::string(kBlock - 1, 'n'));
  }
}

TEST(FileContent, IsLongEnoughButEmptyWhenASyncThatFailedIsTriedAgain) {
  FileContent content(kBlock);
  content.write(0, std::string(5000, 'n'));
  content.fail_sync();
  content.sync();

  EXPECT_EQ(text_of(content), std::string(5000, 'n'));
  EXPECT_EQ(after_power_cut(content, 1), std::string(5000, '\0'));
}

TEST(FileContent, DoesNotShowOldDurableBytesBehindADurableEnd) {
  FileContent content(kBlock);
  content.write(0, std::string(3 * kBlock, 'o'));
  content.sync();
  content.truncate(100);
  content.fail_sync();
  content.sync();
  content.truncate(3 * kBlock);
  content.sync();

  const std::string text = after_power_cut(content, 1);

  EXPECT_EQ(text, std::string(100, 'o') + std::string(3 * kBlock - 100, '\0'));
}

TEST(FileContent, SharesBlocksWithACopyWithoutSharingWrites) {
  FileContent content(kBlock);
  content.write(0, std::string(2 * kBlock, 'a'));
  content.sync();
  FileContent copy = content;

  content.write(0, "b");
  copy.write(kBlock, "c");
  copy.flip_bit(0, 0);

  EXPECT_EQ(text_of(content), "b" + std::string(2 * kBlock - 1, 'a'));
  EXPECT_EQ(text_of(copy), "`" + std::string(kBlock - 1, 'a') + "c" + std::string(kBlock - 1, 'a'));
}

TEST(FileContent, FlipsTheCachedAndTheDurableBit) {
  FileContent content(kBlock);
  content.write(0, std::string(kBlock, 'a'));
  content.sync();
  content.write(10, "b");
  content.flip_bit(10, 1);
  content.flip_bit(20, 1);

  EXPECT_EQ(text_of(content)[10], '`');
  EXPECT_EQ(text_of(content)[20], 'c');
  std::set<char> after;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const std::string text = after_power_cut(content, seed);
    after.insert(text[10]);
    ASSERT_EQ(text[20], 'c');
  }
  EXPECT_EQ(after, (std::set<char>{'`', 'c'}));
}

TEST(FileContent, FlipsABitOfAHole) {
  FileContent content(kBlock);
  content.truncate(3 * kBlock);
  content.sync();
  content.flip_bit(kBlock + 1, 7);

  std::string expected(3 * kBlock, '\0');
  expected[kBlock + 1] = '\x80';
  EXPECT_EQ(text_of(content), expected);
  EXPECT_EQ(after_power_cut(content, 1), expected);
}

TEST(FileContent, TakesOnlyChangedBlocksFromMappedMemory) {
  FileContent content(kBlock);
  content.write(0, std::string(2 * kBlock, 'a'));
  content.truncate(4 * kBlock);
  content.sync();
  std::string mapped = text_of(content);
  mapped[kBlock] = 'b';
  mapped += "behind the end";
  content.write_changed(mapped);

  EXPECT_EQ(text_of(content), mapped.substr(0, 4 * kBlock));
  EXPECT_EQ(content.allocated_blocks(), 2U);
}

}  // namespace
}  // namespace weir::testing::internal
