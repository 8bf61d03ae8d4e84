#include "log/record/compression.h"
#include "tests/log/partition/log_on_disk.h"
#include "tests/log/record/fixtures.h"

#include <weir/runtime/testing/memory_file_system.h>

#include <fmt/format.h>

// What a partition does with the settings of its topic: the codec of stored batches, and settings
// that change while it is open.

namespace weir::log {
namespace {

using testing::kStart;
using testing::LogOnDisk;
using testing::make_batch;
using testing::split_batches;
using Operation = weir::testing::MemoryFileSystem::Operation;

class PartitionSettingsTest : public ::testing::Test {
 protected:
  PartitionSettings& settings() { return log_.options.settings; }
  static SharedBytes batch_of(Codec codec, int records, std::size_t value_bytes = 100) {
    BatchBuilder builder(1U << 20U, {codec, {}});
    const std::string value(value_bytes, 'v');
    for (int i = 0; i < records; ++i) {
      EXPECT_TRUE(builder.append(RecordRef{ByteView("k"), ByteView(value), kStart + i, {}}));
    }
    return builder.seal();
  }
  // The only batch between `from` and the log end, as it is stored.
  static BatchHeader stored(Partition& partition, Offset from) {
    const Result<FetchResult> read = partition.read(from, 1U << 20U, FetchIsolation::kLogEnd);
    EXPECT_TRUE(read.ok() && read->batches.size() == 1);
    EXPECT_TRUE(verify_batch(read->batches[0].bytes.bytes).ok());
    return read->batches[0].header;
  }

