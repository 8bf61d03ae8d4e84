#include "apps/cli/stream_program.h"

#include "apps/cli/data_directory.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/stored_report.h"

#include <weir/log/embedded_log.h>
#include <weir/operators/app.h>
#include <weir/runtime/thread_annotations.h>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace weir::cli {
namespace {

constexpr auto kRedrawInterval = std::chrono::milliseconds(250);
constexpr auto kDrainTime = std::chrono::seconds(60);
constexpr std::size_t kRowsOnTerminal = 20;

// Wakes the main loop for a signal, the end of the input or an error.
class Bell {
 public:
  void ring() {
    const MutexLock lock(mutex_);
    rung_ = true;
    changed_.notify_all();
  }
  void wait(Duration timeout) {
    const MutexLock lock(mutex_);
    if (!rung_) {
      changed_.wait_for(mutex_, timeout);
    }
    rung_ = false;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool rung_ WEIR_GUARDED_BY(mutex_) = false;
};

Status make_topic(Admin& admin, const std::string& name, std::int32_t partitions,
                  const TopicConfig& config) {
  Result<TopicDescription> made = admin.create_topic({name, partitions, config});
  return made.ok() || made.error().code() == Errc::kTopicExists ? Status() : made.status();
}

// Draws the table over its last picture.
class Screen {
 public:
  void draw(const std::string& table) {
    if (lines_ > 0) {
      out_.write(fmt::format("\x1b[{}A\x1b[J", lines_));
    }
    out_.write(table);
    out_.flush();
    lines_ = static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n'));
  }

 private:
  Output out_;
  std::size_t lines_ = 0;
};

class Run {
 public:
  Run(StreamProgram program, const StreamOptions& options)
      : program_(std::move(program)), options_(options) {}

  Status execute() {
    if (!options_.from_dir.empty()) {
      WEIR_TRY(open_stored());
    }
    WEIR_TRY_ASSIGN(log_, open_for_writing(options_.common.data));
    Status done = execute_on_log();
    Status closed = log_->close();
    return done.ok() ? closed : done;
  }
  bool drained_in_time() const { return in_time_; }
  bool refused_input() const { return feeder_ && feeder_->refused(); }
  bool lost_input() const { return losses_.ranges > 0; }

 private:
  Status open_stored() {
    WEIR_TRY_ASSIGN(stored_, log::StoredLog::open(options_.from_dir));
    WEIR_TRY_ASSIGN(const TopicDescription input, stored_->admin().describe_topic(options_.input));
    std::vector<TopicPartition> partitions;
    for (std::int32_t i = 0; i < input.partitions; ++i) {
      partitions.push_back({options_.input, PartitionId(i)});
    }
    WEIR_TRY_ASSIGN(
        losses_, report_stored(program_.name.c_str(), *stored_, partitions, options_.common.quiet));
    return {};
  }

  Result<std::unique_ptr<Backend>> make_overlay() {
    return stored_ == nullptr ? Result<std::unique_ptr<Backend>>(nullptr)
                              : log::read_topics_from(*stored_, {options_.input}, *log_);
  }

  Status execute_on_log() {
    WEIR_TRY_ASSIGN(AppOptions app_options, read_app_options());
    WEIR_TRY(open_feeder());
    WEIR_TRY(
        make_topic(log_->admin(), options_.output, options_.partitions, program_.output_config));
    WEIR_TRY_ASSIGN(table_, program_.open_table(*log_));

    WEIR_TRY_ASSIGN(const std::unique_ptr<Backend> overlay, make_overlay());
    Backend& backend = overlay != nullptr ? *overlay : *log_;
    const std::unique_ptr<Executor> executor = make_asio_executor(1);
    App app(std::move(program_.topology), app_options, backend,
            {system_clock(), posix_file_system(), *executor});
    const auto signals = watch_termination_signals([this](int) {
      if (stop_.exchange(true)) {
        std::_Exit(kInterrupted);
      }
      bell_.ring();
    });
    WEIR_TRY(app.start());
    Status worked = work(app);
    Status stopped = app.stop(kDrainTime);
    if (!stopped.ok() && stopped.error().code() == Errc::kTimedOut) {
      in_time_ = false;
    }
    WEIR_TRY(worked);
    WEIR_TRY(stopped);
    WEIR_TRY(table_->update_to_end());
    screen_.draw(table_->text(rows(), options_.common.format));
    return {};
  }

  Status open_feeder() {
    if (!program_.open_feeder) {
      return {};
    }
    WEIR_TRY_ASSIGN(feeder_, program_.open_feeder(*log_));
    WEIR_TRY(make_topic(log_->admin(), options_.input, options_.partitions, program_.input_config));
    log::ProducerOptions options;
    options.batch_size = 64 << 10;
    WEIR_TRY_ASSIGN(producer_, log::Producer::open(*log_, options));
    return {};
  }

