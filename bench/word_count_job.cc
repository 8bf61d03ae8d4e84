#include "apps/word_count/pipeline.h"
#include "apps/word_count/words.h"
#include "bench/app_fixture.h"
#include "bench/corpus.h"
#include "bench/jobs.h"
#include "bench/log_fixture.h"
#include "bench/rocksdb_table.h"

#include <weir/log/consumer.h>
#include <weir/operators/app.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/endian.h>
#include <weir/runtime/executor.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <unordered_map>

// word-count: what the program word_count runs, from a topic of lines of ten words to a topic of
// counts, with its repartition topic, changelog and checkpoints.

namespace weir::bench {
namespace {

constexpr const char* kLines = "lines";
constexpr const char* kCounts = "word-counts";
constexpr const char* kChangelog = "map-changelog";
constexpr std::size_t kWordsALine = 10;
constexpr std::int64_t kCommitMs = 100;
constexpr std::uint32_t kSmall = 20'000;
constexpr std::uint64_t kCheckpointsMin = 3;
constexpr std::uint64_t kWordsForCheckpoints = 10'000'000;
// Under callgrind a program takes about so many times longer; so do its intervals.
constexpr std::int64_t kCallgrindSlowness = 40;
constexpr auto kPatience = std::chrono::seconds(60);

struct Setting {
  const char* name;
  std::uint32_t vocabulary;
  std::string durability;
  // So short that even on a fast machine at least three checkpoints fall into a run.
  std::int64_t checkpoint_ms;
};

// The text of a case, kept from run to run.
class Texts {
 public:
  explicit Texts(std::uint32_t vocabulary) : vocabulary_(vocabulary) {}
  const Text& of(std::uint64_t words) {
    if (!text_ || text_->words.size() != words) {
      text_ = make_text(vocabulary_, words);
    }
    return *text_;
  }

 private:
  std::uint32_t vocabulary_;
  std::shared_ptr<const Text> text_;
};

Status send_lines(Backend& log, const Text& text, const std::string& durability) {
  WEIR_TRY(make_topic(log.admin(), kLines, durability));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSink> sink, open_sink(log));
  WEIR_TRY_ASSIGN(const SinkTopicInfo topic, sink->open_topic(kLines));
  const Timestamp now = system_clock().now();
  for (const std::string& line : text.lines(kWordsALine)) {
    const RecordRef record{.key = {}, .value = ByteView(line), .timestamp = now, .headers = {}};
    WEIR_TRY(sink->send(topic.handle, PartitionId(0), {&record, 1}));
  }
  return sink->flush().status();
}

// The last record of each key is its count.
Status verify_topic(Backend& log, const std::string& topic, const Text& text) {
  WEIR_TRY_ASSIGN(const PartitionOffsets offsets, log.admin().offsets({topic, PartitionId(0)}));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, open_source(log, topic));
  std::unordered_map<std::string, std::int64_t> counts;
  const auto records = static_cast<std::uint64_t>(offsets.high_watermark.value());
  WEIR_TRY(read_records(*source, records, [&counts](const RecordBlock& block) {
    for (const RecordView& record : block.records) {
      counts[std::string(record.key.view())] = load_be<std::int64_t>(record.value.view().data());
    }
  }));
  WEIR_TRY(expect_equal(counts.size(), text.distinct, "number of words in " + topic));
  for (std::size_t rank = 0; rank < text.vocabulary.size(); ++rank) {
    if (text.counts[rank] != 0) {
      WEIR_TRY(expect_equal(static_cast<std::uint64_t>(counts[text.vocabulary[rank]]),
                            text.counts[rank], "count of " + text.vocabulary[rank]));
    }
  }
  return {};
}

AppOptions app_options(const log::EmbeddedLog& log, const Setting& setting, const Run& run) {
  const std::int64_t slowness = run.counting() ? kCallgrindSlowness : 1;
  AppOptions options;
  options.application_id = "bench";
  options.commit_interval_ms = kCommitMs * slowness;
  options.statestore_cache_max_bytes = 10'485'760;
  options.state_dir = log.state_directory();
  options.checkpoint_interval_ms = setting.checkpoint_ms * slowness;
  options.internal_durability = setting.durability;
  return options;
}

