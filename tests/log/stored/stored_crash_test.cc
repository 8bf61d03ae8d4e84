#include "log/partition/partition_folder.h"
#include "tests/log/stored/stored_support.h"

// tests/data/log/crash-small: what a folder gives after damage, beside what Kafka 4.3.1 gave.

namespace weir::log {
namespace {

using testing::Json;
using testing::Ranges;

const Json& cases() {
  static const Json json = testing::stored_json("crash-small/cases.json");
  return json;
}

const Json& kafka() {
  static const Json json = testing::stored_json("crash-small/kafka.json");
  return json;
}

const Json& by_name(const Json& list, const std::string& name) {
  for (const Json& one : list) {
    if (one["name"] == name) {
      return one;
    }
  }
  ADD_FAILURE() << "no case " << name;
  return list.front();
}

// What must be readable.
Ranges intact_of(const std::string& name) {
  if (name == "flip-leader-epoch") {
    return {{0, 361}};  // the field is outside the CRC, the records are right
  }
  return by_name(cases()["cases"], name)["intact"].get<Ranges>();
}

// The folders are named as the case, some of them like a partition ("flip-base-offset-256").
TopicPartition partition_of(const std::string& name) {
  return parse_partition_folder(name).value_or(TopicPartition{name, PartitionId(0)});
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const Json& one : cases()["cases"]) {
    result.push_back(one["name"]);
  }
  return result;
}

class StoredCrash : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    log_ = testing::open_stored(testing::stored_data("crash-small/" + GetParam()));
    ASSERT_NE(log_, nullptr);
    name_ = partition_of(GetParam());
    intact_ = intact_of(GetParam());
  }

  std::unique_ptr<StoredLog> log_;
  TopicPartition name_;
  Ranges intact_;
};

TEST_P(StoredCrash, GivesEveryIntactRecordAtItsOffset) {
  std::vector<Json> expected;
  for (const Json& record : kafka()["records"]) {
    if (testing::holds(intact_, record["offset"].get<std::int64_t>())) {
      expected.push_back(record);
    }
  }
  const testing::ReadStored read = testing::read_stored(*log_, name_);
  ASSERT_TRUE(read.status.ok()) << read.status.error().to_string();

  EXPECT_EQ(read.ranges, intact_);
  EXPECT_EQ(read.records, expected);
}

TEST_P(StoredCrash, ReportsEveryOffsetThatIsLost) {
  const StoredPartitionReport report = log_->report(name_).value();

  EXPECT_EQ(report.offsets.log_start.value(), 0);
  EXPECT_EQ(report.offsets.log_end.value(), intact_.back().second + 1);
  Ranges lost;
  for (const LostOffsets& range : report.lost) {
    if (range.from < range.to) {
      lost.emplace_back(range.from.value(), range.to.value() - 1);
      EXPECT_NE(range.what.find(".log"), std::string::npos) << range.what;
    }
  }
  Ranges holes;
  for (std::size_t i = 0; i + 1 < intact_.size(); ++i) {
    holes.emplace_back(intact_[i].second + 1, intact_[i + 1].first - 1);
  }
  EXPECT_EQ(lost, holes);
  const std::string& name = GetParam();
  const bool has_tail = name.starts_with("tail-cut") || name.ends_with("-appended") ||
                        name == "last-batch-twice" || name == "last-4k-zeroed";
  EXPECT_EQ(!report.tail.empty(), has_tail) << report.tail;
}

// A seek to every offset of the second segment, and one before and behind it.
TEST_P(StoredCrash, SeeksToTheFirstIntactRecordAtOrBehindAnOffset) {
  auto source = log_->make_source({}).value();
  ASSERT_TRUE(source->assign({name_}).ok());
  for (std::int64_t offset = 67; offset <= 140; ++offset) {
    std::int64_t expected = offset;
    while (!testing::holds(intact_, expected)) {
      ++expected;
    }
    ASSERT_TRUE(source->seek(0, Offset(offset)).ok());
    std::int64_t got = -1;
    while (got < 0) {
      const auto blocks = source->poll(Duration::zero()).value();
      ASSERT_FALSE(blocks.empty());
      for (const RecordBlock& block : blocks) {
        ASSERT_TRUE(block.status.ok()) << block.status.error().to_string();
        if (got < 0 && !block.records.empty()) {
          got = block.records.front().offset.value();
        }
      }
    }
    EXPECT_EQ(got, expected) << "from " << offset;
  }
}

