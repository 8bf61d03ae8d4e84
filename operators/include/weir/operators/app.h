#pragma once

#include <weir/operators/error_policies.h>
#include <weir/operators/topology.h>
#include <weir/runtime/backend.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/executor.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/metrics.h>
#include <weir/runtime/result.h>
#include <weir/runtime/settings.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace weir {

// Settings of an application; the text names are Kafka's where Kafka has one (app_properties()).
struct AppOptions {
  // application.id: consumer group, prefix of internal topics, folder of the state.
  std::string application_id;
  std::int64_t num_stream_threads = 1;
  std::int64_t commit_interval_ms = 100;
  // Shared by all threads; 0: a result leaves for each update.
  std::int64_t statestore_cache_max_bytes = 10'485'760;
  std::string state_dir;
  std::int64_t buffered_records_per_partition = 1000;
  std::int64_t poll_ms = 100;
  // How long a commit or a restore is tried again before the application stops with its error.
  std::int64_t task_timeout_ms = 300'000;
  std::int64_t repartition_purge_interval_ms = 30'000;
  std::string auto_offset_reset = "earliest";
  // Each "fail" or "continue": see ErrorPolicies.
  std::string deserialization_exception_handler = "fail";
  std::string processing_exception_handler = "fail";
  std::string production_exception_handler = "fail";
  std::string timestamp_extractor = "FailOnInvalidTimestamp";  // default.timestamp.extractor
  std::string dead_letter_topic;  // errors.dead.letter.queue.topic.name; must exist
  std::string store_mode = "hot";
  std::int64_t store_hot_max_bytes = 1LL << 30;
  std::int64_t checkpoint_interval_ms = 30'000;
  std::int64_t checkpoint_changelog_bytes = 64LL << 20;
  // weir.durability of the changelog and repartition topics that are made.
  std::string internal_durability = "fsync";
  // start() makes no threads: the caller steps the application with run_once(). For simulations.
  bool manual_stepping = false;

  // Errors: kInvalidConfig that lists every unknown key and bad value.
  static Result<AppOptions> parse(const std::map<std::string, std::string>& given);
};
std::span<const Property<AppOptions>> app_properties();
ErrorPolicies error_policies_of(const AppOptions& options);

// What an application runs on; all outlive it.
struct Environment {
  Clock& clock;
  FileSystem& files;
  Executor& executor;  // builds checkpoints
};

// Kafka Streams' states (streams-features STO-10).
enum class AppState {
  kCreated,
  kRebalancing,  // restores its stores, or waits for an input topic to be made
  kRunning,
  kPendingShutdown,
  kNotRunning,
  kError,
};
std::string_view app_state_name(AppState state);  // "RUNNING"

// Tells when everything that stood in the input topics at some moment has been processed and
// committed, through all stages. Threading: thread-safe. Must not outlive its App.
class DrainWatch {
 public:
  virtual ~DrainWatch() = default;
  // Asks the log at most once a stage; cheap to call in a loop.
  virtual Result<bool> done() = 0;
};

// A running application: the topology's tasks, spread over threads, on a log.
//
// Guarantee: at least once. Results, changelogs and offsets are written in this order at each
//            commit (docs/operators.md, "Commit"), so after a crash the records behind the last
//            commit are processed again: counts of streams are never too low, and can be too high
//            by what was repeated (re-grouped tables: docs/operators.md, "Commit").
// Errors:    a function that throws, bytes that are no value (unless ErrorPolicies say otherwise),
// or
//            a log that fails for longer than task.timeout.ms put the application into kError:
//            error() names topic, partition and offset, nothing of the failed interval is
//            committed, the process goes on.
// Threading: start(), run_once() and stop() from one thread at a time; the rest is thread-safe.
// Files:     <state.dir>/<application.id>/: lock, plan.binpb, rocksdb/.
class App {
 public:
  App(Topology topology, AppOptions options, Backend& backend, Environment environment);
  // Ends without a commit, as a crash does: what is not committed is processed again after the next
  // start. A clean end is stop().
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  // Locks the state directory, makes the internal topics, opens the stores and starts the threads;
  // the stores are restored behind it. Input topics need not exist yet; output topics must.
  // Errors: the topology's and the options'; kLocked (names the holder); kUnknownTopic (an output
  //         topic); kInvalidConfig (partition counts that do not fit); kIo, kCorrupt.
  Status start();
  // One step of every thread, on the caller's thread; waits up to `timeout` for records when there
  // is nothing to do. Returns error() in kError. Requires: manual_stepping.
  Status run_once(Duration timeout);
  AppState state() const;
  // Why the application is in kError; ok otherwise.
  Status error() const;

  // Stops reading, commits what was processed, writes last checkpoints, joins the threads. What is
  // not done when the deadline passes is dropped and processed again later.
  // Errors: kTimedOut; that of the last commit.
  Status stop(Duration deadline);

  // Errors: those of Admin::offsets().
  Result<std::unique_ptr<DrainWatch>> watch_drain();
  // Committed results reached this far: for each input partition the next offset. For tests, tools.
  std::map<TopicPartition, Offset> committed_offsets() const;
  MetricsRegistry& metrics();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// An App as a program of its own: runs on the system's clock, files and one background thread until
// SIGINT, SIGTERM or an error, then stops within 10 seconds; a second signal ends the process at
// once. Threading: one call at a time; it takes over the process's signals while it runs. Errors:
// those of App::start(), App::error() and App::stop().
Status run_until_signal(Topology topology, AppOptions options, Backend& backend);

}  // namespace weir
