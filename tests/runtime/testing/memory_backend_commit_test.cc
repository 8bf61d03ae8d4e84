#include "tests/runtime/testing/memory_backend_fixture.h"

#include <weir/runtime/testing/memory_backend.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace weir::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using FaultPoint = MemoryBackend::FaultPoint;
using Fixture = MemoryBackendFixture;

TEST(MemoryGroup, IsListedWithItsOffsetsUntilTheyAreDeleted) {
  Fixture f;
  f.create("a", 2);
  const OffsetsToCommit both{{at("a", 1), {Offset(3), LeaderEpoch(0), "m"}},
                             {at("a", 0), {Offset(2), LeaderEpoch(0), ""}}};
  ASSERT_TRUE(f.backend.make_group("g").value()->commit(both).ok());
  Admin& admin = f.backend.admin();

  EXPECT_THAT(admin.list_groups().value(), ElementsAre("g"));
  EXPECT_THAT(admin.group_offsets("g").value(), ElementsAre(both[1], both[0]));
  EXPECT_THAT(admin.group_offsets("h").value(), IsEmpty());
  const std::vector<TopicPartition> all{at("a", 0), at("a", 1)};
  ASSERT_TRUE(admin.delete_group_offsets("g", {all.data(), 1}).ok());
  EXPECT_THAT(admin.group_offsets("g").value(), ElementsAre(both[0]));
  ASSERT_TRUE(admin.delete_group_offsets("g", all).ok());
  EXPECT_THAT(admin.list_groups().value(), IsEmpty());
}

TEST(MemoryTransaction, ShowsEverythingAtCommitAndNothingBefore) {
  Fixture f({}, transactional());
  f.create("a", 2);
  const SinkTopic a = f.open("a");
  const auto group = f.backend.make_group("g").value();
  f.read_from({at("a", 0), at("a", 1)});
  ASSERT_TRUE(f.sink().begin().ok());
  ASSERT_TRUE(f.send(a, 0, {record("x", ""), record("y", "")}).ok());
  ASSERT_TRUE(f.send(a, 1, {record("z", "")}).ok());
  const std::vector<std::pair<TopicPartition, CommittedOffset>> offsets{
      {at("a", 0), {Offset(9), LeaderEpoch(0), "m"}}};
  ASSERT_TRUE(f.sink().send_offsets(offsets, group->metadata()).ok());
  const std::vector<TopicPartition> asked{at("a", 0)};

  EXPECT_THAT(f.poll(), IsEmpty());
  EXPECT_EQ(group->committed(asked).value().at(0), std::nullopt);
  EXPECT_EQ(f.backend.admin().offsets(at("a", 0)).value().log_end, Offset(0));
  EXPECT_EQ(f.sink().end(true).value(), TransactionOutcome::kCommitted);

  EXPECT_THAT(f.poll_keys(), ElementsAre("0:x@0", "0:y@1", "1:z@0"));
  EXPECT_EQ(group->committed(asked).value().at(0)->offset, Offset(9));
  EXPECT_EQ(group->committed(asked).value().at(0)->metadata, "m");
  EXPECT_EQ(flushed_text(f.sink().flush()), "0/0 end 2 epoch 0\n0/1 end 1 epoch 0\n");
}

TEST(MemoryTransaction, AbortLeavesNothing) {
  Fixture f({}, transactional());
  f.create("a");
  const SinkTopic a = f.open("a");
  const auto group = f.backend.make_group("g").value();
  ASSERT_TRUE(f.sink().begin().ok());
  ASSERT_TRUE(f.send(a, 0, {record("x", "")}).ok());
  const std::vector<std::pair<TopicPartition, CommittedOffset>> offsets{
      {at("a", 0), {Offset(1), {}, ""}}};
  ASSERT_TRUE(f.sink().send_offsets(offsets, group->metadata()).ok());

  EXPECT_EQ(f.sink().end(false).value(), TransactionOutcome::kAborted);

  EXPECT_THAT(f.stored(at("a", 0)), IsEmpty());
  EXPECT_EQ(group->committed(std::vector{at("a", 0)}).value().at(0), std::nullopt);
  EXPECT_EQ(flushed_text(f.sink().flush()), "");
  ASSERT_TRUE(f.sink().begin().ok());
  ASSERT_TRUE(f.send(a, 0, {record("y", "")}).ok());
  EXPECT_EQ(f.sink().end(true).value(), TransactionOutcome::kCommitted);
  EXPECT_THAT(f.stored(at("a", 0)), ElementsAre("y@0"));
}