// From start() to the end of stop(): with the opening of the stores, all commits, the checkpoints
// during the run and the last one at the end.
Status count_with_weir(Run& run, Texts& texts, const Setting& setting) {
  const Text& text = texts.of(run.items());
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  WEIR_TRY(send_lines(*log, text, setting.durability));
  WEIR_TRY(make_topic(log->admin(), kCounts, setting.durability));
  const std::unique_ptr<Executor> executor = make_asio_executor(1);
  App app(word_count::count_words(kLines, kCounts), app_options(*log, setting, run), *log,
          {system_clock(), posix_file_system(), *executor});
  run.start();
  WEIR_TRY(app.start());
  WEIR_TRY(run_until_drained(app));
  const std::uint64_t commits = metric(app, "weir_app_commits_total");
  const std::uint64_t checkpoints = metric(app, "weir_store_checkpoints_total");
  WEIR_TRY(app.stop(kPatience));
  run.stop();
  run.note("commits", static_cast<double>(commits), "commits");
  run.note("checkpoints", static_cast<double>(checkpoints), "checkpoints");
  run.note("distinct", static_cast<double>(text.distinct), "words");
  if (!run.counting() && run.items() >= kWordsForCheckpoints) {
    WEIR_TRY(expect(
        checkpoints >= kCheckpointsMin,
        fmt::format("{} checkpoints during the run, {} must be", checkpoints, kCheckpointsMin)));
  }
  WEIR_TRY(verify_topic(*log, kCounts, text));
  WEIR_TRY(verify_topic(*log, "bench-counts-changelog", text));
  return log->close();
}

// The words of the same lines in a map: no log, no result, no durability.
Status count_in_std_map(Run& run, Texts& texts) {
  const Text& text = texts.of(run.items());
  const std::vector<std::string> lines = text.lines(kWordsALine);
  std::unordered_map<std::string, std::int64_t> counts;
  run.start();
  for (const std::string& line : lines) {
    for (const std::string& word : word_count::words(line)) {
      ++counts[word];
    }
  }
  run.stop();
  return expect_equal(counts.size(), text.distinct, "number of words");
}

// A program by hand on the same log: reads lines, counts in Boost's flat map, and each 100 ms
// writes the words that changed to a changelog and commits. No repartition topic, no results, no
// checkpoint; a restart would have to read the whole changelog.
class FlatMapProgram {
 public:
  Status open(Backend& log, const std::string& durability, Duration interval) {
    WEIR_TRY(make_topic(log.admin(), kChangelog, durability));
    WEIR_TRY_ASSIGN(sink_, open_sink(log));
    WEIR_TRY_ASSIGN(topic_, sink_->open_topic(kChangelog));
    log::ConsumerOptions options;
    options.group_id = "map";
    options.auto_offset_reset = "earliest";
    options.auto_commit = false;
    options.poll_records_max = SIZE_MAX;
    WEIR_TRY_ASSIGN(consumer_, log::Consumer::open(log, options));
    interval_ = interval;
    return consumer_->assign({{kLines, PartitionId(0)}});
  }

  Status count(std::uint64_t lines) {
    committed_ = system_clock().monotonic();
    for (std::uint64_t seen = 0; seen < lines;) {
      WEIR_TRY_ASSIGN(const log::ConsumerRecords records, consumer_->poll(kPatience));
      for (const log::ConsumerBatch& batch : records.batches()) {
        take(batch.records);
        seen += batch.records.size();
        if (system_clock().monotonic() - committed_ >= interval_) {
          WEIR_TRY(commit());
        }
      }
    }
    return commit();
  }

 private:
  struct Cell {
    std::int64_t count = 0;
    std::uint32_t changed_in = 0;  // commit
  };

  void take(std::span<const RecordView> records) {
    for (const RecordView& record : records) {
      for (std::string& word : word_count::words(record.value.view())) {
        Cell& cell = counts_[word];
        ++cell.count;
        if (cell.changed_in != commit_) {
          cell.changed_in = commit_;
          changed_.push_back(std::move(word));
        }
      }
      now_ = record.timestamp;
    }
  }

  Status commit() {
    for (const std::string& word : changed_) {
      char bytes[sizeof(std::int64_t)];
      store_be(bytes, counts_[word].count);
      const RecordRef record{.key = ByteView(word),
                             .value = ByteView(bytes, sizeof(bytes)),
                             .timestamp = now_,
                             .headers = {}};
      WEIR_TRY(sink_->send(topic_.handle, PartitionId(0), {&record, 1}));
    }
    WEIR_TRY(sink_->flush().status());
    changed_.clear();
    ++commit_;
    committed_ = system_clock().monotonic();
    return consumer_->commit();
  }

