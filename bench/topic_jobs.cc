#include "bench/jobs.h"
#include "bench/log_fixture.h"

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <string>

// many-topics: topics of one partition with one record each. Beside it: as many partitions of one
// topic.

namespace weir::bench {
namespace {

// A topic costs what many records cost, most of it waiting for the disk: a run of so many "records"
// makes a hundredth of topics.
constexpr std::uint64_t kRecords = 100'000;
constexpr double kTopicsShare = 0.01;

enum class Shape { kTopics, kPartitions };

TopicPartition place(Shape shape, std::uint64_t i) {
  return shape == Shape::kTopics
             ? TopicPartition{fmt::format("topic-{:06}", i), PartitionId(0)}
             : TopicPartition{"topic", PartitionId(static_cast<std::int32_t>(i))};
}

std::string value_of(std::uint64_t i) {
  return fmt::format("value of {}", i);
}

Status fill(Backend& log, Shape shape, std::uint64_t count) {
  const std::uint64_t topics = shape == Shape::kTopics ? count : 1;
  const auto partitions = static_cast<std::int32_t>(count / topics);
  for (std::uint64_t i = 0; i < topics; ++i) {
    WEIR_TRY(make_topic(log.admin(), place(shape, i).topic, "fsync", partitions));
  }
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSink> sink, open_sink(log));
  SinkTopicInfo topic;
  for (std::uint64_t i = 0; i < count; ++i) {
    const TopicPartition to = place(shape, i);
    if (i < topics) {
      WEIR_TRY_ASSIGN(topic, sink->open_topic(to.topic));
    }
    const std::string value = value_of(i);
    const RecordRef record{.key = {}, .value = ByteView(value)};
    WEIR_TRY(sink->send(topic.handle, to.partition, {&record, 1}));
  }
  return sink->flush().status();
}

// The one record of every partition.
Status read_all(Backend& log, Shape shape, std::uint64_t count) {
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, log.make_source({}));
  std::vector<TopicPartition> all;
  for (std::uint64_t i = 0; i < count; ++i) {
    all.push_back(place(shape, i));
  }
  WEIR_TRY(source->assign(all));
  for (std::uint32_t i = 0; i < count; ++i) {
    WEIR_TRY(source->seek(i, Offset(0)));
  }
  std::uint64_t seen = 0;
  while (seen < count) {
    WEIR_TRY_ASSIGN(const std::vector<RecordBlock> blocks, source->poll(std::chrono::seconds(60)));
    WEIR_TRY(expect(!blocks.empty(), "a partition lacks its record"));
    for (const RecordBlock& block : blocks) {
      WEIR_TRY(block.status);
      WEIR_TRY(expect(block.records.size() == 1 &&
                          block.records[0].value == ByteView(value_of(block.assignment)),
                      "a partition has another record"));
      ++seen;
    }
  }
  return {};
}

Status create(Run& run, Shape shape) {
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  run.start();
  WEIR_TRY(fill(*log, shape, run.items()));
  run.stop();
  WEIR_TRY(read_all(*log, shape, run.items()));
  return log->close();
}

enum class End { kClosed, kKilled };

// Opens what was left, and reads it.
Status reopen(Run& run, Shape shape, End end) {
  {
    WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
    WEIR_TRY(fill(*log, shape, run.items()));
    if (end == End::kClosed) {
      WEIR_TRY(log->close());
    }
  }
  run.start();
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  WEIR_TRY(read_all(*log, shape, run.items()));
  run.stop();
  return log->close();
}

}  // namespace

std::vector<Case> many_topics_cases() {
  const std::pair<const char*, Status (*)(Run&, Shape)> runs[] = {
      {"create", create},
      {"reopen", [](Run& run, Shape shape) { return reopen(run, shape, End::kClosed); }},
      {"recover", [](Run& run, Shape shape) { return reopen(run, shape, End::kKilled); }}};
  std::vector<Case> cases;
  for (const auto& [name, contest] : runs) {
    Case& one = cases.emplace_back();
    one.name = name;
    one.unit = "topic";
    one.many_files = true;
    one.items = kRecords;
    one.rounds = 2;
    one.show_rss = true;
    const auto with = [contest](Shape shape) {
      return [contest, shape](Run& run) { return contest(run, shape); };
    };
    one.contenders = {{"weir", with(Shape::kTopics), kTopicsShare},
                      {"one_topic", with(Shape::kPartitions), kTopicsShare}};
  }
  return cases;
}

}  // namespace weir::bench
