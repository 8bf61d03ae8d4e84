// Counts words: a text goes to a topic, is split and counted in a store, and the counts go to a
// topic from which the table on the screen is made.
#include "apps/cli/data_directory.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/options.h"
#include "apps/word_count/pipeline.h"
#include "apps/word_count/text_feeder.h"
#include "apps/word_count/word_table.h"

#include <weir/log/embedded_log.h>
#include <weir/log/producer.h>
#include <weir/operators/app.h>
#include <weir/runtime/thread_annotations.h>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

namespace weir::word_count {
namespace {

constexpr const char* kProgram = "word_count";
constexpr auto kRedrawInterval = std::chrono::milliseconds(250);
constexpr auto kDrainDeadline = std::chrono::seconds(60);
constexpr std::size_t kRowsOnTerminal = 20;

struct Options {
  cli::CommonOptions common;
  std::string application_id = "word-count";
  std::string input = "lines";
  std::string output = "word-counts";
  std::int32_t partitions = 1;
  std::int64_t threads = 1;
  std::string text;
  bool until_end = false;
  std::optional<std::size_t> top;
  std::vector<std::string> config;
};

// Wakes the main loop for a signal, the end of the text or an error.
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

Status make_topic(Admin& admin, const std::string& name, std::int32_t partitions) {
  Result<TopicDescription> made = admin.create_topic({name, partitions, {}});
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
  cli::Output out_;
  std::size_t lines_ = 0;
};

class WordCount {
 public:
  explicit WordCount(Options options) : options_(std::move(options)) {}

  Status run() {
    WEIR_TRY_ASSIGN(log_, cli::open_for_writing(options_.common.data));
    Status done = run_on_log();
    Status closed = log_->close();
    return done.ok() ? closed : done;
  }
  bool drained_in_time() const { return in_time_; }

 private:
  Status run_on_log() {
    WEIR_TRY_ASSIGN(AppOptions app_options, read_app_options());
    if (!options_.text.empty()) {
      WEIR_TRY_ASSIGN(feeder_, TextFeeder::open(options_.text));
      WEIR_TRY(make_topic(log_->admin(), options_.input, options_.partitions));
      WEIR_TRY_ASSIGN(producer_, log::Producer::open(*log_, feeder_options()));
    }
    WEIR_TRY(make_topic(log_->admin(), options_.output, options_.partitions));
    WEIR_TRY_ASSIGN(table_, WordTable::open(*log_, options_.output));

    const std::unique_ptr<Executor> executor = make_asio_executor(1);
    App app(count_words(options_.input, options_.output), app_options, *log_,
            {system_clock(), posix_file_system(), *executor});
    const auto signals = watch_termination_signals([this](int) {
      if (stop_.exchange(true)) {
        std::_Exit(cli::kInterrupted);
      }
      bell_.ring();
    });
    WEIR_TRY(app.start());
    Status worked = work(app);
    Status stopped = app.stop(kDrainDeadline);
    if (!stopped.ok() && stopped.error().code() == Errc::kTimedOut) {
      in_time_ = false;
    }
    WEIR_TRY(worked);
    WEIR_TRY(stopped);
    WEIR_TRY(table_->update_to_end());
    show_final();
    return {};
  }

  Result<AppOptions> read_app_options() const {
    std::map<std::string, std::string> settings;
    for (const std::string& pair : options_.config) {
      const std::size_t equals = pair.find('=');
      if (equals == std::string::npos || equals == 0) {
        return Error(Errc::kInvalidArgument,
                     fmt::format("'{}' is no setting; write it as name=value", pair));
      }
      settings[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
    settings["application.id"] = options_.application_id;
    settings["num.stream.threads"] = std::to_string(options_.threads);
    settings.try_emplace("state.dir", log_->state_directory());
    return AppOptions::parse(settings);
  }

  static log::ProducerOptions feeder_options() {
    log::ProducerOptions options;
    options.batch_size = 64 << 10;
    return options;
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
    Duration pause = std::chrono::milliseconds(2);  // grows: a short text is done at once
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
    return options_.top || !cli::stdout_is_terminal() ? options_.top
                                                      : std::optional(kRowsOnTerminal);
  }

  Status show_live() {
    if (!cli::stdout_is_terminal() || options_.common.format == cli::Format::kJson) {
      return {};
    }
    WEIR_TRY_ASSIGN(const bool changed, table_->update());
    if (changed) {
      screen_.draw(table_->text(rows(), cli::Format::kText));
    }
    return {};
  }

  void show_final() { screen_.draw(table_->text(rows(), options_.common.format)); }

  const Options options_;
  std::unique_ptr<log::EmbeddedLog> log_;
  std::unique_ptr<TextFeeder> feeder_;
  std::unique_ptr<log::Producer> producer_;
  std::unique_ptr<WordTable> table_;
  Screen screen_;
  Bell bell_;
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  bool feeding_ WEIR_GUARDED_BY(mutex_) = true;
  Status fed_ WEIR_GUARDED_BY(mutex_);
  bool in_time_ = true;
};

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Counts the words of a text, or of what a topic holds and gets", kProgram);
  cli::add_common_options(app, options.common);
  app.add_option("--application-id", options.application_id,
                 "A new one counts the topic from its start")
      ->capture_default_str();
  app.add_option("--input", options.input, "Topic of lines")->capture_default_str();
  app.add_option("--output", options.output, "Topic of counts")->capture_default_str();
  app.add_option("--partitions", options.partitions, "Partitions of topics that are made")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Stream threads")->capture_default_str();
  app.add_option("--text", options.text, "File to send to the input topic first, - for stdin")
      ->type_name("FILE|-");
  app.add_flag("--until-end", options.until_end,
               "Stop when all that is in the input now is counted and committed");
  app.add_option("--top", options.top, "Show only so many words (20 on a terminal)");
  app.add_option("--config", options.config,
                 "Setting of the application by Kafka's name, repeatable")
      ->type_name("K=V")
      ->expected(1)
      ->take_all();
  app.footer(
      "Examples:\n  word_count --text /usr/share/common-licenses/GPL-3 --until-end --top 10\n"
      "  tail -f access.log | word_count --text -");
  int code = 0;
  if (!cli::parse(app, argc, argv, options.common, &code)) {
    return code;
  }
  WordCount program(std::move(options));
  const Status done = program.run();
  if (!program.drained_in_time()) {
    fmt::print(
        stderr,
        "{}: the deadline passed before all was committed; it is counted at the next start\n",
        kProgram);
    return cli::kDrainDeadline;
  }
  return done.ok() ? static_cast<int>(cli::kOk) : cli::report(kProgram, done.error());
}

}  // namespace
}  // namespace weir::word_count

int main(int argc, char** argv) {
  return weir::word_count::run(argc, argv);
}
