#include "log/metadata/metadata_records.h"
#include "log/record/batch_builder.h"
#include "log/record/wire.h"
#include "tests/log/stored/stored_support.h"
#include "tests/support/json_text.h"
#include "tests/support/log_fixture.h"

#include <weir/runtime/endian.h>

namespace weir::log {
namespace {

using testing::Json;
using weir::testing::LogFixture;
using weir::testing::MemoryFileSystem;

Errc code_of(const Status& status) {
  return status.ok() ? Errc::kInternal : status.error().code();
}

// --- Whole data directories of Kafka

class WholeDirectory : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string folder = std::string("whole-directory/") + GetParam();
    expected_ = testing::stored_json(folder + ".json")["topics"];
    log_ = testing::open_stored(testing::stored_data(folder));
    ASSERT_NE(log_, nullptr);
  }
  Json expected_;
  std::unique_ptr<StoredLog> log_;
};

TEST_P(WholeDirectory, HasTheTopicsIdsAndSettingsOfItsMetadata) {
  std::vector<std::string> names;
  for (const auto& [name, topic] : expected_.items()) {
    names.push_back(name);
    const TopicDescription ours = log_->admin().describe_topic(name).value();
    EXPECT_EQ(ours.id.to_string(), topic["id"]) << name;
    EXPECT_EQ(ours.partitions, topic["partitions"]) << name;
    EXPECT_EQ(ours.internal, topic["internal"]) << name;
    EXPECT_EQ(ours.config, topic["config"].get<TopicConfig>()) << name;
  }
  std::vector<std::string> listed;
  const auto topics = log_->admin().list_topics().value();
  for (const TopicDescription& topic : topics) {
    listed.push_back(topic.name);
  }
  EXPECT_EQ(listed, names);
}

TEST_P(WholeDirectory, GivesTheCommittedRecordsOfEachPartition) {
  for (const auto& [name, topic] : expected_.items()) {
    for (std::size_t i = 0; i < topic["read"].size(); ++i) {
      const Json& partition = topic["read"][i];
      const TopicPartition at{name, PartitionId(static_cast<std::int32_t>(i))};
      const PartitionOffsets offsets = log_->admin().offsets(at).value();
      EXPECT_EQ(offsets.log_start.value(), partition["logStartOffset"]) << at.to_string();
      EXPECT_EQ(offsets.high_watermark.value(), partition["lastStableOffset"]) << at.to_string();
      EXPECT_EQ(offsets.log_end.value(), partition["logEndOffset"]) << at.to_string();
      if (topic["internal"].get<bool>()) {
        continue;
      }
      const testing::ReadStored read = testing::read_stored(*log_, at);
      ASSERT_TRUE(read.status.ok());
      ASSERT_EQ(read.records.size(), partition["values"].size()) << at.to_string();
      for (std::size_t r = 0; r < read.records.size(); ++r) {
        const Json& value = partition["values"][r];
        EXPECT_EQ(read.records[r]["offset"], value[0]);
        EXPECT_EQ(
            read.records[r]["value"],
            Json::parse(bytes_json(NullableBytes(ByteView(value[1].get_ref<const std::string&>())))
                            .dump()));
      }
    }
  }
}

TEST_P(WholeDirectory, SaysWhetherItWasClosedCleanly) {
  std::string notes;
  for (const std::string& note : log_->notes()) {
    notes += note + "\n";
  }
  EXPECT_EQ(notes.find("was not closed cleanly") != std::string::npos,
            std::string_view(GetParam()) == "3-killed")
      << notes;
}

