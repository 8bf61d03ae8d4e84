#include "tests/runtime/testing/memory_backend_fixture.h"

#include <weir/runtime/testing/memory_backend.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

namespace weir::testing {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using FaultPoint = MemoryBackend::FaultPoint;
using Fixture = MemoryBackendFixture;

TEST(MemoryAdmin, CreatesListsDescribesAndGrowsTopics) {
  Fixture f;
  const TopicDescription orders =
      f.backend.admin().create_topic({"orders", 3, {{"cleanup.policy", "compact"}}}).value();
  f.create("clicks");

  EXPECT_FALSE(orders.id.is_zero());
  EXPECT_EQ(orders.partitions, 3);
  const std::vector<TopicDescription> topics = f.backend.admin().list_topics().value();
  ASSERT_EQ(topics.size(), 2U);
  EXPECT_EQ(topics[0].name, "clicks");
  EXPECT_EQ(topics[1].id, orders.id);
  EXPECT_NE(topics[0].id, topics[1].id);
  ASSERT_TRUE(f.backend.admin().grow_topic("orders", 5).ok());
  const TopicDescription grown = f.backend.admin().describe_topic("orders").value();
  EXPECT_EQ(grown.partitions, 5);
  EXPECT_EQ(grown.id, orders.id);
  EXPECT_EQ(grown.config, (TopicConfig{{"cleanup.policy", "compact"}}));
  EXPECT_FALSE(grown.internal);
}

TEST(MemoryAdmin, RefusesBadTopicsWithTheContractsCodes) {
  Fixture f;
  f.create("orders", 2);
  Admin& admin = f.backend.admin();

  EXPECT_EQ(admin.create_topic({"orders", 1, {}}).error().code(), Errc::kTopicExists);
  for (const char* name : {"", ".", "..", "a b", "a/b", "\xc3\xa4"}) {
    EXPECT_EQ(admin.create_topic({name, 1, {}}).error().code(), Errc::kInvalidTopic) << name;
  }
  EXPECT_EQ(admin.create_topic({std::string(250, 'a'), 1, {}}).error().code(), Errc::kInvalidTopic);
  EXPECT_TRUE(admin.create_topic({std::string(249, 'a'), 1, {}}).ok());
  EXPECT_EQ(admin.create_topic({"none", 0, {}}).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(admin.create_topic({"bad", 1, {{"max.message.bytes", "1k"}}}).error().code(),
            Errc::kInvalidConfig);
  EXPECT_EQ(admin.describe_topic("bad").error().code(), Errc::kUnknownTopic);
  EXPECT_EQ(admin.grow_topic("orders", 2).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(admin.delete_topic("order").error().code(), Errc::kUnknownTopic);
  EXPECT_EQ(admin.delete_topic("order").error().message(),
            "topic order does not exist; did you mean orders?");
  EXPECT_EQ(admin.offsets(at("orders", 2)).error().code(), Errc::kUnknownTopic);
}

TEST(MemoryAdmin, GrowsAnOrderedTopicOnlyWhenItIsForced) {
  Fixture f;
  Admin& admin = f.backend.admin();
  ASSERT_TRUE(admin.create_topic({"orders", 1, {{"weir.ordered", "true"}}}).ok());

  EXPECT_EQ(admin.grow_topic("orders", 2).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(admin.describe_topic("orders")->partitions, 1);
  EXPECT_TRUE(admin.grow_topic("orders", 2, OrderedGrowth::kForce).ok());
  EXPECT_EQ(admin.describe_topic("orders")->partitions, 2);
}

TEST(MemoryAdmin, ChangesSettingsAllOrNone) {
  Fixture f;
  Admin& admin = f.backend.admin();
  ASSERT_TRUE(admin.create_topic({"orders", 1, {{"retention.ms", "5"}}}).ok());
  const SinkTopic orders = f.open("orders");
  const std::string value(500, 'v');

  ASSERT_TRUE(
      admin.alter_topic("orders", {{"max.message.bytes", "300"}}, {"retention.ms", "flush.ms"})
          .ok());

  EXPECT_EQ(admin.describe_topic("orders")->config, (TopicConfig{{"max.message.bytes", "300"}}));
  EXPECT_EQ(f.send(orders, 0, {record("a", value, 1)}).error().code(), Errc::kRecordTooLarge);
  EXPECT_EQ(admin.alter_topic("orders", {{"flush.ms", "1"}, {"max.message.bytes", "1k"}}, {})
                .error()
                .code(),
            Errc::kInvalidConfig);
  EXPECT_EQ(admin.alter_topic("orders", {{"flush.ms", "1"}}, {"flush.ms"}).error().code(),
            Errc::kInvalidConfig);
  EXPECT_EQ(admin.describe_topic("orders")->config, (TopicConfig{{"max.message.bytes", "300"}}));
  EXPECT_EQ(admin.alter_topic("none", {}, {}).error().code(), Errc::kUnknownTopic);

  const std::vector<TopicSetting> settings = admin.topic_settings("orders").value();
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_EQ(settings[0].name, "max.message.bytes");
  EXPECT_EQ(settings[0].value, "300");
  EXPECT_EQ(settings[0].default_value, "1048588");
  EXPECT_EQ(settings[0].source, SettingSource::kTopic);
  EXPECT_EQ(settings[1].name, "weir.ordered");
  EXPECT_EQ(settings[1].source, SettingSource::kDefault);
  ASSERT_TRUE(admin.alter_topic("orders", {}, {"max.message.bytes"}).ok());
  EXPECT_TRUE(f.send(orders, 0, {record("a", value, 1)}).ok());
}

TEST(MemoryAdmin, DeletesUpToTheEndForMinusOne) {
  Fixture f;
  f.create("orders");
  const SinkTopic orders = f.open("orders");
  ASSERT_TRUE(f.send(orders, 0, {record("a", "", 1), record("b", "", 2)}).ok());

  ASSERT_TRUE(f.backend.admin().delete_records(at("orders", 0), kNoOffset).ok());

  EXPECT_EQ(f.backend.admin().offsets(at("orders", 0))->log_start, Offset(2));
  EXPECT_EQ(f.backend.admin().delete_records(at("orders", 0), Offset(-2)).error().code(),
            Errc::kOffsetOutOfRange);
}

TEST(MemoryAdmin, AnswersOffsets) {
  Fixture f;
  f.create("orders", 2);
  const SinkTopic orders = f.open("orders");
  ASSERT_TRUE(
      f.send(orders, 1, {record("a", "", 100), record("b", "", 300), record("c", "", 200)}).ok());
  Admin& admin = f.backend.admin();

  const PartitionOffsets offsets = admin.offsets(at("orders", 1)).value();
  EXPECT_EQ(offsets.log_start, Offset(0));
  EXPECT_EQ(offsets.high_watermark, Offset(3));
  EXPECT_EQ(offsets.last_stable, Offset(3));
  EXPECT_EQ(offsets.log_end, Offset(3));
  EXPECT_EQ(offsets.leader_epoch, LeaderEpoch(0));
  EXPECT_EQ(admin.offsets(at("orders", 0)).value().log_end, Offset(0));
  EXPECT_EQ(admin.offset_for_time(at("orders", 1), 100).value(), Offset(0));
  EXPECT_EQ(admin.offset_for_time(at("orders", 1), 101).value(), Offset(1));
  EXPECT_EQ(admin.offset_for_time(at("orders", 1), 301).value(), std::nullopt);
  EXPECT_EQ(admin.epoch_end_offset(at("orders", 1), LeaderEpoch(0)).value(), Offset(3));
  EXPECT_EQ(admin.epoch_end_offset(at("orders", 1), LeaderEpoch(7)).value(), Offset(3));
  EXPECT_EQ(admin.epoch_end_offset(at("orders", 1), kNoLeaderEpoch).value(), std::nullopt);
  EXPECT_EQ(admin.tombstone_horizon(at("orders", 1)).value(), Offset(0));
}

TEST(MemoryAdmin, DeletesRecordsInsideABatch) {
  Fixture f;
  f.create("orders");
  ASSERT_TRUE(
      f.send(f.open("orders"), 0, {record("a", "1"), record("b", "2"), record("c", "3")}).ok());
  Admin& admin = f.backend.admin();

  ASSERT_TRUE(admin.delete_records(at("orders", 0), Offset(2)).ok());

  EXPECT_THAT(f.stored(at("orders", 0)), ElementsAre("c@2"));
  EXPECT_EQ(admin.offsets(at("orders", 0)).value().log_start, Offset(2));
  EXPECT_TRUE(admin.delete_records(at("orders", 0), Offset(1)).ok());
  EXPECT_EQ(admin.offsets(at("orders", 0)).value().log_start, Offset(2));
  EXPECT_EQ(admin.delete_records(at("orders", 0), Offset(4)).error().code(),
            Errc::kOffsetOutOfRange);
  f.read_from({at("orders", 0)}, Offset(2));
  EXPECT_THAT(f.poll_keys(), ElementsAre("0:c@2"));
}

TEST(MemorySink, KeepsKeysValuesTimestampsAndHeadersByteForByte) {
  Fixture f;
  f.create("orders");
  Headers headers;
  headers.add("h", ByteView("1"));
  headers.add("h", NullableBytes());
  RecordRef full = record(ByteView("k\0y", 3), "", 5);
  full.headers = headers.view();
  ASSERT_TRUE(f.send(f.open("orders"), 0, {full, RecordRef{}}).ok());

  const auto records = f.backend.records(at("orders", 0));

  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].key, std::string("k\0y", 3));
  EXPECT_EQ(records[0].value, "");
  EXPECT_EQ(records[0].timestamp, 5);
  EXPECT_EQ(records[0].headers.view().encoded(), headers.view().encoded());
  EXPECT_EQ(records[0].headers.view().count(), 2U);
  EXPECT_EQ(records[1].key, std::nullopt);
  EXPECT_EQ(records[1].value, std::nullopt);
  EXPECT_EQ(records[1].timestamp, kNow) << "the clock stamps a record without a timestamp";
  EXPECT_EQ(records[1].offset, Offset(1));
}

TEST(MemorySink, FlushReportsWhatWasWrittenSinceTheLastOne) {
  Fixture f;
  f.create("a", 2);
  f.create("b");
  const SinkTopic a = f.open("a");
  const SinkTopic b = f.open("b");
  ASSERT_TRUE(f.send(b, 0, {record("1", ""), record("2", "")}).ok());
  ASSERT_TRUE(f.send(a, 1, {record("3", "")}).ok());
  ASSERT_TRUE(f.send(a, 0, {}).ok());

  EXPECT_EQ(flushed_text(f.sink().flush()), "0/1 end 1 epoch 0\n1/0 end 2 epoch 0\n");
  EXPECT_EQ(flushed_text(f.sink().flush()), "");
  ASSERT_TRUE(f.send(b, 0, {record("4", "")}).ok());
  EXPECT_EQ(flushed_text(f.sink().flush()), "1/0 end 3 epoch 0\n");
}

TEST(MemorySink, FlushReportsTheEndOfItsOwnRecords) {
  Fixture f;
  f.create("a");
  const auto other = f.backend.make_sink({}).value();
  const SinkTopic theirs = other->open_topic("a").value().handle;
  const std::vector<RecordRef> one{record("x", "")};
  ASSERT_TRUE(f.send(f.open("a"), 0, one).ok());
  ASSERT_TRUE(other->send(theirs, PartitionId(0), one).ok());

  EXPECT_EQ(flushed_text(f.sink().flush()), "0/0 end 1 epoch 0\n");
  EXPECT_EQ(flushed_text(other->flush()), "0/0 end 2 epoch 0\n");
}

TEST(MemorySink, OpensATopicOnceAndATopicMadeAnewAgain) {
  Fixture f;
  const Uuid first = f.create("a", 3);
  const SinkTopicInfo opened = f.sink().open_topic("a").value();
  ASSERT_EQ(f.sink().open_topic("a").value().handle, opened.handle);
  ASSERT_TRUE(f.backend.admin().delete_topic("a").ok());
  EXPECT_EQ(f.sink().open_topic("a").error().code(), Errc::kUnknownTopic);
  const Uuid second = f.create("a");
  const SinkTopicInfo again = f.sink().open_topic("a").value();

  EXPECT_EQ(opened.id, first);
  EXPECT_EQ(opened.partitions, 3);
  EXPECT_EQ(again.id, second);
  EXPECT_NE(first, second);
  EXPECT_NE(again.handle, opened.handle);
  EXPECT_EQ(f.send(opened.handle, 0, {record("k", "")}).error().code(), Errc::kUnknownTopic);
  EXPECT_TRUE(f.send(again.handle, 0, {record("k", "")}).ok());
}

TEST(MemorySink, RefusesWrongPlaces) {
  Fixture f;
  f.create("a");
  const SinkTopic a = f.open("a");

  EXPECT_EQ(f.send(a, 1, {record("k", "")}).error().code(), Errc::kUnknownTopic);
  EXPECT_EQ(f.send(a, -1, {record("k", "")}).error().code(), Errc::kUnknownTopic);
  EXPECT_EQ(f.send(a + 1, 0, {record("k", "")}).error().code(), Errc::kInvalidArgument);
}

// 61 bytes of batch header, 1 of length, 3 of attributes and deltas, 2 + key, 1 + value, 1 of
// header count: a record with a 1-byte key and 31 bytes of value takes 100 bytes.
TEST(MemorySink, TakesTheRecordsBeforeOneThatIsTooLarge) {
  Fixture f;
  f.create("a", 1, {{"max.message.bytes", "100"}});
  const std::string fits(31, 'v');
  const std::string too_large(32, 'v');
  const Status sent =
      f.send(f.open("a"), 0,
             {record("1", fits), record("2", fits), record("3", too_large), record("4", fits)});

  EXPECT_EQ(sent.error().code(), Errc::kRecordTooLarge);
  EXPECT_THAT(f.stored(at("a", 0)), ElementsAre("1@0", "2@1"));
  EXPECT_EQ(flushed_text(f.sink().flush()), "0/0 end 2 epoch 0\n");
}

TEST(MemorySink, RefusesNegativeTimestamps) {
  Fixture f;
  f.create("a");

  EXPECT_EQ(f.send(f.open("a"), 0, {record("1", "", 0), record("2", "", -2)}).error().code(),
            Errc::kInvalidTimestamp);
  EXPECT_THAT(f.stored(at("a", 0)), ElementsAre("1@0"));
}

TEST(MemorySource, ReadsInOffsetOrderAndMovesThePosition) {
  Fixture f;
  const Uuid id = f.create("a");
  f.fill("a", 0, "xyz");
  ASSERT_TRUE(f.source().assign({at("a", 0)}).ok());
  EXPECT_EQ(f.source().position(0), kNoOffset);
  EXPECT_THAT(f.poll(), IsEmpty()) << "no position yet";
  ASSERT_TRUE(f.source().seek(0, Offset(1)).ok());

  const std::vector<RecordBlock> blocks = f.poll();

  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].records.at(0).key.view(), "y");
  EXPECT_EQ(blocks[0].records.at(0).value.view(), "v");
  EXPECT_EQ(blocks[0].next_offset, Offset(2));
  EXPECT_EQ(blocks[0].topic_id, id);
  EXPECT_EQ(blocks[0].leader_epoch, LeaderEpoch(0));
  EXPECT_EQ(blocks[0].high_watermark, Offset(3));
  EXPECT_EQ(blocks[0].last_stable_offset, Offset(3));
  EXPECT_TRUE(blocks[0].status.ok());
  EXPECT_EQ(blocks[1].next_offset, Offset(3));
  EXPECT_EQ(f.source().position(0), Offset(3));
  EXPECT_THAT(f.poll(), IsEmpty());
}

