#include "bench/corpus.h"
#include "bench/jobs.h"
#include "bench/log_fixture.h"
#include "operators/task/task.h"

#include <weir/operators/stream_builder.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/endian.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <unordered_map>

// count: records of a repartition topic, already decoded, through a real task: source, count
// operator, store, record cache, result and changelog into a sink that keeps nothing, a commit
// every 100 ms.

namespace weir::bench {
namespace {

constexpr std::size_t kBlockRecords = 3000;  // what a 64 KB batch of words holds
constexpr auto kCommitInterval = std::chrono::milliseconds(100);
// Under callgrind a program takes about so many times longer; so does its commit interval.
constexpr int kCallgrindSlowness = 40;
constexpr std::size_t kCacheBytes = 10'485'760;

// The blocks that a source would return, made before the clock runs.
std::vector<RecordBlock> make_blocks(const Text& text) {
  std::vector<RecordBlock> blocks;
  const Timestamp now = system_clock().now();
  for (std::size_t begin = 0; begin < text.words.size(); begin += kBlockRecords) {
    const std::size_t end = std::min(text.words.size(), begin + kBlockRecords);
    // The bytes lie one behind the other, as in a batch.
    auto bytes = std::make_shared<std::string>();
    for (std::size_t i = begin; i < end; ++i) {
      *bytes += text.word(i);
    }
    RecordBlock& block = blocks.emplace_back();
    block.next_offset = Offset(static_cast<std::int64_t>(end));
    block.records.reserve(end - begin);
    const char* at = bytes->data();
    for (std::size_t i = begin; i < end; ++i) {
      const ByteView word(at, text.word(i).size());
      at += word.size();
      block.records.push_back({.key = word,
                               .value = word,
                               .offset = Offset(static_cast<std::int64_t>(i)),
                               .timestamp = now,
                               .headers = {}});
    }
    block.owner = std::move(bytes);
  }
  return blocks;
}

Topology count_only() {
  StreamBuilder builder;
  builder.from(Topic<std::string, std::string>{"words"})
      .group_by_key()
      .count(KvStore<std::string, std::int64_t>{"counts"})
      .to_stream()
      .to(Topic<std::string, std::int64_t>{"results"});
  return std::move(builder).build();
}

class CountStage {
 public:
  Status open() {
    auto store = std::make_unique<internal::TaskStore>();
    store->name = "counts";
    WEIR_TRY_ASSIGN(store->store, state::KeyValueStore::open(
                                      {.name = "counts", .mode = state::StoreMode::kMemory},
                                      nullptr, nullptr, system_clock()));
    WEIR_TRY_ASSIGN(store->changelog_topic, sink_.open_topic("changelog"));
    internal::TaskParts parts{.plan = &topology_.plan(),
                              .id = {0, PartitionId(0)},
                              .application_id = "bench",
                              .sink = &sink_,
                              .cache_budget = &cache_,
                              .stores = {}};
    parts.stores.push_back(std::move(store));
    WEIR_TRY_ASSIGN(task_, internal::Task::make(std::move(parts)));
    task_->add_input({"words", PartitionId(0)}, kNoTimestamp);
    return {};
  }

  Status take(RecordBlock block) {
    const std::size_t count = block.records.size();
    task_->fifos().add(0, std::move(block));
    return task_->process(count).status();
  }

  Status commit() {
    WEIR_TRY(task_->flush_results());
    WEIR_TRY(store().write_changelog(sink_, 0, PartitionId(0)));
    ++commits_;
    return store().promote({Uuid{}, Offset(commits_), LeaderEpoch(0), system_clock().now()});
  }

  Status verify(const Text& text) {
    for (std::size_t rank = 0; rank < text.vocabulary.size(); ++rank) {
      WEIR_TRY_ASSIGN(const std::optional<state::OwnedValue> count,
                      store().get_committed(text.vocabulary[rank]));
      const std::int64_t counted = count ? load_be<std::int64_t>(count->value.data()) : 0;
      WEIR_TRY(expect_equal(static_cast<std::uint64_t>(counted), text.counts[rank],
                            "count of " + text.vocabulary[rank]));
    }
    return {};
  }

  state::KeyValueStore& store() { return *task_->stores().front()->store; }
  std::int64_t commits() const { return commits_; }
  std::uint64_t sent() const { return sink_.sent(); }

 private:
  Topology topology_ = count_only();
  NullSink sink_;
  internal::CacheBudget cache_{.bytes_max = kCacheBytes};
  std::unique_ptr<internal::Task> task_;
  std::int64_t commits_ = 0;
};

Status count_words(Run& run, std::uint32_t vocabulary) {
  const std::shared_ptr<const Text> text = make_text(vocabulary, run.items());
  std::vector<RecordBlock> blocks = make_blocks(*text);
  CountStage stage;
  WEIR_TRY(stage.open());
  const Duration interval = kCommitInterval * (run.counting() ? kCallgrindSlowness : 1);
  run.start();
  MonotonicTime committed = system_clock().monotonic();
  for (RecordBlock& block : blocks) {
    WEIR_TRY(stage.take(std::move(block)));
    if (system_clock().monotonic() - committed >= interval) {
      WEIR_TRY(stage.commit());
      committed = system_clock().monotonic();
    }
  }
  WEIR_TRY(stage.commit());
  run.stop();
  run.note("commits", static_cast<double>(stage.commits()), "commits");
  run.note("distinct", static_cast<double>(text->distinct), "words");
  run.note("sent", static_cast<double>(stage.sent()) / static_cast<double>(run.items()),
           "results and changes/word");
  return stage.verify(*text);
}

// The same blocks into a map, and nothing else.
Status count_in_std_map(Run& run, std::uint32_t vocabulary) {
  const std::shared_ptr<const Text> text = make_text(vocabulary, run.items());
  const std::vector<RecordBlock> blocks = make_blocks(*text);
  std::unordered_map<std::string, std::int64_t> counts;
  run.start();
  for (const RecordBlock& block : blocks) {
    for (const RecordView& record : block.records) {
      ++counts[std::string(record.key.view())];
    }
  }
  run.stop();
  return expect_equal(counts.size(), text->distinct, "number of words");
}

}  // namespace

std::vector<Case> count_cases() {
  std::vector<Case> cases;
  for (const std::uint32_t vocabulary : {20'000U, 1'000'000U}) {
    const bool small = vocabulary == 20'000U;
    Case& one = cases.emplace_back();
    one.name = small ? "20k" : "1M";
    one.unit = "word";
    one.items = 10'000'000;
    one.counted = small ? 2'000'000 : 4'000'000;
    one.budget_ns = small ? 50 : 180;
    one.contenders = {{"weir", [vocabulary](Run& run) { return count_words(run, vocabulary); }},
                      {"std_unordered_map",
                       [vocabulary](Run& run) { return count_in_std_map(run, vocabulary); }}};
  }
  return cases;
}

}  // namespace weir::bench
