#pragma once

#include <weir/runtime/session_engine.h>
#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_backend.h>
#include <weir/runtime/thread_annotations.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <deque>
#include <map>
#include <string>

namespace weir::testing {

// A group whose callbacks and commits the test plays.
class FakeGroup : public Group {
 public:
  Status join(std::vector<std::string> /*topics*/, std::string /*user_data*/,
              GroupListener& listener) override {
    listener_ = &listener;
    return {};
  }
  Status poll() override {
    ++polls;
    if (std::exchange(is_polling, true)) {
      ++nested_polls;
      return {};
    }
    for (; !due.empty(); due.pop_front()) {
      due.front()(*listener_);
    }
    is_polling = false;
    return {};
  }
  Status leave() override {
    has_left = true;
    return {};
  }
  Status commit(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) override {
    ++commits;
    if (repeats_commit_error) {
      return commit_error;
    }
    if (!commit_error.ok()) {
      return std::exchange(commit_error, {});
    }
    for (const auto& [partition, offset] : offsets) {
      committed_[partition] = offset;
    }
    return {};
  }
  Result<std::vector<std::optional<CommittedOffset>>> committed(
      std::span<const TopicPartition> partitions) override {
    std::vector<std::optional<CommittedOffset>> found;
    for (const TopicPartition& partition : partitions) {
      found.push_back(committed_.contains(partition) ? std::optional(committed_[partition])
                                                     : std::nullopt);
    }
    return found;
  }
  GroupMetadata metadata() const override { return {"g", 3, "m"}; }

  Offset offset(std::int32_t partition) {
    return committed_[{"chat", PartitionId(partition)}].offset;
  }

  std::deque<std::function<void(GroupListener&)>> due;
  Status commit_error;  // once
  bool repeats_commit_error = false;
  int commits = 0;
  int polls = 0;
  int nested_polls = 0;  // from inside a callback
  bool is_polling = false;
  bool has_left = false;

 private:
  GroupListener* listener_ = nullptr;
  std::map<TopicPartition, CommittedOffset> committed_;
};

// TestHandlers of all workers, with what they saw.
struct TestHandlers {
  Mutex mutex;
  CondVar condition;
  std::map<std::string, std::vector<std::string>> seen WEIR_GUARDED_BY(mutex);  // by session
  std::vector<std::string> letters WEIR_GUARDED_BY(mutex);
  std::map<std::uint32_t, int> flushes WEIR_GUARDED_BY(mutex);
  bool is_shut WEIR_GUARDED_BY(mutex) = false;  // handlers wait while it is
  int inside WEIR_GUARDED_BY(mutex) = 0;
  std::function<Outcome(const Attempt&)> outcome = [](const Attempt&) { return Outcome::ok(); };
  std::function<Status()> flush = [] { return Status(); };
  int attempts_max = INT_MAX;  // of a round

  void open_gate() {
    const MutexLock lock(mutex);
    is_shut = false;
    condition.notify_all();
  }
  void wait_inside(int count) {
    const MutexLock lock(mutex);
    while (inside < count) {
      condition.wait(mutex);
    }
  }
};

class TestWorker : public LaneWorker {
 public:
  TestWorker(TestHandlers& handlers, std::uint32_t number) : handlers_(handlers), number_(number) {}

  void run(LaneRuns& runs) override {
    Attempt attempt;
    for (int i = 0; i < handlers_.attempts_max && runs.next(attempt); ++i) {
      runs.finish(attempt.run, handle(attempt));
    }
  }
  void write(std::span<const DeadLetter> letters, LaneRuns& runs) override {
    for (const DeadLetter& letter : letters) {
      {
        const MutexLock lock(handlers_.mutex);
        handlers_.letters.emplace_back(letter.record->value.view());
      }
      runs.answer_letter(letter.id, true);
    }
  }
  Status flush() override {
    {
      const MutexLock lock(handlers_.mutex);
      ++handlers_.flushes[number_];
    }
    return handlers_.flush();
  }

