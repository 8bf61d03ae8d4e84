#include "tests/support/log_fixture.h"

#include <weir/log/embedded_log.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Groups and their offsets as a tool sees and changes them.

namespace weir::log {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::LogFixture;

TopicPartition at(const std::string& topic, std::int32_t partition) {
  return {topic, PartitionId(partition)};
}

void commit(EmbeddedLog& log, const std::string& group, const TopicPartition& partition,
            std::int64_t offset, const std::string& metadata = "") {
  const PartitionOffset one{partition, {Offset(offset), LeaderEpoch(0), metadata}};
  const Status done = log.make_group(group).value()->commit({&one, 1});
  ASSERT_TRUE(done.ok()) << done.error().to_string();
}

// "topic-partition@offset:metadata" of a group.
std::vector<std::string> offsets(EmbeddedLog& log, const std::string& group) {
  std::vector<std::string> texts;
  const auto all = log.admin().group_offsets(group).value();
  for (const auto& [partition, committed] : all) {
    texts.push_back(partition.to_string() + "@" + std::to_string(committed.offset.value()) + ":" +
                    committed.metadata);
  }
  return texts;
}

struct Groups : LogFixture {
  Groups() {
    open();
    create("lines", 3);
    create("words");
    commit(*log, "b", at("lines", 2), 7, "m");
    commit(*log, "b", at("lines", 0), 5);
    commit(*log, "b", at("words", 0), 1);
    commit(*log, "a", at("words", 0), 2);
  }
};

TEST(GroupAdmin, ListsGroupsAndTheirOffsetsInOrder) {
  Groups f;
  EXPECT_THAT(f.log->admin().list_groups().value(), ElementsAre("a", "b"));
  EXPECT_THAT(offsets(*f.log, "b"), ElementsAre("lines-0@5:", "lines-2@7:m", "words-0@1:"));
  EXPECT_THAT(offsets(*f.log, "nobody"), IsEmpty());
}

TEST(GroupAdmin, HasNoGroupsBeforeTheFirstCommit) {
  LogFixture f;
  f.open();
  EXPECT_THAT(f.log->admin().list_groups().value(), IsEmpty());
  EXPECT_THAT(offsets(*f.log, "b"), IsEmpty());
  const TopicPartition one = at("lines", 0);
  EXPECT_TRUE(f.log->admin().delete_group_offsets("b", {&one, 1}).ok());
}

TEST(GroupAdmin, ForgetsOffsetsForGood) {
  Groups f;
  const TopicPartition gone[] = {at("lines", 2), at("lines", 1), at("words", 0)};

  ASSERT_TRUE(f.log->admin().delete_group_offsets("b", gone).ok());
  EXPECT_THAT(offsets(*f.log, "b"), ElementsAre("lines-0@5:"));
  f.cut_power();
  f.open();

  EXPECT_THAT(offsets(*f.log, "b"), ElementsAre("lines-0@5:"));
  EXPECT_THAT(offsets(*f.log, "a"), ElementsAre("words-0@2:"));
  const TopicPartition rest = at("lines", 0);
  ASSERT_TRUE(f.log->admin().delete_group_offsets("b", {&rest, 1}).ok());
  EXPECT_THAT(f.log->admin().list_groups().value(), ElementsAre("a"));
  commit(*f.log, "b", at("lines", 1), 3);
  f.cut_power();
  f.open();
  EXPECT_THAT(offsets(*f.log, "b"), ElementsAre("lines-1@3:"));
}

TEST(GroupAdmin, DoesNotCountOffsetsOfATopicThatWasDeletedOrMadeAnew) {
  Groups f;
  ASSERT_TRUE(f.log->admin().delete_topic("words").ok());
  EXPECT_THAT(f.log->admin().list_groups().value(), ElementsAre("b"));
  f.create("words");
  EXPECT_THAT(offsets(*f.log, "a"), IsEmpty());
}

TEST(GroupAdmin, OfAReaderSeesWhatTheHolderCommitsAndChangesNothing) {
  Groups f;
  const auto reader = f.open_one(true);
  EXPECT_THAT(reader->admin().list_groups().value(), ElementsAre("a", "b"));
  commit(*f.log, "c", at("words", 0), 4);
  EXPECT_THAT(reader->admin().list_groups().value(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(offsets(*reader, "c"), ElementsAre("words-0@4:"));
  const TopicPartition one = at("words", 0);
  EXPECT_EQ(reader->admin().delete_group_offsets("c", {&one, 1}).error().code(), Errc::kReadOnly);
}

}  // namespace
}  // namespace weir::log
