#include "log/partition/tail_cache.h"

#include "tests/log/partition/log_on_disk.h"

namespace weir::log {
namespace {

class TailCacheTest : public ::testing::Test {
 protected:
  SharedBytes push(TailCache& cache, int records) {
    SharedBytes batch = SharedBytes::copy_of(testing::make_batch(records, 3000).view());
    stamp_offset(batch.data(), next_, LeaderEpoch(0));
    const BatchHeader header = *read_batch_header(batch.view());
    next_ = header.next_offset();
    SharedBytes kept = batch;
    cache.push(std::move(batch), header);
    return kept;
  }
  Offset next_{10};
};

TEST_F(TailCacheTest, GivesTheVeryBuffersThatWerePushed) {
  TailCache cache(1U << 20U);
  push(cache, 2);
  const SharedBytes second = push(cache, 3);
  std::vector<FetchedBatch> out;
  ASSERT_TRUE(cache.collect(Offset(13), Offset(15), 1, out));
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].bytes.bytes.data(), second.data());
  EXPECT_EQ(out[0].header.base_offset, Offset(12));
  EXPECT_TRUE(out[0].verified);
}

TEST_F(TailCacheTest, StopsAtTheLimitAndTheSize) {
  TailCache cache(1U << 20U);
  for (int i = 0; i < 5; ++i) {
    push(cache, 1);
  }
  std::vector<FetchedBatch> out;
  ASSERT_TRUE(cache.collect(Offset(11), Offset(14), 1U << 20U, out));
  EXPECT_EQ(out.size(), 3U);
  out.clear();
  ASSERT_TRUE(cache.collect(Offset(11), Offset(15), 7000, out));
  EXPECT_EQ(out.size(), 2U);
}

TEST_F(TailCacheTest, DropsTheOldestBeyondItsBound) {
  TailCache cache(16U << 10U);
  for (int i = 0; i < 20; ++i) {
    push(cache, 1);
    EXPECT_LE(cache.size_bytes(), 16U << 10U);
  }
  std::vector<FetchedBatch> out;
  EXPECT_FALSE(cache.collect(Offset(10), Offset(30), 1, out));
  EXPECT_TRUE(cache.collect(Offset(29), Offset(30), 1, out));
  EXPECT_EQ(out.size(), 1U);
}

TEST_F(TailCacheTest, DoesNotKeepALargeBufferForASmallBatch) {
  TailCache cache(1U << 20U);
  SharedBytes batch = testing::make_batch(1, 10);  // in a buffer of a megabyte
  stamp_offset(batch.data(), Offset(0), LeaderEpoch(0));
  const BatchHeader header = *read_batch_header(batch.view());
  cache.push(std::move(batch), header);
  EXPECT_LE(cache.size_bytes(), 8U << 10U);
}

}  // namespace
}  // namespace weir::log
