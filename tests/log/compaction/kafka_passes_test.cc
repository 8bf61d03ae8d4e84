#include "tests/log/compaction/compaction_support.h"

#include <set>

// tests/data/log/compaction: partitions of a Kafka broker before and after its passes.

namespace weir::log {
namespace {

using testing::kFolder;
using testing::LogOnDisk;
using testing::PassResult;
using testing::SeenLog;
using testing::SeenRecord;

constexpr const char* kTopics[] = {
    "compact-plain",           "compact-lz4",     "compact-idem", "compact-txn",
    "compact-keep-tombstones", "compact-all-gone"};

std::optional<std::string> unhex(const nlohmann::json& text) {
  if (text.is_null()) {
    return std::nullopt;
  }
  const auto hex = text.get<std::string>();
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<SeenRecord> records_of(const nlohmann::json& partition) {
  std::vector<SeenRecord> records;
  for (const nlohmann::json& one : partition["records"]) {
    records.push_back({one[0], one[1], unhex(one[2]), unhex(one[3])});
  }
  return records;
}

using Batch = std::vector<std::int64_t>;
Batch batch_of(const BatchHeader& header) {
  return {header.base_offset.value(),
          header.last_offset().value(),
          header.records_count,
          header.attributes,
          header.max_timestamp,
          header.producer_id.value(),
          header.producer_epoch.value(),
          header.base_sequence,
          header.has_delete_horizon() ? header.base_timestamp : -1};
}
bool marks_an_end(const BatchHeader& header) {
  return header.records_count == 0 && header.producer_id == kNoProducerId;
}

std::vector<std::int64_t> offsets_in(const nlohmann::json& ranges) {
  std::vector<std::int64_t> offsets;
  for (const nlohmann::json& range : ranges) {
    for (std::int64_t offset = range[0]; offset <= range[1]; ++offset) {
      offsets.push_back(offset);
    }
  }
  return offsets;
}

std::vector<std::int64_t> offsets_of(const std::vector<SeenRecord>& records) {
  std::vector<std::int64_t> offsets;
  for (const SeenRecord& record : records) {
    offsets.push_back(record.offset);
  }
  return offsets;
}

class KafkaPasses : public ::testing::TestWithParam<const char*> {
 protected:
  LocalPartition& open(const std::string& image) {
    testing::copy_folder("compaction/" + image + "/" + folder(), disk_);
    expected_ = testing::json_of("compaction/" + image + ".json");
    log_.options.settings.segment_bytes = 1500;
    log_.options.settings.cleanup.compacts = true;
    log_.options.settings.cleanup.deletes = false;
    log_.options.settings.cleanup.min_cleanable_dirty_ratio = 0;
    log_.options.settings.cleanup.delete_retention_ms =
        topic() == "compact-keep-tombstones" ? 86'400'000 : 3000;
    log_.options.clean = true;
    return log_.open();
  }
  std::string topic() const { return GetParam(); }
  std::string folder() const { return topic() + "-0"; }
  const nlohmann::json& partition() const { return expected_["partitions"][folder()]; }
  testing::Table latest_values() const {
    testing::Table table;
    for (const auto& [key, value] : expected_["latestValues"][topic()].items()) {
      table[key] = unhex(value).value();
    }
    return table;
  }
  PassResult pass(Timestamp now, std::optional<Offset> clean_end = std::nullopt,
                  std::size_t map_bytes = 1U << 16U) {
    const auto partition = log_.shared();
    return testing::run_pass(disk_, partition, testing::range_of(*partition, clean_end), now,
                             map_bytes);
  }

  weir::testing::MemoryFileSystem disk_;
  LogOnDisk log_{disk_};
  nlohmann::json expected_;
};

TEST_P(KafkaPasses, ReadsWhatEveryPassLeft) {
  for (const char* image : {"before", "after-pass-1", "after-pass-2", "after-pass-3"}) {
    SCOPED_TRACE(image);
    LocalPartition& log = open(image);
    const SeenLog seen = testing::see(log);
    EXPECT_EQ(log.offsets().log_end.value(), partition()["logEnd"].get<std::int64_t>());
    EXPECT_EQ(seen.last_stable.value(), partition()["lastStable"].get<std::int64_t>());
    EXPECT_EQ(offsets_of(seen.records), offsets_in(partition()["readUncommitted"]));
    EXPECT_EQ(offsets_of(seen.committed), offsets_in(partition()["readCommitted"]));
    EXPECT_EQ(testing::table_of(seen.committed), latest_values());
    EXPECT_EQ(testing::see_committed(log), seen.committed);
    if (partition().contains("records")) {
      EXPECT_EQ(seen.records, records_of(partition()));
      std::vector<Batch> batches;
      for (const BatchHeader& header : seen.batches) {
        batches.push_back(batch_of(header));
      }
      EXPECT_EQ(batches, partition()["batches"].get<std::vector<Batch>>());
    }
    // From every offset on.
    for (std::int64_t from = 0; from < log.offsets().log_end.value(); from += 3) {
      const Result<FetchResult> read = log.read(Offset(from), 1);
      ASSERT_TRUE(read.ok()) << read.error().to_string();
      ASSERT_FALSE(read->batches.empty());
      EXPECT_GT(read->next_offset.value(), from);
    }
    log_.close_all();
    ASSERT_TRUE(remove_tree(disk_, std::string(kFolder)).ok());
  }
}

// Batch for batch what Kafka's own first pass made of the same files at the same time.
TEST_P(KafkaPasses, MakesOfALogWhatKafkasFirstPassMadeOfIt) {
  LocalPartition& log = open("before");
  const nlohmann::json after = testing::json_of("compaction/after-pass-1.json");
  const nlohmann::json& kafka = after["partitions"][folder()];
  Timestamp now = testing::kStart;
  for (const nlohmann::json& batch : kafka["batches"]) {
    const auto horizon = batch[8].get<Timestamp>();
    now = horizon >= 0 ? horizon - log_.options.settings.cleanup.delete_retention_ms : now;
  }
  const PassResult done = pass(now);
  ASSERT_TRUE(done.status.ok()) << done.status.error().to_string();
  EXPECT_EQ(done.clean_end.value(), after["cleanerOffsetCheckpoint"][folder()].get<std::int64_t>());
  EXPECT_EQ(done.horizon, Offset(0));

  const SeenLog seen = testing::see(log);
  EXPECT_EQ(seen.records, records_of(kafka));
  std::vector<Batch> batches;
  for (const BatchHeader& header : seen.batches) {
    if (!marks_an_end(header)) {
      batches.push_back(batch_of(header));
    }
  }
  EXPECT_EQ(batches, kafka["batches"].get<std::vector<Batch>>());
}

TEST_P(KafkaPasses, KeepsTheLatestValuesThroughPassesOfOurs) {
  for (const char* image : {"before", "after-pass-1", "after-pass-2", "after-pass-3"}) {
    SCOPED_TRACE(image);
    LocalPartition* log = &open(image);
    const SeenLog before = testing::see(*log);
    const testing::Table latest = latest_values();
    std::map<std::int64_t, SeenRecord> known;
    for (const SeenRecord& record : before.committed) {
      known[record.offset] = record;
    }
    Timestamp now = 1'796'013'600'000;
    std::optional<Offset> clean_end;
    for (int round = 0; round < 4; ++round) {
      const Offset end = log->offsets().log_end;
      const PassResult done =
          pass(now, round < 2 ? std::nullopt : clean_end, round % 2 == 0 ? 1U << 16U : 700);
      ASSERT_TRUE(done.status.ok()) << done.status.error().to_string();
      clean_end = done.clean_end;
      now += 4000;
      log_.options.recovery_point = end;
      log = &log_.reopen(round % 2 == 0);
      EXPECT_EQ(log->recovery().damaged, std::vector<std::string>());
      EXPECT_EQ(log->offsets().log_end, end);
      const SeenLog seen = testing::see(*log);
      EXPECT_EQ(seen.last_stable, before.last_stable);
      EXPECT_EQ(testing::table_of(seen.committed), latest);
      EXPECT_EQ(testing::see_committed(*log), seen.committed);
      const auto count_below = [&](const std::vector<SeenRecord>& records) {
        return std::count_if(records.begin(), records.end(), [&](const SeenRecord& record) {
          return record.offset < done.clean_end.value();
        });
      };
      EXPECT_EQ(count_below(seen.committed),
                count_below(seen.records));  // what was aborted is gone
      std::set<std::string> below;
      for (const SeenRecord& record : seen.committed) {
        ASSERT_TRUE(known.contains(record.offset));
        EXPECT_EQ(record, known[record.offset]);
        if (record.offset < done.clean_end.value() && round == 0) {
          EXPECT_TRUE(below.insert(record.key.value()).second) << *record.key;
        }
      }
    }
    log_.close_all();
    ASSERT_TRUE(remove_tree(disk_, std::string(kFolder)).ok());
  }
}

TEST_P(KafkaPasses, WritesIndexesThatAnswerAsTheLogDoes) {
  LocalPartition& log = open("before");
  log_.options.settings.index_interval_bytes = 100;
  LocalPartition& dense = log_.reopen(true);
  (void)log;
  ASSERT_TRUE(pass(1'796'013'600'000).status.ok());
  for (const std::shared_ptr<Segment>& segment : dense.segments()) {
    const std::uint32_t rebuilt = segment->indexes_rebuilt();
    ASSERT_TRUE(segment->load_indexes().ok());
    EXPECT_EQ(segment->indexes_rebuilt(), rebuilt) << segment->base_offset().value();
  }
  const SeenLog seen = testing::see(dense);
  for (const SeenRecord& record : seen.records) {
    const auto found = dense.offset_for_time(record.timestamp);
    ASSERT_TRUE(found.ok() && found->has_value());
    EXPECT_LE((*found)->value(), record.offset);
  }
}

INSTANTIATE_TEST_SUITE_P(Kafka, KafkaPasses, ::testing::ValuesIn(kTopics), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace weir::log
