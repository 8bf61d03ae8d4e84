#include "log/record/batch_header.h"
#include "tests/log/stored/stored_support.h"
#include "tests/support/log_fixture.h"

#include <weir/log/consumer.h>
#include <weir/runtime/rng.h>

#include <algorithm>

// Random damage to a folder of Kafka's: what is given is right, what is missing is reported.

namespace weir::log {
namespace {

using testing::Json;
using weir::testing::MemoryFileSystem;

const TopicPartition kName{"t", PartitionId(0)};
constexpr const char* kFolder = "kafka/t-0";

struct Batch {
  std::string path;
  std::uint64_t position = 0;
  std::size_t size = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

// The batches of the undamaged folder.
std::vector<Batch> batches_of(FileSystem& files) {
  std::vector<Batch> batches;
  const auto entries = files.list(kFolder).value();
  for (const DirectoryEntry& entry : entries) {
    if (!entry.name.ends_with(".log")) {
      continue;
    }
    const std::string path = join_path(kFolder, entry.name);
    const std::string bytes = read_file(files, path).value();
    for (std::size_t at = 0; at < bytes.size();) {
      const BatchHeader header = read_batch_header(ByteView(bytes).substr(at)).value();
      batches.push_back({path, at, header.size_bytes(), header.base_offset.value(),
                         header.last_offset().value()});
      at += header.size_bytes();
    }
  }
  return batches;
}

// Changes a byte that the CRC covers, or the length, or the magic. Base offset and leader epoch are
// outside the CRC; their cases are in crash-small.
void flip(FileSystem& files, const Batch& batch, Rng& rng) {
  const auto file = files.open(batch.path, OpenMode::kReadWrite).value();
  std::uint64_t at = 8 + rng.below(batch.size - 8);
  if (at >= 12 && at < 16) {
    at = 8;
  }
  char byte = 0;
  ASSERT_EQ(file->read_at(batch.position + at, {&byte, 1}).value(), 1U);
  byte = static_cast<char>(byte ^ static_cast<char>(1U << rng.below(8)));
  ASSERT_TRUE(file->write_at(batch.position + at, {&byte, 1}).ok());
}

TEST(StoredDamage, GivesEveryBatchThatWasLeftAloneAndReportsTheOthers) {
  const Json expected = testing::stored_json("crash-small/kafka.json")["records"];
  const std::uint64_t seed = entropy_seed();
  Rng rng(seed);
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round));
    MemoryFileSystem files;
    testing::copy_tree(testing::stored_data("crash-small/as-killed"), files, kFolder);
    const std::vector<Batch> batches = batches_of(files);
    std::vector<bool> hit(batches.size());
    for (std::uint64_t n = 1 + rng.below(6); n > 0; --n) {
      const std::size_t i = rng.below(batches.size());
      if (!hit[i]) {
        flip(files, batches[i], rng);
        hit[i] = true;
      }
    }

    auto log = testing::open_stored("kafka", IsolationLevel::kReadCommitted, &files);
    ASSERT_NE(log, nullptr);
    const testing::ReadStored read = testing::read_stored(*log, kName);
    ASSERT_TRUE(read.status.ok()) << read.status.error().to_string();
    const StoredPartitionReport report = log->report(kName).value();

    std::vector<Json> left;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      for (std::int64_t offset = batches[i].first; offset <= batches[i].last; ++offset) {
        const Offset at(offset);
        const bool is_lost =
            std::any_of(report.lost.begin(), report.lost.end(),
                        [at](const LostOffsets& lost) { return lost.from <= at && at < lost.to; });
        EXPECT_EQ(is_lost || at >= report.offsets.log_end, hit[i]) << offset;
        if (!hit[i]) {
          left.push_back(expected[static_cast<std::size_t>(offset)]);
        }
      }
    }
    EXPECT_EQ(read.records, left);
    EXPECT_EQ(!report.tail.empty(), static_cast<bool>(hit.back()));
    if (HasFailure()) {
      return;
    }
  }
}

