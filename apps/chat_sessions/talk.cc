#include "apps/chat_sessions/talk.h"

#include "apps/chat_sessions/bot.h"
#include "apps/chat_sessions/chat.h"
#include "apps/chat_sessions/oracle.h"
#include "apps/cli/data_directory.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/topic_reader.h"

#include <weir/log/producer.h>
#include <weir/operators/session.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/endian.h>
#include <weir/runtime/executor.h>
#include <weir/runtime/thread_annotations.h>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <unordered_map>

namespace weir::chat_sessions {
namespace {

constexpr const char* kProgram = "chat_sessions";
constexpr auto kLook = std::chrono::milliseconds(20);
constexpr auto kShow = std::chrono::milliseconds(500);
constexpr auto kDrain = std::chrono::seconds(10);

class Talk {
 public:
  explicit Talk(const TalkOptions& options)
      : options_(options),
        answers_(options.topic + ".answers"),
        dead_letters_(options.topic + ".dlq"),
        bot_({.seed = options.seed, .fail_rate = options.fail_rate}, system_clock()) {}

  Status execute() {
    WEIR_TRY_ASSIGN(log_, cli::open_for_writing(options_.common.data));
    for (const std::string& topic : {options_.topic, answers_}) {
      const auto made = log_->admin().create_topic({topic, options_.partitions, {}});
      if (!made.ok() && made.error().code() != Errc::kTopicExists) {
        return made.status();
      }
    }
    WEIR_TRY(count_sent());
    WEIR_TRY(open_processor());
    const auto signals = watch_termination_signals([this](int) {
      if (stop_.exchange(true)) {
        std::_Exit(cli::kInterrupted);
      }
    });
    const MonotonicTime began = system_clock().monotonic();
    std::thread sender([this] { send(); });
    Status worked = work();
    stop_sending_ = true;
    sender.join();
    took_ = system_clock().monotonic() - began;
    Status closed = processor_->close(SessionEngine::Close::kDrainRunning, kDrain);
    counts_ = processor_->counts();
    signals_ = processor_->signals();
    processor_.reset();
    WEIR_TRY(worked);
    WEIR_TRY(closed);
    WEIR_TRY(sent());
    WEIR_TRY_ASSIGN(
        verdict_,
        check(*log_, {.messages = options_.topic,
                      .answers = answers_,
                      .dead_letters = dead_letters_,
                      .owns = [this](ByteView session) { return owner_.owns(session); }}));
    print();
    return log_->close();
  }

  bool is_right() const {
    return violations() == 0 && (is_interrupted_ || verdict_.unanswered == 0);
  }

 private:
  // How far each session of this seed was sent by earlier runs: this one goes on behind it. A crash
  // keeps a prefix of a partition, so also of each session, but not of all together.
  Status count_sent() {
    WEIR_TRY_ASSIGN(const auto reader, cli::TopicReader::open(*log_, options_.topic));
    return reader->update_to_end([this](const RecordView& record) -> Status {
      if (owner_.owns(record.key.view_or_empty())) {
        ++sent_before_[std::string(record.key.view())];
      }
      return {};
    });
  }
  bool was_sent(const Message& message) const {
    const auto found = sent_before_.find(message.session);
    return found != sent_before_.end() && message.number <= found->second;
  }

  Status open_processor() {
    SessionProcessorOptions processing;
    processing.group = options_.group;
    processing.topics = {options_.topic};
    processing.outputs = {answers_};
    processing.lanes.workers = options_.workers;
    processing.lanes.commit_interval = std::chrono::milliseconds(200);
    processing.lanes.retry.backoff_base = std::chrono::milliseconds(options_.back_off_ms);
    processing.lanes.retry.attempts_max = options_.attempts_max;
    processing.lanes.retry.on_exhausted =
        options_.is_quarantined ? OnExhausted::kQuarantine : OnExhausted::kDeadLetter;
    processing.lanes.seed = options_.seed;
    processing.skips_applied = true;
    processing.dead_letter_topic = dead_letters_;
    WEIR_TRY_ASSIGN(processor_, SessionProcessor::open(
                                    *log_, system_clock(), std::move(processing),
                                    [this](const SessionRecord& record, SessionContext& session) {
                                      return bot_(record, session);
                                    }));
    return {};
  }

  void send() {
    Status sent = send_all();
    {
      const MutexLock lock(mutex_);
      sent_ = std::move(sent);
    }
    is_sent_ = true;
    processor_->wake();
  }

  Status sent() {
    const MutexLock lock(mutex_);
    return sent_;
  }