TEST_P(StoredCrash, FindsTheFirstIntactRecordAtOrAfterATime) {
  for (const Json& asked : cases()["offsetsForTimes"]) {
    const auto time = asked["time"].get<Timestamp>();
    Json expected;
    for (const Json& record : kafka()["records"]) {
      if (expected.is_null() && record["timestamp"].get<Timestamp>() >= time &&
          testing::holds(intact_, record["offset"].get<std::int64_t>())) {
        expected = record["offset"];
      }
    }
    const auto found = log_->admin().offset_for_time(name_, time);
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    EXPECT_EQ(found->has_value() ? Json((*found)->value()) : Json(), expected) << asked;
  }
}

INSTANTIATE_TEST_SUITE_P(Kafka, StoredCrash, ::testing::ValuesIn(names()), [](const auto& one) {
  std::string name = one.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// The difference to Kafka, folder by folder: the records of intact offsets that its consumer was
// not given, those that it was given at offsets that no record ever had, and whether it started at
// all.
struct Difference {
  const char* name;
  bool kafka_serves;
  std::int64_t lost_by_kafka;   // intact records
  std::int64_t wrong_in_kafka;  // offsets that no record ever had
  std::size_t wrong_seeks;
  std::size_t wrong_times;
};

constexpr Difference kDifferences[] = {
    {"flip-base-offset-2-40", false, 360, 0, 0, 0},
    {"flip-base-offset-256", true, 32, 2, 0, 0},
    {"flip-base-offset-low", true, 2, 0, 0, 0},
    {"flip-crc", true, 254, 0, 0, 0},
    {"flip-leader-epoch", true, 0, 0, 0, 0},
    {"flip-magic", true, 254, 0, 0, 0},
    {"flip-old-body", true, 254, 0, 0, 0},
    {"flip-old-body-below-recovery-point", true, 254, 0, 0, 0},
    {"flip-old-body-clean-marker", true, 254, 0, 0, 0},
    {"index-lying-clean-marker", true, 0, 0, 4, 1},
    {"index-position-past-end-clean-marker", true, 0, 0, 4, 1},
    {"last-batch-twice", true, 0, 0, 0, 0},
    {"leader-epoch-garbled", false, 362, 0, 0, 0},
    {"length-negative", true, 254, 0, 0, 0},
    {"length-too-big", true, 254, 0, 0, 0},
    {"middle-segment-missing", true, 0, 0, 0, 0},
    {"only-logs", true, 362, 0, 0, 0},
    {"partition-metadata-missing-clean-marker", true, 362, 0, 0, 0},
    {"timeindex-lying-clean-marker", true, 0, 0, 0, 1},
};

TEST(StoredCrashTable, GivesWhatKafkaLosesOrMisreads) {
  for (const Difference& row : kDifferences) {
    SCOPED_TRACE(row.name);
    const Json& theirs = by_name(kafka()["kafka"], row.name);
    const Ranges intact = intact_of(row.name);
    const Ranges read = theirs["read"].is_null() ? Ranges() : theirs["read"].get<Ranges>();
    std::int64_t lost = 0;
    for (std::int64_t offset = 0; offset <= intact.back().second; ++offset) {
      lost += testing::holds(intact, offset) && !testing::holds(read, offset) ? 1 : 0;
    }
    // Offsets that no record ever had.
    std::int64_t wrong = 0;
    for (const auto& [first, last] : read) {
      for (std::int64_t offset = first; offset <= last; ++offset) {
        wrong += offset > 361 ? 1 : 0;
      }
    }
    EXPECT_EQ(theirs["started"].get<bool>(), row.kafka_serves);
    EXPECT_EQ(lost, row.lost_by_kafka);
    EXPECT_EQ(wrong, row.wrong_in_kafka);
    EXPECT_EQ(theirs.contains("wrongSeeks") ? theirs["wrongSeeks"].size() : 0, row.wrong_seeks);
    EXPECT_EQ(theirs.contains("wrongTimes") ? theirs["wrongTimes"].size() : 0, row.wrong_times);

    auto log = testing::open_stored(testing::stored_data(std::string("crash-small/") + row.name));
    const TopicPartition name = partition_of(row.name);
    const testing::ReadStored ours = testing::read_stored(*log, name);
    EXPECT_TRUE(ours.status.ok());
    EXPECT_EQ(ours.ranges, intact);
  }
}

}  // namespace
}  // namespace weir::log