TEST(StoredDamage, SurvivesAnyBytes) {
  const std::uint64_t seed = entropy_seed();
  Rng rng(seed);
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round));
    MemoryFileSystem files;
    testing::copy_tree(testing::stored_data("whole-directory/1-stopped"), files, "kafka");
    const auto folders = files.list("kafka").value();
    for (const DirectoryEntry& folder : folders) {
      if (folder.kind != FileKind::kDirectory) {
        continue;
      }
      const auto entries = files.list(join_path("kafka", folder.name)).value();
      const std::string& name = entries[rng.below(entries.size())].name;
      const auto file =
          files.open(join_path(join_path("kafka", folder.name), name), OpenMode::kReadWrite)
              .value();
      const std::uint64_t size = file->size().value();
      std::string garbage(1 + rng.below(40), '\0');
      for (char& c : garbage) {
        c = static_cast<char>(rng.below(256));
      }
      ASSERT_TRUE(file->write_at(rng.below(size + 1), garbage).ok());
      if (rng.below(4) == 0) {
        ASSERT_TRUE(file->truncate(rng.below(size + 1)).ok());
      }
    }
    const auto log = StoredLog::open("kafka", {&files, IsolationLevel::kReadCommitted});
    if (!log.ok()) {
      continue;
    }
    const auto topics = (*log)->admin().list_topics().value();
    for (const TopicDescription& topic : topics) {
      for (std::int32_t i = 0; i < std::min(topic.partitions, 4); ++i) {
        const TopicPartition name{topic.name, PartitionId(i)};
        const testing::ReadStored read = testing::read_stored(**log, name);
        if (read.status.ok()) {
          EXPECT_TRUE((*log)->admin().offset_for_time(name, 1'700'000'000'003).ok());
        }
      }
    }
    if (::testing::Test::HasFailure()) {
      return;
    }
  }
}

// --- Lost markers

class LostMarker : public ::testing::Test {
 protected:
  // txn-segments: a transaction from offset 0 on over several segments that was aborted. Returns
  // the offset of its ABORT marker, whose batch is then damaged.
  std::int64_t damage(bool with_index) {
    testing::copy_tree(testing::stored_data("dump/txn-segments-0"), files_, "kafka/txn-segments-0");
    const Json json = testing::stored_json("dump/txn-segments-0.json");
    const Json& aborted = json["abortedTransactions"][0];
    for (const Json& batch : json["batches"]) {
      if (batch["baseOffset"] == aborted["lastOffset"]) {
        const std::string path = "kafka/txn-segments-0/" + batch["segment"].get<std::string>();
        const auto file = files_.open(path, OpenMode::kReadWrite).value();
        const auto at = batch["position"].get<std::uint64_t>() + 30;
        EXPECT_TRUE(file->write_at(at, "\x55").ok());
      }
    }
    if (!with_index) {
      const auto entries = files_.list("kafka/txn-segments-0").value();
      for (const DirectoryEntry& entry : entries) {
        if (entry.name.ends_with(".txnindex")) {
          EXPECT_TRUE(files_.remove_file("kafka/txn-segments-0/" + entry.name).ok());
        }
      }
    }
    first_ = aborted["firstOffset"].get<std::int64_t>();
    committed_ = json["readCommitted"].get<testing::Ranges>();
    return aborted["lastOffset"].get<std::int64_t>();
  }

  MemoryFileSystem files_;
  std::int64_t first_ = 0;
  testing::Ranges committed_;
  const TopicPartition name_{"txn-segments", PartitionId(0)};
};

TEST_F(LostMarker, OfAnAbortIsMadeUpForByTheIndex) {
  const std::int64_t marker = damage(true);
  auto log = testing::open_stored("kafka", IsolationLevel::kReadCommitted, &files_);
  EXPECT_EQ(testing::read_stored(*log, name_).ranges, committed_);
  const StoredPartitionReport report = log->report(name_).value();
  ASSERT_EQ(report.lost.size(), 1U);
  EXPECT_EQ(report.lost.front().from.value(), marker);
  EXPECT_TRUE(report.transactions.empty());
}

TEST_F(LostMarker, WithoutAnIndexLeavesTheRecordsServedAndSaysSo) {
  damage(false);
  auto log = testing::open_stored("kafka", IsolationLevel::kReadCommitted, &files_);
  const testing::ReadStored read = testing::read_stored(*log, name_);
  EXPECT_TRUE(testing::holds(read.ranges, first_));
  for (const auto& [first, last] : committed_) {
    EXPECT_TRUE(testing::holds(read.ranges, first) && testing::holds(read.ranges, last));
  }
  const StoredPartitionReport report = log->report(name_).value();
  ASSERT_EQ(report.transactions.size(), 1U);
  EXPECT_NE(report.transactions.front().find("began at offset " + std::to_string(first_)),
            std::string::npos);
  EXPECT_EQ(report.offsets.high_watermark, report.offsets.log_end);
}