TEST(MemorySource, StartsInsideABatch) {
  Fixture f;
  f.create("a");
  ASSERT_TRUE(f.send(f.open("a"), 0, {record("x", ""), record("y", ""), record("z", "")}).ok());

  f.read_from({at("a", 0)}, Offset(1));

  EXPECT_THAT(f.poll_keys(), ElementsAre("0:y@1", "0:z@2"));
}

TEST(MemorySource, BlocksOutliveTheTopicAndTheBackend) {
  std::vector<RecordBlock> blocks;
  {
    Fixture f;
    f.create("a");
    f.fill("a", 0, "x");
    f.read_from({at("a", 0)});
    blocks = f.poll();
    ASSERT_TRUE(f.backend.admin().delete_topic("a").ok());
  }

  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].records.at(0).key.view(), "x");
}

TEST(MemorySource, GoesRoundRobinOverPartitions) {
  SourceOptions one_batch;
  one_batch.poll_bytes_max = 1;
  Fixture f(one_batch);
  f.create("a", 3);
  f.fill("a", 0, "xy");
  f.fill("a", 2, "uv");
  f.read_from({at("a", 0), at("a", 1), at("a", 2)});

  EXPECT_THAT(f.poll_keys(), ElementsAre("0:x@0"));
  EXPECT_THAT(f.poll_keys(), ElementsAre("2:u@0"));
  EXPECT_THAT(f.poll_keys(), ElementsAre("0:y@1"));
  EXPECT_THAT(f.poll_keys(), ElementsAre("2:v@1"));
  EXPECT_THAT(f.poll_keys(), IsEmpty());
}

