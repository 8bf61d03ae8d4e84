#pragma once

#include <weir/operators/internal/nodes.h>
#include <weir/operators/internal/processor_host.h>
#include <weir/operators/store_view.h>
#include <weir/operators/topic.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/record.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// Operators of your own, with state and timers: Kafka Streams' Processor API
// (streams-features 2.15).
//
//   class Dedup : public weir::Processor<std::string, Order> {
//    public:
//     void init(Context& context) override {
//       context_ = &context;
//       seen_ = context.store(kSeen);
//     }
//     void process(const weir::Record<std::string, Order>& record) override {
//       if (!seen_.put_if_absent(record.key, record.timestamp).has_value()) {
//         context_->forward(record);
//       }
//     }
//    private:
//     Context* context_ = nullptr;
//     weir::KeyValueStoreView<std::string, std::int64_t> seen_;
//   };
//
//   stream.process([] { return std::make_unique<Dedup>(); }, kSeen).to(kOrders);
//
// One object for each task. Threading: everything runs on the task's thread. An exception follows
// processing.exception.handler.

namespace weir {

namespace internal {
template <class, class, class, class>
class ProcessorNode;
}

// A record of its own: changing it changes nobody else's. A plain K never sees a null key, nor a
// plain V a null value: such records are dropped and counted.
template <class K, class V>
struct Record {
  K key{};
  V value{};
  Timestamp timestamp = kNoTimestamp;
  Headers headers;
};

// A record whose key cannot be changed: it is made by the library, or from another one.
template <class K, class V>
class FixedKeyRecord {
 public:
  const K& key() const { return key_; }
  template <class V2>
  FixedKeyRecord<K, V2> with_value(V2 new_value) const {
    return FixedKeyRecord<K, V2>(key_, std::move(new_value), timestamp, headers);
  }

  V value;
  Timestamp timestamp;
  Headers headers;

 private:
  template <class, class>
  friend class FixedKeyRecord;
  template <class, class, class, class>
  friend class internal::ProcessorNode;
  FixedKeyRecord(const K& its_key, V its_value, Timestamp its_timestamp, Headers its_headers)
      : value(std::move(its_value)),
        timestamp(its_timestamp),
        headers(std::move(its_headers)),
        key_(its_key) {}
  K key_;
};

// A timer that can be stopped, also by its own function. Valid as long as its processor lives.
class Punctuation {
 public:
  Punctuation() = default;
  Punctuation(internal::ProcessorHost& host, std::uint64_t id) : host_(&host), id_(id) {}
  void cancel() {
    if (host_ != nullptr) {
      host_->cancel(id_);
    }
  }

 private:
  internal::ProcessorHost* host_ = nullptr;
  std::uint64_t id_ = 0;
};

// What both kinds of context have.
class ProcessorContextBase {
 public:
  explicit ProcessorContextBase(internal::ProcessorCore& core) : core_(core) {}

  // The function runs once whenever it is due, however many intervals have passed, then again at
  // the next multiple of `interval` (at least 1 ms) behind its first time. `start`: the first time.
  Punctuation schedule(Duration interval, PunctuationType type,
                       std::function<void(Timestamp)> function,
                       std::optional<Timestamp> start = std::nullopt) {
    return {core_.host(), core_.schedule(type, interval, start, std::move(function))};
  }
  // Commits at the next chance instead of at the next interval.
  void request_commit() { core_.host().request_commit(); }
  // Where the input record comes from. In a punctuator: topic empty, partition -1, offset -1.
  RecordContext record_context() {
    return core_.flow() == nullptr ? RecordContext() : core_.flow()->record;
  }
  // Highest timestamp that the task took for processing; -1 before the first record.
  Timestamp stream_time() const { return core_.stream_time(); }
  Timestamp wall_clock_time() const { return core_.host().wall_clock_time(); }
  const std::string& task_id() const { return core_.host().task_id(); }
  const std::string& application_id() const { return core_.host().application_id(); }

  // A store that was given to process(). Any other stops the application; its view is false.
  template <class K, class V>
  KeyValueStoreView<K, V> store(KvStore<K, V> handle) {
    return KeyValueStoreView<K, V>(core_, handle.name);
  }

 protected:
  internal::ProcessorCore& core_;
};

template <class K, class V>
class ProcessorContext final : public ProcessorContextBase {
 public:
  ProcessorContext(internal::ProcessorCore& core, const internal::Emitter<K, V>& emitter)
      : ProcessorContextBase(core), emitter_(emitter) {}