INSTANTIATE_TEST_SUITE_P(Kafka, WholeDirectory,
                         ::testing::Values("1-stopped", "2-snapshot", "3-killed"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class CopiedDirectory : public ::testing::Test {
 protected:
  void copy(const std::string& name) {
    testing::copy_tree(testing::stored_data("whole-directory/" + name), files_, "kafka");
  }
  std::unique_ptr<StoredLog> open(const std::string& path = "kafka") {
    return testing::open_stored(path, IsolationLevel::kReadCommitted, &files_);
  }
  void write(const std::string& path, ByteView bytes, std::uint64_t position = 0) {
    const auto file = files_.open(path, OpenMode::kCreateOrOpen);
    ASSERT_TRUE(file.ok()) << path;
    ASSERT_TRUE((*file)->write_at(position, bytes).ok());
  }
  void write_metadata(const std::vector<std::string>& values) {
    BatchBuilder builder(1U << 20U);
    for (const std::string& value : values) {
      ASSERT_TRUE(builder.append(RecordRef{{}, ByteView(value), 1, {}}));
    }
    SharedBytes batch = builder.seal();
    stamp_offset(batch.data(), Offset(0), LeaderEpoch(1));
    ASSERT_TRUE(files_.create_directories("kafka/__cluster_metadata-0").ok());
    write("kafka/__cluster_metadata-0/00000000000000000000.log", batch.view());
  }
  std::uint64_t size_of(const std::string& path) { return files_.info(path).value().size; }
  static std::string notes_of(const StoredLog& log) {
    std::string notes;
    for (const std::string& note : log.notes()) {
      notes += note + "\n";
    }
    return notes;
  }

  MemoryFileSystem files_;
};

TEST_F(CopiedDirectory, FallsBackToTheOlderSnapshotWhenTheNewestIsDamaged) {
  copy("2-snapshot");
  const std::string newest =
      "kafka/__cluster_metadata-0/00000000000000000155-0000000002.checkpoint";
  write(newest, "\xff\xff\xff", size_of(newest) / 2);
  auto log = open();
  ASSERT_NE(log, nullptr);

  EXPECT_EQ(log->admin().describe_topic("orders")->partitions, 3);
  EXPECT_EQ(log->admin().describe_topic("late")->id.to_string(), "FRYgBcseQS6iH_sO9gK6hA");
  EXPECT_NE(notes_of(*log).find("snapshot not used"), std::string::npos);
}

TEST_F(CopiedDirectory, GoesByTheFoldersWhenTheMetadataCannotBeRead) {
  copy("2-snapshot");
  const auto listing = files_.list("kafka/__cluster_metadata-0").value();
  for (const DirectoryEntry& entry : listing) {
    if (entry.name.ends_with(".checkpoint")) {
      ASSERT_TRUE(files_.remove_file("kafka/__cluster_metadata-0/" + entry.name).ok());
    }
  }
  auto log = open();
  ASSERT_NE(log, nullptr);

  EXPECT_EQ(log->admin().describe_topic("orders")->id.to_string(), "wqwhf1MZQQe_2SlY9gg3jA");
  EXPECT_EQ(log->admin().describe_topic("orders")->partitions, 3);
  EXPECT_TRUE(log->admin().describe_topic("orders")->config.empty());
  EXPECT_NE(notes_of(*log).find("topics come from the names of the folders"), std::string::npos);
}

TEST_F(CopiedDirectory, LeavesOutWhatIsLeftOfDeletedTopics) {
  Uuid id;
  id.bytes.back() = 7;
  write_metadata({encode_metadata_record(TopicMetadataRecord{"gone", id}),
                  encode_metadata_record(RemoveTopicMetadataRecord{id})});
  testing::copy_tree(testing::stored_data("crash-small/only-logs"), files_, "kafka/gone-0");
  write("kafka/gone-0/partition.metadata", "version: 0\ntopic_id: " + id.to_string());
  auto log = open();
  ASSERT_NE(log, nullptr);

  EXPECT_EQ(code_of(log->admin().describe_topic("gone").status()), Errc::kUnknownTopic);
  EXPECT_NE(notes_of(*log).find("of a topic that was deleted"), std::string::npos);
}

TEST_F(CopiedDirectory, LeavesOutTheFolderOfAnEarlierTopicOfThatName) {
  copy("1-stopped");
  write("kafka/again-0/partition.metadata", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAIA");
  auto log = open();
  ASSERT_NE(log, nullptr);

  EXPECT_TRUE(testing::read_stored(*log, {"again", PartitionId(0)}).records.empty());
  EXPECT_NE(notes_of(*log).find("left out: kafka/again-0"), std::string::npos);
}

TEST_F(CopiedDirectory, TakesAFolderThatTheMetadataDoesNotKnowForATopic) {
  copy("1-stopped");
  testing::copy_tree(testing::stored_data("crash-small/only-logs"), files_, "kafka/stray-1");
  auto log = open();
  ASSERT_NE(log, nullptr);

  EXPECT_EQ(log->admin().describe_topic("stray")->partitions, 2);
  EXPECT_EQ(testing::read_stored(*log, {"stray", PartitionId(1)}).ranges,
            (testing::Ranges{{0, 361}}));
  EXPECT_TRUE(testing::read_stored(*log, {"stray", PartitionId(0)}).records.empty());
}

// Metadata transactions and records of a later Kafka.
TEST_F(CopiedDirectory, PassesOverUnknownMetadataRecordsAndAbortedTransactions) {
  const auto record = [](std::uint32_t type) {
    WireWriter out;
    for (const std::uint32_t field : {std::uint32_t{1}, type, std::uint32_t{0}, std::uint32_t{0}}) {
      out.uvarint(field);
    }
    return std::string(out.bytes());
  };
  const auto topic = [](const std::string& name, std::uint8_t id) {
    Uuid uuid;
    uuid.bytes.back() = id;
    return encode_metadata_record(TopicMetadataRecord{name, uuid});
  };
  write_metadata({topic("first", 7), record(99), record(23), topic("aborted", 8), record(25),
                  record(23), topic("second", 9), record(24), record(23), topic("unfinished", 10)});
  auto log = open();
  ASSERT_NE(log, nullptr);

  std::vector<std::string> names;
  const auto topics = log->admin().list_topics().value();
  for (const TopicDescription& one : topics) {
    names.push_back(one.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"first", "second"}));
}

// --- Other folders

TEST_F(CopiedDirectory, ReadsOnePartitionFolderUnderAnyName) {
  const std::string from = testing::stored_data("crash-small/only-logs");
  for (const auto& [path, topic, partition] :
       {std::tuple{"x/orders-2", "orders", 2}, std::tuple{"x/copy", "copy", 0},
        std::tuple{"x/orders-2/", "orders", 2}}) {
    SCOPED_TRACE(path);
    testing::copy_tree(from, files_, path);
    auto log = open(path);
    ASSERT_NE(log, nullptr);
    EXPECT_EQ(log->admin().describe_topic(topic)->partitions, partition + 1);
    EXPECT_EQ(testing::read_stored(*log, {topic, PartitionId(partition)}).ranges,
              (testing::Ranges{{0, 361}}));
  }
}

TEST_F(CopiedDirectory, GivesTheSameIdToEveryCopyOfATopicWithoutOne) {
  testing::copy_tree(testing::stored_data("crash-small/only-logs"), files_, "a/orders-0");
  testing::copy_tree(testing::stored_data("crash-small/only-logs"), files_, "b/orders-0");
  testing::copy_tree(testing::stored_data("codecs/none/codec-none-0"), files_, "c/orders-0");

  const Uuid id = open("a")->admin().describe_topic("orders")->id;
  EXPECT_FALSE(id.is_zero());
  EXPECT_EQ(open("b/orders-0")->admin().describe_topic("orders")->id, id);
  EXPECT_NE(open("c")->admin().describe_topic("orders")->id, id);
}

TEST_F(CopiedDirectory, TakesCheckpointFilesOfZeroBytesForNoEntries) {
  testing::copy_tree(testing::stored_data("crash-small/only-logs"), files_, "kafka/orders-0");
  for (const char* name : {"log-start-offset-checkpoint", "cleaner-offset-checkpoint",
                           "recovery-point-offset-checkpoint"}) {
    write(std::string("kafka/") + name, "");
  }
  write("kafka/orders-0/leader-epoch-checkpoint", "");
  write("kafka/orders-0/partition.metadata", "");
  auto log = open();
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(testing::read_stored(*log, {"orders", PartitionId(0)}).ranges,
            (testing::Ranges{{0, 361}}));
}

TEST_F(CopiedDirectory, StartsWhereRecordsWereDeletedTo) {
  testing::copy_tree(testing::stored_data("crash-small/only-logs"), files_, "kafka/orders-0");
  write("kafka/log-start-offset-checkpoint", "0\n1\norders 0 100\n");
  auto log = open();
  const TopicPartition name{"orders", PartitionId(0)};
  EXPECT_EQ(testing::read_stored(*log, name).ranges, (testing::Ranges{{100, 361}}));
  EXPECT_EQ(code_of(testing::read_stored(*log, name, 99).status), Errc::kOffsetOutOfRange);
  EXPECT_EQ(log->admin().offset_for_time(name, 0).value(), Offset(100));
}

TEST_F(CopiedDirectory, SaysWhatToNameWhenThereIsNoPartition) {
  ASSERT_TRUE(files_.create_directories("empty/x").ok());
  const auto open = [this](const std::string& path) {
    const auto opened = StoredLog::open(path, {&files_, IsolationLevel::kReadCommitted});
    return opened.ok() ? std::string() : opened.error().to_string();
  };
  EXPECT_NE(open("nowhere").find("there is no folder nowhere"), std::string::npos);
  EXPECT_NE(open("empty").find("one partition folder"), std::string::npos) << open("empty");
  ASSERT_TRUE(files_.create_directories("data/log").ok());
  write("data/log/meta.properties", "version=1\n");
  EXPECT_NE(open("data").find("data/log looks like what you mean"), std::string::npos)
      << open("data");
}

TEST_F(CopiedDirectory, NamesTheTopicsThatThereAre) {
  copy("1-stopped");
  auto log = open();
  const std::string text = log->admin().describe_topic("order").error().to_string();
  EXPECT_NE(text.find("again, compacted, empty, orders, with-dash-7"), std::string::npos) << text;
}

class OldMagic : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(OldMagic, IsRefusedWithTheFileAndTheMagic) {
  const auto& [folder, magic] = GetParam();
  auto log = testing::open_stored(testing::stored_data(std::string("stored/old-magic/") + folder));
  ASSERT_NE(log, nullptr);
  const TopicPartition name{log->admin().list_topics()->front().name, PartitionId(0)};

  const Result<PartitionOffsets> offsets = log->admin().offsets(name);
  ASSERT_FALSE(offsets.ok());
  EXPECT_EQ(offsets.error().code(), Errc::kUnsupported);
  EXPECT_NE(offsets.error().message().find(magic), std::string::npos) << offsets.error().message();
  EXPECT_NE(offsets.error().message().find("00000000000000000000.log"), std::string::npos);

  auto source = log->make_source({}).value();
  ASSERT_TRUE(source->assign({name}).ok());
  ASSERT_TRUE(source->seek(0, Offset(0)).ok());
  const auto blocks = source->poll(Duration::zero()).value();
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(code_of(blocks.front().status), Errc::kUnsupported);
}

INSTANTIATE_TEST_SUITE_P(Kafka, OldMagic,
                         ::testing::Values(std::pair{"old-v0-none-0", "magic 0"},
                                           std::pair{"old-v1-gzip-0", "magic 1"},
                                           std::pair{"old-v1-then-v2-0", "magic 1"}),
                         [](const auto& one) {
                           std::string name = one.param.first;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// --- What it must never do

TEST_F(CopiedDirectory, WritesNothing) {
  copy("3-killed");
  testing::copy_tree(testing::stored_data("crash-small/swap-left"), files_, "kafka/swapped-0");
  testing::copy_tree(testing::stored_data("crash-small/only-logs"), files_, "kafka/bare-0");
  const std::uint64_t before = files_.operations();
  auto log = open();
  const auto topics = log->admin().list_topics().value();
  for (const TopicDescription& topic : topics) {
    for (std::int32_t i = 0; i < topic.partitions; ++i) {
      const TopicPartition name{topic.name, PartitionId(i)};
      EXPECT_TRUE(testing::read_stored(*log, name).status.ok());
      EXPECT_TRUE(log->admin().offset_for_time(name, 1).ok());
      EXPECT_TRUE(log->admin().epoch_end_offset(name, LeaderEpoch(0)).ok());
    }
  }
  log.reset();
  EXPECT_EQ(files_.operations(), before);
}

TEST_F(CopiedDirectory, RefusesEveryChange) {
  copy("1-stopped");
  auto log = open();
  Admin& admin = log->admin();
  const TopicPartition name{"orders", PartitionId(0)};
  EXPECT_EQ(code_of(admin.create_topic({"new", 1, {}}).status()), Errc::kReadOnly);
  EXPECT_EQ(code_of(admin.delete_topic("orders")), Errc::kReadOnly);
  EXPECT_EQ(code_of(admin.delete_records(name, Offset(1))), Errc::kReadOnly);
  EXPECT_EQ(code_of(admin.grow_topic("orders", 9)), Errc::kReadOnly);
  EXPECT_EQ(code_of(admin.alter_topic("orders", {}, {})), Errc::kReadOnly);
  EXPECT_EQ(code_of(admin.delete_group_offsets("g", {})), Errc::kReadOnly);
  EXPECT_EQ(code_of(log->make_sink({}).status()), Errc::kReadOnly);
  EXPECT_EQ(code_of(log->make_group("g").status()), Errc::kReadOnly);
}

// A batch that is being written while the folder is read.
TEST_F(CopiedDirectory, StopsAtTheLastWholeBatchOfALogThatGrows) {
  testing::copy_tree(testing::stored_data("crash-small/only-logs"), files_, "kafka/orders-0");
  const std::string last = "kafka/orders-0/00000000000000000276.log";
  const std::string bytes = read_file(files_, last).value();
  const auto file = files_.open(last, OpenMode::kReadWrite).value();
  ASSERT_TRUE(file->truncate(bytes.size() - 5).ok());
  auto log = open();
  const TopicPartition name{"orders", PartitionId(0)};
  const StoredPartitionReport report = log->report(name).value();
  EXPECT_EQ(report.offsets.log_end, Offset(361));
  EXPECT_FALSE(report.tail.empty());

  ASSERT_TRUE(file->write_at(0, bytes).ok());
  EXPECT_EQ(testing::read_stored(*log, name).ranges, (testing::Ranges{{0, 360}}));
  EXPECT_EQ(testing::read_stored(*open(), name).ranges, (testing::Ranges{{0, 361}}));
}

// Retention of a running process.
class VanishingSegment : public MemoryFileSystem {
 public:
  Result<std::vector<DirectoryEntry>> list(const std::string& path) override {
    auto entries = MemoryFileSystem::list(path);
    if (path == "kafka/orders-0" && !std::exchange(gone_, true)) {
      EXPECT_TRUE(remove_file("kafka/orders-0/00000000000000000000.log").ok());
    }
    return entries;
  }

 private:
  bool gone_ = false;
};

TEST(StoredLogInUse, GoesOnWithoutASegmentThatWasTakenAwayMeanwhile) {
  VanishingSegment files;
  testing::copy_tree(testing::stored_data("crash-small/partition-metadata-missing-clean-marker"),
                     files, "kafka/orders-0");
  // The topic has an id, so that nothing but the partition's opening lists the folder.
  const auto file =
      files.open("kafka/orders-0/partition.metadata", OpenMode::kCreateTruncate).value();
  ASSERT_TRUE(file->write_at(0, "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAIA").ok());
  auto log = testing::open_stored("kafka", IsolationLevel::kReadCommitted, &files);
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(testing::read_stored(*log, {"orders", PartitionId(0)}).ranges,
            (testing::Ranges{{68, 361}}));
}

TEST_F(CopiedDirectory, NoticesBytesThatChangedSinceTheyWereChecked) {
  testing::copy_tree(testing::stored_data("crash-small/only-logs"), files_, "kafka/orders-0");
  auto log = open();
  const TopicPartition name{"orders", PartitionId(0)};
  ASSERT_TRUE(log->admin().offsets(name).ok());
  write("kafka/orders-0/00000000000000000000.log", "!", 100);
  EXPECT_EQ(code_of(testing::read_stored(*log, name).status), Errc::kCorrupt);
}

TEST_F(CopiedDirectory, WakesAPollAtTheEnd) {
  copy("1-stopped");
  auto log = open();
  auto source = log->make_source({}).value();
  ASSERT_TRUE(source->assign({{"empty", PartitionId(0)}}).ok());
  ASSERT_TRUE(source->seek(0, Offset(0)).ok());
  source->wakeup();
  EXPECT_TRUE(source->poll(std::chrono::hours(1))->empty());
}

// --- Weir's own `log` folder

TEST(StoredWeirLog, ReadsTheLogFolderOfADataDirectory) {
  LogFixture world;
  world.open();
  const TopicDescription orders = world.create("orders", 2, {{"segment.bytes", "4096"}});
  world.send("orders", {"a", "b"}, 0);
  world.send("orders", {"c"}, 1);
  world.close();

  auto log = testing::open_stored("data/log", IsolationLevel::kReadCommitted, world.files.get());
  ASSERT_NE(log, nullptr);
  const TopicDescription topic = log->admin().describe_topic("orders").value();
  EXPECT_EQ(topic.id, orders.id);
  EXPECT_EQ(topic.partitions, 2);
  EXPECT_EQ(topic.config, (TopicConfig{{"segment.bytes", "4096"}}));
  EXPECT_EQ(testing::read_stored(*log, {"orders", PartitionId(0)}).records.size(), 2U);
  EXPECT_EQ(testing::read_stored(*log, {"orders", PartitionId(1)}).records.size(), 1U);
  EXPECT_TRUE(log->notes().empty());
}

}  // namespace
}  // namespace weir::log
