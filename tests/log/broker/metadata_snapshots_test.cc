#include "log/metadata/metadata_snapshot.h"
#include "tests/log/broker/directory_on_disk.h"
#include "tests/runtime/observe/capture.h"

#include <gmock/gmock.h>

#include <map>

// A directory whose metadata log is summed up by snapshots, and what is given up behind them.

namespace weir::log {
namespace {

using testing::Directory;
using ::testing::HasSubstr;
using testing::kLines;
using weir::testing::LogCapture;
using weir::testing::MemoryFileSystem;

const std::string kFolder = "data/log/__cluster_metadata-0";

std::vector<SnapshotId> snapshots(Directory& directory) {
  return list_snapshots(directory.disk, kFolder).value();
}

std::map<std::string, std::int32_t> topics(LogDirectory& log) {
  std::map<std::string, std::int32_t> all;
  for (const TopicDescription& topic : log.list_topics()) {
    all[topic.name] = topic.partitions;
  }
  return all;
}

// A topic that stays and many that come and go: far more than a snapshot is apart.
void change_much(Directory& directory, int rounds = 40) {
  for (int i = 0; i < rounds; ++i) {
    const std::string name = "passing" + std::to_string(i);
    ASSERT_TRUE(directory.log->create_topic({name, 1 + i % 3, {{"retention.ms", "-1"}}}).ok());
    if (i % 8 != 0) {
      ASSERT_TRUE(directory.log->delete_topic(name).ok());
    }
  }
}

class MetadataSnapshots : public ::testing::Test {
 protected:
  MetadataSnapshots() { directory_.metadata_snapshot_bytes = 1000; }