// --- Large partitions: several segments, several runs of batches in each

class LargePartition : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRecords = 1200;

  void SetUp() override {
    world_.open();
    world_.create("t", 1, {{"segment.bytes", "4194304"}});
    auto sink = world_.log->make_sink({.batch_bytes = 40'000}).value();
    const SinkTopicInfo info = sink->open_topic("t").value();
    std::string value(10'000, 'v');
    for (std::int64_t i = 0; i < kRecords; ++i) {
      const RecordRef record{{}, ByteView(value), time_of(i), {}};
      ASSERT_TRUE(sink->send(info.handle, PartitionId(0), {&record, 1}).ok());
    }
    ASSERT_TRUE(sink->flush().ok());
    world_.close();
    log_ = testing::open_stored("data/log", IsolationLevel::kReadCommitted, world_.files.get());
    ASSERT_NE(log_, nullptr);
  }
  Timestamp time_of(std::int64_t offset) const { return world_.clock.now() + 10 * offset; }

  weir::testing::LogFixture world_;
  std::unique_ptr<StoredLog> log_;
};

TEST_F(LargePartition, IsReadFromAnyOffsetByManySources) {
  const std::uint64_t seed = entropy_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  std::vector<std::unique_ptr<RecordSource>> sources;
  std::vector<std::int64_t> next;
  for (int i = 0; i < 6; ++i) {
    SourceOptions options;
    options.partition_bytes_max = 1 + rng.below(200'000);
    sources.push_back(log_->make_source(options).value());
    next.push_back(static_cast<std::int64_t>(rng.below(kRecords)));
    ASSERT_TRUE(sources.back()->assign({kName}).ok());
    ASSERT_TRUE(sources.back()->seek(0, Offset(next.back())).ok());
  }
  for (int polls = 0; polls < 1500; ++polls) {
    const std::size_t i = rng.below(sources.size());
    if (rng.below(20) == 0 || next[i] == kRecords) {
      next[i] = static_cast<std::int64_t>(rng.below(kRecords));
      ASSERT_TRUE(sources[i]->seek(0, Offset(next[i])).ok());
    }
    const auto blocks = sources[i]->poll(Duration::zero()).value();
    ASSERT_FALSE(blocks.empty());
    for (const RecordBlock& block : blocks) {
      ASSERT_TRUE(block.status.ok()) << block.status.error().to_string();
      for (const RecordView& record : block.records) {
        ASSERT_EQ(record.offset.value(), next[i]++);
        ASSERT_EQ(record.timestamp, time_of(record.offset.value()));
      }
    }
  }
}

TEST_F(LargePartition, FindsEveryTime) {
  for (std::int64_t offset = 0; offset < kRecords; offset += 7) {
    EXPECT_EQ(log_->admin().offset_for_time(kName, time_of(offset) - 3).value(), Offset(offset));
  }
  EXPECT_FALSE(log_->admin().offset_for_time(kName, time_of(kRecords)).value().has_value());
}

TEST(StoredConsumer, ReadsAFolderWithoutAGroup) {
  auto log = testing::open_stored(testing::stored_data("whole-directory/2-snapshot"));
  ConsumerOptions options;
  options.auto_offset_reset = "earliest";
  auto consumer = Consumer::open(*log, options).value();
  ASSERT_TRUE(consumer->assign({{"orders", PartitionId(0)}, {"orders", PartitionId(1)}}).ok());
  std::size_t records = 0;
  for (int polls = 0; polls < 10; ++polls) {
    const ConsumerRecords polled = consumer->poll(Duration::zero()).value();
    for (const ConsumerBatch& batch : polled.batches()) {
      records += batch.records.size();
    }
  }
  EXPECT_EQ(records, 17U);
  EXPECT_EQ(consumer->position({"orders", PartitionId(0)}).value(), Offset(15));
}

}  // namespace
}  // namespace weir::log
