#include "log/compaction/batch_cleaner.h"

#include "tests/log/compaction/compaction_support.h"

// What is left of single batches.

namespace weir::log {
namespace {

using testing::batch_of;
using testing::kStart;
using testing::MadeBatch;
using testing::marker_of;
using testing::records_of;
using testing::SeenRecord;
using testing::stored;

constexpr ProducerId kProducer{7};
constexpr ProducerEpoch kEpoch{2};
constexpr std::int64_t kDay = 86'400'000;

class BatchCleanerTest : public ::testing::Test {
 protected:
  BatchCleaner& start(Offset map_end, Timestamp now = kStart) {
    cleaner_ = std::make_unique<BatchCleaner>(map_, producers_, aborted_,
                                              BatchCleaner::Rules{map_end, now, kDay, 1U << 20U});
    return *cleaner_;
  }
  // What is left of it; the bytes as they were when nothing changed.
  std::optional<MadeBatch> clean(const MadeBatch& batch, bool keeps_end = false) {
    Result<BatchCleaner::Outcome> outcome = cleaner_->clean(batch.header, batch.bytes, keeps_end);
    EXPECT_TRUE(outcome.ok()) << outcome.error().to_string();
    if (outcome->is_unchanged) {
      return batch;
    }
    if (!outcome->bytes) {
      return std::nullopt;
    }
    MadeBatch left{std::string(outcome->bytes.view()), {}};
    const Result<BatchHeader> header = verify_batch(left.bytes);
    EXPECT_TRUE(header.ok()) << header.error().to_string();
    left.header = *header;
    return left;
  }
  AbortedTransaction aborted(std::int64_t first, std::int64_t last) {
    AbortedTransaction one;
    one.producer_id = kProducer;
    one.first_offset = Offset(first);
    one.last_offset = Offset(last);
    return one;
  }