TEST(MemorySource, KeepsToTheBytesOfAPollAndOfAPartition) {
  SourceOptions options;
  options.poll_bytes_max = 7;       // records below have 2 bytes each
  options.partition_bytes_max = 4;  // two batches
  Fixture f(options);
  f.create("a", 2);
  f.fill("a", 0, "abc");
  f.fill("a", 1, "def");
  f.read_from({at("a", 0), at("a", 1)});

  EXPECT_THAT(f.poll_keys(), ElementsAre("0:a@0", "0:b@1", "1:d@0", "1:e@1"));
  EXPECT_THAT(f.poll_keys(), ElementsAre("0:c@2", "1:f@2"));
}

TEST(MemorySource, APollsBytesBoundBatchesThatHaveNone) {
  SourceOptions options;
  options.poll_bytes_max = 1;
  Fixture f(options);
  f.create("a");
  const SinkTopic a = f.open("a");
  ASSERT_TRUE(f.send(a, 0, {RecordRef{}}).ok());
  ASSERT_TRUE(f.send(a, 0, {RecordRef{}}).ok());
  f.read_from({at("a", 0)});

  EXPECT_EQ(f.poll().size(), 1U);
  EXPECT_EQ(f.poll().size(), 1U);
  EXPECT_EQ(f.poll().size(), 0U);
}