  weir::testing::MemoryFileSystem disk_;
  LogOnDisk log_{disk_};
};

TEST_F(PartitionSettingsTest, StoresBatchesInTheTopicsCodec) {
  for (int topic = 0; topic < 5; ++topic) {
    settings().compression = Compression{static_cast<Codec>(topic), {}};
    for (const AppendOrigin origin : {AppendOrigin::kClient, AppendOrigin::kBuilder}) {
      for (int sent = 0; sent < 5; ++sent) {
        SCOPED_TRACE(fmt::format("{} sent as {}", topic, sent));
        LocalPartition& partition = log_.open();
        const Offset end = partition.offsets().log_end;
        SharedBytes batch = batch_of(static_cast<Codec>(sent), 20);
        const std::string bytes(batch.view().substr(kBatchHeaderBytes));
        ASSERT_TRUE(partition.append(std::move(batch), origin).ok());

        const BatchHeader header = stored(partition, end);
        EXPECT_EQ(header.codec_bits(), topic);
        EXPECT_EQ(header.base_offset, end);
        EXPECT_EQ(header.max_timestamp, kStart + 19);
        RecordViews records;
        SharedBytes plain;
        const FetchResult read = partition.read(end, 1, FetchIsolation::kLogEnd).value();
        ASSERT_TRUE(decode_records(header, read.batches[0].bytes.bytes, {}, records, plain).ok());
        ASSERT_EQ(records.size(), 20U);
        EXPECT_EQ(records[19].offset, end.plus(19));
        EXPECT_EQ(records[19].timestamp, kStart + 19);
        if (sent == topic) {  // appended as it came
          EXPECT_EQ(read.batches[0].bytes.bytes.substr(kBatchHeaderBytes), bytes);
        }
      }
    }
  }
}

TEST_F(PartitionSettingsTest, KeepsTheProducersCodecByDefault) {
  LocalPartition& partition = log_.open();
  for (int sent = 0; sent < 5; ++sent) {
    const Offset end = partition.offsets().log_end;
    ASSERT_TRUE(partition.append(batch_of(static_cast<Codec>(sent), 3)).ok());
    EXPECT_EQ(stored(partition, end).codec_bits(), sent);
  }
}

TEST_F(PartitionSettingsTest, NeverCompressesAControlBatch) {
  settings().compression = Compression{Codec::kZstd, {}};
  LocalPartition& partition = log_.open();
  const std::string key("\0\0\0\1", 4);
  ASSERT_TRUE(partition
                  .append(build_control_batch(key, std::string(200, 'v'), kStart, {}),
                          AppendOrigin::kCoordinator)
                  .ok());
  EXPECT_EQ(stored(partition, Offset(0)).codec_bits(), 0);
}

TEST_F(PartitionSettingsTest, StampsTheAppendTimeIntoAConvertedBatch) {
  settings().compression = Compression{Codec::kLz4, {}};
  settings().timestamp_type = TimestampType::kLogAppendTime;
  LocalPartition& partition = log_.open();
  const auto appended = partition.append(batch_of(Codec::kNone, 3));
  ASSERT_TRUE(appended.ok());
  EXPECT_EQ(appended->log_append_time, log_.clock.now());
  EXPECT_EQ(stored(partition, Offset(0)).max_timestamp, log_.clock.now());
  EXPECT_EQ(stored(partition, Offset(0)).timestamp_type(), TimestampType::kLogAppendTime);
}

// The files that Kafka's broker wrote when a snappy producer met a topic without compression.
TEST_F(PartitionSettingsTest, WritesTheFilesOfKafkasBroker) {
  settings().compression = Compression{};
  settings().timestamp_after_max_ms = INT64_MAX;
  settings().segment_ms = 604'800'000;
  log_.options.leader_epoch = LeaderEpoch(0);
  LocalPartition& partition = log_.open();
  const std::string from = testing::data_path("codecs/snappy/codec-snappy-0/");
  const std::string to =
      testing::data_path("codecs/recompressed-snappy-to-none/codec-recompressed-snappy-to-none-0/");
  for (const char* segment : {"00000000000000000000.log", "00000000000000000125.log"}) {
    const std::string input = testing::read_file(from + segment);
    const std::vector<ByteView> batches = split_batches(input).value();
    for (const ByteView batch : batches) {
      SharedBytes sent = SharedBytes::copy_of(batch);
      stamp_offset(sent.data(), Offset(0), kNoLeaderEpoch);
      const auto appended = partition.append(std::move(sent));
      ASSERT_TRUE(appended.ok()) << appended.error().to_string();
    }
  }
  ASSERT_TRUE(partition.close().ok());
  for (const char* segment : {"00000000000000000000.log", "00000000000000000125.log"}) {
    EXPECT_TRUE(testing::file_text(disk_, join_path(std::string(testing::kFolder), segment)) ==
                testing::read_file(to + segment))
        << segment;
  }
}

TEST_F(PartitionSettingsTest, JudgesTheSizeAsABatchCameAndAsItIsStored) {
  settings().max_message_bytes = 1000;
  settings().compression = Compression{Codec::kZstd, {}};
  LocalPartition& partition = log_.open();
  EXPECT_EQ(partition.append(batch_of(Codec::kNone, 20)).error().code(), Errc::kRecordTooLarge);
  EXPECT_TRUE(partition.append(batch_of(Codec::kZstd, 20)).ok());

  settings().compression = Compression{};
  ASSERT_TRUE(partition.set_settings(settings()).ok());
  EXPECT_EQ(partition.append(batch_of(Codec::kZstd, 20)).error().code(), Errc::kRecordTooLarge);
  EXPECT_EQ(partition.offsets().log_end, Offset(20));
}

TEST_F(PartitionSettingsTest, RefusesADamagedStreamBeforeAnythingIsWritten) {
  settings().compression = Compression{Codec::kLz4, {}};
  LocalPartition& partition = log_.open();
  SharedBytes batch = batch_of(Codec::kGzip, 5);
  batch.data()[kBatchHeaderBytes + 12] ^= 0x55;
  stamp_crc(batch.data(), batch.size());
  EXPECT_EQ(partition.append(std::move(batch)).error().code(), Errc::kCorrupt);
  EXPECT_EQ(partition.offsets().log_end, Offset(0));
  EXPECT_TRUE(partition.append(batch_of(Codec::kGzip, 5)).ok());
}

TEST_F(PartitionSettingsTest, TakesNewSettingsWithTheNextAppend) {
  LocalPartition& partition = log_.open();
  ASSERT_TRUE(partition.append(batch_of(Codec::kNone, 5)).ok());
  settings().segment_bytes = 800;
  settings().compression = Compression{Codec::kGzip, 9};
  settings().max_message_bytes = 700;
  ASSERT_TRUE(partition.set_settings(settings()).ok());
  EXPECT_EQ(partition.settings(), settings());

  ASSERT_TRUE(partition.append(batch_of(Codec::kNone, 5)).ok());
  EXPECT_EQ(partition.append(batch_of(Codec::kNone, 7)).error().code(), Errc::kRecordTooLarge);

  EXPECT_EQ(partition.segments().size(), 1U);  // the second batch is small, compressed
  EXPECT_EQ(stored(partition, Offset(5)).codec_bits(), 1);
  settings().segment_bytes = 600;
  ASSERT_TRUE(partition.set_settings(settings()).ok());
  ASSERT_TRUE(partition.append(batch_of(Codec::kNone, 4)).ok());
  EXPECT_EQ(partition.segments().size(), 2U);
}

TEST_F(PartitionSettingsTest, SyncsWhatIsThereBeforeAMemoryLogIsAnFsyncLog) {
  settings().durability = DurabilityMode::kMemory;
  settings().segment_bytes = 700;
  LocalPartition& partition = log_.open();
  disk_.hold_submits(true);
  for (int i = 0; i < 3; ++i) {  // over three segments, none of them synced
    ASSERT_TRUE(partition.append(batch_of(Codec::kNone, 5)).ok());
  }
  EXPECT_EQ(partition.recovery_point(), Offset(0));

  settings().durability = DurabilityMode::kFsync;
  ASSERT_TRUE(partition.set_settings(settings()).ok());

  EXPECT_EQ(partition.recovery_point(), Offset(15));
  ASSERT_TRUE(partition.append(batch_of(Codec::kNone, 1)).ok());
  EXPECT_EQ(partition.offsets().high_watermark, Offset(15));  // until the flusher did it
  disk_.power_cut();
  disk_.hold_submits(false);
  LocalPartition& again = log_.reopen(false);
  EXPECT_GE(again.offsets().log_end, Offset(15));
  EXPECT_TRUE(again.recovery().damaged.empty());
}

TEST_F(PartitionSettingsTest, KeepsThePromiseOfAWaitingAcknowledgementWhenTheLogBecomesAMemoryLog) {
  LocalPartition& partition = log_.open();
  disk_.hold_submits(true);
  ASSERT_TRUE(partition.append(batch_of(Codec::kNone, 5)).ok());
  EXPECT_EQ(partition.offsets().high_watermark, Offset(0));
  const auto waiter = std::make_shared<Notifier>();
  partition.add_waiter(waiter);
  const std::uint64_t before = waiter->generation();

  settings().durability = DurabilityMode::kMemory;
  ASSERT_TRUE(partition.set_settings(settings()).ok());

  EXPECT_EQ(partition.offsets().high_watermark, Offset(5));
  EXPECT_GT(waiter->generation(), before);
  ASSERT_TRUE(partition.append(batch_of(Codec::kNone, 1)).ok());
  EXPECT_EQ(partition.offsets().high_watermark, Offset(6));
  partition.remove_waiter(waiter);
  disk_.power_cut();
  disk_.hold_submits(false);
  EXPECT_GE(log_.reopen(false).offsets().log_end, Offset(5));
}

TEST_F(PartitionSettingsTest, KeepsItsDurabilityWhenTheSyncFails) {
  settings().durability = DurabilityMode::kMemory;
  LocalPartition& partition = log_.open();
  ASSERT_TRUE(partition.append(batch_of(Codec::kNone, 5)).ok());
  disk_.set_fault([](Operation operation, const std::string&) {
    return operation == Operation::kSync ? Status(Error(Errc::kIo, "EIO")) : Status();
  });
  settings().durability = DurabilityMode::kFsync;

  EXPECT_EQ(partition.set_settings(settings()).error().code(), Errc::kIo);

  EXPECT_EQ(partition.settings().durability, DurabilityMode::kMemory);
  EXPECT_EQ(partition.append(batch_of(Codec::kNone, 1)).error().code(), Errc::kIo);
}

}  // namespace
}  // namespace weir::log
