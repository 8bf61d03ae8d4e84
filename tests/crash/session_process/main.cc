// The process that is killed while it handles sessions on a directory.
//   crash_sessions DIRECTORY SEED 0 [POINT NTH MOMENT]   sends and handles, until killed
//   crash_sessions DIRECTORY SEED 1                      handles what is there, ends
// Reports on stdout: ready, commit TOPIC PARTITION OFFSET, wrong WHAT, kill POINT, closed CHANGES.
#include "tests/crash/pipeline/kill_switch.h"
#include "tests/crash/pipeline/killed_program.h"
#include "tests/crash/pipeline/killer_backend.h"
#include "tests/crash/pipeline/killer_files.h"
#include "tests/crash/support/session_talk.h"

#include <weir/log/embedded_log.h>
#include <weir/log/producer.h>
#include <weir/operators/session.h>
#include <weir/runtime/thread_annotations.h>

#include <fmt/core.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace weir::crash {
namespace {

constexpr std::uint64_t kUnhandledMax = 500;
constexpr std::uint64_t kHandledBeforeClose = 500;

std::int64_t number_of(ByteView text) {
  std::int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

class Talker {
 public:
  explicit Talker(const KilledArguments& arguments)
      : arguments_(arguments),
        drains_(arguments.number == 1),
        kill_(arguments.plan),
        files_(posix_file_system(), kill_),
        rng_(arguments.seed) {}

  Status run() {
    log::EmbeddedLogOptions options;
    options.files = &files_;
    options.offsets_partitions = 2;
    WEIR_TRY_ASSIGN(log_, log::EmbeddedLog::open(arguments_.directory, options));
    for (const char* topic : {kTalk, kAnswers}) {
      const auto made = log_->admin().create_topic({topic, kTalkPartitions, {}});
      if (!made.ok() && made.error().code() != Errc::kTopicExists) {
        return made.status();
      }
    }
    WEIR_TRY(count_sent());
    KillerBackend backend(*log_, kill_);
    WEIR_TRY(open_processor(backend));
    report("ready");
    std::thread sender;
    if (!drains_) {
      sender = std::thread([this] { send(); });
    }
    Status worked = work();
    is_over_ = true;
    if (sender.joinable()) {
      sender.join();
    }
    WEIR_TRY(worked);
    kill_.begin_close();
    WEIR_TRY(processor_->close(SessionEngine::Close::kDrainRunning, std::chrono::seconds(30)));
    processor_.reset();
    WEIR_TRY(log_->close());
    report(fmt::format("closed {}", kill_.operations_of_close()));
    return {};
  }

 private:
  // A crash keeps a prefix of what was sent of each session.
  Status count_sent() {
    WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, log_->make_source({}));
    std::vector<TopicPartition> partitions;
    std::vector<Offset> ends;
    for (int i = 0; i < kTalkPartitions; ++i) {
      partitions.push_back({kTalk, PartitionId(i)});
      WEIR_TRY_ASSIGN(const PartitionOffsets at, log_->admin().offsets(partitions.back()));
      ends.push_back(at.high_watermark);
    }
    WEIR_TRY(source->assign(partitions));
    for (std::uint32_t i = 0; i < partitions.size(); ++i) {
      WEIR_TRY(source->seek(i, Offset(0)));
    }
    for (std::uint32_t i = 0; i < partitions.size();) {
      if (source->position(i) >= ends[i]) {
        ++i;
        continue;
      }
      WEIR_TRY_ASSIGN(const std::vector<RecordBlock> blocks, source->poll(Duration::zero()));
      for (const RecordBlock& block : blocks) {
        WEIR_TRY(block.status);
        for (const RecordView& record : block.records) {
          sent_[std::string(record.key.view())] = number_of(record.value.view());
        }
      }
    }
    return {};
  }

  Status open_processor(Backend& backend) {
    SessionProcessorOptions options;
    options.group = kTalkGroup;
    options.topics = {kTalk};
    options.outputs = {kAnswers};
    options.lanes.workers = 2;
    options.lanes.commit_interval = std::chrono::milliseconds(20);
    options.lanes.retry.backoff_base = std::chrono::milliseconds(1);
    options.lanes.seed = arguments_.seed;
    options.skips_applied = true;
    WEIR_TRY_ASSIGN(processor_, SessionProcessor::open(
                                    backend, system_clock(), std::move(options),
                                    [this](const SessionRecord& record, SessionContext& session) {
                                      return handle(record, session);
                                    }));
    return {};
  }

  Outcome handle(const SessionRecord& record, SessionContext& session) const {
    const std::int64_t number = number_of(record.record.value.view());
    const auto last = session.get_as<std::int64_t>("last");
    const auto count = session.get_as<std::int64_t>("count");
    if (!last.ok() || !count.ok()) {
      return Outcome::retry(Error(Errc::kIo, "no state"));
    }
    for (std::int64_t i = last->value_or(0) + 1; i < number; ++i) {
      if (!is_hopeless(record.session.view(), i)) {
        report(fmt::format("wrong skipped {} {}", record.session.view(), i));
      }
    }
    if (number <= last->value_or(0)) {
      report(fmt::format("wrong inverted {} {}", record.session.view(), number));
    }
    const std::int64_t succeeded = count->value_or(0) + 1;
    const std::string text = answer_text(number, succeeded);
    if (!session.put_as("last", number).ok() || !session.put_as("count", succeeded).ok() ||
        !session.emit(0, {.key = record.session, .value = ByteView(text), .headers = {}}).ok()) {
      return Outcome::retry(Error(Errc::kIo, "no effects"));
    }
    if (is_hopeless(record.session.view(), number)) {
      return Outcome::dead(Error(Errc::kInvalidRecord, "hopeless"));
    }
    const std::uint64_t draw = session_hash(record.event_id) + arguments_.seed + record.attempt;
    return Rng(draw).below(10) == 0 ? Outcome::retry(Error(Errc::kTimedOut, "transient"))
                                    : Outcome::ok();
  }

  void send() {
    log::ProducerOptions options;
    options.linger_ms = 1;
    auto producer = log::Producer::open(*log_, options);
    std::uint64_t sent = 0;
    while (producer.ok() && !is_over_) {
      const SessionCounts counts = processor_->counts();
      // What is only skipped again makes no room.
      if (sent + counts.skipped_applied > counts.handled + counts.dead_letters + kUnhandledMax) {
        const MutexLock lock(mutex_);
        handled_.wait_for(mutex_, std::chrono::milliseconds(2));
        continue;
      }
      const std::string session = fmt::format("s{}", rng_.below(kTalkSessions));
      const std::string value = std::to_string(++sent_[session]);
      const Status status = (*producer)->send({.topic = kTalk,
                                               .partition = {},
                                               .key = ByteView(session),
                                               .value = ByteView(value),
                                               .headers = {}},
                                              [this](const Result<log::RecordMetadata>& answer) {
                                                if (answer.ok()) {
                                                  kill_.saw_acknowledgement();
                                                }
                                              });
      if (!status.ok()) {
        report(fmt::format("wrong send {}", status.error().to_string()));
        return;
      }
      ++sent;
    }
  }

  Status work() {
    while (true) {
      WEIR_TRY(processor_->run_once(std::chrono::milliseconds(10)));
      if (drains_) {
        WEIR_TRY_ASSIGN(const bool is_done, has_ended());
        if (is_done) {
          return {};
        }
      } else if (arguments_.plan.point == Point::kClose &&
                 processor_->counts().handled >= kHandledBeforeClose && kill_.is_armed()) {
        return {};
      }
    }
  }

  Result<bool> has_ended() {
    const auto positions = processor_->positions();
    for (const auto& [partition, offset] : positions) {
      WEIR_TRY_ASSIGN(const PartitionOffsets at, log_->admin().offsets(partition));
      if (offset < at.high_watermark) {
        return false;
      }
    }
    return positions.size() == kTalkPartitions;
  }

  const KilledArguments& arguments_;
  const bool drains_;
  KillSwitch kill_;
  KillerFiles files_;
  Rng rng_;
  std::map<std::string, std::int64_t> sent_;  // the last number, by session
  std::unique_ptr<log::EmbeddedLog> log_;
  std::unique_ptr<SessionProcessor> processor_;
  std::atomic<bool> is_over_{false};
  Mutex mutex_;
  CondVar handled_;  // nobody signals it: the sender looks again
};

}  // namespace
}  // namespace weir::crash

int main(int argc, char** argv) {
  return weir::crash::run_killed(argc, argv, "crash_sessions", "0|1", [](const auto& arguments) {
    return weir::crash::Talker(arguments).run();
  });
}
