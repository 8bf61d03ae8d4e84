#include "tests/support/captured_log.h"
#include "tests/support/log_fixture.h"
#include "tests/support/size_of_run.h"

#include <weir/log/embedded_log.h>
#include <weir/runtime/logger.h>
#include <weir/runtime/rng.h>

#include <gtest/gtest.h>

#include <chrono>

namespace weir::log {
namespace {

using testing::CapturedLog;
using testing::LogFixture;
using Values = std::vector<std::string>;

std::optional<CommittedOffset> committed(EmbeddedLog& log, const std::string& group,
                                         const TopicPartition& partition) {
  auto member = log.make_group(group).value();
  const TopicPartition one[] = {partition};
  return member->committed(one).value()[0];
}

void commit(EmbeddedLog& log, const std::string& group, const TopicPartition& partition,
            std::int64_t offset) {
  auto member = log.make_group(group).value();
  const std::pair<TopicPartition, CommittedOffset> one[] = {
      {partition, {Offset(offset), LeaderEpoch(0), "meta"}}};
  const Status done = member->commit(one);
  ASSERT_TRUE(done.ok()) << done.error().to_string();
}

TEST(EmbeddedLog, GivesBackWhatWasWritten) {
  LogFixture f;
  f.open();
  f.create("lines", 2);
  f.send("lines", {"a", "b"}, 0);
  f.send("lines", {"c"}, 1);

  EXPECT_EQ(f.read("lines", 0), (Values{"a", "b"}));
  EXPECT_EQ(f.read("lines", 1), (Values{"c"}));
  EXPECT_EQ(f.read("lines", 0, 1), (Values{"b"}));
}

TEST(EmbeddedLog, KeepsTopicsAndRecordsOverACleanRestart) {
  LogFixture f;
  f.open();
  const TopicDescription made = f.create("lines", 1, {{"segment.ms", "1000"}});
  f.send("lines", {"a", "b"});
  f.close();
  EXPECT_TRUE(path_exists(*f.files, "data/log/.kafka_cleanshutdown"));

  f.open();

  EXPECT_FALSE(path_exists(*f.files, "data/log/.kafka_cleanshutdown"));
  const TopicDescription found = f.log->admin().describe_topic("lines").value();
  EXPECT_EQ(found.id, made.id);
  EXPECT_EQ(found.config, (TopicConfig{{"segment.ms", "1000"}}));
  EXPECT_EQ(f.read("lines"), (Values{"a", "b"}));
}

TEST(EmbeddedLog, KeepsWhatWasAcknowledgedOverAPowerCut) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    LogFixture f(seed);
    f.open();
    f.create("lines");
    f.send("lines", {"a", "b"});
    f.cut_power();

    f.open();

    EXPECT_EQ(f.read("lines"), (Values{"a", "b"}));
  }
}

TEST(EmbeddedLog, RaisesTheLeaderEpochWithTheFirstAppendAfterACrash) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"a"});
  f.crash();
  f.open();
  EXPECT_EQ(f.log->admin().offsets({"lines", PartitionId(0)})->leader_epoch, LeaderEpoch(0));

  f.send("lines", {"b"});
  f.send("lines", {"c"});

  EXPECT_EQ(f.log->admin().offsets({"lines", PartitionId(0)})->leader_epoch, LeaderEpoch(1));
  EXPECT_EQ(f.log->admin().epoch_end_offset({"lines", PartitionId(0)}, LeaderEpoch(0)).value(),
            Offset(1));
  f.close();
  f.open();
  f.send("lines", {"d"});
  EXPECT_EQ(f.log->admin().offsets({"lines", PartitionId(0)})->leader_epoch, LeaderEpoch(1));
  EXPECT_EQ(f.read("lines"), (Values{"a", "b", "c", "d"}));
}

TEST(EmbeddedLog, SaysWhatItRecovered) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"a"});
  f.crash();
  auto segment =
      f.files->open("data/log/lines-0/00000000000000000000.log", OpenMode::kReadWrite).value();
  ASSERT_TRUE(segment->write_at(segment->size().value(), "half a batch").ok());
  CapturedLog captured;

  f.open();

  EXPECT_NE(captured.text().find("recovered partition=lines-0 cut_bytes=12 cut_from_offset=1"),
            std::string::npos)
      << captured.text();
  EXPECT_NE(captured.text().find("recovered after an unclean end directory=data partitions=1"),
            std::string::npos)
      << captured.text();
  EXPECT_EQ(f.read("lines"), (Values{"a"}));
}