  Result<AppOptions> read_app_options() const {
    WEIR_TRY_ASSIGN(auto settings, parse_pairs(options_.config));
    settings["application.id"] = options_.application_id;
    settings["num.stream.threads"] = std::to_string(options_.threads);
    settings.try_emplace("state.dir", log_->state_directory());
    return AppOptions::parse(settings);
  }

  // Until the end, a signal or an error.
  Status work(App& app) {
    std::thread feeding;
    if (feeder_) {
      feeding = std::thread([this] {
        Status fed = feeder_->run(*producer_, options_.input);
        {
          const MutexLock lock(mutex_);
          fed_ = std::move(fed);
          feeding_ = false;
        }
        bell_.ring();
      });
    } else {
      const MutexLock lock(mutex_);
      feeding_ = false;
    }
    Status result = watch(app);
    if (feeding.joinable()) {
      feeder_->stop();
      feeding.join();
      const MutexLock lock(mutex_);
      if (result.ok()) {
        result = fed_;
      }
    }
    return result;
  }

  Status watch(App& app) {
    std::unique_ptr<DrainWatch> drain;
    Duration pause = std::chrono::milliseconds(2);  // grows: a short input is done at once
    while (!stop_) {
      WEIR_TRY(app.error());
      bool fed = false;
      {
        const MutexLock lock(mutex_);
        fed = !feeding_;
        WEIR_TRY(fed_);
      }
      if (fed && options_.until_end) {
        if (!drain) {
          WEIR_TRY_ASSIGN(drain, app.watch_drain());
        }
        WEIR_TRY_ASSIGN(const bool done, drain->done());
        if (done) {
          return {};
        }
      }
      WEIR_TRY(show_live());
      bell_.wait(pause);
      pause =
          std::min<Duration>(pause * 2, drain ? std::chrono::milliseconds(20) : kRedrawInterval);
    }
    return {};
  }

  std::optional<std::size_t> rows() const {
    return options_.top || !stdout_is_terminal() ? options_.top : std::optional(kRowsOnTerminal);
  }

  Status show_live() {
    if (!stdout_is_terminal() || options_.common.format == Format::kJson) {
      return {};
    }
    WEIR_TRY_ASSIGN(const bool changed, table_->update());
    if (changed) {
      screen_.draw(table_->text(rows(), Format::kText));
    }
    return {};
  }

  StreamProgram program_;
  const StreamOptions& options_;
  std::unique_ptr<log::StoredLog> stored_;
  StoredLosses losses_;
  std::unique_ptr<log::EmbeddedLog> log_;
  std::unique_ptr<Feeder> feeder_;
  std::unique_ptr<log::Producer> producer_;
  std::unique_ptr<ResultTable> table_;
  Screen screen_;
  Bell bell_;
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  bool feeding_ WEIR_GUARDED_BY(mutex_) = true;
  Status fed_ WEIR_GUARDED_BY(mutex_);
  bool in_time_ = true;
};

}  // namespace

void add_stream_options(CLI::App& app, StreamOptions& options, const std::string& rows) {
  add_common_options(app, options.common);
  app.add_option("--application-id", options.application_id,
                 "A new one works on the topic from its start")
      ->capture_default_str();
  app.add_option("--input", options.input, "Topic that is read")->capture_default_str();
  app.add_option("--from-dir", options.from_dir,
                 "Read the input topic from this folder of Kafka's or Weir's log files, which is "
                 "never written to")
      ->type_name("FOLDER");
  app.add_option("--output", options.output, "Topic of results")->capture_default_str();
  app.add_option("--partitions", options.partitions, "Partitions of topics that are made")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Stream threads")->capture_default_str();
  app.add_flag("--until-end", options.until_end,
               "Stop when all that is in the input now is processed and committed");
  app.add_option("--top", options.top,
                 fmt::format("Show only so many {} (20 on a terminal)", rows));
  app.add_option("--config", options.config,
                 "Setting of the application by Kafka's name, repeatable")
      ->type_name("K=V")
      ->expected(1)
      ->take_all();
}

int run_stream_program(StreamProgram program, const StreamOptions& options) {
  const std::string name = program.name;
  Run run(std::move(program), options);
  const Status done = run.execute();
  if (!run.drained_in_time()) {
    fmt::print(
        stderr,
        "{}: the deadline passed before all was committed; it is processed at the next start\n",
        name);
    return kDrainDeadline;
  }
  if (!done.ok()) {
    return report(name.c_str(), done.error());
  }
  if (run.refused_input()) {
    return kRuntimeFailure;
  }
  return run.lost_input() ? kDamage : kOk;
}

}  // namespace weir::cli
