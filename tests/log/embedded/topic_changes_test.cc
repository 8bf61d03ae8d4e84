#include "log/partition/topic_settings.h"
#include "log/record/batch_header.h"
#include "tests/support/log_fixture.h"
#include "tests/support/size_of_run.h"

#include <weir/log/embedded_log.h>
#include <weir/runtime/rng.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

// Topics that change while they are open: partitions, settings, deleted records.

namespace weir::log {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LogFixture;
using Values = std::vector<std::string>;

TopicPartition lines(std::int32_t partition = 0) {
  return {"lines", PartitionId(partition)};
}

// The headers of the batches in the newest segment of lines-0, as they lie on disk.
std::vector<BatchHeader> stored_batches(LogFixture& f) {
  std::string newest;
  const auto entries = f.files->list("data/log/lines-0").value();
  for (const DirectoryEntry& entry : entries) {
    if (entry.name.ends_with(".log")) {
      newest = std::max(newest, entry.name);
    }
  }
  const std::string bytes = read_file(*f.files, "data/log/lines-0/" + newest).value();
  std::vector<BatchHeader> headers;
  ByteView rest = bytes;
  while (rest.size() > kBatchHeaderBytes && rest[16] == 2) {  // behind it: reserved zeros
    headers.push_back(read_batch_header(rest).value());
    rest.remove_prefix(headers.back().size_bytes());
  }
  return headers;
}

int segments_of_lines(LogFixture& f) {
  const auto entries = f.files->list("data/log/lines-0").value();
  return static_cast<int>(std::count_if(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.name.ends_with(".log");
  }));
}

// --- Partitions

TEST(GrowTopic, AddsPartitionsThatAreThereAtOnceAndAfterAPowerCut) {
  LogFixture f;
  f.open();
  const TopicDescription made = f.create("lines", 2, {{"segment.ms", "1000"}});
  f.send("lines", {"a"}, 1);

  ASSERT_TRUE(f.log->admin().grow_topic("lines", 5).ok());
  f.send("lines", {"b"}, 4);
  f.cut_power();
  f.open();

  const TopicDescription grown = f.log->admin().describe_topic("lines").value();
  EXPECT_EQ(grown.partitions, 5);
  EXPECT_EQ(grown.id, made.id);
  EXPECT_EQ(grown.config, made.config);
  EXPECT_EQ(f.read("lines", 1), (Values{"a"}));
  EXPECT_EQ(f.read("lines", 4), (Values{"b"}));
  EXPECT_EQ(f.read("lines", 3), Values{});
}

TEST(GrowTopic, HappensWhollyOrNotAtAll) {
  for (std::uint64_t operation = 0;; ++operation) {
    SCOPED_TRACE(operation);
    LogFixture f(operation + 1);
    f.open();
    f.create("lines", 2);
    f.send("lines", {"a"}, 1);
    f.files->cut_power_at(operation);
    const bool grown = f.log->admin().grow_topic("lines", 9).ok();
    const bool reached = f.files->power_is_off();
    f.cut_power();
    f.open();

    const std::int32_t count = f.log->admin().describe_topic("lines")->partitions;
    EXPECT_TRUE(count == 9 || (count == 2 && !grown)) << count;
    EXPECT_EQ(f.read("lines", 1), (Values{"a"}));
    if (!reached) {
      break;
    }
  }
}

