#include "log/partition/checkpoint_file.h"
#include "log/partition/partition_folder.h"
#include "tests/log/stored/stored_support.h"
#include "tests/support/json_text.h"

// Folders that Apache Kafka 4.3.1 wrote, and what its consumer gave of them (tests/data/log).

namespace weir::log {
namespace {

using testing::Json;
using testing::Ranges;

struct StoredCase {
  std::string name;      // of the folder that is opened, under tests/data/log
  std::string expected;  // file with {"partitions": [..]}, or one partition
};

void PrintTo(const StoredCase& one, std::ostream* out) {
  *out << one.name;
}

std::vector<StoredCase> all_cases() {
  std::vector<StoredCase> cases;
  const auto add = [&](const std::string& name) {
    cases.push_back({name, name + "/expected.json"});
  };
  for (const char* name :
       {"gzip", "gzip-level-1", "gzip-level-9", "lz4", "lz4-level-1", "lz4-level-17",
        "lz4-logappendtime", "mixed", "none", "none-logappendtime", "recompressed-none-to-zstd",
        "recompressed-snappy-to-none", "snappy", "zstd", "zstd-level-1", "zstd-level-22",
        "zstd-level-minus-5"}) {
    add(std::string("codecs/") + name);
  }
  for (const char* name : {"transactions-tv0",
                           "transactions-tv0-open-live",
                           "transactions-tv0-open-stopped",
                           "transactions-tv1",
                           "transactions-tv1-open-live",
                           "transactions-tv1-open-stopped",
                           "transactions-tv2",
                           "transactions-tv2-open-live",
                           "transactions-tv2-open-stopped",
                           "compaction-before",
                           "compaction-after-pass-1",
                           "compaction-after-pass-2",
                           "compaction-after-pass-3",
                           "epochs-1-live",
                           "epochs-2-stopped",
                           "epochs-3-restarted-live",
                           "epochs-4-stopped-after-an-empty-epoch",
                           "epochs-5-killed",
                           "epochs-6-stopped-after-recovery",
                           "idempotent-after-first-stop",
                           "idempotent-after-kill-and-third-stop",
                           "idempotent-after-second-stop"}) {
    add(std::string("stored/") + name);
  }
  for (const char* name : {"codec-gzip-0", "compact-idem-0", "compact-txn-0", "rolls-lz4-0",
                           "txn-interleaved-0", "txn-multi-1", "txn-segments-0"}) {
    cases.push_back({std::string("dump/") + name, std::string("dump/") + name + ".json"});
  }
  add("edge-batches");
  add("offsets-topic");
  return cases;
}

class StoredCases : public ::testing::TestWithParam<StoredCase> {
 protected:
  std::vector<Json> partitions() const {
    const Json json = testing::stored_json(GetParam().expected);
    if (!json.contains("partitions")) {
      return {json};
    }
    return json["partitions"].get<std::vector<Json>>();
  }
};

Ranges ranges_of(const std::vector<Json>& records) {
  Ranges ranges;
  for (const Json& record : records) {
    const auto offset = record["offset"].get<std::int64_t>();
    if (!ranges.empty() && ranges.back().second + 1 == offset) {
      ranges.back().second = offset;
    } else {
      ranges.emplace_back(offset, offset);
    }
  }
  return ranges;
}

// The recorded records, those in `ranges` from `start` on.
std::vector<Json> recorded(const Json& partition, const Ranges& ranges, std::int64_t start) {
  std::vector<Json> records;
  for (Json record : partition["records"]) {
    record.erase("sequence");
    const auto offset = record["offset"].get<std::int64_t>();
    if (offset >= start && testing::holds(ranges, offset)) {
      records.push_back(std::move(record));
    }
  }
  return records;
}

TEST_P(StoredCases, GiveTheRecordsAndOffsetsThatKafkaGave) {
  for (const IsolationLevel isolation :
       {IsolationLevel::kReadUncommitted, IsolationLevel::kReadCommitted}) {
    const bool committed = isolation == IsolationLevel::kReadCommitted;
    SCOPED_TRACE(committed ? "read_committed" : "read_uncommitted");
    const std::string path = testing::stored_data(GetParam().name);
    auto log = testing::open_stored(path, isolation);
    ASSERT_NE(log, nullptr);
    // Of a folder whose broker could not be asked.
    OffsetCheckpoint starts =
        read_offset_checkpoint(posix_file_system(), join_path(path, "log-start-offset-checkpoint"))
            .value();
    for (const Json& partition : partitions()) {
      const std::string folder = partition["folder"];
      SCOPED_TRACE(folder);
      const TopicPartition name = parse_partition_folder(folder).value();
      const std::int64_t start = partition.value("logStartOffset", starts[name].value());
      const char* key = committed ? "readCommitted" : "readUncommitted";
      if (committed && !partition.contains(key)) {
        continue;  // not recorded
      }
      const Ranges all = ranges_of(partition["records"].get<std::vector<Json>>());
      const Ranges expected = partition.contains(key) ? partition[key].get<Ranges>() : all;

      const Result<PartitionOffsets> at = log->admin().offsets(name);
      ASSERT_TRUE(at.ok()) << at.error().to_string();
      const testing::ReadStored read = testing::read_stored(*log, name);
      ASSERT_TRUE(read.status.ok()) << read.status.error().to_string();

      EXPECT_EQ(read.records, recorded(partition, expected, start));
      EXPECT_EQ(at->log_start.value(), start);
      const std::int64_t end = partition.value("nextOffsetInFiles", at->log_end.value());
      EXPECT_EQ(at->log_end.value(), std::max(end, start));  // -1: no batch
      if (partition.contains("lastStableOffset")) {
        EXPECT_EQ(at->last_stable.value(), partition["lastStableOffset"].get<std::int64_t>());
      }
      EXPECT_EQ(at->high_watermark, committed ? at->last_stable : at->log_end);
      const StoredPartitionReport report = log->report(name).value();
      EXPECT_TRUE(report.lost.empty()) << report.lost.front().what;
      EXPECT_TRUE(report.transactions.empty());
    }
  }
}

TEST_P(StoredCases, NameTopicsByTheirFoldersAndIds) {
  auto log = testing::open_stored(testing::stored_data(GetParam().name));
  ASSERT_NE(log, nullptr);
  for (const Json& partition : partitions()) {
    const TopicPartition name = parse_partition_folder(std::string(partition["folder"])).value();
    const Result<TopicDescription> topic = log->admin().describe_topic(name.topic);
    ASSERT_TRUE(topic.ok()) << topic.error().to_string();
    EXPECT_GT(topic->partitions, name.partition.value());
    const std::string folder = log->report(name).value().folder;
    if (path_exists(posix_file_system(), join_path(folder, "partition.metadata"))) {
      EXPECT_EQ(topic->id.to_string(), partition["partitionMetadata"]["topicId"]);
    }
    EXPECT_FALSE(topic->id.is_zero());
  }
}

TEST_P(StoredCases, AnswerForEpochsAsTheBrokerDid) {
  const Json json = testing::stored_json(GetParam().expected);
  if (!json.contains("offsetForLeaderEpoch")) {
    return;
  }
  auto log = testing::open_stored(testing::stored_data(GetParam().name));
  ASSERT_NE(log, nullptr);
  for (const auto& [folder, answers] : json["offsetForLeaderEpoch"].items()) {
    const TopicPartition name = parse_partition_folder(folder).value();
    for (const Json& answer : answers) {
      const auto epoch = answer["requestedEpoch"].get<std::int32_t>();
      const auto end = answer["endOffset"].get<std::int64_t>();
      if (epoch < 0) {
        continue;
      }
      const auto ours = log->admin().epoch_end_offset(name, LeaderEpoch(epoch));
      ASSERT_TRUE(ours.ok());
      EXPECT_EQ(ours->has_value() ? (*ours)->value() : -1, end) << folder << " epoch " << epoch;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kafka, StoredCases, ::testing::ValuesIn(all_cases()), [](const auto& one) {
  std::string name = one.param.name;
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
});

class StoredRolls : public ::testing::TestWithParam<const char*> {};

// offsetsForTimes of the recordings.
TEST_P(StoredRolls, FindByTimeAsKafkaDid) {
  const std::string name = std::string("rolls/") + GetParam();
  const Json json = testing::stored_json(name + "/expected.json");
  auto log = testing::open_stored(testing::stored_data(name));
  ASSERT_NE(log, nullptr);
  const TopicPartition partition{GetParam(), PartitionId(0)};

  ASSERT_FALSE(json["offsetsForTimes"].empty());
  for (const Json& asked : json["offsetsForTimes"]) {
    const auto found = log->admin().offset_for_time(partition, asked["time"].get<Timestamp>());
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    const Json ours = found->has_value() ? Json((*found)->value()) : Json();
    EXPECT_EQ(ours, asked["offset"]) << asked;
  }
}

INSTANTIATE_TEST_SUITE_P(Kafka, StoredRolls,
                         ::testing::Values("index-full", "logappendtime", "lz4", "size", "time"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace weir::log
