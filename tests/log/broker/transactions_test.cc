// The driver of the transaction coordinator over a directory on a disk in memory.
#include "log/broker/log_directory.h"
#include "log/partition/append_group.h"
#include "log/record/batch_builder.h"
#include "log/record/control_record.h"
#include "tests/runtime/observe/capture.h"

#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <vector>

namespace weir::log {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using weir::testing::LogCapture;
using weir::testing::ManualClock;
using weir::testing::MemoryFileSystem;

TopicPartition lines(std::int32_t partition) {
  return {"lines", PartitionId(partition)};
}

class TransactionsTest : public ::testing::Test {
 protected:
  TransactionsTest() {
    files_.set_fault([this](MemoryFileSystem::Operation operation, const std::string& path) {
      const bool grows = operation == MemoryFileSystem::Operation::kWrite ||
                         operation == MemoryFileSystem::Operation::kCreate;
      if (wal_broken_ && operation == MemoryFileSystem::Operation::kWrite &&
          path.find(".wal") != std::string::npos) {
        return Status(Error(Errc::kIo, "EIO"));
      }
      return grows && !full_.empty() && path.find(full_) != std::string::npos
                 ? Status(Error(Errc::kNoSpace, "disk full"))
                 : Status();
    });
    open();
    EXPECT_TRUE(log_->create_topic({"lines", 100, {}}).ok());
  }

  void open() {
    LogDirectoryOptions options;
    options.files = &files_;
    options.clock = &clock_;
    options.seed = 3;
    options.transaction_partitions = 4;
    options.offsets_partitions = 2;
    options.disk_reserve_bytes = 0;
    options.wal = {
        .file_bytes_min = 64U << 10U, .file_bytes_max = 256U << 10U, .total_bytes_max = 1U << 20U};
    auto opened = LogDirectory::open("data", options);
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    log_ = std::move(opened).value();
    ASSERT_TRUE(transactions().start().ok());
  }
  // The cache survives.
  void crash() {
    files_.process_crash();
    log_.reset();
    wal_broken_ = false;
    open();
  }
  Transactions& transactions() { return log_->transactions(); }

  Status append(ProducerIdAndEpoch producer, TopicPartition name, std::int32_t sequence = 0) {
    WEIR_TRY_ASSIGN(const auto partition, log_->partition_for_append(name));
    BatchBuilder builder(1024);
    EXPECT_TRUE(builder.append(RecordRef{{}, ByteView("v"), clock_.now(), {}}));
    return partition
        ->append(builder.seal({producer.id, producer.epoch, sequence, true}),
                 AppendOrigin::kBuilder)
        .status();
  }
  Status write(const std::string& id, ProducerIdAndEpoch producer, TopicPartition name) {
    WEIR_TRY(transactions().add_partitions(id, producer, {name}));
    return append(producer, name);
  }
  PartitionOffsets offsets(const TopicPartition& name) {
    return log_->partition(name).value()->offsets();
  }
  TransactionStatus status(const std::string& id) {
    return transactions().describe(id)->value.status;
  }