TEST(EmbeddedLog, RefusesASecondHolderAndNamesTheFirst) {
  LogFixture f;
  f.open();

  const auto second = EmbeddedLog::open("data", f.options());

  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Errc::kLocked);
  EXPECT_NE(second.error().message().find("pid "), std::string::npos) << second.error().message();
}

TEST(EmbeddedLog, IsReadBesideItsHolderUpToTheHighWatermark) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"a"});
  const auto reader = f.open_one(true);
  EXPECT_EQ(f.read_from(*reader, "lines"), (Values{"a"}));

  f.send("lines", {"b"});
  f.create("later");
  f.send("later", {"x"});

  EXPECT_EQ(f.read_from(*reader, "lines"), (Values{"a", "b"}));
  EXPECT_EQ(f.read_from(*reader, "later"), (Values{"x"}));
  EXPECT_EQ(reader->admin().create_topic({"no", 1, {}}).error().code(), Errc::kReadOnly);
}

TEST(EmbeddedLog, HidesFromReadersWhatIsNotDurable) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"a"});
  const auto reader = f.open_one(true);
  f.files->hold_submits(true);
  auto sink = f.log->make_sink({.batch_bytes = 100}).value();
  const SinkTopicInfo info = sink->open_topic("lines").value();
  const std::string value(200, 'b');
  for (int i = 0; i < 2; ++i) {  // the second pushes the first out of the open batch
    const RecordRef record{{}, ByteView(value), f.clock.now(), {}};
    ASSERT_TRUE(sink->send(info.handle, PartitionId(0), {&record, 1}).ok());
  }

  EXPECT_EQ(f.log->admin().offsets({"lines", PartitionId(0)})->log_end, Offset(2));
  EXPECT_EQ(f.log->admin().offsets({"lines", PartitionId(0)})->high_watermark, Offset(1));
  EXPECT_EQ(f.read("lines"), (Values{"a"}));
  EXPECT_EQ(f.read_from(*reader, "lines"), (Values{"a"}));

  f.files->hold_submits(false);
  f.files->run_submitted();
  EXPECT_EQ(f.read("lines").size(), 2U);
}

TEST(EmbeddedLog, ShowsMemoryTopicsAtOnce) {
  LogFixture f;
  f.open();
  f.create("lines", 1, {{"weir.durability", "memory"}});
  f.files->hold_submits(true);

  f.send("lines", {"a"});

  EXPECT_EQ(f.read("lines"), (Values{"a"}));
}

TEST(EmbeddedLog, CommitsOffsetsThatSurvive) {
  LogFixture f;
  f.open();
  f.create("lines", 2);
  commit(*f.log, "g1", {"lines", PartitionId(0)}, 7);
  commit(*f.log, "g1", {"lines", PartitionId(1)}, 3);
  commit(*f.log, "g2", {"lines", PartitionId(0)}, 1);
  commit(*f.log, "g1", {"lines", PartitionId(0)}, 9);
  f.cut_power();
  f.open();

  EXPECT_EQ(committed(*f.log, "g1", {"lines", PartitionId(0)})->offset, Offset(9));
  EXPECT_EQ(committed(*f.log, "g1", {"lines", PartitionId(0)})->metadata, "meta");
  EXPECT_EQ(committed(*f.log, "g1", {"lines", PartitionId(1)})->offset, Offset(3));
  EXPECT_EQ(committed(*f.log, "g2", {"lines", PartitionId(0)})->offset, Offset(1));
  EXPECT_FALSE(committed(*f.log, "g3", {"lines", PartitionId(0)}).has_value());
}