TEST(GrowTopic, RefusesWhatIsNoGrowthAndSaysWhy) {
  LogFixture f;
  f.open();
  f.create("lines", 3);
  Admin& admin = f.log->admin();

  for (const std::int32_t count : {-1, 0, 2, 3, 100'001}) {
    const Status refused = admin.grow_topic("lines", count);
    ASSERT_FALSE(refused.ok()) << count;
    EXPECT_EQ(refused.error().code(), Errc::kInvalidArgument);
    EXPECT_THAT(refused.error().message(), HasSubstr("topic lines has 3 partitions"));
  }
  EXPECT_EQ(admin.grow_topic("line", 4).error().code(), Errc::kUnknownTopic);
  EXPECT_THAT(admin.grow_topic("line", 4).error().message(), HasSubstr("did you mean lines?"));
  EXPECT_EQ(admin.grow_topic("__consumer_offsets", 99).error().code(), Errc::kInvalidTopic);
  EXPECT_EQ(f.open_one(true)->admin().grow_topic("lines", 4).error().code(), Errc::kReadOnly);
  EXPECT_EQ(admin.describe_topic("lines")->partitions, 3);
}

TEST(GrowTopic, MovesTheKeysOfAnOrderedTopicOnlyWhenItIsForced) {
  LogFixture f;
  f.open();
  f.create("lines", 2, {{"weir.ordered", "true"}});
  f.create("other", 2, {{"weir.ordered", "false"}});
  Admin& admin = f.log->admin();

  const Status refused = admin.grow_topic("lines", 4);

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kInvalidArgument);
  EXPECT_THAT(refused.error().message(), HasSubstr("weir.ordered=true"));
  EXPECT_EQ(admin.describe_topic("lines")->partitions, 2);
  EXPECT_TRUE(admin.grow_topic("other", 4).ok());
  EXPECT_TRUE(admin.grow_topic("lines", 4, OrderedGrowth::kForce).ok());
  EXPECT_EQ(admin.describe_topic("lines")->partitions, 4);
}

TEST(GrowTopic, IsSeenByOpenSourcesAndSinks) {
  LogFixture f;
  f.open();
  f.create("lines", 1);
  f.send("lines", {"a"}, 0);
  auto source = f.log->make_source({}).value();
  ASSERT_TRUE(source->assign({lines(0), lines(2)}).ok());  // the second is not there yet
  ASSERT_TRUE(source->seek(0, Offset(0)).ok());
  ASSERT_TRUE(source->seek(1, Offset(0)).ok());
  EXPECT_EQ(source->poll(Duration::zero())->size(), 1U);
  auto sink = f.log->make_sink({}).value();
  const SinkTopicInfo before = sink->open_topic("lines").value();
  const auto reader = f.open_one(true);
  EXPECT_EQ(reader->admin().describe_topic("lines")->partitions, 1);

  ASSERT_TRUE(f.log->admin().grow_topic("lines", 3).ok());

  const RecordRef record{{}, ByteView("b"), f.clock.now(), {}};
  const Status old_handle = sink->send(before.handle, PartitionId(2), {&record, 1});
  EXPECT_THAT(old_handle.error().message(), HasSubstr("must be opened again"));
  EXPECT_TRUE(sink->send(before.handle, PartitionId(0), {&record, 1}).ok());
  const SinkTopicInfo after = sink->open_topic("lines").value();
  EXPECT_EQ(after.partitions, 3);
  EXPECT_TRUE(sink->send(after.handle, PartitionId(2), {&record, 1}).ok());
  ASSERT_TRUE(sink->flush().ok());
  const auto blocks = source->poll(Duration::zero()).value();
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(source->position(0), Offset(2));
  EXPECT_EQ(source->position(1), Offset(1));
  EXPECT_EQ(reader->admin().describe_topic("lines")->partitions, 3);
  EXPECT_EQ(LogFixture::read_from(*reader, "lines", 2), (Values{"b"}));
}

class Assignments : public GroupListener {
 public:
  void on_assigned(std::span<const TopicPartition> partitions) override {
    assigned.insert(assigned.end(), partitions.begin(), partitions.end());
  }
  void on_revoked(std::span<const TopicPartition> /*partitions*/) override { lost = true; }
  void on_lost(std::span<const TopicPartition> /*partitions*/) override { lost = true; }
  std::vector<TopicPartition> assigned;
  bool lost = false;
};

TEST(GrowTopic, GivesTheNewPartitionsToAGroup) {
  LogFixture f;
  f.open();
  f.create("lines", 1);
  auto group = f.log->make_group("g").value();
  Assignments seen;
  ASSERT_TRUE(group->join({"lines"}, "", seen).ok());
  ASSERT_TRUE(group->poll().ok());
  EXPECT_THAT(seen.assigned, ElementsAre(lines(0)));

  ASSERT_TRUE(f.log->admin().grow_topic("lines", 3).ok());
  ASSERT_TRUE(group->poll().ok());

  EXPECT_THAT(seen.assigned, ElementsAre(lines(0), lines(1), lines(2)));
  EXPECT_FALSE(seen.lost);
}