  MemoryFileSystem files_;
  ManualClock clock_;
  std::string full_;         // the disk is for paths with it
  bool wal_broken_ = false;  // its writes fail
  std::unique_ptr<LogDirectory> log_;
};

// DESIGN D8: one write of the write-ahead log, whose size does not grow with the data.
// All partitions are locked while it is written: the thread sanitizer follows 64 locks at most.
TEST_F(TransactionsTest, AnEndIsOneWrite) {
  for (const int partitions : {1, 10, 50}) {
    const std::string id = fmt::format("tx-{}", partitions);
    const ProducerIdAndEpoch producer = transactions().init(id, 60'000).value();
    std::vector<TopicPartition> names;
    for (int i = 0; i < partitions; ++i) {
      names.push_back(lines(i));
    }
    ASSERT_TRUE(transactions().add_partitions(id, producer, names).ok());
    for (const TopicPartition& name : names) {
      ASSERT_TRUE(append(producer, name).ok());
    }
    const WriteAheadLog::Metrics before = log_->wal_metrics();
    ASSERT_TRUE(transactions().end(id, producer, true).ok());
    const WriteAheadLog::Metrics after = log_->wal_metrics();

    EXPECT_EQ(after.writes - before.writes, 1U);
    EXPECT_EQ(after.entries - before.entries, static_cast<std::uint64_t>(partitions) + 2);
    for (const TopicPartition& name : names) {
      EXPECT_EQ(offsets(name).last_stable, offsets(name).log_end);
    }
  }
}

TEST_F(TransactionsTest, ATimeoutAbortsAtATick) {
  const ProducerIdAndEpoch producer = transactions().init("tx", 1000).value();
  ASSERT_TRUE(write("tx", producer, lines(0)).ok());
  clock_.advance(std::chrono::milliseconds(1001));
  ASSERT_TRUE(transactions().tick().ok());

  EXPECT_EQ(status("tx"), TransactionStatus::kCompleteAbort);
  EXPECT_EQ(offsets(lines(0)).last_stable, offsets(lines(0)).log_end);
  EXPECT_EQ(append(producer, lines(0), 1).error().code(), Errc::kInvalidProducerEpoch);
  EXPECT_EQ(transactions().end("tx", producer, true).error().code(), Errc::kInvalidTxnState);
}

// The second partition of the transaction has no room: what is in the group stands, the rest is
// written when there is room.
TEST_F(TransactionsTest, AFullDiskInTheMiddleOfAnEndIsMadeUpFor) {
  const LogCapture quiet;
  const ProducerIdAndEpoch producer = transactions().init("tx", 60'000).value();
  for (const int partition : {0, 1, 2}) {
    ASSERT_TRUE(write("tx", producer, lines(partition)).ok());
  }
  full_ = "lines-1/";
  ASSERT_TRUE(transactions().end("tx", producer, true).ok());  // it is decided
  EXPECT_EQ(status("tx"), TransactionStatus::kPrepareCommit);
  EXPECT_EQ(offsets(lines(1)).last_stable, Offset(0));
  EXPECT_EQ(transactions().init("tx", 60'000).error().code(), Errc::kConcurrentTransactions);
  ASSERT_TRUE(transactions().tick().ok());
  EXPECT_EQ(status("tx"), TransactionStatus::kPrepareCommit);
  EXPECT_EQ(offsets(lines(2)).last_stable, offsets(lines(2)).log_end);
  full_.clear();
  ASSERT_TRUE(transactions().tick().ok());
  EXPECT_EQ(status("tx"), TransactionStatus::kCompleteCommit);
  for (const int partition : {0, 1, 2}) {
    EXPECT_EQ(offsets(lines(partition)).log_end, Offset(2)) << partition;  // one marker each
    EXPECT_EQ(offsets(lines(partition)).last_stable, Offset(2));
  }
}

TEST_F(TransactionsTest, AnEndThatCannotBeWrittenChangesNothing) {
  const LogCapture quiet;
  const ProducerIdAndEpoch producer = transactions().init("tx", 60'000).value();
  ASSERT_TRUE(write("tx", producer, lines(0)).ok());
  full_ = "__transaction_state";
  const auto refused = transactions().end("tx", producer, true);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kNoSpace);
  EXPECT_THAT(refused.error().message(), HasSubstr("transactional id tx"));
  EXPECT_EQ(status("tx"), TransactionStatus::kOngoing);
  EXPECT_EQ(offsets(lines(0)).log_end, Offset(1));
  full_.clear();
  ASSERT_TRUE(transactions().end("tx", producer, true).ok());
  EXPECT_EQ(status("tx"), TransactionStatus::kCompleteCommit);
}

TEST_F(TransactionsTest, ADecidedTransactionIsEndedByTheNextStart) {
  {
    const LogCapture quiet;
    const ProducerIdAndEpoch producer = transactions().init("tx", 60'000).value();
    ASSERT_TRUE(write("tx", producer, lines(0)).ok());
    ASSERT_TRUE(write("tx", producer, lines(1)).ok());
    full_ = "lines-1/";
    ASSERT_TRUE(transactions().end("tx", producer, true).ok());
  }
  full_.clear();
  crash();
  EXPECT_EQ(status("tx"), TransactionStatus::kCompleteCommit);
  for (const int partition : {0, 1}) {
    EXPECT_EQ(offsets(lines(partition)).log_end, Offset(2));
    EXPECT_EQ(offsets(lines(partition)).last_stable, Offset(2));
  }
}

TEST_F(TransactionsTest, UnstableOffsetsAreRefusedWhenAsked) {
  ASSERT_TRUE(log_->create_topic({"input", 1, {}}).ok());
  const TopicPartition input{"input", PartitionId(0)};
  const PartitionOffset seven{input, {Offset(7), LeaderEpoch(0), "m"}};
  const ProducerIdAndEpoch producer = transactions().init("tx", 60'000).value();
  ASSERT_TRUE(transactions().send_offsets("tx", producer, "group", {&seven, 1}).ok());
  for (int life = 0; life < 2; ++life) {
    const auto asked = log_->offsets().committed("group", {&input, 1}, true);
    ASSERT_FALSE(asked.ok());
    EXPECT_EQ(asked.error().code(), Errc::kUnstableOffset);
    EXPECT_TRUE(is_retriable(asked.error().code()));
    EXPECT_THAT(asked.error().message(), HasSubstr("group for input-0"));
    EXPECT_FALSE(log_->offsets().committed("group", {&input, 1}).value()[0].has_value());
    if (life == 0) {
      crash();  // what is pending is found again
    }
  }
  ASSERT_TRUE(transactions().end("tx", producer, true).ok());
  const auto now = log_->offsets().committed("group", {&input, 1}, true).value();
  ASSERT_TRUE(now[0].has_value());
  EXPECT_EQ(*now[0], seven.second);
}

// The next transaction of a producer may begin before what waits for the marker of the last one is
// told that it is durable.
TEST_F(TransactionsTest, MarkersThatAreToldLateDecideTheirOwnTransactionAlone) {
  ASSERT_TRUE(log_->create_topic({"input", 3, {}}).ok());
  const ProducerId producer(7);
  GroupOffsets& offsets = log_->offsets();
  const TopicPartition at = offsets.partition_of("group").value();
  const auto log = log_->partition_for_append(at).value();
  const auto input = [](std::int32_t partition) {
    return TopicPartition{"input", PartitionId(partition)};
  };
  const auto send = [&](std::int16_t epoch, std::int32_t partition, std::int64_t offset) {
    const PartitionOffset one{input(partition), {Offset(offset), LeaderEpoch(0), ""}};
    ASSERT_TRUE(
        offsets.commit_in_transaction("group", producer, ProducerEpoch(epoch), {&one, 1}).ok());
  };
  const auto mark = [&](std::int16_t epoch, bool commit) {
    const auto appended = log->append(
        build_end_transaction_marker(commit ? ControlType::kCommit : ControlType::kAbort, producer,
                                     ProducerEpoch(epoch), 0, clock_.now()),
        AppendOrigin::kCoordinator);
    EXPECT_TRUE(appended.ok()) << appended.error().to_string();
    offsets.note_marker(at.partition, producer, commit, appended->next_offset);
    return appended->next_offset;
  };
  send(0, 0, 100);
  const Offset aborted = mark(0, false);
  send(1, 0, 200);
  send(1, 1, 50);
  const Offset committed = mark(1, true);
  send(2, 2, 10);
  const std::array all = {input(0), input(1), input(2)};
  const auto found = [&] {
    std::vector<std::int64_t> values;
    const auto committed_now = offsets.committed("group", all).value();
    for (const auto& one : committed_now) {
      values.push_back(one ? one->offset.value() : -1);
    }
    return values;
  };
  EXPECT_THAT(found(), ElementsAre(-1, -1, -1));
  offsets.on_marker_durable(at.partition, producer, committed);
  EXPECT_THAT(found(), ElementsAre(200, 50, -1));
  offsets.on_marker_durable(at.partition, producer, aborted);
  EXPECT_THAT(found(), ElementsAre(200, 50, -1));
  EXPECT_EQ(offsets.committed("group", {&all[2], 1}, true).error().code(), Errc::kUnstableOffset);
  EXPECT_TRUE(offsets.committed("group", {all.data(), 2}, true).ok());
  offsets.on_marker_durable(at.partition, producer, mark(2, false));
  EXPECT_THAT(found(), ElementsAre(200, 50, -1));
  EXPECT_TRUE(offsets.committed("group", all, true).ok());
  // As it is read from the log.
  crash();
  EXPECT_EQ(log_->offsets().committed("group", all).value()[0]->offset, Offset(200));
}

// Markers that stand in their files, of a group that the write-ahead log does not have: no reader
// may find some of them.
TEST_F(TransactionsTest, AGroupThatWasNotWrittenIsCutFromEveryFile) {
  const LogCapture quiet;
  const ProducerIdAndEpoch producer = transactions().init("tx", 60'000).value();
  std::vector<GroupedAppend> group;
  AppendOptions options(AppendOrigin::kCoordinator);
  options.transaction_version = 2;
  for (const int partition : {0, 1}) {
    ASSERT_TRUE(write("tx", producer, lines(partition)).ok());
    group.push_back({log_->partition(lines(partition)).value(),
                     build_end_transaction_marker(ControlType::kCommit, producer.id,
                                                  producer.epoch.next(), 0, clock_.now()),
                     options});
  }
  wal_broken_ = true;
  ASSERT_TRUE(append_group(std::move(group)).failure.ok());
  EXPECT_EQ(offsets(lines(0)).log_end, Offset(2));
  EXPECT_EQ(offsets(lines(0)).high_watermark, Offset(1));
  crash();
  for (const int partition : {0, 1}) {
    EXPECT_EQ(offsets(lines(partition)).log_end, Offset(1));
    EXPECT_EQ(offsets(lines(partition)).last_stable, Offset(0));
  }
  EXPECT_EQ(status("tx"), TransactionStatus::kOngoing);
  ASSERT_TRUE(transactions().end("tx", producer, false).ok());
  EXPECT_EQ(offsets(lines(1)).last_stable, Offset(2));
}

// The record that says that a partition is in the transaction was lost: so is what was written
// there, or no marker would ever end it.
TEST_F(TransactionsTest, ARecordOfATransactionThatNobodyKnowsOfIsCut) {
  const LogCapture quiet;
  const ProducerIdAndEpoch producer = transactions().init("tx", 60'000).value();
  std::shared_ptr<Partition> data = log_->partition_for_append(lines(0)).value();
  files_.hold_submits(true);  // so that the failure comes behind both
  ASSERT_TRUE(write("tx", producer, lines(0)).ok());
  EXPECT_EQ(data->offsets().log_end, Offset(1));
  wal_broken_ = true;
  files_.hold_submits(false);
  while (files_.run_submitted() > 0) {
  }
  data.reset();
  crash();
  EXPECT_EQ(status("tx"), TransactionStatus::kEmpty);
  EXPECT_EQ(offsets(lines(0)).log_end, Offset(0));
}

// An older client: verification at its first write, the epoch stays.
TEST_F(TransactionsTest, AnOlderClientIsVerified) {
  const ProducerIdAndEpoch producer = transactions().init("tx", 60'000).value();
  EXPECT_EQ(transactions().verify("tx", producer, {lines(0)}, 0).error().code(),
            Errc::kInvalidTxnState);
  ASSERT_TRUE(transactions().add_partitions("tx", producer, {lines(0)}, 0).ok());
  ASSERT_TRUE(transactions().verify("tx", producer, {lines(0)}, 0).ok());
  ASSERT_TRUE(append(producer, lines(0)).ok());
  EXPECT_EQ(transactions().end("tx", producer, true, 0).value(), producer);
  EXPECT_EQ(offsets(lines(0)).last_stable, Offset(2));
}

TEST_F(TransactionsTest, RefusesAPartitionThatDoesNotExist) {
  const ProducerIdAndEpoch producer = transactions().init("tx", 60'000).value();
  EXPECT_EQ(
      transactions().add_partitions("tx", producer, {{"none", PartitionId(0)}}).error().code(),
      Errc::kUnknownTopic);
  EXPECT_EQ(transactions().add_partitions("tx", producer, {lines(100)}).error().code(),
            Errc::kUnknownTopic);
}

TEST_F(TransactionsTest, ForgetsIdsByTombstones) {
  transactions().init("tx", 60'000).value();
  clock_.advance(std::chrono::hours(24 * 7 + 1));
  ASSERT_TRUE(transactions().tick().ok());
  EXPECT_FALSE(transactions().describe("tx").has_value());
  crash();
  EXPECT_TRUE(transactions().list().empty());
}

// Producer ids are never given twice, whatever is forgotten.
TEST_F(TransactionsTest, EveryIdGetsAProducerOfItsOwn) {
  const ProducerId first = transactions().init("a", 60'000)->id;
  const ProducerId second = transactions().init("b", 60'000)->id;
  EXPECT_NE(first, second);
  crash();
  EXPECT_EQ(transactions().init("a", 60'000)->id, first);
  EXPECT_EQ(transactions().init("a", 60'000)->epoch, ProducerEpoch(2));
}

TEST_F(TransactionsTest, WarnsOfAMemoryTopicOnce) {
  ASSERT_TRUE(log_->create_topic({"fast", 2, {{"weir.durability", "memory"}}}).ok());
  LogCapture diagnostics;
  const ProducerIdAndEpoch producer = transactions().init("tx", 60'000).value();
  for (const int partition : {0, 1}) {
    ASSERT_TRUE(write("tx", producer, {"fast", PartitionId(partition)}).ok());
  }
  ASSERT_TRUE(transactions().end("tx", producer, true).ok());
  int lines = 0;
  for (const auto& [level, line] : diagnostics.lines()) {
    lines += line.find("not against a power cut topic=fast") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(lines, 1);
  EXPECT_EQ(offsets({"fast", PartitionId(1)}).last_stable, Offset(2));
}

}  // namespace
}  // namespace weir::log