TEST(EmbeddedLog, KeepsTheInternalTopicOutOfUsersHands) {
  LogFixture f;
  f.open();
  f.create("lines");
  commit(*f.log, "g", {"lines", PartitionId(0)}, 1);

  EXPECT_EQ(f.log->admin().delete_topic("__consumer_offsets").error().code(), Errc::kInvalidTopic);
  EXPECT_EQ(f.log->admin().create_topic({"__transaction_state", 1, {}}).error().code(),
            Errc::kInvalidTopic);
  EXPECT_TRUE(f.log->admin().describe_topic("__consumer_offsets")->internal);
}

TEST(EmbeddedLog, DeletesATopicWithItsRecordsAndOffsets) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.create("other");
  f.send("lines", {"old"});
  commit(*f.log, "g", {"lines", PartitionId(0)}, 1);
  commit(*f.log, "g", {"other", PartitionId(0)}, 4);

  ASSERT_TRUE(f.log->admin().delete_topic("lines").ok());

  EXPECT_FALSE(path_exists(*f.files, "data/log/lines-0"));
  EXPECT_EQ(f.log->admin().describe_topic("lines").error().code(), Errc::kUnknownTopic);
  f.create("lines");
  EXPECT_EQ(f.read("lines"), Values{});
  EXPECT_FALSE(committed(*f.log, "g", {"lines", PartitionId(0)}).has_value());
  f.close();
  f.open();
  EXPECT_FALSE(committed(*f.log, "g", {"lines", PartitionId(0)}).has_value());
  EXPECT_EQ(committed(*f.log, "g", {"other", PartitionId(0)})->offset, Offset(4));
}

TEST(EmbeddedLog, TellsASourceThatItsTopicWasDeletedAndMadeAgain) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"old"});
  auto source = f.log->make_source({}).value();
  ASSERT_TRUE(source->assign({{"lines", PartitionId(0)}}).ok());
  ASSERT_TRUE(source->seek(0, Offset(0)).ok());
  ASSERT_EQ(source->poll(Duration::zero())->size(), 1U);

  ASSERT_TRUE(f.log->admin().delete_topic("lines").ok());
  f.create("lines");
  f.send("lines", {"new"});
  const auto blocks = source->poll(Duration::zero()).value();

  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].status.error().code(), Errc::kUnknownTopic);
  EXPECT_TRUE(source->poll(Duration::zero())->empty());
  ASSERT_TRUE(source->seek(0, Offset(0)).ok());
  const auto again = source->poll(Duration::zero()).value();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].records[0].value.view(), "new");
}

TEST(EmbeddedLog, WaitsForATopicThatIsMadeLater) {
  LogFixture f;
  f.open();
  auto source = f.log->make_source({}).value();
  ASSERT_TRUE(source->assign({{"lines", PartitionId(0)}}).ok());
  ASSERT_TRUE(source->seek(0, Offset(0)).ok());
  EXPECT_TRUE(source->poll(Duration::zero())->empty());

  f.create("lines");
  f.send("lines", {"a"});

  EXPECT_EQ(source->poll(Duration::zero())->size(), 1U);
}

TEST(EmbeddedLog, FinishesADeletionThatACrashCutShort) {
  for (std::uint64_t operation = 0;; ++operation) {
    SCOPED_TRACE(operation);
    LogFixture f(operation + 1);
    f.open();
    f.create("lines", 2);
    f.send("lines", {"a"}, 0);
    f.send("lines", {"b"}, 1);
    commit(*f.log, "g", {"lines", PartitionId(0)}, 1);
    f.files->cut_power_at(operation);
    const Status deleted = f.log->admin().delete_topic("lines");
    const bool reached = f.files->power_is_off();
    f.cut_power();
    f.open();

    const bool there = f.log->admin().describe_topic("lines").ok();
    EXPECT_FALSE(there && deleted.ok());
    if (there) {
      EXPECT_EQ(f.read("lines", 0), (Values{"a"}));
    } else {
      EXPECT_FALSE(path_exists(*f.files, "data/log/lines-0"));
      f.create("lines", 2);
      EXPECT_EQ(f.read("lines", 0), Values{});
      EXPECT_FALSE(committed(*f.log, "g", {"lines", PartitionId(0)}).has_value());
    }
    if (!reached) {
      break;
    }
  }
}

