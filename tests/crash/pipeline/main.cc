// The process that is killed: numbered lines go through the word count pipeline on a directory.
//   crash_pipeline run DIRECTORY FIRST_NUMBER [POINT NTH MOMENT]     until killed
//   crash_pipeline drain DIRECTORY                                   counts what is there, ends
// Reports on stdout: ready, ack NUMBER, commit TOPIC PARTITION OFFSET, kill POINT, closed CHANGES.
#include "tests/crash/pipeline/kill_switch.h"
#include "tests/crash/pipeline/killer_backend.h"
#include "tests/crash/pipeline/killer_files.h"
#include "tests/crash/support/word_pipeline.h"

#include <weir/log/embedded_log.h>
#include <weir/log/producer.h>
#include <weir/operators/app.h>
#include <weir/runtime/thread_annotations.h>

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::crash {
namespace {

constexpr std::size_t kWindow = 12;  // lines that are not acknowledged yet
constexpr std::int64_t kLinesBeforeClose = 100;
constexpr auto kStopDeadline = std::chrono::seconds(60);

struct Arguments {
  bool drain = false;
  std::string directory;
  std::int64_t first_number = 0;
  KillSwitch::Plan plan;
};

// Counts lines on their way.
class Window {
 public:
  // Waits for room, at most 100 ms; false when there is none.
  bool enter() {
    const MutexLock lock(mutex_);
    if (lines_ >= kWindow) {
      changed_.wait_for(mutex_, std::chrono::milliseconds(100));
    }
    if (lines_ >= kWindow) {
      return false;
    }
    ++lines_;
    return true;
  }
  void leave() {
    const MutexLock lock(mutex_);
    --lines_;
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::size_t lines_ WEIR_GUARDED_BY(mutex_) = 0;
};

class Pipeline {
 public:
  explicit Pipeline(Arguments arguments)
      : arguments_(std::move(arguments)),
        kill_(arguments_.plan),
        files_(posix_file_system(), kill_) {}

  Status run() {
    log::EmbeddedLogOptions options;
    options.files = &files_;
    options.offsets_partitions = 2;
    // Small, so that checkpoints come and files are used again within a run.
    options.wal_file_bytes_min = 64U << 10U;
    options.wal_file_bytes_max = 256U << 10U;
    options.wal_bytes_max = 1U << 20U;
    WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log,
                    log::EmbeddedLog::open(arguments_.directory, options));
    WEIR_TRY(make_topics(log->admin()));
    KillerBackend backend(*log, kill_);
    const std::unique_ptr<Executor> executor = make_asio_executor(1);
    App app(word_pipeline(), app_options(*log), backend, {system_clock(), files_, *executor});
    WEIR_TRY(app.start());
    report("ready");
    WEIR_TRY(arguments_.drain ? drain(app) : produce(*log, app));
    kill_.begin_close();
    WEIR_TRY(app.stop(kStopDeadline));
    WEIR_TRY(log->close());
    report(fmt::format("closed {}", kill_.operations_of_close()));
    return {};
  }

 private:
  static AppOptions app_options(const log::EmbeddedLog& log) {
    AppOptions options;
    options.application_id = kApplicationId;
    options.state_dir = log.state_directory();
    options.num_stream_threads = 2;
    options.commit_interval_ms = 10;
    options.checkpoint_interval_ms = 20;
    return options;
  }

  static Status drain(App& app) {
    WEIR_TRY_ASSIGN(const std::unique_ptr<DrainWatch> watch, app.watch_drain());
    Mutex mutex;
    CondVar never;
    for (bool done = false; !done;) {
      WEIR_TRY(app.error());
      const MutexLock lock(mutex);
      never.wait_for(mutex, std::chrono::milliseconds(5));
      WEIR_TRY_ASSIGN(done, watch->done());
    }
    return {};
  }

  // Until killed, or until there is enough to close behind it.
  Status produce(log::EmbeddedLog& log, App& app) {
    log::ProducerOptions options;
    options.linger_ms = 1;
    Window window;  // outlives the producer, whose thread uses it
    WEIR_TRY_ASSIGN(const std::unique_ptr<log::Producer> producer,
                    log::Producer::open(log, options));
    const bool closes = arguments_.plan.point == Point::kClose;
    std::int64_t number = arguments_.first_number;
    while (!closes || !kill_.is_armed() || number < arguments_.first_number + kLinesBeforeClose) {
      WEIR_TRY(app.error());
      if (window.enter()) {
        WEIR_TRY(send(*producer, number++, window));
      }
    }
    return producer->flush();
  }

  Status send(log::Producer& producer, std::int64_t number, Window& window) {
    const std::string line = line_of(number);
    log::ProducerRecord record;
    record.topic = kLinesTopic;
    record.partition = PartitionId(static_cast<std::int32_t>(number % kPartitions));
    record.value = ByteView(line);
    return producer.send(record, [this, number, &window](const Result<log::RecordMetadata>& sent) {
      if (sent.ok()) {
        report(fmt::format("ack {}", number));
        kill_.saw_acknowledgement();
      } else {
        fmt::print(stderr, "line {} was lost: {}\n", number, sent.error().to_string());
      }
      window.leave();
    });
  }

  const Arguments arguments_;
  KillSwitch kill_;
  KillerFiles files_;
};

std::optional<Arguments> read(const std::vector<std::string>& given) {
  Arguments arguments;
  arguments.drain = given.size() == 2 && given[0] == "drain";
  if (!arguments.drain && (given.size() < 3 || given[0] != "run")) {
    return std::nullopt;
  }
  arguments.directory = given[1];
  if (!arguments.drain) {
    arguments.first_number = std::strtoll(given[2].c_str(), nullptr, 10);
  }
  if (given.size() == 6) {
    arguments.plan = plan_of(given[3], given[4], given[5]);
    if (!arguments.plan.point.has_value()) {
      return std::nullopt;
    }
  }
  return arguments;
}

}  // namespace
}  // namespace weir::crash

int main(int argc, char** argv) {
  const auto arguments = weir::crash::read({argv + 1, argv + argc});
  if (!arguments.has_value()) {
    fmt::print(stderr,
               "usage: crash_pipeline run DIRECTORY FIRST_NUMBER [POINT NTH MOMENT]\n"
               "       crash_pipeline drain DIRECTORY\n");
    return 2;
  }
  const weir::Status done = weir::crash::Pipeline(*arguments).run();
  if (!done.ok()) {
    fmt::print(stderr, "crash_pipeline: {}\n", done.error().to_string());
    return 1;
  }
  return 0;
}