// --- Settings

TEST(AlterTopic, SetsAndRemovesSettingsDurably) {
  LogFixture f;
  f.open();
  f.create("lines", 1, {{"segment.ms", "1000"}, {"retention.ms", "5"}});

  ASSERT_TRUE(f.log->admin()
                  .alter_topic("lines", {{"retention.ms", "7"}, {"compression.type", "zstd"}},
                               {"segment.ms", "flush.ms"})
                  .ok());

  const TopicConfig expected = {{"retention.ms", "7"}, {"compression.type", "zstd"}};
  EXPECT_EQ(f.log->admin().describe_topic("lines")->config, expected);
  f.cut_power();
  f.open();
  EXPECT_EQ(f.log->admin().describe_topic("lines")->config, expected);
}

TEST(AlterTopic, HappensWhollyOrNotAtAll) {
  for (std::uint64_t operation = 0;; ++operation) {
    SCOPED_TRACE(operation);
    LogFixture f(operation + 1);
    f.open();
    f.create("lines", 1, {{"weir.durability", "memory"}, {"retention.ms", "5"}});
    f.send("lines", {"a"});
    f.files->cut_power_at(operation);
    const bool altered =
        f.log->admin().alter_topic("lines", {{"weir.durability", "fsync"}}, {"retention.ms"}).ok();
    const bool reached = f.files->power_is_off();
    f.cut_power();
    f.open();

    const TopicConfig config = f.log->admin().describe_topic("lines")->config;
    const TopicConfig before = {{"weir.durability", "memory"}, {"retention.ms", "5"}};
    const TopicConfig after = {{"weir.durability", "fsync"}};
    EXPECT_TRUE(config == after || (config == before && !altered));
    if (config == after) {
      EXPECT_EQ(f.read("lines"), (Values{"a"}));  // on disk before the topic was called so
    }
    if (!reached) {
      break;
    }
  }
}

TEST(AlterTopic, ReportsEveryMistakeAndChangesNothing) {
  LogFixture f;
  f.open();
  f.create("lines", 1, {{"retention.ms", "5"}});

  const Status refused = f.log->admin().alter_topic("lines",
                                                    {{"segment.bytes", "-5"},
                                                     {"retention.m", "7"},
                                                     {"compression.type", "none"},
                                                     {"compression.gzip.level", "0"},
                                                     {"flush.ms", "1"}},
                                                    {"flush.ms", "segment.byte"});

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kInvalidConfig);
  for (const char* part :
       {"6 settings are not valid", "segment.bytes=", "did you mean \"retention.ms\"?",
        "compression.type=", "compression.gzip.level=", "flush.ms is to be set and to be removed",
        "did you mean \"segment.bytes\"?"}) {
    EXPECT_THAT(refused.error().message(), HasSubstr(part));
  }
  EXPECT_EQ(f.log->admin().describe_topic("lines")->config, (TopicConfig{{"retention.ms", "5"}}));
  EXPECT_EQ(f.log->admin().alter_topic("line", {}, {}).error().code(), Errc::kUnknownTopic);
  EXPECT_EQ(f.open_one(true)->admin().alter_topic("lines", {}, {}).error().code(), Errc::kReadOnly);
}

TEST(AlterTopic, KeepsTheLogsOwnTopicsOnDisk) {
  LogFixture f;
  f.open();
  f.create("lines");
  const std::pair<TopicPartition, CommittedOffset> offset[] = {{lines(), {Offset(1), {}, ""}}};
  ASSERT_TRUE(f.log->make_group("g").value()->commit(offset).ok());
  Admin& admin = f.log->admin();

  EXPECT_EQ(
      admin.alter_topic("__consumer_offsets", {{"weir.durability", "memory"}}, {}).error().code(),
      Errc::kInvalidConfig);
  EXPECT_TRUE(admin.alter_topic("__consumer_offsets", {{"segment.bytes", "1000000"}}, {}).ok());
}

