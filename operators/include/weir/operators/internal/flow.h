#pragma once

#include <weir/operators/error_policies.h>
#include <weir/operators/internal/traits.h>
#include <weir/operators/record_context.h>
#include <weir/runtime/metrics.h>
#include <weir/runtime/record.h>
#include <weir/runtime/result.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The typed half of a task: nodes joined by edges that are direct calls (one predicted virtual call
// an edge). Everything here is confined to the task's thread.

namespace weir::state {
class KeyValueStore;
}

namespace weir::internal {

class DynamicSinks;
class ProcessorHost;
class SinkBuffer;
class StoreCache;

// What travels beside key and value.
struct Flow {
  RecordContext record;
  // The key's bytes as they were read, when no operator has changed the key since: aggregations and
  // sinks then need not serialise it again. Meaningful only if has_key_bytes.
  NullableBytes key_bytes;
  bool has_key_bytes = false;
  // The record as the task read it; null when a result leaves its cache and in punctuators.
  const RecordView* source = nullptr;
};

enum class DropReason : std::uint8_t {
  kNullKey,    // an operator that needs a key met none
  kNullValue,  // a null value where the type has no null
  kInvalidTimestamp,
  kError,  // ErrorResponse::kContinue
  kCount,
};

// Whose fault an error is decides what happens: a record stops the application, a log or a disk is
// tried again.
enum class FailureKind : std::uint8_t { kRecord, kInfrastructure };

// Where an error of a record arose: each has its policy.
enum class ErrorStage : std::uint8_t { kDeserialization, kProcessing, kProduction };

// What a task's nodes share: the first error, error policies, counters.
class TaskContext {
 public:
  // Remembers the first error; the task stops behind the record that caused it.
  void fail(Error error, FailureKind kind = FailureKind::kRecord);
  bool failed() const { return failed_; }
  void begin_run() { stops_run_ = failed_; }
  // Ends the run of records that is under way behind the present one.
  void interrupt() { stops_run_ = true; }
  // What a loop over a run looks at: failed or interrupted.
  bool stops_run() const { return stops_run_; }
  const Status& status() const { return status_; }
  FailureKind failure_kind() const { return kind_; }

  // Counts a record that an operator could not take; warns about the first of each reason.
  void drop(DropReason reason, const Flow& flow);
  std::uint64_t dropped() const { return dropped_.value(); }
  const Counter& dropped_counter() const { return dropped_; }

  // `dead_letters` is null without a dead-letter topic.
  void set_error_policies(const ErrorPolicies& policies, SinkBuffer* dead_letters) {
    policies_ = policies;
    dead_letters_ = dead_letters;
  }
  ErrorResponse response(ErrorStage stage) const;
  bool writes_dead_letters_to(const SinkBuffer& buffer) const { return &buffer == dead_letters_; }
  // Whether it matters which record of a batch the log refuses.
  bool asks_which_record_is_refused() const {
    return dead_letters_ != nullptr ||
           response(ErrorStage::kProduction) == ErrorResponse::kContinue;
  }
  // A record could not be read, processed or written. Writes the dead letter; then the record is
  // skipped and counted, or fail() was called.
  void reject(ErrorStage stage, Error error, const Flow& flow);
  // The same for the exception that is being handled, thrown by a function of node `name`. Throws
  // it again when the task has failed: it goes on to the task.
  void function_threw(ErrorStage stage, std::string_view name, const Flow& flow);

 private:
  void write_dead_letter(ErrorStage stage, const Error& error, const Flow& flow,
                         std::string_view exception);
  void follow_policy(ErrorStage stage, Error error, const Flow& flow);

  Counter dropped_;  // first: it fills a cache line
  Status status_;
  ErrorPolicies policies_;
  SinkBuffer* dead_letters_ = nullptr;
  bool failed_ = false;
  bool stops_run_ = false;
  FailureKind kind_ = FailureKind::kRecord;
  bool warned_[static_cast<std::size_t>(DropReason::kCount)] = {};
};

// The flow is now about this record of a source.
inline void begin_record(const RecordView& record, Flow& flow) {
  flow.source = &record;
  flow.record.timestamp = record.timestamp;
  flow.record.offset = record.offset;
  flow.record.headers = record.headers;
  if (record.timestamp > flow.record.stream_time) {
    flow.record.stream_time = record.timestamp;
  }
}

// What a node knows of itself.
struct NodeSite {
  TaskContext& task;
  std::string_view name;  // in describe()

  // Runs `body`, which calls a user's function and forwards its results. False: the function threw
  // and the record is skipped from here on; what was forwarded before stays.
  template <class Body>
  bool guard(const Flow& flow, Body&& body, ErrorStage stage = ErrorStage::kProcessing) const {
    try {
      body();
      return true;
    } catch (...) {
      task.function_threw(stage, name, flow);
      return false;
    }
  }

