#include "log/segment/batch_scanner.h"
#include "log/segment/segment_names.h"
#include "tests/log/partition/log_on_disk.h"
#include "tests/support/json_text.h"

// tests/data/log/rolls: the same batches that a Kafka broker got must give the same files, entries
// and answers.

namespace weir::log {
namespace {

using testing::LogOnDisk;

struct RollsCase {
  std::string name;
  PartitionSettings settings;
};

std::vector<RollsCase> rolls_cases() {
  constexpr std::int64_t kNever = 9'000'000'000'000;
  PartitionSettings size;
  size.segment_bytes = 3000;
  size.index_interval_bytes = 300;
  size.segment_ms = kNever;
  PartitionSettings time;
  time.segment_ms = 60'000;
  time.index_interval_bytes = 300;
  PartitionSettings full;
  full.segment_index_bytes = 40;
  full.index_interval_bytes = 100;
  full.segment_ms = kNever;
  PartitionSettings append_time;
  append_time.timestamp_type = TimestampType::kLogAppendTime;
  append_time.segment_bytes = 3000;
  append_time.index_interval_bytes = 300;
  PartitionSettings lz4;
  lz4.segment_bytes = 2000;
  lz4.index_interval_bytes = 0;
  lz4.segment_ms = kNever;
  return {{"size", size},
          {"time", time},
          {"index-full", full},
          {"logappendtime", append_time},
          {"lz4", lz4}};
}

class Rolls : public ::testing::TestWithParam<RollsCase> {
 protected:
  void SetUp() override {
    expected_ = testing::json_of("rolls/" + GetParam().name + "/expected.json");
    log_.options.settings = GetParam().settings;
    log_.options.leader_epoch = LeaderEpoch(0);
  }

  std::string kafka_file(const std::string& name) const {
    return testing::file_text(posix_file_system(),
                              testing::data_folder("rolls/" + GetParam().name + "/" + name));
  }

  // The batch as a client sends it: no offset, no epoch.
  SharedBytes sent(const nlohmann::json& batch) const {
    const std::string file = kafka_file(batch["segment"]);
    SharedBytes bytes = SharedBytes::copy_of(ByteView(file).substr(
        batch["position"].get<std::size_t>(), batch["size"].get<std::size_t>()));
    stamp_offset(bytes.data(), Offset(0), kNoLeaderEpoch);
    return bytes;
  }

  void append(Partition& partition, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      const nlohmann::json& batch = expected_["batches"][i];
      log_.clock.set_now(batch["maxTimestamp"].get<Timestamp>());
      const Result<Partition::Appended> appended =
          partition.append(sent(batch), AppendOrigin::kClient);
      ASSERT_TRUE(appended.ok()) << appended.error().to_string();
      ASSERT_EQ(appended->base_offset.value(), batch["baseOffset"].get<std::int64_t>());
      ASSERT_EQ(appended->next_offset.value(), batch["lastOffset"].get<std::int64_t>() + 1);
    }
  }

  void expect_kafka_files(bool with_last_index) {
    for (const nlohmann::json& base : expected_["segments"]) {
      for (const std::string_view suffix : {kLogSuffix, kOffsetIndexSuffix, kTimeIndexSuffix}) {
        const std::string name = segment_file_name(Offset(base.get<std::int64_t>()), suffix);
        const bool last = base == expected_["segments"].back();
        if (last && suffix != kLogSuffix && !with_last_index) {
          continue;
        }
        EXPECT_EQ(testing::file_text(disk_, join_path(testing::kFolder, name)), kafka_file(name))
            << name;
      }
    }
  }

  void expect_kafka_answers(LocalPartition& partition) {
    for (const nlohmann::json& lookup : expected_["offsetLookups"]) {
      const Offset offset(lookup["offset"].get<std::int64_t>());
      SCOPED_TRACE(offset.value());
      const std::shared_ptr<Segment> segment = segment_of(partition, offset);
      EXPECT_EQ(segment_file_name(segment->base_offset(), kLogSuffix), lookup["segment"]);
      const auto entry = segment->index_entry(offset);
      ASSERT_TRUE(entry.ok());
      const OffsetIndex::Entry found =
          entry->value_or(OffsetIndex::Entry{segment->base_offset(), 0});
      EXPECT_EQ(found.last_offset.value(), lookup["indexOffset"].get<std::int64_t>());
      EXPECT_EQ(found.position, lookup["indexPosition"].get<std::uint64_t>());
      const auto position = segment->locate(offset);
      ASSERT_TRUE(position.ok());
      EXPECT_EQ(*position, lookup["batchPosition"].get<std::uint64_t>());
      const Result<FetchResult> read = partition.read(offset, 1);
      ASSERT_TRUE(read.ok()) << read.error().to_string();
      ASSERT_EQ(read->batches.size(), 1U);
      EXPECT_EQ(read->batches[0].header.base_offset.value(),
                lookup["batchBaseOffset"].get<std::int64_t>());
      EXPECT_EQ(read->batches[0].bytes.bytes.size(), lookup["batchSize"].get<std::size_t>());
    }
    for (const nlohmann::json& question : expected_["offsetsForTimes"]) {
      const auto answer = partition.offset_for_time(question["time"].get<Timestamp>());
      ASSERT_TRUE(answer.ok()) << answer.error().to_string();
      EXPECT_EQ(*answer ? nlohmann::json((*answer)->value()) : nlohmann::json(), question["offset"])
          << question["time"];
    }
  }