  OffsetMap map_{1U << 16U, 1};
  LastOfProducers producers_;
  AbortedTransactions aborted_;
  std::unique_ptr<BatchCleaner> cleaner_;
};

TEST_F(BatchCleanerTest, KeepsTheLastRecordOfAKeyWithItsOffsetAndTheBatchesEnds) {
  const MadeBatch batch =
      stored(batch_of({{"a", "1", kStart}, {"b", "1", kStart + 5}, {"a", "2", kStart + 9}},
                      {kProducer, kEpoch, 40, false}),
             100, 3);
  map_.put("b", Offset(101));
  map_.put("a", Offset(200));
  start(Offset(300));
  const std::optional<MadeBatch> left = clean(batch);

  ASSERT_TRUE(left);
  EXPECT_EQ(left->header.base_offset, Offset(100));
  EXPECT_EQ(left->header.last_offset(), Offset(102));
  EXPECT_EQ(left->header.leader_epoch, LeaderEpoch(3));
  EXPECT_EQ(left->header.producer_id, kProducer);
  EXPECT_EQ(left->header.producer_epoch, kEpoch);
  EXPECT_EQ(left->header.base_sequence, 40);
  EXPECT_EQ(left->header.records_count, 1);
  EXPECT_EQ(left->header.max_timestamp, kStart + 5);
  EXPECT_EQ(records_of(left->header, left->bytes),
            (std::vector<SeenRecord>{{101, kStart + 5, "b", "1"}}));
}

TEST_F(BatchCleanerTest, LeavesABatchAloneOfWhichAllStays) {
  const MadeBatch batch = stored(batch_of({{"a", "1"}, {"b", "1"}}), 10);
  map_.put("a", Offset(10));
  start(Offset(300));
  EXPECT_EQ(clean(batch)->bytes, batch.bytes);
  EXPECT_EQ(cleaner_->counts().records_kept, 2U);
}

TEST_F(BatchCleanerTest, RemovesABatchOfWhichNothingStays) {
  map_.put("a", Offset(50));
  start(Offset(300));
  EXPECT_FALSE(clean(stored(batch_of({{"a", "1"}}), 10)));
}

TEST_F(BatchCleanerTest, KeepsTheHeaderOfAProducersLastBatch) {
  producers_[kProducer] = {kEpoch, Offset(11)};
  map_.put("a", Offset(50));
  start(Offset(300));
  EXPECT_FALSE(clean(stored(batch_of({{"a", "1"}}, {kProducer, kEpoch, 0, false}), 9)));
  const std::optional<MadeBatch> left =
      clean(stored(batch_of({{"a", "1"}, {"a", "2"}}, {kProducer, kEpoch, 1, false}), 10));
  ASSERT_TRUE(left);
  EXPECT_EQ(left->bytes.size(), kBatchHeaderBytes);
  EXPECT_EQ(left->header.records_count, 0);
  EXPECT_EQ(left->header.producer_id, kProducer);
  EXPECT_EQ(left->header.base_sequence, 1);
  EXPECT_EQ(left->header.last_offset(), Offset(11));
  EXPECT_EQ(left->header.base_timestamp, kNoTimestamp);
  // And again, when it is met in the next pass.
  start(Offset(300));
  EXPECT_EQ(clean(*left)->bytes, left->bytes);
}

TEST_F(BatchCleanerTest, KeepsTheEndOfTheOffsetsWithoutAProducer) {
  map_.put("a", Offset(50));
  start(Offset(300));
  const std::optional<MadeBatch> left =
      clean(stored(batch_of({{"a", "1"}, {"a", "2"}}, {kProducer, kEpoch, 1, true}), 10, 4), true);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->header.last_offset(), Offset(11));
  EXPECT_EQ(left->header.leader_epoch, LeaderEpoch(4));
  EXPECT_EQ(left->header.producer_id, kNoProducerId);
  EXPECT_FALSE(left->header.is_transactional());
  start(Offset(300));
  EXPECT_EQ(clean(*left, true)->bytes, left->bytes);
  EXPECT_FALSE(clean(*left, false));
}

TEST_F(BatchCleanerTest, KeepsATombstoneUntilTheHorizonOfItsBatch) {
  const MadeBatch batch = stored(
      batch_of({{"a", std::nullopt, kStart}, {"b", "1", kStart + 1}, {"c", "1", kStart + 2}}), 10);
  map_.put("a", Offset(10));
  map_.put("b", Offset(99));
  start(Offset(300), kStart + 1000);
  const std::optional<MadeBatch> first = clean(batch);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->header.has_delete_horizon());
  EXPECT_EQ(first->header.base_timestamp, kStart + 1000 + kDay);
  const std::vector<SeenRecord> seen = records_of(first->header, first->bytes);
  EXPECT_EQ(seen,
            (std::vector<SeenRecord>{{10, kStart, "a", std::nullopt}, {12, kStart + 2, "c", "1"}}));
  EXPECT_EQ(cleaner_->tombstone_end(), Offset(0));

  start(Offset(300), kStart + 1000 + kDay - 1);
  EXPECT_EQ(clean(*first)->bytes, first->bytes);

  start(Offset(300), kStart + 1000 + kDay);
  const std::optional<MadeBatch> last = clean(*first);
  ASSERT_TRUE(last);
  EXPECT_EQ(records_of(last->header, last->bytes),
            (std::vector<SeenRecord>{{12, kStart + 2, "c", "1"}}));
  EXPECT_EQ(cleaner_->tombstone_end(), Offset(11));
  EXPECT_EQ(cleaner_->counts().tombstones_removed, 1U);
}

TEST_F(BatchCleanerTest, RemovesATombstoneThatIsReplacedAtOnce) {
  map_.put("a", Offset(99));
  start(Offset(300));
  EXPECT_FALSE(clean(stored(batch_of({{"a", std::nullopt}}), 10)));
  EXPECT_EQ(cleaner_->tombstone_end(), Offset(0));
}

TEST_F(BatchCleanerTest, LeavesRecordsAloneThatTheMapDoesNotReach) {
  map_.put("a", Offset(11));
  start(Offset(12));
  const std::optional<MadeBatch> left =
      clean(stored(batch_of({{"a", "1"}, {"a", "2"}, {"a", "3"}, {std::nullopt, "4"}}), 10));
  ASSERT_TRUE(left);
  const std::vector<SeenRecord> seen = records_of(left->header, left->bytes);
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].offset, 11);
  EXPECT_EQ(seen[2].offset, 13);
}