 private:
  Outcome handle(const Attempt& attempt) {
    {
      const MutexLock lock(handlers_.mutex);
      ++handlers_.inside;
      handlers_.condition.notify_all();
      while (handlers_.is_shut) {
        handlers_.condition.wait(handlers_.mutex);
      }
      --handlers_.inside;
    }
    Outcome outcome = handlers_.outcome(attempt);
    if (outcome.kind == Outcome::Kind::kOk) {
      const MutexLock lock(handlers_.mutex);
      handlers_.seen[std::string(attempt.session.view())].emplace_back(
          attempt.record->value.view());
    }
    return outcome;
  }

  TestHandlers& handlers_;
  std::uint32_t number_;
};

struct EngineWorld {
  explicit EngineWorld(SessionOptions chosen = {}, std::int32_t partitions = 2) : options(chosen) {
    EXPECT_TRUE(backend.admin().create_topic({"chat", partitions, {}}).ok());
    for (std::int32_t i = 0; i < partitions; ++i) {
      all.push_back({"chat", PartitionId(i)});
    }
    group.due.emplace_back([this](GroupListener& listener) { listener.on_assigned(all); });
    start();
  }

  void start() {
    source = std::move(backend.make_source({})).value();
    SessionEngine::Parts parts;
    parts.clock = options.has_threads ? &system_clock() : static_cast<const Clock*>(&clock);
    parts.group = &group;
    parts.source = source.get();
    parts.make_worker = [this](std::uint32_t number) {
      return std::make_unique<TestWorker>(handlers, number);
    };
    parts.start_offset = [](const TopicPartition&) { return Offset(0); };
    engine = std::move(SessionEngine::open(options, std::move(parts), {"chat"})).value();
  }
  // Record `number` of each of `sessions` sessions, in turn.
  void produce(int sessions, int records) {
    const std::unique_ptr<RecordSink> sink = std::move(backend.make_sink({})).value();
    const SinkTopicInfo topic = std::move(sink->open_topic("chat")).value();
    for (int i = 0; i < records; ++i) {
      for (int session = 0; session < sessions; ++session) {
        const std::string key = "session-" + std::to_string(session);
        const std::string value = key + "/" + std::to_string(next[key]++);
        const RecordRef record{.key = ByteView(key), .value = ByteView(value), .headers = {}};
        EXPECT_TRUE(
            sink->send(topic.handle, PartitionId(session % topic.partitions), {&record, 1}).ok());
      }
    }
    EXPECT_TRUE(sink->flush().ok());
  }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const auto& [key, count] : next) {
      sum += static_cast<std::uint64_t>(count);
    }
    return sum;
  }
  // Rounds until `is_done`. No sleeping: a poll waits for what comes.
  template <class IsDone>
  void run_until(IsDone is_done) {
    for (int round = 0; round < 1'000'000 && !is_done(); ++round) {
      const Status status = engine->run_once(std::chrono::milliseconds(1));
      ASSERT_TRUE(status.ok()) << status.error().to_string();
      if (!options.has_threads) {
        clock.advance(std::chrono::milliseconds(5));
      }
    }
    ASSERT_TRUE(is_done());
  }
  void run_all() {
    run_until([&] { return engine->signals().terminal == total(); });
  }
  void expect_everything_in_order() {
    const MutexLock lock(handlers.mutex);
    for (const auto& [key, count] : next) {
      std::vector<std::string> expected;
      for (int i = 0; i < count; ++i) {
        expected.push_back(key + "/" + std::to_string(i));
      }
      EXPECT_EQ(handlers.seen[key], expected);
    }
  }

  SessionOptions options;
  ManualClock clock;
  MemoryBackend backend{clock};
  FakeGroup group;
  TestHandlers handlers;
  std::vector<TopicPartition> all;
  std::map<std::string, int> next;
  std::unique_ptr<RecordSource> source;
  std::unique_ptr<SessionEngine> engine;  // before its source goes
};

inline SessionOptions without_threads() {
  SessionOptions options;
  options.has_threads = false;
  return options;
}

inline SessionOptions with_threads(SessionDispatch dispatch) {
  SessionOptions options;
  options.workers = 3;
  options.dispatch = dispatch;
  options.retry.backoff_base = std::chrono::milliseconds(1);
  options.commit_interval = std::chrono::milliseconds(10);
  return options;
}

}  // namespace weir::testing