TEST(MemorySource, PausedPartitionsStaySilentAndLoseNothing) {
  Fixture f;
  f.create("a", 2);
  f.fill("a", 0, "x");
  f.fill("a", 1, "y");
  f.read_from({at("a", 0), at("a", 1)});

  f.source().pause(0);
  EXPECT_THAT(f.poll_keys(), ElementsAre("1:y@0"));
  EXPECT_THAT(f.poll_keys(), IsEmpty());
  f.source().resume(0);
  EXPECT_THAT(f.poll_keys(), ElementsAre("0:x@0"));
}

TEST(MemorySource, StaysSilentUntilTheTopicAndThePartitionAreMade) {
  Fixture f;
  f.read_from({at("later", 1)});
  EXPECT_THAT(f.poll(), IsEmpty());

  f.create("later", 1);
  EXPECT_THAT(f.poll(), IsEmpty());
  ASSERT_TRUE(f.backend.admin().grow_topic("later", 2).ok());
  f.fill("later", 1, "x");

  EXPECT_THAT(f.poll_keys(), ElementsAre("0:x@0"));
}

TEST(MemorySource, ReportsADeletedTopicOnceAndReadsTheNewOneAfterSeek) {
  Fixture f;
  const Uuid first = f.create("a");
  f.fill("a", 0, "xy");
  f.read_from({at("a", 0)});
  ASSERT_EQ(f.poll().size(), 2U);
  ASSERT_TRUE(f.backend.admin().delete_topic("a").ok());
  const Uuid second = f.create("a");
  f.fill("a", 0, "pqr");

  const std::vector<RecordBlock> blocks = f.poll();

  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].status.error().code(), Errc::kUnknownTopic);
  EXPECT_THAT(blocks[0].records, IsEmpty());
  EXPECT_EQ(blocks[0].topic_id, first);
  EXPECT_EQ(blocks[0].next_offset, Offset(2));
  EXPECT_THAT(f.poll(), IsEmpty());
  ASSERT_TRUE(f.source().seek(0, Offset(0)).ok());
  const std::vector<RecordBlock> anew = f.poll();
  ASSERT_EQ(anew.size(), 3U);
  EXPECT_EQ(anew[0].topic_id, second);
  EXPECT_EQ(anew[0].records.at(0).key.view(), "p");
}