  std::unique_ptr<RecordSink> sink_;
  SinkTopicInfo topic_;
  std::unique_ptr<log::Consumer> consumer_;
  boost::unordered_flat_map<std::string, Cell> counts_;
  std::vector<std::string> changed_;
  std::uint32_t commit_ = 1;
  Timestamp now_ = 0;
  Duration interval_{};
  MonotonicTime committed_{};
};

Status count_in_flat_map(Run& run, Texts& texts, const std::string& durability) {
  const Text& text = texts.of(run.items());
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  WEIR_TRY(send_lines(*log, text, durability));
  FlatMapProgram program;
  WEIR_TRY(program.open(
      *log, durability,
      std::chrono::milliseconds(kCommitMs) * (run.counting() ? kCallgrindSlowness : 1)));
  run.start();
  WEIR_TRY(program.count((run.items() + kWordsALine - 1) / kWordsALine));
  run.stop();
  WEIR_TRY(verify_topic(*log, kChangelog, text));
  return log->close();
}

// Get and Put for each word, from lines in memory.
Status count_in_rocksdb(Run& run, std::uint32_t vocabulary) {
  const std::shared_ptr<const Text> text = make_text(vocabulary, run.items());
  const std::vector<std::string> lines = text->lines(kWordsALine);
  WEIR_TRY_ASSIGN(const std::unique_ptr<RocksDbTable> table, RocksDbTable::open(run.folder()));
  run.start();
  for (const std::string& line : lines) {
    for (const std::string& word : word_count::words(line)) {
      WEIR_TRY_ASSIGN(const std::optional<std::int64_t> count, table->get(word));
      WEIR_TRY(table->put(word, count.value_or(0) + 1));
    }
  }
  run.stop();
  WEIR_TRY_ASSIGN(const RocksDbTable::Totals totals, table->scan());
  WEIR_TRY(expect_equal(totals.keys, text->distinct, "number of words"));
  return expect_equal(static_cast<std::uint64_t>(totals.sum), run.items(), "sum of the counts");
}

std::vector<Elsewhere> kafka_streams(bool small) {
  const std::string source =
      "measured elsewhere (not in this run): Kafka Streams 4.3.1, OpenJDK 17, two EPYC cores";
  if (small) {
    return {{"kafka_streams_memory", 5300 + 640, source + ", 1,026 words, memory store"},
            {"kafka_streams_rocksdb", 5900 + 500, source + ", 1,026 words, RocksDB store"}};
  }
  return {{"kafka_streams_rocksdb", 14200 + 1260, source + ", RocksDB store"}};
}

Case make_case(const Setting& setting) {
  const auto texts = std::make_shared<Texts>(setting.vocabulary);
  const bool small = setting.vocabulary == kSmall;
  const std::string durability = setting.durability;
  Case one;
  one.name = fmt::format("{}.{}", setting.name, durability);
  one.unit = "word";
  one.items = kWordsForCheckpoints;
  one.counted = small ? 2'000'000 : 4'000'000;
  one.show_rss = true;
  one.contenders = {
      {"weir", [texts, setting](Run& run) { return count_with_weir(run, *texts, setting); }},
      {"std_unordered_map", [texts](Run& run) { return count_in_std_map(run, *texts); }},
      {"boost_flat_map_with_log",
       [texts, durability](Run& run) { return count_in_flat_map(run, *texts, durability); }}};
  if (durability == "memory") {
    one.budget_ns = small ? 250 : 450;
    one.contenders.push_back(
        {"rocksdb_get_put",
         [vocabulary = setting.vocabulary](Run& run) { return count_in_rocksdb(run, vocabulary); },
         0.02});
    one.elsewhere = kafka_streams(small);
  }
  return one;
}

}  // namespace

std::vector<Case> word_count_cases() {
  std::vector<Case> cases;
  for (const char* durability : {"memory", "fsync"}) {
    cases.push_back(make_case({"20k", kSmall, durability, 200}));
    cases.push_back(make_case({"1M", 1'000'000, durability, 700}));
  }
  return cases;
}

}  // namespace weir::bench