  // To all operators behind this one, each to its end, before it returns. A record without
  // timestamp gets that of the present record or punctuation.
  void forward(const Record<K, V>& record) {
    send(record, [&](internal::Flow& flow) { emitter_.forward(&record.key, record.value, flow); });
  }
  // To the operator of that name only. Any other name stops the application.
  void forward(const Record<K, V>& record, std::string_view child) {
    if (const std::optional<std::size_t> index = core_.find_child(child); index.has_value()) {
      send(record, [&](internal::Flow& flow) {
        emitter_.forward_to(*index, &record.key, record.value, flow);
      });
    }
  }

 private:
  template <class Send>
  void send(const Record<K, V>& record, Send&& send) {
    internal::Flow flow = core_.flow_for(record.timestamp, record.headers.view());
    send(flow);
  }

  const internal::Emitter<K, V>& emitter_;
};

template <class K, class V>
class FixedKeyProcessorContext final : public ProcessorContextBase {
 public:
  FixedKeyProcessorContext(internal::ProcessorCore& core, const internal::Emitter<K, V>& emitter)
      : ProcessorContextBase(core), emitter_(emitter) {}

  void forward(const FixedKeyRecord<K, V>& record) {
    internal::Flow flow = core_.flow_for(record.timestamp, record.headers.view());
    emitter_.forward(&record.key(), record.value, flow);
  }

 private:
  const internal::Emitter<K, V>& emitter_;
};

// K and V come in, KOut and VOut go out.
template <class K, class V, class KOut = K, class VOut = V>
class Processor {
 public:
  using Input = Record<K, V>;
  using KeyOut = KOut;
  using ValueOut = VOut;
  using Context = ProcessorContext<KOut, VOut>;

  virtual ~Processor() = default;
  // Once, when the stores are restored and before the first record; what it writes and forwards is
  // committed as that of a punctuator is. An exception stops the application. `context` lives as
  // long as the processor.
  virtual void init(Context& /*context*/) {}
  virtual void process(const Record<K, V>& record) = 0;
};

// A processor that keeps the key, so that nothing behind it needs a repartition.
template <class K, class V, class VOut = V>
class FixedKeyProcessor {
 public:
  using Input = FixedKeyRecord<K, V>;
  using ValueOut = VOut;
  using Context = FixedKeyProcessorContext<K, VOut>;

  virtual ~FixedKeyProcessor() = default;
  virtual void init(Context& /*context*/) {}
  virtual void process(const FixedKeyRecord<K, V>& record) = 0;
};

namespace internal {

// Makes a processor for each task.
template <class F>
using SuppliedProcessor = typename std::invoke_result_t<const F&>::element_type;
template <class F, class K, class V>
concept ProcessorSupplier = requires(const F& supply) {
  typename SuppliedProcessor<F>::KeyOut;
  requires std::derived_from<SuppliedProcessor<F>,
                             Processor<K, V, typename SuppliedProcessor<F>::KeyOut,
                                       typename SuppliedProcessor<F>::ValueOut>>;
};
template <class F, class K, class V>
concept FixedKeyProcessorSupplier = requires(const F& supply) {
  typename SuppliedProcessor<F>::ValueOut;
  requires std::derived_from<SuppliedProcessor<F>,
                             FixedKeyProcessor<K, V, typename SuppliedProcessor<F>::ValueOut>>;
};

// Made: a Processor or a FixedKeyProcessor.
template <class K, class V, class KOut, class Made>
class ProcessorNode : public EmittingNode<KOut, typename Made::ValueOut>, public Receiver<K, V> {
 public:
  ProcessorNode(const NodeSlot& slot, Wiring& wiring, std::unique_ptr<Made> processor)
      : core_(slot, wiring), context_(core_, this->emitter_), processor_(std::move(processor)) {}

  bool init() override {
    core_.run_init([&] { processor_->init(context_); });
    return true;
  }

  void receive(const K* key, const V& value, Flow& flow) override {
    if (key == nullptr) {
      core_.site().task.drop(DropReason::kNullKey, flow);
      return;
    }
    core_.run(flow, [&] {
      processor_->process(
          typename Made::Input{*key, value, flow.record.timestamp, Headers(flow.record.headers)});
    });
  }

 private:
  ProcessorCore core_;
  typename Made::Context context_;
  std::unique_ptr<Made> processor_;
};

template <class NodeType, class K, class V, class F>
class ProcessorFactory final : public NodeFactory {
 public:
  explicit ProcessorFactory(F supply) : supply_(std::move(supply)) {}
  std::unique_ptr<Node> make(const NodeSlot& slot, Wiring& wiring) const override {
    auto node = std::make_unique<NodeType>(slot, wiring, supply_());
    return wire<K, V>(slot, wiring, std::move(node));
  }

 private:
  F supply_;
};

}  // namespace internal
}  // namespace weir
