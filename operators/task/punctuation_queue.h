#pragma once

#include <weir/runtime/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace weir::internal {

// The timers of one task and one kind of time (streams-features PUN-1, PUN-2). Pure: no clock.
class PunctuationQueue {
 public:
  using Function = std::function<void(Timestamp)>;

  // Requires: interval >= 1.
  void schedule(std::uint64_t id, Timestamp first, std::int64_t interval, Function function);
  void cancel(std::uint64_t id);
  // INT64_MAX when there is none.
  Timestamp next_due() const;
  bool empty() const { return entries_.empty(); }
  // Runs what is due at `now`, each once with `now`, earliest first; true when something ran. A
  // function may schedule and cancel.
  bool punctuate(Timestamp now);

 private:
  struct Entry {
    std::uint64_t id;
    Timestamp due;
    std::int64_t interval;
    std::shared_ptr<Function> function;  // one object: it may have state of its own
  };
  std::vector<Entry>::iterator earliest();

  std::vector<Entry> entries_;  // few
};

}  // namespace weir::internal