  LogCapture quiet_;
  Directory directory_;
};

TEST_F(MetadataSnapshots, KeepTheLogShortAndSayTheSame) {
  directory_.open();
  directory_.create();
  directory_.send(5);
  change_much(directory_);
  const auto before = topics(*directory_.log);
  EXPECT_EQ(before.size(), 6U);

  const std::vector<SnapshotId> kept = snapshots(directory_);
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_GT(kept[0].end, Offset(20));
  const auto log_start = directory_.log->partition({std::string(kMetadataTopic), PartitionId(0)})
                             .value()
                             ->offsets()
                             .log_start;
  EXPECT_EQ(log_start, kept[0].end);
  int segments = 0;
  const std::vector<DirectoryEntry> entries = directory_.disk.list(kFolder).value();
  for (const DirectoryEntry& entry : entries) {
    segments += entry.name.ends_with(".log") ? 1 : 0;
  }
  EXPECT_LE(segments, 3);

  directory_.close();
  directory_.open();
  EXPECT_EQ(topics(*directory_.log), before);
  directory_.cut_power();
  directory_.open();
  EXPECT_EQ(topics(*directory_.log), before);
  EXPECT_EQ(directory_.ranges(), (testing::Ranges{{0, 4}}));
  EXPECT_EQ(directory_.log->topic_settings("passing8").ok(), true);
}

TEST_F(MetadataSnapshots, AreNotWrittenBeforeTheyAreDue) {
  directory_.metadata_snapshot_bytes = 1U << 20U;
  directory_.open();
  change_much(directory_);
  EXPECT_TRUE(snapshots(directory_).empty());
  directory_.close();
  directory_.metadata_snapshot_bytes = 1000;
  directory_.open();  // a start finds that one is
  EXPECT_EQ(snapshots(directory_).size(), 1U);
}

TEST_F(MetadataSnapshots, OneThatIsDamagedIsPassedOver) {
  directory_.open();
  change_much(directory_);
  const auto before = topics(*directory_.log);
  directory_.close();
  const std::string newest = join_path(kFolder, snapshot_name(snapshots(directory_).back()));
  std::string bytes = read_file(directory_.disk, newest).value();
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  ASSERT_TRUE(replace_file(directory_.disk, newest, bytes).ok());

  directory_.open();

  EXPECT_EQ(topics(*directory_.log), before);
  std::string said;
  for (const auto& [level, text] : quiet_.lines()) {
    said += text + "\n";
  }
  EXPECT_THAT(said, HasSubstr("snapshot not used"));
}

TEST_F(MetadataSnapshots, WithoutAnyTheStartSaysWhatIsMissingAndChangesNothing) {
  directory_.open();
  change_much(directory_);
  const auto before = topics(*directory_.log);
  directory_.close();
  std::map<std::string, std::string> taken;
  for (const SnapshotId& id : snapshots(directory_)) {
    const std::string path = join_path(kFolder, snapshot_name(id));
    taken[path] = read_file(directory_.disk, path).value();
    ASSERT_TRUE(directory_.disk.remove_file(path).ok());
  }

  const Status refused = directory_.try_open();

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kCorrupt);
  EXPECT_THAT(refused.error().message(), HasSubstr("no whole snapshot up to there"));
  for (const auto& [path, bytes] : taken) {
    ASSERT_TRUE(replace_file(directory_.disk, path, bytes).ok());
  }
  directory_.open();
  EXPECT_EQ(topics(*directory_.log), before);
}

TEST_F(MetadataSnapshots, AReaderBesideTheHolderFollowsThem) {
  directory_.open();
  directory_.create();
  LogDirectoryOptions beside = directory_.options();
  beside.read_only = true;
  const auto reader = LogDirectory::open("data", beside).value();
  EXPECT_EQ(topics(*reader), topics(*directory_.log));

  change_much(directory_);  // far beyond what the reader has read

  const Status caught_up = reader->refresh();
  ASSERT_TRUE(caught_up.ok()) << caught_up.error().to_string();
  EXPECT_EQ(topics(*reader), topics(*directory_.log));
  EXPECT_EQ(topics(*LogDirectory::open("data", beside).value()), topics(*directory_.log));
}

// A folder that kept its name is known as garbage by the metadata log alone.
TEST_F(MetadataSnapshots, WaitWhileAFolderOfARemovedTopicRemains) {
  directory_.open();
  directory_.create();
  directory_.send(3);
  directory_.disk.set_fault([](MemoryFileSystem::Operation operation, const std::string& path) {
    return operation == MemoryFileSystem::Operation::kRename &&
                   path.find("lines-0") != std::string::npos
               ? Status(Error(Errc::kIo, "rename " + path))
               : Status();
  });
  EXPECT_FALSE(directory_.log->delete_topic(kLines.topic).ok());
  directory_.disk.set_fault(nullptr);
  const auto standing = snapshots(directory_);
  change_much(directory_);
  EXPECT_EQ(snapshots(directory_), standing);

  directory_.close();
  directory_.open();

  EXPECT_FALSE(path_exists(directory_.disk, testing::kFolderOfLines));
}

// What cannot be written now is written when the log has grown as much again; no change fails.
TEST_F(MetadataSnapshots, AFullDiskForASnapshotFailsNoChange) {
  directory_.open();
  int refused = 0;
  directory_.disk.set_fault([&](MemoryFileSystem::Operation operation, const std::string& path) {
    if (operation != MemoryFileSystem::Operation::kWrite ||
        path.find(".checkpoint.tmp") == std::string::npos ||
        path.find("__cluster_metadata-0") == std::string::npos || refused > 2) {
      return Status();
    }
    ++refused;
    return Status(Error(Errc::kNoSpace, "write " + path));
  });
  change_much(directory_);
  directory_.disk.set_fault(nullptr);
  EXPECT_GT(refused, 0);
  EXPECT_FALSE(snapshots(directory_).empty());
  const auto before = topics(*directory_.log);
  directory_.cut_power();
  directory_.open();
  EXPECT_EQ(topics(*directory_.log), before);
}

// All of it, at every change of the disk.
TEST_F(MetadataSnapshots, APowerCutAtAnyChangeOfTheDiskLosesNoTopic) {
  for (std::uint64_t operation = 0;; operation += 7) {
    SCOPED_TRACE(operation);
    Directory directory(operation + 1);
    directory.metadata_snapshot_bytes = 300;
    directory.open();
    directory.disk.cut_power_at(operation);
    std::map<std::string, std::int32_t> known;
    std::string unknown;
    for (int i = 0; i < 12 && unknown.empty(); ++i) {
      const std::string name = "t" + std::to_string(i);
      if (!directory.log->create_topic({name, 1 + i % 3, {}}).ok()) {
        unknown = name;
        break;
      }
      known[name] = 1 + i % 3;
      const std::string doomed = "t" + std::to_string(i - 2);
      if (i % 3 == 2) {
        if (directory.log->delete_topic(doomed).ok()) {
          known.erase(doomed);
        } else {
          unknown = doomed;
        }
      }
    }
    const bool reached = directory.disk.power_is_off();
    directory.cut_power();
    directory.open();
    auto found = topics(*directory.log);
    known.erase(unknown);
    found.erase(unknown);
    EXPECT_EQ(found, known);
    if (!reached) {
      break;
    }
  }
}

}  // namespace
}  // namespace weir::log
