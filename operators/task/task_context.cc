#include <weir/operators/internal/flow.h>
#include <weir/runtime/logger.h>

#include <utility>

namespace weir::internal {

namespace {

const char* reason_text(DropReason reason) {
  return reason == DropReason::kNullKey ? "null_key" : "null_value";
}

}  // namespace

void TaskContext::fail(Error error, FailureKind kind) {
  if (!failed_) {
    failed_ = true;
    kind_ = kind;
    status_ = std::move(error);
  }
}

void TaskContext::drop(DropReason reason, const Flow& flow) {
  dropped_.add(1);
  bool& warned = warned_[static_cast<std::size_t>(reason)];
  if (!warned) {
    warned = true;
    WEIR_WARN(
        "record dropped reason={} topic={} partition={} offset={} (the first of its kind; "
        "later ones are only counted)",
        reason_text(reason), flow.record.topic, flow.record.partition.value(),
        flow.record.offset.value());
  }
}

}  // namespace weir::internal
