#include "operators/app/app_core.h"
#include "operators/app/drain_watch.h"
#include "operators/app/worker.h"

#include <weir/operators/app.h>
#include <weir/runtime/assert.h>
#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace weir {

class App::Impl {
 public:
  Impl(Topology topology, AppOptions options, Backend& backend, Environment environment)
      : core_(std::move(topology), std::move(options), backend, environment) {}
  ~Impl() { leave(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status start();
  Status run_once(Duration timeout);
  Status stop(Duration deadline);
  internal::AppCore& core() { return core_; }

 private:
  void leave();
  Status check_options() const;
  void run_thread(internal::Worker& worker);
  void join();

  internal::AppCore core_;
  std::vector<std::unique_ptr<internal::Worker>> workers_;
  std::vector<std::thread> threads_;
};

Status App::Impl::check_options() const {
  const AppOptions& options = core_.options();
  if (!internal::is_legal_name(options.application_id)) {
    return Error(Errc::kInvalidConfig,
                 fmt::format("application.id '{}' is not legal: use 1 to 249 of [A-Za-z0-9._-]",
                             options.application_id));
  }
  // Values that were set without parse() follow the same rules.
  std::map<std::string, std::string> as_text;
  for (const Property<AppOptions>& property : app_properties()) {
    as_text.emplace(property.name, property_text(property, options));
  }
  WEIR_TRY(AppOptions::parse(as_text).status());
  if (options.state_dir.empty()) {
    return Error(Errc::kInvalidConfig, "state.dir must name a folder for the application's state");
  }
  return {};
}

Status App::Impl::start() {
  if (core_.state() != AppState::kCreated) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("application {} was started already", core_.options().application_id));
  }
  Status opened = check_options();
  if (opened.ok()) {
    opened = core_.open();
  }
  if (!opened.ok()) {
    core_.set_state(AppState::kNotRunning);
    core_.close().ignore("the first error is reported");
    return opened;
  }
  const auto count = static_cast<std::size_t>(core_.options().num_stream_threads);
  for (std::size_t i = 0; i < count; ++i) {
    workers_.push_back(std::make_unique<internal::Worker>(core_, i));
  }
  if (!core_.options().manual_stepping) {
    for (const std::unique_ptr<internal::Worker>& worker : workers_) {
      threads_.emplace_back([this, &worker = *worker] { run_thread(worker); });
    }
  }
  return {};
}

void App::Impl::run_thread(internal::Worker& worker) {
  const auto timeout = std::chrono::milliseconds(core_.options().poll_ms);
  while (!worker.is_stopped()) {
    worker.step(timeout);
  }
}

Status App::Impl::run_once(Duration timeout) {
  WEIR_ASSERT(core_.options().manual_stepping);
  for (const std::unique_ptr<internal::Worker>& worker : workers_) {
    worker->step(timeout);
  }
  return core_.error();
}

Status App::Impl::stop(Duration deadline) {
  if (workers_.empty() || core_.state() == AppState::kNotRunning) {
    return {};
  }
  const MonotonicTime until = core_.now() + deadline;
  core_.set_state(AppState::kPendingShutdown);
  core_.request_stop(false, until);
  if (core_.options().manual_stepping) {
    for (const std::unique_ptr<internal::Worker>& worker : workers_) {
      worker->step(Duration(0));
    }
  } else {
    for (const std::unique_ptr<internal::Worker>& worker : workers_) {
      worker->wake();
    }
    if (!core_.wait_stopped(deadline)) {
      core_.request_stop(true, core_.now());
      return Error(
          Errc::kTimedOut,
          fmt::format("application {} did not stop within {} ms; what is not committed is "
                      "processed again after the next start",
                      core_.options().application_id,
                      std::chrono::duration_cast<std::chrono::milliseconds>(deadline).count()));
    }
    join();
  }
  Status outcome = core_.stop_outcome();
  workers_.clear();
  Status closed = core_.close();
  core_.set_state(AppState::kNotRunning);
  return outcome.ok() ? closed : outcome;
}

void App::Impl::join() {
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

void App::Impl::leave() {
  core_.request_stop(true, core_.now());
  for (const std::unique_ptr<internal::Worker>& worker : workers_) {
    worker->wake();
  }
  join();
  workers_.clear();
  core_.close().ignore("a destructor cannot report; stop() does");
}

App::App(Topology topology, AppOptions options, Backend& backend, Environment environment)
    : impl_(std::make_unique<Impl>(std::move(topology), std::move(options), backend, environment)) {
}

App::~App() = default;

Status App::start() {
  return impl_->start();
}
Status App::run_once(Duration timeout) {
  return impl_->run_once(timeout);
}
AppState App::state() const {
  return impl_->core().state();
}
Status App::error() const {
  return impl_->core().error();
}
Status App::stop(Duration deadline) {
  return impl_->stop(deadline);
}

Result<std::unique_ptr<DrainWatch>> App::watch_drain() {
  WEIR_TRY_ASSIGN(std::unique_ptr<DrainWatch> watch,
                  internal::StagedDrainWatch::make(impl_->core()));
  return watch;
}

std::map<TopicPartition, Offset> App::committed_offsets() const {
  return impl_->core().committed_offsets();
}

MetricsRegistry& App::metrics() {
  return impl_->core().metrics_registry();
}

}  // namespace weir
