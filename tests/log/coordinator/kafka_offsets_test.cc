// Reads `__consumer_offsets` partitions that Apache Kafka 4.3.1 wrote
// (tests/data/log/offsets-topic).
#include "log/coordinator/group_offsets.h"
#include "tests/support/json_text.h"

#include <weir/runtime/clock.h>
#include <weir/runtime/file_system.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace weir::log {
namespace {

using Json = nlohmann::json;

// The two recorded partitions; topics have no ids here, so every commit counts.
class RecordedOffsets : public OffsetsTopic {
 public:
  explicit RecordedOffsets(std::string folder = "offsets-topic") : folder_(std::move(folder)) {}
  std::int32_t partition_count() override { return 2; }
  Status ensure_exists() override { return {}; }
  Result<std::shared_ptr<Partition>> open(PartitionId partition) override {
    Partition::OpenOptions options;
    options.name = {"__consumer_offsets", partition};
    options.path = std::string(WEIR_TEST_DATA) + "/log/" + folder_ + "/" + options.name.to_string();
    options.read_only = true;
    const Partition::Environment environment{posix_file_system(), system_clock()};
    WEIR_TRY_ASSIGN(std::shared_ptr<Partition> log,
                    Partition::open(environment, std::move(options)));
    const PartitionOffsets at = log->offsets();
    WEIR_TRY(log->refresh(at.log_start, at.log_end));
    return log;
  }
  Uuid topic_id(const std::string& topic) override {
    const auto found = ids.find(topic);
    return found == ids.end() ? Uuid{} : found->second;
  }
  std::map<std::string, Uuid> ids;

 private:
  const std::string folder_;
};

TEST(GroupOffsets, ReadsWhatKafkaCommitted) {
  std::ifstream file(std::string(WEIR_TEST_DATA) + "/log/offsets-topic/expected.json");
  const Json expected = Json::parse(file);
  RecordedOffsets topic;
  // The ids that Kafka wrote beside the offsets.
  for (const char* name : {"decoded __consumer_offsets-0", "decoded __consumer_offsets-1"}) {
    for (const Json& record : expected[name]) {
      const Json* data =
          record.contains("value") && record["value"].is_object() ? &record["value"] : nullptr;
      if (data != nullptr && data->contains("data")) {
        data = &(*data)["data"];
      }
      const Json* key = &record["key"];
      if (key->is_object() && key->contains("data")) {
        key = &(*key)["data"];
      }
      if (data != nullptr && data->contains("topicId") && key->contains("topic")) {
        topic.ids[(*key)["topic"].get<std::string>()] =
            Uuid::parse((*data)["topicId"].get<std::string>()).value();
      }
    }
  }
  GroupOffsets offsets(topic, system_clock());
  std::size_t checked = 0;
  for (const auto& [group, commits] : expected["committedOffsets"].items()) {
    const auto all = offsets.all_committed(group);
    ASSERT_TRUE(all.ok()) << all.error().to_string();
    EXPECT_EQ(all->size(), commits.size()) << group;
    for (const Json& commit : commits) {
      const TopicPartition one[] = {
          {commit["topic"], PartitionId(commit["partition"].get<std::int32_t>())}};
      const auto found = offsets.committed(group, one);
      ASSERT_TRUE(found.ok()) << found.error().to_string();
      ASSERT_TRUE((*found)[0].has_value()) << group << " " << commit.dump();
      EXPECT_EQ((*found)[0]->offset.value(), commit["offset"]) << group;
      EXPECT_EQ((*found)[0]->metadata, commit["metadata"]) << group;
      const std::int32_t epoch =
          commit["leaderEpoch"].is_null() ? -1 : commit["leaderEpoch"].get<std::int32_t>();
      EXPECT_EQ((*found)[0]->leader_epoch.value(), epoch) << group;
      ++checked;
    }
  }
  EXPECT_GT(checked, 10U);
  const TopicPartition nothing[] = {{"words", PartitionId(0)}};
  EXPECT_FALSE(offsets.committed("g-deleted", nothing).value()[0].has_value());
  std::vector<std::string> with_offsets;
  for (const auto& [group, commits] : expected["committedOffsets"].items()) {
    if (!commits.empty()) {
      with_offsets.push_back(group);
    }
  }
  EXPECT_EQ(offsets.groups().value(), with_offsets);
}

// What Kafka's group tool said of each (`groupOffsets` of the recorded case): one transaction
// committed offset 4, one aborted offset 9; the last has no record but its offsets.
TEST(GroupOffsets, ReadsWhatKafkasTransactionsCommitted) {
  const TopicPartition simple{"txn-simple", PartitionId(0)};
  for (const char* version : {"0", "1", "2"}) {
    SCOPED_TRACE(version);
    RecordedOffsets topic(std::string("producers/transactions-tv") + version);
    GroupOffsets offsets(topic, system_clock());
    EXPECT_EQ(offsets.all_committed("txn-group").value(),
              (std::vector<PartitionOffset>{
                  {simple, {Offset(4), LeaderEpoch(0), "committed with the transaction"}}}));
    EXPECT_EQ(offsets.committed("txn-group-2", {&simple, 1}, true).value(),
              (std::vector<std::optional<CommittedOffset>>{
                  CommittedOffset{Offset(7), kNoLeaderEpoch, ""}}));
  }
}

TEST(GroupOffsets, FindsEveryGroupInThePartitionWhereKafkaPutIt) {
  std::ifstream file(std::string(WEIR_TEST_DATA) + "/log/offsets-topic/expected.json");
  const Json expected = Json::parse(file);
  for (const auto& [group, partition] : expected["groupPartition"].items()) {
    EXPECT_EQ(partition_for_group(group, 2).value(), partition) << group;
  }
}

}  // namespace
}  // namespace weir::log