TEST(MemoryTransaction, FlushInsideTellsWhereTheRecordsWillEnd) {
  Fixture f({}, transactional());
  f.create("a");
  const SinkTopic a = f.open("a");
  const auto plain = f.backend.make_sink({}).value();
  const std::vector<RecordRef> one{record("before", "")};
  ASSERT_TRUE(plain->send(plain->open_topic("a").value().handle, PartitionId(0), one).ok());
  ASSERT_TRUE(f.sink().begin().ok());
  ASSERT_TRUE(f.send(a, 0, {record("x", "")}).ok());
  ASSERT_TRUE(f.send(a, 0, {record("y", "")}).ok());

  EXPECT_EQ(flushed_text(f.sink().flush()), "0/0 end 3 epoch 0\n");
  ASSERT_TRUE(f.send(a, 0, {record("z", "")}).ok());
  EXPECT_EQ(f.sink().end(true).value(), TransactionOutcome::kCommitted);
  EXPECT_EQ(flushed_text(f.sink().flush()), "0/0 end 4 epoch 0\n");
  EXPECT_EQ(flushed_text(f.sink().flush()), "");
  EXPECT_THAT(f.stored(at("a", 0)), ElementsAre("before@0", "x@1", "y@2", "z@3"));
}

TEST(MemoryTransaction, RefusesCallsOutOfOrder) {
  Fixture plain;
  Fixture f({}, transactional());
  f.create("a");
  const SinkTopic a = f.open("a");

  EXPECT_EQ(plain.sink().begin().error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(f.send(a, 0, {record("x", "")}).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(f.sink().end(true).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(f.sink().send_offsets({}, {}).error().code(), Errc::kInvalidArgument);
  ASSERT_TRUE(f.sink().begin().ok());
  EXPECT_EQ(f.sink().begin().error().code(), Errc::kInvalidArgument);
}

TEST(MemoryTransaction, ANewProducerFencesTheOldOne) {
  Fixture f({}, transactional("app-0"));
  f.create("a");
  const SinkTopic a = f.open("a");
  ASSERT_TRUE(f.sink().begin().ok());
  ASSERT_TRUE(f.send(a, 0, {record("old", "")}).ok());
  const auto other_id = f.backend.make_sink(transactional("app-1")).value();
  ASSERT_TRUE(f.send(a, 0, {record("old", "")}).ok()) << "another id fences nobody";

  const auto newer = f.backend.make_sink(transactional("app-0")).value();

  EXPECT_EQ(f.send(a, 0, {record("old", "")}).error().code(), Errc::kFenced);
  EXPECT_EQ(f.sink().flush().error().code(), Errc::kFenced);
  EXPECT_EQ(f.sink().end(true).value(), TransactionOutcome::kFenced);
  EXPECT_EQ(f.sink().begin().error().code(), Errc::kFenced);
  EXPECT_TRUE(newer->begin().ok());
  EXPECT_THAT(f.stored(at("a", 0)), IsEmpty());
}

TEST(MemoryTransaction, AbortsWhenATopicOfItWasDeleted) {
  Fixture f({}, transactional());
  f.create("a");
  f.create("b");
  ASSERT_TRUE(f.sink().begin().ok());
  ASSERT_TRUE(f.send(f.open("a"), 0, {record("x", "")}).ok());
  ASSERT_TRUE(f.send(f.open("b"), 0, {record("y", "")}).ok());
  ASSERT_TRUE(f.backend.admin().delete_topic("b").ok());
  f.create("b");

  EXPECT_EQ(f.sink().end(true).value(), TransactionOutcome::kAborted);

  EXPECT_THAT(f.stored(at("a", 0)), IsEmpty());
  EXPECT_THAT(f.stored(at("b", 0)), IsEmpty());
}

TEST(MemoryTransaction, KeepsToTheBufferAndCanStillEnd) {
  SinkOptions options = transactional();
  options.buffer_bytes_max = 10;
  Fixture f({}, options);
  f.create("a");
  const SinkTopic a = f.open("a");
  ASSERT_TRUE(f.sink().begin().ok());
  ASSERT_TRUE(f.send(a, 0, {record("0", "123456789")}).ok());

  EXPECT_EQ(f.send(a, 0, {record("x", "")}).error().code(), Errc::kTimedOut);
  EXPECT_EQ(f.sink().end(true).value(), TransactionOutcome::kCommitted);

  EXPECT_THAT(f.stored(at("a", 0)), ElementsAre("0@0"));
}

class Listener : public GroupListener {
 public:
  void on_assigned(std::span<const TopicPartition> partitions) override {
    note("assigned", partitions);
  }
  void on_revoked(std::span<const TopicPartition> partitions) override {
    note("revoked", partitions);
  }
  void on_lost(std::span<const TopicPartition> partitions) override { note("lost", partitions); }
  // What was called since the last take().
  std::vector<std::string> take() { return std::exchange(calls_, {}); }

 private:
  void note(const std::string& call, std::span<const TopicPartition> partitions) {
    std::string text = call;
    for (const TopicPartition& partition : partitions) {
      text += " " + partition.to_string();
    }
    calls_.push_back(std::move(text));
  }
  std::vector<std::string> calls_;
};

TEST(MemoryGroup, AssignsAllPartitionsOfExistingTopics) {
  Fixture f;
  f.create("a", 2);
  f.create("other");
  Listener listener;
  const auto group = f.backend.make_group("g").value();
  ASSERT_TRUE(group->join({"later", "a"}, "", listener).ok());
  EXPECT_THAT(listener.take(), IsEmpty()) << "only poll() calls back";

  ASSERT_TRUE(group->poll().ok());
  EXPECT_THAT(listener.take(), ElementsAre("assigned a-0 a-1"));
  ASSERT_TRUE(group->poll().ok());
  EXPECT_THAT(listener.take(), IsEmpty());
  f.create("later");
  ASSERT_TRUE(f.backend.admin().grow_topic("a", 3).ok());
  const std::int32_t generation = group->metadata().generation;
  ASSERT_TRUE(group->poll().ok());
  EXPECT_THAT(listener.take(), ElementsAre("assigned a-2 later-0"));
  EXPECT_GT(group->metadata().generation, generation);
}

TEST(MemoryGroup, TellsAMemberOfAnEmptyAssignment) {
  Fixture f;
  Listener listener;
  const auto group = f.backend.make_group("g").value();
  ASSERT_TRUE(group->join({"later"}, "", listener).ok());

  ASSERT_TRUE(group->poll().ok());

  EXPECT_THAT(listener.take(), ElementsAre("assigned"));
}

TEST(MemoryGroup, LosesPartitionsOfADeletedTopicAndRevokesOthers) {
  Fixture f;
  f.create("a");
  f.create("b");
  f.create("c");
  Listener listener;
  const auto group = f.backend.make_group("g").value();
  ASSERT_TRUE(group->join({"a", "b", "c"}, "", listener).ok());
  ASSERT_TRUE(group->poll().ok());
  listener.take();

  ASSERT_TRUE(f.backend.admin().delete_topic("a").ok());
  ASSERT_TRUE(f.backend.admin().delete_topic("b").ok());
  f.create("b");
  ASSERT_TRUE(group->poll().ok());
  EXPECT_THAT(listener.take(), ElementsAre("lost a-0 b-0", "assigned b-0"));
  ASSERT_TRUE(group->join({"b"}, "", listener).ok());
  ASSERT_TRUE(group->poll().ok());
  EXPECT_THAT(listener.take(), ElementsAre("revoked c-0"));
}

TEST(MemoryGroup, CommitsAndReadsOffsetsInTheOrderAsked) {
  Fixture f;
  f.create("a", 3);
  Listener listener;
  const auto group = f.backend.make_group("g").value();
  const auto other = f.backend.make_group("h").value();
  ASSERT_TRUE(group->join({"a"}, "", listener).ok());
  ASSERT_TRUE(group->poll().ok());
  const OffsetsToCommit offsets{{at("a", 0), {Offset(5), LeaderEpoch(0), "x"}},
                                {at("a", 2), {Offset(7), LeaderEpoch(0), ""}}};
  ASSERT_TRUE(group->commit(offsets).ok());
  const std::vector<TopicPartition> asked{at("a", 2), at("a", 1), at("a", 0), at("none", 0)};

  const auto committed = group->committed(asked).value();

  ASSERT_EQ(committed.size(), 4U);
  EXPECT_EQ(committed[0]->offset, Offset(7));
  EXPECT_EQ(committed[1], std::nullopt);
  EXPECT_EQ(committed[2]->offset, Offset(5));
  EXPECT_EQ(committed[2]->metadata, "x");
  EXPECT_EQ(committed[2]->leader_epoch, LeaderEpoch(0));
  EXPECT_EQ(committed[3], std::nullopt);
  EXPECT_EQ(other->committed(asked).value()[0], std::nullopt) << "another group's";
}

TEST(MemoryGroup, CommitIsAllOrNothing) {
  Fixture f;
  f.create("a");
  const auto group = f.backend.make_group("g").value();

  EXPECT_EQ(group
                ->commit(OffsetsToCommit{{at("a", 0), {Offset(1), {}, ""}},
                                         {at("gone", 0), {Offset(1), {}, ""}}})
                .error()
                .code(),
            Errc::kUnknownTopic);
  EXPECT_EQ(group->commit(OffsetsToCommit{{at("a", 0), {Offset(1), {}, std::string(4097, 'm')}}})
                .error()
                .code(),
            Errc::kInvalidArgument);
  EXPECT_EQ(group->commit(OffsetsToCommit{{at("a", 0), {Offset(-1), {}, ""}}}).error().code(),
            Errc::kInvalidArgument);

  EXPECT_EQ(group->committed(std::vector{at("a", 0)}).value()[0], std::nullopt);
  EXPECT_TRUE(
      group->commit(OffsetsToCommit{{at("a", 0), {Offset(1), {}, std::string(4096, 'm')}}}).ok());
}

TEST(MemoryGroup, DeletingATopicRemovesItsOffsetsInAllGroups) {
  Fixture f;
  f.create("a");
  f.create("ab");
  for (const char* id : {"g", "h"}) {
    ASSERT_TRUE(f.backend.make_group(id)
                    .value()
                    ->commit(OffsetsToCommit{{at("a", 0), {Offset(1), {}, ""}},
                                             {at("ab", 0), {Offset(2), {}, ""}}})
                    .ok());
  }
  ASSERT_TRUE(f.backend.admin().delete_topic("a").ok());
  f.create("a");

  for (const char* id : {"g", "h"}) {
    const auto committed =
        f.backend.make_group(id).value()->committed(std::vector{at("a", 0), at("ab", 0)}).value();
    EXPECT_EQ(committed[0], std::nullopt);
    EXPECT_EQ(committed[1]->offset, Offset(2));
  }
}

TEST(MemoryGroup, TheMemberThatJoinsLastFencesTheOneBefore) {
  Fixture f({}, transactional());
  f.create("a");
  Listener first_listener;
  Listener second_listener;
  const auto first = f.backend.make_group("g").value();
  const auto second = f.backend.make_group("g").value();
  const OffsetsToCommit offsets{{at("a", 0), {Offset(1), {}, ""}}};
  ASSERT_TRUE(first->join({"a"}, "", first_listener).ok());
  ASSERT_TRUE(first->poll().ok());
  ASSERT_TRUE(f.sink().begin().ok());
  ASSERT_TRUE(f.sink().send_offsets(offsets, first->metadata()).ok());

  ASSERT_TRUE(second->join({"a"}, "", second_listener).ok());
  ASSERT_TRUE(second->poll().ok());

  EXPECT_THAT(second_listener.take(), ElementsAre("assigned a-0"));
  EXPECT_EQ(first->commit(offsets).error().code(), Errc::kFenced);
  EXPECT_EQ(f.sink().send_offsets(offsets, first->metadata()).error().code(), Errc::kFenced);
  EXPECT_TRUE(f.sink().send_offsets(offsets, second->metadata()).ok());
  first_listener.take();
  EXPECT_TRUE(first->poll().ok());
  EXPECT_THAT(first_listener.take(), ElementsAre("lost a-0"));
  EXPECT_EQ(first->poll().error().code(), Errc::kFenced);
  EXPECT_TRUE(second->commit(offsets).ok());
  ASSERT_TRUE(second->leave().ok());
  EXPECT_EQ(first->commit(offsets).error().code(), Errc::kFenced);
  ASSERT_TRUE(first->join({"a"}, "", first_listener).ok());
  EXPECT_TRUE(first->poll().ok());
  EXPECT_THAT(first_listener.take(), ElementsAre("assigned a-0"));
  EXPECT_TRUE(first->commit(offsets).ok());
}

TEST(MemoryGroup, WithoutAMemberOffsetsCanBeSetFromOutside) {
  Fixture f;
  f.create("a");
  Listener listener;
  const auto tool = f.backend.make_group("g").value();
  const auto member = f.backend.make_group("g").value();
  const OffsetsToCommit offsets{{at("a", 0), {Offset(3), {}, ""}}};

  EXPECT_TRUE(tool->commit(offsets).ok());
  ASSERT_TRUE(member->join({"a"}, "", listener).ok());
  EXPECT_EQ(tool->commit(offsets).error().code(), Errc::kFenced);
  ASSERT_TRUE(member->leave().ok());
  EXPECT_TRUE(tool->commit(offsets).ok());
  EXPECT_EQ(member->metadata().member_id, "");
  EXPECT_EQ(f.backend.make_group("").error().code(), Errc::kInvalidArgument);
}

TEST(MemoryTransaction, CanEndAgainOrIsDroppedByBeginWhenItsEndFailed) {
  Fixture f({}, transactional());
  f.create("a");
  const SinkTopic a = f.open("a");
  for (const char* key : {"again", "dropped"}) {
    f.backend.fail_next(FaultPoint::kCommit, Error(Errc::kTimedOut, "no answer"));
    ASSERT_TRUE(f.sink().begin().ok());
    ASSERT_TRUE(f.send(a, 0, {record(key, "")}).ok());
    EXPECT_EQ(f.sink().end(true).error().code(), Errc::kTimedOut);
    if (std::string(key) == "again") {
      EXPECT_EQ(f.sink().end(true).value(), TransactionOutcome::kCommitted);
    }
  }

  ASSERT_TRUE(f.sink().begin().ok());
  ASSERT_TRUE(f.send(a, 0, {record("next", "")}).ok());
  EXPECT_EQ(f.sink().end(true).value(), TransactionOutcome::kCommitted);

  EXPECT_THAT(f.stored(at("a", 0)), ElementsAre("again@0", "next@1"));
}

}  // namespace
}  // namespace weir::testing