TEST(EmbeddedLog, MakesATopicWhollyOrNotAtAll) {
  for (std::uint64_t operation = 0;; ++operation) {
    SCOPED_TRACE(operation);
    LogFixture f(operation + 1);
    f.open();
    f.create("first");
    f.files->cut_power_at(operation);
    const bool made = f.log->admin().create_topic({"lines", 3, {{"retention.ms", "5"}}}).ok();
    const bool reached = f.files->power_is_off();
    f.cut_power();
    f.open();

    const auto found = f.log->admin().describe_topic("lines");
    EXPECT_TRUE(found.ok() || !made);
    if (found.ok()) {
      EXPECT_EQ(found->partitions, 3);
      EXPECT_EQ(found->config.at("retention.ms"), "5");
    }
    EXPECT_TRUE(f.log->admin().describe_topic("first").ok());
    if (!reached) {
      break;
    }
  }
}

TEST(EmbeddedLog, RefusesIllegalTopics) {
  LogFixture f;
  f.open();
  f.create("a.b");
  Admin& admin = f.log->admin();

  for (const char* name : {"", ".", "..", "has space", "slash/",
                           "gr\xc3\xb6\xc3\x9f"
                           "e"}) {
    EXPECT_EQ(admin.create_topic({name, 1, {}}).error().code(), Errc::kInvalidTopic) << name;
  }
  EXPECT_EQ(admin.create_topic({std::string(250, 'x'), 1, {}}).error().code(), Errc::kInvalidTopic);
  EXPECT_EQ(admin.create_topic({"a_b", 1, {}}).error().code(), Errc::kInvalidTopic);
  EXPECT_EQ(admin.create_topic({"a.b", 1, {}}).error().code(), Errc::kTopicExists);
  EXPECT_EQ(admin.create_topic({"x", 0, {}}).error().code(), Errc::kInvalidArgument);
}

TEST(EmbeddedLog, ReportsEveryBadSettingWithTheNearestName) {
  LogFixture f;
  f.open();

  const auto made = f.log->admin().create_topic(
      {"lines",
       1,
       {{"retention.mss", "5"}, {"segment.bytes", "lots"}, {"weir.durability", "maybe"}}});

  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), Errc::kInvalidConfig);
  for (const char* part :
       {"retention.mss", "retention.ms", "segment.bytes", "lots", "weir.durability", "maybe"}) {
    EXPECT_NE(made.error().message().find(part), std::string::npos) << made.error().message();
  }
}

TEST(EmbeddedLog, RefusesAFolderOfAnotherProgram) {
  LogFixture f;
  ASSERT_TRUE(f.files->create_directories("data").ok());
  ASSERT_TRUE(f.files->open("data/photo.jpg", OpenMode::kCreateNew).ok());

  const auto opened = EmbeddedLog::open("data", f.options());

  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Errc::kInvalidArgument);
  EXPECT_NE(opened.error().message().find("photo.jpg"), std::string::npos);
}

// cases.md N20.
TEST(EmbeddedLog, LeavesForeignEntriesAloneAndNamesThemOnce) {
  LogFixture f;
  ASSERT_TRUE(f.files->create_directories("data/lost+found").ok());
  f.open();
  f.create("lines");
  f.send("lines", {"a"});
  f.close();
  ASSERT_TRUE(f.files->create_directories("data/log/lost+found").ok());
  ASSERT_TRUE(f.files->create_directories("data/log/backup").ok());
  ASSERT_TRUE(f.files->open("data/log/notes.txt", OpenMode::kCreateNew).ok());
  CapturedLog captured;

  f.open();

  EXPECT_NE(captured.text().find("backup, lost+found, notes.txt"), std::string::npos)
      << captured.text();
  EXPECT_EQ(f.read("lines"), (Values{"a"}));
  EXPECT_TRUE(path_exists(*f.files, "data/log/notes.txt"));
}