  static std::shared_ptr<Segment> segment_of(LocalPartition& partition, Offset offset) {
    std::shared_ptr<Segment> found;
    for (const std::shared_ptr<Segment>& segment : partition.segments()) {
      if (segment->base_offset() <= offset) {
        found = segment;
      }
    }
    return found;
  }

  nlohmann::json expected_;
  weir::testing::MemoryFileSystem disk_;
  LogOnDisk log_{disk_};
};

TEST_P(Rolls, WritesKafkasBytesWhenItAppendsTheSameBatches) {
  LocalPartition& partition = log_.open();
  append(partition, 0, expected_["batches"].size());
  ASSERT_TRUE(partition.close().ok());

  expect_kafka_files(true);
  EXPECT_EQ(testing::file_text(disk_, join_path(testing::kFolder, "leader-epoch-checkpoint")),
            kafka_file("leader-epoch-checkpoint"));
}

TEST_P(Rolls, WritesKafkasBytesAlsoAcrossACrash) {
  const std::size_t half = expected_["batches"].size() / 2;
  append(log_.open(), 0, half);
  log_.close_all();
  disk_.process_crash();
  LocalPartition& partition = log_.reopen(false);
  append(partition, half, expected_["batches"].size());
  ASSERT_TRUE(partition.close().ok());

  expect_kafka_files(true);
}

TEST_P(Rolls, AnswersLookupsAsKafkaWhileOpenAndAfterwards) {
  append(log_.open(), 0, expected_["batches"].size());
  testing::wait_for(*log_.shared(), Offset(expected_["logEndOffset"].get<std::int64_t>()));
  expect_kafka_answers(*log_.shared());
  ASSERT_TRUE(log_.shared()->close().ok());
  expect_kafka_answers(log_.reopen(true));
  log_.close_all();
  disk_.process_crash();
  expect_kafka_answers(log_.reopen(false));
}

TEST_P(Rolls, AnswersLookupsOverKafkasOwnFilesWithoutWritingAnything) {
  testing::copy_folder("rolls/" + GetParam().name, disk_);
  const std::uint64_t before = disk_.operations();
  log_.options.read_only = true;
  LocalPartition& partition = log_.open();
  ASSERT_TRUE(partition.refresh(Offset(0), partition.offsets().log_end).ok());

  EXPECT_EQ(partition.offsets().log_end.value(), expected_["logEndOffset"].get<std::int64_t>());
  expect_kafka_answers(partition);
  EXPECT_EQ(disk_.operations(), before);
}

TEST_P(Rolls, TrustsKafkasIndexesAfterACleanClose) {
  testing::copy_folder("rolls/" + GetParam().name, disk_);
  LocalPartition& partition = log_.reopen(true);
  expect_kafka_answers(partition);
  std::uint32_t rebuilt = partition.recovery().indexes_rebuilt;
  for (const std::shared_ptr<Segment>& segment : partition.segments()) {
    rebuilt += segment->indexes_rebuilt();
  }

  EXPECT_EQ(rebuilt, 0U);
  EXPECT_FALSE(partition.recovery().scanned);
}

TEST_P(Rolls, FindsKafkasIndexesRightWhenItRecovers) {
  testing::copy_folder("rolls/" + GetParam().name, disk_);
  LocalPartition& partition = log_.reopen(false);

  EXPECT_TRUE(partition.recovery().scanned);
  EXPECT_EQ(partition.recovery().indexes_rebuilt, 0U);
  EXPECT_EQ(partition.recovery().truncated_bytes, 0U);
  expect_kafka_answers(partition);
}

INSTANTIATE_TEST_SUITE_P(Kafka, Rolls, ::testing::ValuesIn(rolls_cases()), [](const auto& param) {
  std::string name = param.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace weir::log
