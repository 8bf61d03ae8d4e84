#pragma once

#include <weir/operators/internal/flow.h>
#include <weir/operators/internal/store_cache.h>
#include <weir/runtime/clock.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

// When a punctuator is due (streams-features PUN-1).
enum class PunctuationType : std::uint8_t {
  kStreamTime,     // as records move the task's stream time; first as soon as there is a record
  kWallClockTime,  // by the clock; first one interval from now
};

namespace internal {

// What a task does for its processors. Threading: confined to the task.
class ProcessorHost {
 public:
  virtual ~ProcessorHost() = default;
  // `start`: the first time. Returns an id for cancel().
  virtual std::uint64_t schedule(PunctuationType type, std::int64_t interval_ms,
                                 std::optional<Timestamp> start,
                                 std::function<void(Timestamp)> function) = 0;
  virtual void cancel(std::uint64_t id) = 0;
  virtual void request_commit() = 0;
  virtual Timestamp stream_time() const = 0;
  virtual Timestamp wall_clock_time() const = 0;
  virtual const std::string& task_id() const = 0;
  virtual const std::string& application_id() const = 0;
};

// The byte half of a processor's context: its present record, timers and stores.
class ProcessorCore {
 public:
  ProcessorCore(const NodeSlot& slot, Wiring& wiring);

  std::uint64_t schedule(PunctuationType type, Duration interval, std::optional<Timestamp> start,
                         std::function<void(Timestamp)> function);
  ProcessorHost& host() { return host_; }
  const NodeSite& site() const { return site_; }
  // The record or punctuation that is worked on; null outside of both.
  Flow* flow() { return flow_; }
  // Null (and the task fails) when the store was not given to process().
  // Also when it is of other types.
  state::KeyValueStore* find_store(std::string_view name, const StoreTypes& types);
  // Position of a child in the plan; nullopt (and the task fails) when there is none.
  std::optional<std::size_t> find_child(std::string_view name);
  // With the present record.
  Timestamp stream_time() const {
    return flow_ == nullptr ? host_.stream_time() : flow_->record.stream_time;
  }
  // What a forwarded record travels with.
  Flow flow_for(Timestamp timestamp, HeadersView headers) const {
    Flow flow = flow_ == nullptr ? Flow() : *flow_;
    flow.record.timestamp = timestamp == kNoTimestamp ? time() : timestamp;
    flow.record.headers = headers;
    flow.has_key_bytes = false;
    return flow;
  }
  // Time of a write: that of the record or punctuation; in init() the wall clock's.
  Timestamp time() const { return flow_ == nullptr ? kNoTimestamp : flow_->record.timestamp; }
  void fail(Error error, FailureKind kind = FailureKind::kRecord) {
    site_.task.fail(std::move(error), kind);
  }

  // A processor's init(): no record, wall-clock time. What it throws goes to the task, whatever the
  // error policies say.
  template <class Body>
  void run_init(Body&& body) {
    Flow flow;
    flow.record.timestamp = host_.wall_clock_time();
    flow.record.stream_time = host_.stream_time();
    const Scope scope(flow_, flow);
    body();
  }
  // `body` works on `flow`.
  template <class Body>
  void run(Flow& flow, Body&& body) {
    const Scope scope(flow_, flow);
    site_.guard(flow, body);
  }

 private:
  class Scope {
   public:
    Scope(Flow*& present, Flow& flow) : present_(present) { present_ = &flow; }
    ~Scope() { present_ = nullptr; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Flow*& present_;
  };

  NodeSite site_;
  ProcessorHost& host_;
  std::span<const std::string> child_names_;  // the plan's
  struct Store {
    std::string_view name;  // the plan's
    StoreTypes types;
    state::KeyValueStore* store;
  };
  std::vector<Store> stores_;
  Flow* flow_ = nullptr;
};

}  // namespace internal
}  // namespace weir