TEST(MemorySource, ReportsATopicThatWasMadeAnewBeforeTheFirstPoll) {
  Fixture f;
  f.create("a");
  f.read_from({at("a", 0)});
  ASSERT_TRUE(f.backend.admin().delete_topic("a").ok());
  f.create("a");

  EXPECT_EQ(f.poll().at(0).status.error().code(), Errc::kUnknownTopic);
}

TEST(MemorySource, ReportsAnOffsetOutsideTheLogOnceUntilSeek) {
  Fixture f;
  f.create("a");
  f.fill("a", 0, "xyz");
  f.read_from({at("a", 0)}, Offset(4));

  EXPECT_EQ(f.poll().at(0).status.error().code(), Errc::kOffsetOutOfRange);
  EXPECT_THAT(f.poll(), IsEmpty());
  ASSERT_TRUE(f.source().seek(0, Offset(3)).ok());
  EXPECT_THAT(f.poll(), IsEmpty()) << "the end of the log is no error";
  ASSERT_TRUE(f.source().seek(0, Offset(0)).ok());
  ASSERT_TRUE(f.backend.admin().delete_records(at("a", 0), Offset(1)).ok());
  const std::vector<RecordBlock> blocks = f.poll();
  EXPECT_EQ(blocks.at(0).status.error().code(), Errc::kOffsetOutOfRange);
  EXPECT_EQ(blocks.at(0).next_offset, Offset(0));
  ASSERT_TRUE(f.source().seek(0, Offset(1)).ok());
  EXPECT_THAT(f.poll_keys(), ElementsAre("0:y@1", "0:z@2"));
}