TEST_F(BatchCleanerTest, RemovesRecordsWithoutAKeyAndCountsThem) {
  start(Offset(300));
  EXPECT_FALSE(clean(stored(batch_of({{std::nullopt, "1"}, {std::nullopt, "2"}}), 10)));
  EXPECT_EQ(cleaner_->counts().records_without_key, 2U);
}

TEST_F(BatchCleanerTest, KeepsAnEmptyKeyAndAnEmptyValue) {
  map_.put("", Offset(10));
  start(Offset(300));
  const MadeBatch batch = stored(batch_of({{"", ""}}), 10);
  EXPECT_EQ(clean(batch)->bytes, batch.bytes);
}

TEST_F(BatchCleanerTest, KeepsCodecHeadersAndTimestampTypes) {
  for (const Codec codec : {Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd}) {
    BatchBuilder builder(1U << 20U, Compression{codec, {}});
    Headers headers;
    headers.add("name", ByteView("value"));
    headers.add("null", NullableBytes());
    const std::string value(3000, 'x');
    for (const char* key : {"a", "b", "c"}) {
      ASSERT_TRUE(
          builder.append(RecordRef{ByteView(key), ByteView(value), kStart + 7, headers.view()}));
    }
    SharedBytes built = builder.seal();
    stamp_append_time(built.data(), built.size(), kStart + 99);
    const MadeBatch batch = stored(std::move(built), 10);
    map_.put("b", Offset(99));
    start(Offset(300));
    const std::optional<MadeBatch> left = clean(batch);
    ASSERT_TRUE(left);
    EXPECT_EQ(left->header.codec_bits(), static_cast<std::uint8_t>(codec));
    EXPECT_EQ(left->header.timestamp_type(), TimestampType::kLogAppendTime);
    EXPECT_EQ(left->header.max_timestamp, kStart + 99);
    RecordViews views;
    SharedBytes decompressed;
    ASSERT_TRUE(
        decode_records(left->header, left->bytes, DecodeLimits{}, views, decompressed).ok());
    ASSERT_EQ(views.size(), 2U);
    EXPECT_EQ(views[1].offset, Offset(12));
    EXPECT_EQ(views[1].timestamp, kStart + 99);
    EXPECT_EQ(views[1].value.view(), value);
    EXPECT_EQ(views[1].headers.encoded(), headers.view().encoded());
    EXPECT_EQ(views[1].headers.count(), 2U);
  }
}

TEST_F(BatchCleanerTest, DropsAbortedRecordsNowAndTheMarkerLater) {
  aborted_ = {aborted(10, 20)};
  const MadeBatch data = stored(batch_of({{"a", "1"}}, {kProducer, kEpoch, 0, true}), 10);
  const MadeBatch marker = stored(marker_of(ControlType::kAbort, kProducer, kEpoch, kStart), 20);
  start(Offset(300));
  EXPECT_FALSE(clean(data));
  EXPECT_EQ(clean(marker)->bytes, marker.bytes);
  ASSERT_EQ(cleaner_->take_transaction_index().size(), 1U);
  EXPECT_TRUE(cleaner_->take_transaction_index().empty());

  // The next pass finds nothing of it and sets the horizon.
  start(Offset(300), kStart);
  const std::optional<MadeBatch> marked = clean(marker);
  ASSERT_TRUE(marked);
  EXPECT_TRUE(marked->header.has_delete_horizon());
  EXPECT_EQ(marked->header.base_timestamp, kStart + kDay);
  EXPECT_TRUE(marked->header.is_control());
  EXPECT_TRUE(cleaner_->take_transaction_index().empty());
  EXPECT_EQ(records_of(marked->header, marked->bytes)[0].timestamp, kStart);

  start(Offset(300), kStart + kDay - 1);
  EXPECT_EQ(clean(*marked)->bytes, marked->bytes);
  start(Offset(300), kStart + kDay);
  EXPECT_FALSE(clean(*marked));
}