  Status send_all() {
    log::ProducerOptions producing;
    producing.batch_size = 64 << 10;
    WEIR_TRY_ASSIGN(const std::unique_ptr<log::Producer> producer,
                    log::Producer::open(*log_, producing));
    Chat chat(options_.seed, options_.sessions, options_.nonsense);
    const MonotonicTime began = system_clock().monotonic();
    std::uint64_t sent = 0;
    for (std::uint64_t i = 0; i < options_.messages && !stop_sending_ && !stop_; ++i) {
      const Message message = chat.next();
      if (was_sent(message)) {
        continue;
      }
      MonotonicTime sent_at = system_clock().monotonic();
      if (options_.rate > 0) {
        const auto due = std::chrono::nanoseconds(1'000'000'000 * sent++ / options_.rate);
        wait_until(began + due);
        sent_at = began + due;  // intended: a late sender makes no latency look better
      }
      char bytes[sizeof(std::int64_t)];
      store_be(bytes, sent_at.count());
      Headers headers;
      headers.add(kSentAt, ByteView(bytes, sizeof(bytes)));
      WEIR_TRY(producer->send({.topic = options_.topic,
                               .partition = {},
                               .key = ByteView(message.session),
                               .value = ByteView(message.line),
                               .headers = headers.view()}));
    }
    return producer->flush();
  }

  // Or until the run ends.
  void wait_until(MonotonicTime due) {
    const MutexLock lock(mutex_);
    while (!stop_ && !stop_sending_) {
      const Duration left = due - system_clock().monotonic();
      if (left <= Duration::zero()) {
        return;
      }
      ended_.wait_for(mutex_, std::min<Duration>(left, kLook));
    }
  }

  // Until everything is handled and committed, a signal or an error.
  Status work() {
    MonotonicTime shown = system_clock().monotonic();
    while (!stop_) {
      WEIR_TRY(processor_->run_once(kLook));
      if (is_sent_) {
        WEIR_TRY(sent());
        WEIR_TRY_ASSIGN(const bool is_done, has_ended());
        if (is_done) {
          return {};
        }
      }
      if (system_clock().monotonic() - shown >= kShow) {
        shown = system_clock().monotonic();
        show();
      }
    }
    is_interrupted_ = true;
    return {};
  }

  Result<bool> has_ended() {
    const auto positions = processor_->positions();
    if (positions.size() != static_cast<std::size_t>(partition_count())) {
      return false;
    }
    for (const auto& [partition, offset] : positions) {
      WEIR_TRY_ASSIGN(const PartitionOffsets at, log_->admin().offsets(partition));
      if (offset < at.high_watermark) {
        return false;
      }
    }
    return true;
  }

  std::int32_t partition_count() {
    const auto topic = log_->admin().describe_topic(options_.topic);
    return topic.ok() ? topic->partitions : 0;
  }

  void show() const {
    if (options_.common.quiet || !cli::stderr_is_terminal()) {
      return;
    }
    const SessionCounts counts = processor_->counts();
    fmt::print(
        stderr,
        "\r\x1b[Khandled {}  retries {}  dead letters {}  order violations {}  p99 {:.1f} ms",
        counts.handled, counts.retries, counts.dead_letters, bot_.order_violations(),
        bot_.latencies().milliseconds(0.99));
  }

  std::uint64_t violations() const { return bot_.order_violations() + verdict_.violations; }

  void print() const {
    if (!options_.common.quiet && cli::stderr_is_terminal()) {
      fmt::print(stderr, "\r\x1b[K");
    }
    const double seconds = std::chrono::duration<double>(took_).count();
    const double rate = seconds > 0 ? static_cast<double>(signals_.terminal) / seconds : 0;
    const bool is_json = options_.common.format == cli::Format::kJson;
    const char* const shape =
        is_json
            ? R"({{"sessions":{},"messages":{},"answers":{},"repeatedAnswers":{},"unanswered":{},)"
              R"("orderViolations":{},"retries":{},"deadLetters":{},"handled":{},)"
              R"("ratePerSecond":{:.0f},"p50Ms":{:.2f},"p99Ms":{:.2f},"interrupted":{}}})"
              "\n"
            : "sessions          {}\nmessages          {}\nanswers           {}\n"
              "repeated answers  {}\nunanswered        {}\norder violations  {}\n"
              "retries           {}\ndead letters      {}\nhandled now       {}\n"
              "rate              {:.0f} messages/s\nlatency p50       {:.2f} ms\n"
              "latency p99       {:.2f} ms\ninterrupted       {}\n";
    cli::Output out;
    out.write(fmt::format(fmt::runtime(shape), verdict_.sessions, verdict_.messages,
                          verdict_.answers, verdict_.repeated, verdict_.unanswered, violations(),
                          counts_.retries, verdict_.dead_letters, signals_.terminal, rate,
                          bot_.latencies().milliseconds(0.5), bot_.latencies().milliseconds(0.99),
                          is_interrupted_));
    if (!verdict_.first_violation.empty()) {
      fmt::print(stderr, "{}: {}\n", kProgram, verdict_.first_violation);
    }
  }

  const TalkOptions& options_;
  const std::string answers_;
  const std::string dead_letters_;
  Chat owner_{options_.seed, 1, 0};  // only for its names
  std::unique_ptr<log::EmbeddedLog> log_;
  Bot bot_;
  std::unique_ptr<SessionProcessor> processor_;
  std::unordered_map<std::string, std::uint64_t> sent_before_;  // messages, by session
  std::atomic<bool> stop_{false};
  std::atomic<bool> stop_sending_{false};
  std::atomic<bool> is_sent_{false};
  Mutex mutex_;
  CondVar ended_;
  Status sent_ WEIR_GUARDED_BY(mutex_);
  bool is_interrupted_ = false;
  Duration took_{};
  SessionCounts counts_;
  SessionSignals signals_;
  Verdict verdict_;
};

}  // namespace

int talk(const TalkOptions& options) {
  Talk talk(options);
  const Status done = talk.execute();
  if (!done.ok()) {
    return cli::report(kProgram, done.error());
  }
  return talk.is_right() ? cli::kOk : cli::kRuntimeFailure;
}

}  // namespace weir::chat_sessions
