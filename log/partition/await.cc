#include "log/partition/await.h"

#include <fmt/core.h>

namespace weir::log {

WatermarkWaiter::WatermarkWaiter(std::shared_ptr<Partition> partition,
                                 std::shared_ptr<Notifier> notifier)
    : partition_(std::move(partition)), notifier_(std::move(notifier)) {
  partition_->add_waiter(notifier_);
}

WatermarkWaiter::~WatermarkWaiter() {
  partition_->remove_waiter(notifier_);
}

Status await_high_watermark(const std::shared_ptr<Partition>& partition, Offset end,
                            Duration timeout) {
  if (partition->offsets().high_watermark >= end) {
    return {};
  }
  const auto notifier = std::make_shared<Notifier>();
  const WatermarkWaiter waiter(partition, notifier);
  const auto& clock = system_clock();  // a wait is real time, whatever the records' clock says
  const MonotonicTime deadline = clock.monotonic() + timeout;
  for (;;) {
    const std::uint64_t seen = notifier->generation();
    if (partition->offsets().high_watermark >= end) {
      return {};
    }
    WEIR_TRY(partition->health());
    const Duration left = deadline - clock.monotonic();
    if (left <= Duration::zero()) {
      return Error(
          Errc::kTimedOut,
          fmt::format("{} was not durable up to offset {} in time; whether it will be is unknown",
                      partition->options().name.to_string(), end.value()));
    }
    notifier->wait(seen, left);
  }
}

}  // namespace weir::log