// cases.md N20: one unreadable file keeps one partition back, not the others.
TEST(EmbeddedLog, ServesTheOtherTopicsWhenAFileCannotBeRead) {
  LogFixture f;
  f.open();
  for (const char* topic : {"one", "two", "three"}) {
    f.create(topic);
    f.send(topic, {topic});
  }
  f.crash();
  f.files->set_fault([](testing::MemoryFileSystem::Operation operation, const std::string& path) {
    const bool broken = operation == testing::MemoryFileSystem::Operation::kRead &&
                        path.find("two-0") != std::string::npos && path.ends_with(".log");
    return broken ? Status(Error(Errc::kIo, "read " + path + ": Permission denied (errno 13)"))
                  : Status();
  });
  CapturedLog captured;

  f.open();

  EXPECT_NE(captured.text().find("errno 13"), std::string::npos) << captured.text();
  EXPECT_EQ(f.read("one"), (Values{"one"}));
  EXPECT_EQ(f.read("three"), (Values{"three"}));
  EXPECT_EQ(f.log->admin().offsets({"two", PartitionId(0)}).error().code(), Errc::kIo);
  f.close();
  f.files->set_fault(nullptr);
  f.open();
  EXPECT_EQ(f.read("two"), (Values{"two"}));
}

TEST(EmbeddedLog, GoesOnAfterAFullDisk) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"a"});
  f.files->set_fault([](testing::MemoryFileSystem::Operation operation, const std::string& path) {
    const bool full = operation == testing::MemoryFileSystem::Operation::kWrite &&
                      path.find("lines-0") != std::string::npos;
    return full ? Status(Error(Errc::kNoSpace, "write " + path + ": No space left on device"))
                : Status();
  });
  auto sink = f.log->make_sink({}).value();
  const SinkTopicInfo info = sink->open_topic("lines").value();
  const RecordRef record{{}, ByteView("b"), f.clock.now(), {}};
  ASSERT_TRUE(sink->send(info.handle, PartitionId(0), {&record, 1}).ok());

  const auto flushed = sink->flush();

  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().code(), Errc::kNoSpace);
  EXPECT_TRUE(is_retriable(flushed.error().code()));
  EXPECT_EQ(f.read("lines"), (Values{"a"}));
  f.files->set_fault(nullptr);
  ASSERT_TRUE(sink->send(info.handle, PartitionId(0), {&record, 1}).ok());
  ASSERT_TRUE(sink->flush().ok());
  EXPECT_EQ(f.read("lines"), (Values{"a", "b"}));
}

TEST(EmbeddedLog, RefusesARecordThatIsTooLargeAndTakesTheNext) {
  LogFixture f;
  f.open();
  f.create("lines", 1, {{"max.message.bytes", "1000"}});
  auto sink = f.log->make_sink({}).value();
  const SinkTopicInfo info = sink->open_topic("lines").value();
  const std::string large(1000, 'x');
  const RecordRef record{{}, ByteView(large), f.clock.now(), {}};

  const Status sent = sink->send(info.handle, PartitionId(0), {&record, 1});

  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code(), Errc::kRecordTooLarge);
  EXPECT_NE(sent.error().message().find("1000"), std::string::npos);
  const RecordRef small{{}, ByteView("a"), f.clock.now(), {}};
  ASSERT_TRUE(sink->send(info.handle, PartitionId(0), {&small, 1}).ok());
  ASSERT_TRUE(sink->flush().ok());
  EXPECT_EQ(f.read("lines"), (Values{"a"}));
}

TEST(EmbeddedLog, AnswersOutOfRangeWithTheBorders) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"a"});
  auto source = f.log->make_source({}).value();
  ASSERT_TRUE(source->assign({{"lines", PartitionId(0)}}).ok());
  ASSERT_TRUE(source->seek(0, Offset(5)).ok());

  const auto blocks = source->poll(Duration::zero()).value();

  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].status.error().code(), Errc::kOffsetOutOfRange);
}

TEST(EmbeddedLog, PausesAndResumesAPartition) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"a"});
  auto source = f.log->make_source({}).value();
  ASSERT_TRUE(source->assign({{"lines", PartitionId(0)}}).ok());
  ASSERT_TRUE(source->seek(0, Offset(0)).ok());
  source->pause(0);
  EXPECT_TRUE(source->poll(Duration::zero())->empty());

  source->resume(0);

  EXPECT_EQ(source->poll(Duration::zero())->size(), 1U);
  EXPECT_EQ(source->position(0), Offset(1));
}