TEST(AlterTopic, ChangesTheCodecOfWhatComesNext) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"a"});
  ASSERT_TRUE(f.log->admin().alter_topic("lines", {{"compression.type", "zstd"}}, {}).ok());
  f.send("lines", {"b"});
  ASSERT_TRUE(f.log->admin().alter_topic("lines", {}, {"compression.type"}).ok());
  f.send("lines", {"c"});

  std::vector<int> codecs;
  for (const BatchHeader& header : stored_batches(f)) {
    codecs.push_back(header.codec_bits());
  }
  EXPECT_THAT(codecs, ElementsAre(0, 4, 0));
  EXPECT_EQ(f.read("lines"), (Values{"a", "b", "c"}));
}

TEST(AlterTopic, ReachesASinkThatIsOpen) {
  LogFixture f;
  f.open();
  f.create("lines");
  auto sink = f.log->make_sink({.compression = {Codec::kGzip, {}}}).value();
  const SinkTopicInfo topic = sink->open_topic("lines").value();
  const auto send = [&](ByteView value) {
    const RecordRef record{{}, value, f.clock.now(), {}};
    ASSERT_TRUE(sink->send(topic.handle, PartitionId(0), {&record, 1}).ok());
    ASSERT_TRUE(sink->flush().ok());
  };
  send("a");
  ASSERT_TRUE(f.log->admin().alter_topic("lines", {{"compression.type", "lz4"}}, {}).ok());
  send("b");
  send("c");
  ASSERT_TRUE(f.log->admin().alter_topic("lines", {{"compression.type", "uncompressed"}}, {}).ok());
  send("d");
  ASSERT_TRUE(f.log->admin().alter_topic("lines", {{"compression.type", "producer"}}, {}).ok());
  send("e");
  send("f");

  std::vector<int> codecs;
  for (const BatchHeader& header : stored_batches(f)) {
    codecs.push_back(header.codec_bits());
  }
  // "e" was sealed by a builder that had not heard of the change: it is stored as it came.
  EXPECT_THAT(codecs, ElementsAre(1, 3, 3, 0, 0, 1));
  EXPECT_EQ(f.read("lines"), (Values{"a", "b", "c", "d", "e", "f"}));
}

TEST(AlterTopic, ChangesRollsTimestampsAndLimitsAtOnce) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {std::string(200, 'a'), std::string(200, 'b')});
  EXPECT_EQ(segments_of_lines(f), 1);

  ASSERT_TRUE(
      f.log->admin()
          .alter_topic("lines",
                       {{"segment.bytes", "300"}, {"message.timestamp.type", "LogAppendTime"}}, {})
          .ok());
  f.clock.advance(std::chrono::hours(5));
  f.send("lines", {"c"});

  EXPECT_EQ(segments_of_lines(f), 2);
  EXPECT_EQ(stored_batches(f).back().timestamp_type(), TimestampType::kLogAppendTime);
  EXPECT_EQ(stored_batches(f).back().max_timestamp, f.clock.now());

  ASSERT_TRUE(f.log->admin().alter_topic("lines", {{"max.message.bytes", "100"}}, {}).ok());
  auto sink = f.log->make_sink({}).value();
  const SinkTopicInfo topic = sink->open_topic("lines").value();
  const std::string large(150, 'd');
  const RecordRef record{{}, ByteView(large), f.clock.now(), {}};
  EXPECT_EQ(sink->send(topic.handle, PartitionId(0), {&record, 1}).error().code(),
            Errc::kRecordTooLarge);
  ASSERT_TRUE(f.log->admin().alter_topic("lines", {}, {"max.message.bytes"}).ok());
  f.send("lines", {large});
}

TEST(AlterTopic, MakesAMemoryTopicSurviveAPowerCutFromThenOn) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    LogFixture f(seed);
    f.open();
    f.create("lines", 2, {{"weir.durability", "memory"}, {"segment.bytes", "200"}});
    for (const char* value : {"a", "b", "c"}) {
      f.send("lines", {std::string(60, *value)});
    }
    ASSERT_TRUE(f.log->admin().alter_topic("lines", {{"weir.durability", "fsync"}}, {}).ok());
    f.send("lines", {"d"});
    f.send("lines", {"e"}, 1);
    f.cut_power();
    f.open();

    EXPECT_EQ(f.read("lines"),
              (Values{std::string(60, 'a'), std::string(60, 'b'), std::string(60, 'c'), "d"}));
    EXPECT_EQ(f.read("lines", 1), (Values{"e"}));
  }
}