TEST_F(BatchCleanerTest, KeepsACommitMarkerAsLongAsARecordOfItIsLeft) {
  const MadeBatch data = stored(batch_of({{"a", "1"}}, {kProducer, kEpoch, 0, true}), 10);
  const MadeBatch marker = stored(marker_of(ControlType::kCommit, kProducer, kEpoch, kStart), 20);
  map_.put("a", Offset(10));
  for (int pass = 0; pass < 3; ++pass) {
    start(Offset(300), kStart + pass * 2 * kDay);
    EXPECT_EQ(clean(data)->bytes, data.bytes);
    EXPECT_EQ(clean(marker)->bytes, marker.bytes);
  }
  // The pass that removes the record leaves the marker; so does the next, with a horizon.
  map_.put("a", Offset(250));
  start(Offset(300));
  EXPECT_FALSE(clean(data));
  EXPECT_EQ(clean(marker)->bytes, marker.bytes);
  start(Offset(300));
  EXPECT_TRUE(clean(marker)->header.has_delete_horizon());
}

TEST_F(BatchCleanerTest, EmptiesTheMarkerThatIsAProducersLastBatch) {
  producers_[kProducer] = {kEpoch, kNoOffset};
  const MadeBatch marker = stored(marker_of(ControlType::kCommit, kProducer, kEpoch, kStart), 20);
  start(Offset(300));
  const std::optional<MadeBatch> marked = clean(marker);
  start(Offset(300), kStart + kDay);
  const std::optional<MadeBatch> left = clean(*marked);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->header.records_count, 0);
  EXPECT_TRUE(left->header.is_control());
  EXPECT_EQ(left->header.producer_epoch, kEpoch);
  start(Offset(300), kStart + kDay);
  EXPECT_EQ(clean(*left)->bytes, left->bytes);
}

// The walk that fills the map begins in the middle of a log.
TEST_F(BatchCleanerTest, TakesALaterTransactionOfAProducerForItsOwn) {
  CleanedTransactions transactions({aborted(10, 20), aborted(30, 40), aborted(90, 160)});
  const auto data = [](std::int64_t base) {
    return stored(batch_of({{"a", "1"}}, {kProducer, kEpoch, 0, true}), base).header;
  };
  EXPECT_FALSE(transactions.is_aborted(data(50)));
  EXPECT_TRUE(transactions.is_aborted(data(100)));
  const MadeBatch marker = stored(marker_of(ControlType::kAbort, kProducer, kEpoch, kStart), 160);
  EXPECT_FALSE(transactions.marker_is_done(marker.header, ControlType::kAbort));
  EXPECT_FALSE(transactions.is_aborted(data(170)));
}

TEST_F(BatchCleanerTest, SaysWhatIsNoRecord) {
  std::string bytes = stored(batch_of({{"a", "1"}, {"b", "2"}}), 10).bytes;
  bytes[kBatchHeaderBytes] = 0x7f;  // a record longer than the batch
  stamp_crc(bytes.data(), bytes.size());
  start(Offset(300));
  const Result<BatchCleaner::Outcome> outcome =
      cleaner_->clean(verify_batch(bytes).value(), bytes, false);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), Errc::kCorrupt);
  EXPECT_NE(outcome.error().message().find("offset 10"), std::string::npos);
}

TEST_F(BatchCleanerTest, FillsTheMapUpToTheFirstRecordThatHasNoRoom) {
  OffsetMap small(512, 1);
  std::vector<testing::TestRecord> records;
  for (int i = 0; i < 100; ++i) {
    records.push_back({"key-" + std::to_string(i), "v"});
  }
  const MadeBatch batch = stored(batch_of(records), 1000);
  const Result<Offset> end = add_to_map(small, Offset(1002), batch.header, batch.bytes, 1U << 20U);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(small.find("key-1"), std::nullopt);  // below the dirty range
  EXPECT_EQ(small.find("key-2"), Offset(1002));
  EXPECT_EQ(end->value(), 1002 + static_cast<std::int64_t>(small.size()));
  EXPECT_LT(*end, batch.header.next_offset());
}

}  // namespace
}  // namespace weir::log
