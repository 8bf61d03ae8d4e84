#pragma once

#include "operators/session/session_effects.h"

#include <weir/operators/session.h>
#include <weir/runtime/clock.h>

namespace weir::internal {

// What a context of either kind does with the attempt's scope. Borrows it.
template <class Base>
class ScopedContext : public Base {
 public:
  ScopedContext(SessionEffects::Scope& scope, const Clock& clock, Duration handler_timeout)
      : scope_(scope),
        clock_(clock),
        handler_timeout_(handler_timeout),
        started_(clock.monotonic()) {}
  Result<NullableBytes> get(ByteView name) override { return scope_.get(name); }
  Status put(ByteView name, NullableBytes value) override { return scope_.put(name, value); }
  Status emit(std::uint32_t output, const RecordRef& record) override {
    return scope_.emit(output, record);
  }

 protected:
  bool is_overdue() const {
    return handler_timeout_ > Duration::zero() && clock_.monotonic() - started_ >= handler_timeout_;
  }

 private:
  SessionEffects::Scope& scope_;
  const Clock& clock_;
  const Duration handler_timeout_;
  const MonotonicTime started_;
};

}  // namespace weir::internal