// One thread appends, another changes everything that can change: no record is lost or damaged.
TEST(AlterTopic, RunsBesideAppends) {
  LogFixture f;
  f.open();
  f.create("lines");
  constexpr int kRecords = 2000;
  std::atomic<bool> stop{false};
  std::thread changes([&] {
    const char* codecs[] = {"gzip", "producer", "lz4", "uncompressed", "snappy", "zstd"};
    for (std::size_t i = 0; !stop; ++i) {
      const Status altered =
          f.log->admin().alter_topic("lines",
                                     {{"compression.type", codecs[i % 6]},
                                      {"segment.bytes", std::to_string(20000 + i % 3 * 10000)},
                                      {"weir.durability", i % 2 == 0 ? "memory" : "fsync"}},
                                     {});
      EXPECT_TRUE(altered.ok()) << altered.error().to_string();
    }
  });
  Values sent;
  auto sink = f.log->make_sink({.batch_bytes = 500, .compression = {Codec::kLz4, {}}}).value();
  const SinkTopicInfo topic = sink->open_topic("lines").value();
  for (int i = 0; i < kRecords; ++i) {
    sent.push_back("value " + std::to_string(i));
    const RecordRef record{{}, ByteView(sent.back()), f.clock.now(), {}};
    ASSERT_TRUE(sink->send(topic.handle, PartitionId(0), {&record, 1}).ok());
  }
  const auto flushed = sink->flush();
  stop = true;
  changes.join();

  EXPECT_TRUE(flushed.ok()) << flushed.error().to_string();
  EXPECT_EQ(f.read("lines"), sent);
  f.close();
  f.open();
  EXPECT_EQ(f.read("lines"), sent);
}

