#include <weir/operators/app.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <semaphore>
#include <utility>

namespace weir {
namespace {

constexpr auto kStopDeadline = std::chrono::seconds(10);
constexpr auto kLookInterval = std::chrono::milliseconds(100);

}  // namespace

Status run_until_signal(Topology topology, AppOptions options, Backend& backend) {
  std::binary_semaphore stopping(0);
  std::atomic<bool> asked = false;
  const auto signals = watch_termination_signals([&](int signal) {
    if (asked.exchange(true)) {
      constexpr int kSignalExit = 128;
      std::_Exit(kSignalExit + signal);
    }
    stopping.release();
  });
  const std::unique_ptr<Executor> executor = make_asio_executor(1);
  App app(std::move(topology), std::move(options), backend,
          {system_clock(), posix_file_system(), *executor});
  WEIR_TRY(app.start());
  while (!stopping.try_acquire_for(kLookInterval) && app.state() != AppState::kError) {
  }
  Status failed = app.error();
  Status stopped = app.stop(kStopDeadline);
  return failed.ok() ? std::move(stopped) : std::move(failed);
}

}  // namespace weir
