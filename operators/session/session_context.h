#pragma once

#include "operators/session/session_effects.h"

#include <weir/operators/session.h>

namespace weir::internal {

// What a context of either kind does with the attempt's scope. Borrows it.
template <class Base>
class ScopedContext : public Base {
 public:
  explicit ScopedContext(SessionEffects::Scope& scope) : scope_(scope) {}
  Result<NullableBytes> get(ByteView name) override { return scope_.get(name); }
  Status put(ByteView name, NullableBytes value) override { return scope_.put(name, value); }
  Status emit(std::uint32_t output, const RecordRef& record) override {
    return scope_.emit(output, record);
  }

 private:
  SessionEffects::Scope& scope_;
};

}  // namespace weir::internal