TEST(TopicSettingsList, HasEverySettingWithValueDefaultAndSource) {
  LogFixture f;
  f.open();
  f.create("lines", 1, {{"retention.ms", "5"}, {"preallocate", "false"}});

  const auto settings = f.log->admin().topic_settings("lines").value();

  EXPECT_EQ(settings.size(), topic_properties().size());
  EXPECT_TRUE(std::is_sorted(settings.begin(), settings.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  const auto find = [&settings](const std::string& name) {
    return *std::find_if(settings.begin(), settings.end(),
                         [&name](const TopicSetting& setting) { return setting.name == name; });
  };
  EXPECT_EQ(find("retention.ms").value, "5");
  EXPECT_EQ(find("retention.ms").default_value, "604800000");
  EXPECT_EQ(find("retention.ms").source, SettingSource::kTopic);
  EXPECT_EQ(find("preallocate").source, SettingSource::kTopic);  // set, if to the default
  EXPECT_EQ(find("compression.type").value, "producer");
  EXPECT_EQ(find("compression.type").source, SettingSource::kDefault);
  EXPECT_EQ(find("weir.ordered").value, "false");
  EXPECT_FALSE(find("weir.ordered").doc.empty());
  EXPECT_EQ(f.log->admin().topic_settings("line").error().code(), Errc::kUnknownTopic);
}

// --- Sinks with a codec

TEST(CompressedSink, WritesEveryCodecAndReadsItBack) {
  for (int codec = 0; codec < 5; ++codec) {
    SCOPED_TRACE(codec);
    LogFixture f;
    f.open();
    f.create("lines");
    auto sink = f.log->make_sink({.compression = {static_cast<Codec>(codec), {}}}).value();
    const SinkTopicInfo topic = sink->open_topic("lines").value();
    const std::string value(5000, 'v');
    for (int i = 0; i < 100; ++i) {
      const RecordRef record{{}, ByteView(value), f.clock.now(), {}};
      ASSERT_TRUE(sink->send(topic.handle, PartitionId(0), {&record, 1}).ok());
    }
    ASSERT_TRUE(sink->flush().ok());

    const std::vector<BatchHeader> batches = stored_batches(f);
    EXPECT_GE(batches.size(), 8U);  // batch.size is judged before compression
    for (const BatchHeader& header : batches) {
      EXPECT_EQ(header.codec_bits(), codec);
    }
    EXPECT_EQ(f.read("lines"), Values(100, value));
  }
}

TEST(CompressedSink, TakesARecordThatFitsTheTopicOnlyCompressed) {
  LogFixture f;
  f.open();
  f.create("lines", 1, {{"max.message.bytes", "1000"}});
  const std::string value(100'000, 'v');
  const RecordRef record{{}, ByteView(value), f.clock.now(), {}};
  const auto send = [&](Codec codec) {
    auto sink = f.log->make_sink({.compression = {codec, {}}}).value();
    const SinkTopicInfo topic = sink->open_topic("lines").value();
    const Status sent = sink->send(topic.handle, PartitionId(0), {&record, 1});
    return sent.ok() ? sink->flush().status() : sent;
  };

  EXPECT_TRUE(send(Codec::kGzip).ok());
  EXPECT_EQ(send(Codec::kSnappy).error().code(), Errc::kRecordTooLarge);  // 5 percent of it
  EXPECT_EQ(send(Codec::kNone).error().code(), Errc::kRecordTooLarge);
  EXPECT_EQ(f.read("lines"), (Values{value}));
}

// --- Deleted records

TEST(DeleteRecords, TakesMinusOneForTheHighWatermark) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.send("lines", {"a", "b", "c"});

  ASSERT_TRUE(f.log->admin().delete_records(lines(), kNoOffset).ok());

  EXPECT_EQ(f.log->admin().offsets(lines())->log_start, Offset(3));
  EXPECT_EQ(f.read("lines", 0, 3), Values{});
  f.send("lines", {"d"});
  f.crash();
  f.open();
  EXPECT_EQ(f.log->admin().offsets(lines())->log_start, Offset(3));
  EXPECT_EQ(f.read("lines", 0, 3), (Values{"d"}));
}

TEST(DeleteRecords, RefusesOffsetsOutsideTheLogAndCompactedTopics) {
  LogFixture f;
  f.open();
  f.create("lines");
  f.create("table", 1, {{"cleanup.policy", "compact"}});
  f.create("both", 1, {{"cleanup.policy", "compact,delete"}});
  f.send("lines", {"a", "b"});
  f.send("table", {"a"});
  f.send("both", {"a"});
  Admin& admin = f.log->admin();

  EXPECT_EQ(admin.delete_records(lines(), Offset(3)).error().code(), Errc::kOffsetOutOfRange);
  EXPECT_EQ(admin.delete_records(lines(), Offset(-2)).error().code(), Errc::kOffsetOutOfRange);
  EXPECT_EQ(admin.delete_records(lines(1), Offset(0)).error().code(), Errc::kUnknownTopic);
  const Status compacted = admin.delete_records({"table", PartitionId(0)}, Offset(1));
  EXPECT_EQ(compacted.error().code(), Errc::kInvalidConfig);
  EXPECT_THAT(compacted.error().message(), HasSubstr("compact,delete"));
  EXPECT_TRUE(admin.delete_records({"both", PartitionId(0)}, Offset(1)).ok());
  EXPECT_EQ(f.read("lines"), (Values{"a", "b"}));
  EXPECT_EQ(f.read("table"), (Values{"a"}));
}

// --- All of it, against a model

struct TopicModel {
  TopicConfig config = {{"segment.bytes", "600"}};
  std::vector<Values> records;  // by partition, from offset 0
  std::vector<std::int64_t> starts{0, 0};
  bool is_memory() const {
    const auto found = config.find("weir.durability");
    return found != config.end() && found->second == "memory";
  }
};

class ChangingTopic {
 public:
  explicit ChangingTopic(std::uint64_t seed) : rng_(seed), f_(seed) {
    f_.open();
    model_.records.resize(2);
    f_.create("lines", 2, model_.config);
  }

  void step() {
    switch (rng_.below(12)) {
      case 0:
        f_.crash();
        f_.open();
        break;
      case 1:
        if (!model_.is_memory()) {
          f_.cut_power();
          f_.open();
        }
        break;
      case 2:
        f_.close();
        f_.open();
        break;
      case 3:
        grow();
        break;
      case 4:
      case 5:
        alter();
        break;
      case 6:
        delete_records();
        break;
      default:
        send();
    }
  }

  void check() {
    const TopicDescription topic = f_.log->admin().describe_topic("lines").value();
    ASSERT_EQ(topic.config, model_.config);
    ASSERT_EQ(topic.partitions, static_cast<std::int32_t>(model_.records.size()));
    for (std::size_t i = 0; i < model_.records.size(); ++i) {
      const auto partition = static_cast<std::int32_t>(i);
      const std::int64_t start = model_.starts[i];
      ASSERT_EQ(f_.log->admin().offsets(lines(partition))->log_start, Offset(start));
      const Values left(model_.records[i].begin() + start, model_.records[i].end());
      ASSERT_EQ(f_.read("lines", partition, start), left) << partition;
    }
  }

 private:
  std::size_t pick() { return rng_.below(model_.records.size()); }

  void grow() {
    const std::size_t count = model_.records.size() + 1;
    if (count <= 5) {
      ASSERT_TRUE(f_.log->admin().grow_topic("lines", static_cast<std::int32_t>(count)).ok());
      model_.records.emplace_back();
      model_.starts.push_back(0);
    }
  }

  void alter() {
    static const std::pair<std::string, Values> kChoices[] = {
        {"compression.type", {"producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"}},
        {"weir.durability", {"memory", "fsync"}},
        {"segment.bytes", {"400", "600", "5000"}},
        {"message.timestamp.type", {"CreateTime", "LogAppendTime"}}};
    TopicConfig set;
    Values remove;
    for (const auto& [key, values] : kChoices) {
      const std::uint64_t what = rng_.below(4);
      if (what == 0) {
        set[key] = values[rng_.below(values.size())];
        model_.config[key] = set[key];
      } else if (what == 1) {
        remove.push_back(key);
        model_.config.erase(key);
      }
    }
    const Status altered = f_.log->admin().alter_topic("lines", set, remove);
    ASSERT_TRUE(altered.ok()) << altered.error().to_string();
  }

  void delete_records() {
    const std::size_t i = pick();
    const auto end = static_cast<std::int64_t>(model_.records[i].size());
    const std::int64_t before =
        model_.starts[i] + static_cast<std::int64_t>(
                               rng_.below(static_cast<std::uint64_t>(end - model_.starts[i]) + 1));
    const Status deleted =
        f_.log->admin().delete_records(lines(static_cast<std::int32_t>(i)), Offset(before));
    ASSERT_TRUE(deleted.ok()) << deleted.error().to_string();
    model_.starts[i] = before;
  }

  void send() {
    const std::size_t i = pick();
    auto sink = f_.log->make_sink({.compression = {static_cast<Codec>(rng_.below(5)), {}}}).value();
    const SinkTopicInfo topic = sink->open_topic("lines").value();
    for (std::uint64_t n = rng_.below(6) + 1; n > 0; --n) {
      const std::string value = std::to_string(next_++) + std::string(rng_.below(60), 'x');
      const RecordRef record{{}, ByteView(value), f_.clock.now(), {}};
      ASSERT_TRUE(
          sink->send(topic.handle, PartitionId(static_cast<std::int32_t>(i)), {&record, 1}).ok());
      model_.records[i].push_back(value);
    }
    const auto flushed = sink->flush();
    ASSERT_TRUE(flushed.ok()) << flushed.error().to_string();
  }

  Rng rng_;
  LogFixture f_;
  TopicModel model_;
  int next_ = 0;
};

TEST(TopicChanges, LoseNothingAcknowledgedWhateverHappens) {
  const std::uint64_t seeds = weir::testing::rounds<std::uint64_t>(30, 500);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    ChangingTopic topic(seed);
    for (int step = 0; step < 60; ++step) {
      topic.step();
      topic.check();
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace weir::log