TEST(MemorySource, RefusesSeeksThatNameNothing) {
  Fixture f;
  ASSERT_TRUE(f.source().assign({at("a", 0)}).ok());

  EXPECT_EQ(f.source().seek(1, Offset(0)).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(f.source().seek(0, Offset(-1)).error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(f.source().position(7), kNoOffset);
}

TEST(MemorySource, AssignReplacesTheAssignment) {
  Fixture f;
  f.create("a", 2);
  f.fill("a", 0, "x");
  f.fill("a", 1, "y");
  f.read_from({at("a", 0)});
  f.read_from({at("a", 1)});

  EXPECT_THAT(f.poll_keys(), ElementsAre("0:y@0"));
}

TEST(MemorySource, PollWaitsForARecordOfAnotherThread) {
  Fixture f;
  f.create("a");
  f.read_from({at("a", 0)});
  std::thread writer([&] { f.fill("a", 0, "x"); });

  const std::vector<RecordBlock> blocks = f.source().poll(hours(1)).value();

  writer.join();
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].records.at(0).key.view(), "x");
}

TEST(MemorySource, WakeupEndsThePresentOrTheNextPoll) {
  Fixture f;
  f.create("a");
  f.read_from({at("a", 0)});

  f.source().wakeup();
  EXPECT_THAT(f.source().poll(hours(1)).value(), IsEmpty());
  std::thread waker([&] { f.source().wakeup(); });
  EXPECT_THAT(f.source().poll(Duration::max()).value(), IsEmpty());
  waker.join();
}

