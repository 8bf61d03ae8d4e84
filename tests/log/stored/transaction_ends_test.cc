#include "log/stored/transaction_ends.h"

#include <gtest/gtest.h>

namespace weir::log {
namespace {

constexpr ProducerId kA{1};
constexpr ProducerId kB{2};

BatchHeader data(ProducerId producer, std::int64_t base, std::int32_t count = 1,
                 std::int16_t epoch = 0) {
  BatchHeader header;
  header.base_offset = Offset(base);
  header.last_offset_delta = count - 1;
  header.records_count = count;
  header.attributes = 0x10;
  header.producer_id = producer;
  header.producer_epoch = ProducerEpoch(epoch);
  return header;
}

TEST(TransactionEnds, TellsAbortedFromCommitted) {
  TransactionEnds ends;
  ends.add_data(data(kA, 0));
  ends.add_data(data(kB, 1));
  ends.add_data(data(kA, 2));
  ends.add_marker(kA, Offset(3), false);
  ends.add_marker(kB, Offset(4), true);
  ends.add_data(data(kA, 5));
  ends.add_marker(kA, Offset(6), true);
  ends.finish();

  EXPECT_TRUE(ends.is_aborted(data(kA, 0)));
  EXPECT_FALSE(ends.is_aborted(data(kB, 1)));
  EXPECT_TRUE(ends.is_aborted(data(kA, 2)));
  EXPECT_FALSE(ends.is_aborted(data(kA, 5)));
  EXPECT_EQ(ends.last_stable(Offset(7)), Offset(7));
}

TEST(TransactionEnds, EndsTheCommittedLogAtTheFirstOpenTransaction) {
  TransactionEnds ends;
  ends.add_data(data(kB, 3));
  ends.add_data(data(kA, 5));
  ends.add_marker(kA, Offset(6), true);
  ends.finish();

  EXPECT_EQ(ends.last_stable(Offset(7)), Offset(3));
  EXPECT_TRUE(ends.unknown_ends().empty());
}

TEST(TransactionEnds, IgnoresRecordsThatAreNotTransactional) {
  TransactionEnds ends;
  ends.add_data(data(kA, 0));
  ends.add_marker(kA, Offset(2), false);
  ends.finish();

  BatchHeader plain = data(kA, 1);
  plain.attributes = 0;
  EXPECT_FALSE(ends.is_aborted(plain));
}

TEST(TransactionEnds, TakesAMarkerWithoutRecordsForAnEmptyTransaction) {
  TransactionEnds ends;
  ends.add_marker(kA, Offset(0), false);
  ends.add_data(data(kA, 1));
  ends.add_marker(kA, Offset(2), true);
  ends.finish();

  EXPECT_FALSE(ends.is_aborted(data(kA, 1)));
  EXPECT_TRUE(ends.aborted().empty());
}

// What compaction leaves of a producer's last batch: nothing will ever end it.
TEST(TransactionEnds, DoesNotWaitForTheEndOfAnEmptyBatch) {
  TransactionEnds ends;
  ends.add_data(data(kA, 4, 0));
  ends.finish();

  EXPECT_EQ(ends.last_stable(Offset(9)), Offset(9));
}

TEST(TransactionEnds, ServesATransactionWhoseMarkerIsLost) {
  TransactionEnds ends;
  ends.add_data(data(kA, 0));
  ends.add_loss(Offset(1), Offset(3));
  ends.finish();

  EXPECT_FALSE(ends.is_aborted(data(kA, 0)));
  EXPECT_EQ(ends.last_stable(Offset(9)), Offset(9)) << "nothing can end it any more";
  EXPECT_EQ(ends.unknown_ends(), (std::vector<std::pair<ProducerId, Offset>>{{kA, Offset(0)}}));
}

TEST(TransactionEnds, LearnsFromTheIndexThatALostMarkerWasAnAbort) {
  TransactionEnds ends;
  ends.know_aborted(kA, {Offset(0), Offset(2)});
  ends.add_data(data(kA, 0));
  ends.add_loss(Offset(1), Offset(3));
  ends.add_data(data(kA, 3));
  ends.add_marker(kA, Offset(4), true);
  ends.finish();

  EXPECT_TRUE(ends.is_aborted(data(kA, 0)));
  EXPECT_FALSE(ends.is_aborted(data(kA, 3)));
  EXPECT_TRUE(ends.unknown_ends().empty());
}

// The end of the first transaction is lost; the index knows where the second began.
TEST(TransactionEnds, DoesNotAbortWhatCameBeforeTheTransaction) {
  TransactionEnds ends;
  ends.know_aborted(kA, {Offset(3), Offset(4)});
  ends.add_data(data(kA, 0));
  ends.add_loss(Offset(1), Offset(3));
  ends.add_data(data(kA, 3));
  ends.add_marker(kA, Offset(4), false);
  ends.finish();

  EXPECT_FALSE(ends.is_aborted(data(kA, 0)));
  EXPECT_TRUE(ends.is_aborted(data(kA, 3)));
  EXPECT_EQ(ends.unknown_ends(), (std::vector<std::pair<ProducerId, Offset>>{{kA, Offset(0)}}));
}

TEST(TransactionEnds, TakesALaterEpochForALaterTransaction) {
  TransactionEnds ends;
  ends.add_data(data(kA, 0, 1, 5));
  ends.add_loss(Offset(1), Offset(3));
  ends.add_data(data(kA, 3, 1, 6));
  ends.add_marker(kA, Offset(4), false);
  ends.finish();

  EXPECT_FALSE(ends.is_aborted(data(kA, 0)));
  EXPECT_TRUE(ends.is_aborted(data(kA, 3)));
  EXPECT_EQ(ends.unknown_ends(), (std::vector<std::pair<ProducerId, Offset>>{{kA, Offset(0)}}));
}

}  // namespace
}  // namespace weir::log