TEST(EmbeddedLog, DeletesRecordsAndTheSegmentsBelowThem) {
  LogFixture f;
  f.open();
  f.create("lines", 1, {{"segment.bytes", "200"}});
  for (const char* value : {"a", "b", "c", "d", "e", "f"}) {
    f.send("lines", {std::string(60, *value)});
  }
  const TopicPartition lines{"lines", PartitionId(0)};

  ASSERT_TRUE(f.log->admin().delete_records(lines, Offset(5)).ok());

  EXPECT_EQ(f.log->admin().offsets(lines)->log_start, Offset(5));
  EXPECT_EQ(f.read("lines", 0, 5), (Values{std::string(60, 'f')}));
  EXPECT_FALSE(path_exists(*f.files, "data/log/lines-0/00000000000000000000.log"));
  EXPECT_EQ(f.log->admin().delete_records(lines, Offset(7)).error().code(),
            Errc::kOffsetOutOfRange);
  EXPECT_TRUE(f.log->admin().delete_records(lines, Offset(2)).ok());
  f.cut_power();
  f.open();
  EXPECT_EQ(f.log->admin().offsets(lines)->log_start, Offset(5));
  EXPECT_EQ(f.read("lines", 0, 5), (Values{std::string(60, 'f')}));
  f.send("lines", {"g"});
  EXPECT_EQ(f.read("lines", 0, 6), (Values{"g"}));
}

TEST(EmbeddedLog, KeepsAWholeLogWhenADeletionOfRecordsIsCutShort) {
  for (std::uint64_t operation = 0;; ++operation) {
    SCOPED_TRACE(operation);
    LogFixture f(operation + 1);
    f.open();
    f.create("lines", 1, {{"segment.bytes", "200"}});
    for (const char* value : {"a", "b", "c", "d", "e", "f"}) {
      f.send("lines", {std::string(60, *value)});
    }
    const TopicPartition lines{"lines", PartitionId(0)};
    f.files->cut_power_at(operation);
    const bool deleted = f.log->admin().delete_records(lines, Offset(4)).ok();
    const bool reached = f.files->power_is_off();
    f.cut_power();
    f.open();

    const Offset start = f.log->admin().offsets(lines)->log_start;
    EXPECT_TRUE(start == Offset(0) || start == Offset(4)) << start.value();
    EXPECT_TRUE(!deleted || start == Offset(4));
    EXPECT_EQ(f.read("lines", 0, start.value()).size(),
              static_cast<std::size_t>(6 - start.value()));
    if (!reached) {
      break;
    }
  }
}

// Any interleaving of topics, records, commits, crashes and power cuts: what was acknowledged is
// there.
TEST(EmbeddedLog, LosesNothingAcknowledgedWhateverHappens) {
  const std::uint64_t seeds = weir::testing::rounds<std::uint64_t>(40, 500);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    LogFixture f(seed);
    f.open();
    f.create("lines", 2, {{"segment.bytes", "600"}});
    std::vector<Values> acknowledged(2);
    std::int64_t committed_offset = -1;
    for (int step = 0; step < 60; ++step) {
      const auto partition = static_cast<std::int32_t>(rng.below(2));
      switch (rng.below(8)) {
        case 0:
          f.crash();
          f.open();
          break;
        case 1:
          f.cut_power();
          f.open();
          break;
        case 2:
          f.close();
          f.open();
          break;
        case 3:
          committed_offset = step;
          commit(*f.log, "g", {"lines", PartitionId(0)}, committed_offset);
          break;
        default: {
          const Values batch(rng.below(4) + 1,
                             std::to_string(step) + std::string(rng.below(60), 'x'));
          f.send("lines", batch, partition);
          auto& all = acknowledged[static_cast<std::size_t>(partition)];
          all.insert(all.end(), batch.begin(), batch.end());
        }
      }
      ASSERT_EQ(f.read("lines", partition), acknowledged[static_cast<std::size_t>(partition)])
          << "step " << step;
    }
    if (committed_offset >= 0) {
      EXPECT_EQ(committed(*f.log, "g", {"lines", PartitionId(0)})->offset,
                Offset(committed_offset));
    }
  }
}

}  // namespace
}  // namespace weir::log