TEST(MemorySource, PollGivesUpAfterItsTimeout) {
  Fixture f;
  const MonotonicTime start = system_clock().monotonic();

  EXPECT_THAT(f.source().poll(std::chrono::milliseconds(5)).value(), IsEmpty());

  EXPECT_GE(system_clock().monotonic() - start, std::chrono::milliseconds(5));
}

TEST(MemoryBackend, FailsTheNextMatchingCallOnce) {
  Fixture f;
  f.create("a");
  const SinkTopic a = f.open("a");
  const auto group = f.backend.make_group("g").value();
  const OffsetsToCommit offsets{{at("a", 0), {Offset(1), {}, ""}}};
  f.backend.fail_next(FaultPoint::kSend, Error(Errc::kNoSpace, "first"));
  f.backend.fail_next(FaultPoint::kSend, Error(Errc::kIo, "second"));
  f.backend.fail_next(FaultPoint::kFlush, Error(Errc::kTimedOut, "flush"));
  f.backend.fail_next(FaultPoint::kCommit, Error(Errc::kFenced, "commit"));
  f.backend.fail_next(FaultPoint::kPoll, Error(Errc::kIo, "poll"));

  EXPECT_EQ(f.send(a, 0, {record("1", "")}).error().message(), "first");
  EXPECT_EQ(f.send(a, 0, {record("1", "")}).error().code(), Errc::kIo);
  EXPECT_TRUE(f.send(a, 0, {record("1", "")}).ok());
  EXPECT_EQ(f.sink().flush().error().message(), "flush");
  EXPECT_EQ(flushed_text(f.sink().flush()), "0/0 end 1 epoch 0\n")
      << "a flush that failed has reported nothing";
  EXPECT_EQ(group->commit(offsets).error().message(), "commit");
  EXPECT_EQ(group->committed(std::vector{at("a", 0)}).value()[0], std::nullopt);
  EXPECT_TRUE(group->commit(offsets).ok());
  f.read_from({at("a", 0)});
  EXPECT_EQ(f.source().poll(Duration(0)).error().message(), "poll");
  EXPECT_THAT(f.poll_keys(), ElementsAre("0:1@0"));
}

// Four writers, two readers: every record once, each writer's in order.
TEST(MemoryBackend, KeepsOrderUnderThreads) {
  constexpr int kRecords = 500;
  Fixture f;
  f.create("a", 2);
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&, w] {
      const auto sink = f.backend.make_sink({}).value();
      const SinkTopic a = sink->open_topic("a").value().handle;
      for (int i = 0; i < kRecords; ++i) {
        const std::string key = std::to_string(w);
        const std::string value = std::to_string(i);
        const std::vector<RecordRef> one{record(key, value)};
        ASSERT_TRUE(sink->send(a, PartitionId(w % 2), one).ok());
      }
    });
  }
  std::vector<std::map<std::string, int>> seen(2);
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&, r] {
      std::map<std::string, int>& next = seen[static_cast<std::size_t>(r)];
      const auto source = f.backend.make_source({}).value();
      ASSERT_TRUE(source->assign({at("a", 0), at("a", 1)}).ok());
      ASSERT_TRUE(source->seek(0, Offset(0)).ok());
      ASSERT_TRUE(source->seek(1, Offset(0)).ok());
      for (int got = 0; got < 4 * kRecords;) {
        const auto blocks = source->poll(hours(1)).value();
        for (const RecordBlock& block : blocks) {
          for (const RecordView& view : block.records) {
            ASSERT_EQ(view.value.view(), std::to_string(next[std::string(view.key.view())]++));
            ++got;
          }
        }
      }
    });
  }
  for (std::thread& thread : writers) {
    thread.join();
  }
  for (std::thread& thread : readers) {
    thread.join();
  }

  const std::map<std::string, int> all{
      {"0", kRecords}, {"1", kRecords}, {"2", kRecords}, {"3", kRecords}};
  EXPECT_EQ(seen[0], all);
  EXPECT_EQ(seen[1], all);
  EXPECT_EQ(f.backend.records(at("a", 0)).size(), 2U * kRecords);
}

}  // namespace
}  // namespace weir::testing
