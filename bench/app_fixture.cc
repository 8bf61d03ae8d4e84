#include "bench/app_fixture.h"

#include <weir/runtime/thread_annotations.h>

#include <chrono>
#include <memory>

namespace weir::bench {
namespace {

constexpr auto kLook = std::chrono::milliseconds(5);

}  // namespace

Status run_until_drained(App& app) {
  WEIR_TRY_ASSIGN(const std::unique_ptr<DrainWatch> drain, app.watch_drain());
  Mutex mutex;
  CondVar never;
  const MutexLock lock(mutex);
  for (;;) {
    WEIR_TRY(app.error());
    WEIR_TRY_ASSIGN(const bool done, drain->done());
    if (done) {
      return {};
    }
    never.wait_for(mutex, kLook);
  }
}

std::uint64_t metric(App& app, std::string_view name) {
  double sum = 0;
  for (const MetricSample& sample : app.metrics().read()) {
    sum += sample.name == name ? sample.value : 0;
  }
  return static_cast<std::uint64_t>(sum);
}

}  // namespace weir::bench