  // Runs `read_bytes`, which turns bytes of the record into a value. False: they are none, or the
  // serde threw; the record was rejected.
  template <class Read>
  bool read(const Flow& flow, const char* what, Read&& read_bytes) const {
    Status done;
    if (!guard(flow, [&] { done = read_bytes(); }, ErrorStage::kDeserialization)) {
      return false;
    }
    if (done.ok()) {
      return true;
    }
    task.reject(ErrorStage::kDeserialization, std::move(done).error().with_context(what), flow);
    return false;
  }
};

// Takes records of one type.
template <class K, class V>
class Receiver {
 public:
  virtual ~Receiver() = default;
  // `key` is null when the record has none (never for an optional K: that one is then empty).
  virtual void receive(const K* key, const V& value, Flow& flow) = 0;
};

// Takes records as they were read, a run at a time: an operator directly behind a source that needs
// neither a typed key nor a typed value.
class RawReceiver {
 public:
  virtual ~RawReceiver() = default;
  // Sets flow.record for each record. `progress` is the index of the record that is worked on, for
  // messages when a user's function throws.
  virtual void receive_run(std::span<const RecordView> records, Flow& flow,
                           std::size_t& progress) = 0;
};

class EmitterBase {
 public:
  virtual ~EmitterBase() = default;
};

// The outgoing edges of a node, in the order in which they were made.
template <class K, class V>
class Emitter final : public EmitterBase {
 public:
  void add(Receiver<K, V>& receiver, RawReceiver* raw) {
    receivers_.push_back(&receiver);
    raw_ = raw;
  }
  void forward(const K* key, const V& value, Flow& flow) const {
    for (Receiver<K, V>* receiver : receivers_) {
      receiver->receive(key, value, flow);
    }
  }
  // To one of them, as the plan numbers the node's children.
  void forward_to(std::size_t child, const K* key, const V& value, Flow& flow) const {
    receivers_[child]->receive(key, value, flow);
  }
  // The only receiver, if it takes raw records; else null.
  RawReceiver* raw() const { return receivers_.size() == 1 ? raw_ : nullptr; }
  bool empty() const { return receivers_.empty(); }
  std::size_t size() const { return receivers_.size(); }

 private:
  std::vector<Receiver<K, V>*> receivers_;
  RawReceiver* raw_ = nullptr;
};

class Node {
 public:
  virtual ~Node() = default;
  // Once, before the first record: all nodes are joined, the stores restored. True when a user's
  // function ran.
  virtual bool init() { return false; }
};

// The untyped half of a source: gets runs of records of one partition.
class SourceEntry {
 public:
  virtual ~SourceEntry() = default;
  // Sends the records through the sub-topology, depth first, each to its end before the next. Stops
  // behind a record that made the task fail. flow.record's topic, partition and stream time are
  // set by the caller; `progress` as in RawReceiver.
  virtual void consume(std::span<const RecordView> records, Flow& flow, std::size_t& progress) = 0;
};

using NodeId = std::uint32_t;

// Identity of a type and what the plan records of it.
struct TypeInfo {
  const void* id = nullptr;
  std::string_view serde;
};
template <class T>
inline constexpr char kTypeTag = 0;
template <class T>
TypeInfo type_info() {
  if constexpr (NullableSerdeable<T>) {
    return {&kTypeTag<T>, Serde<PlainOf<T>>::kName};
  } else {
    return {&kTypeTag<T>, {}};  // a value that stays inside the task
  }
}
struct StoreTypes {
  TypeInfo key;
  TypeInfo value;
};

// What a node's factory gets when a task is made. Implemented by operators/task.
class Wiring {
 public:
  virtual ~Wiring() = default;
  virtual TaskContext& task() = 0;
  // The edges leaving node `id`; the caller knows their type.
  virtual EmitterBase& emitter(NodeId id) = 0;
  virtual void set_emitter(NodeId id, EmitterBase& emitter) = 0;
  virtual SinkBuffer& sink(std::string_view topic) = 0;
  // Topics that are chosen record by record.
  virtual DynamicSinks& dynamic_sinks() = 0;
  virtual StoreCache& store(std::string_view name) = 0;
  virtual StoreTypes store_types(std::string_view name) const = 0;
  virtual void set_source(NodeId id, SourceEntry& entry) = 0;
  // For processors: clock, punctuators, commit requests.
  virtual ProcessorHost& processor_host() = 0;
};

// The plan's view of the node that is to be made. Borrows from the plan.
struct NodeSlot {
  NodeId id = 0;
  std::string_view name;
  std::span<const NodeId> parents;  // empty for sources
  std::span<const std::string> child_names;
  std::span<const std::string> stores;
  // Something behind this node asks for the old values of a table's changes.
  bool sends_old_values = false;
};

// Makes one node of a task. Immutable; shared by all tasks.
class NodeFactory {
 public:
  virtual ~NodeFactory() = default;
  // Null when the node needs no object of its own (then it has set its emitter to its parent's).
  virtual std::unique_ptr<Node> make(const NodeSlot& slot, Wiring& wiring) const = 0;
};

template <class K, class V>
Emitter<K, V>& typed_emitter(Wiring& wiring, NodeId id) {
  return static_cast<Emitter<K, V>&>(wiring.emitter(id));
}

// Puts the receiver behind all parents of its node.
template <class K, class V>
void attach(const NodeSlot& slot, Wiring& wiring, Receiver<K, V>& receiver,
            RawReceiver* raw = nullptr) {
  for (const NodeId parent : slot.parents) {
    typed_emitter<K, V>(wiring, parent).add(receiver, raw);
  }
}

// A node between others: behind its parents, and others behind it. K, V: what comes in.
template <class K, class V, class NodeType>
std::unique_ptr<Node> wire(const NodeSlot& slot, Wiring& wiring, std::unique_ptr<NodeType> node,
                           RawReceiver* raw = nullptr) {
  attach<K, V>(slot, wiring, *node, raw);
  wiring.set_emitter(slot.id, node->emitter());
  return node;
}

}  // namespace weir::internal
