#pragma once

#include <weir/operators/internal/nodes.h>
#include <weir/operators/internal/store_cache.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace weir::internal {

// Null when every byte string is a value of the type.
using CheckBytes = Status (*)(ByteView bytes);
template <class T>
CheckBytes check_bytes_of() {
  if constexpr (kAnyBytesAreValid<PlainOf<T>>) {
    return nullptr;
  } else {
    return [](ByteView bytes) { return Serde<PlainOf<T>>::read(bytes).status(); };
  }
}

// The byte half of count and reduce: works on the serialised key that the source read, looks 16
// records ahead into the store (streams-features 2.7, AGG-1 to AGG-5).
//
// Threading: confined to the task.
class AggregateCore : public RawReceiver, public StoreCache::Emission {
 public:
  AggregateCore(StoreCache& cache, CheckBytes check_key, CheckBytes check_value);

  void receive_run(std::span<const RecordView> records, Flow& flow, std::size_t& progress) override;

 protected:
  using Entry = StoreCache::Entry;

  // One input. `value` is set on the raw path, `typed` on the other.
  struct Input {
    NullableBytes value;
    const void* typed = nullptr;
  };
  // Applies one input to the entry and hands the result on.
  void update(ByteView key, const Input& input, Flow& flow);
  // Writes the new value with `timestamp`, a delete with `delete_timestamp` (that of the record);
  // false: the task failed.
  virtual bool apply(Entry* entry, NullableBytes stored, const Input& input, Timestamp timestamp,
                     Timestamp delete_timestamp) = 0;

  StoreCache& cache_;
  state::KeyValueStore& store_;
  TaskContext& task_;

 private:
  void receive_one(const RecordView& record, std::uint64_t hash, Flow& flow);
  void update_hashed(ByteView key, std::uint64_t hash, const Input& input, Flow& flow);

  CheckBytes check_key_;
  CheckBytes check_value_;
};

// int64, big-endian, starts at 0.
class CountCore : public AggregateCore {
 public:
  using AggregateCore::AggregateCore;

 protected:
  bool apply(Entry* entry, NullableBytes stored, const Input& input, Timestamp timestamp,
             Timestamp delete_timestamp) final;
};

class ReduceCore : public AggregateCore {
 public:
  using AggregateCore::AggregateCore;

 protected:
  enum class Step { kStore, kDelete, kFailed };
  bool apply(Entry* entry, NullableBytes stored, const Input& input, Timestamp timestamp,
             Timestamp delete_timestamp) final;
  // Appends the new value to `out` (empty on entry).
  virtual Step combine(NullableBytes stored, const Input& input, std::string& out) = 0;

 private:
  std::string scratch_;
};

// The typed half: K and V as they come in (either may be optional), R as it goes out.
template <class Core, class K, class V, class R>
class AggregateNode : public EmittingNode<PlainOf<K>, R>, public Receiver<K, V>, public Core {
 public:
  AggregateNode(StoreCache& cache, TaskContext& task)
      : Core(cache, check_bytes_of<K>(), check_bytes_of<V>()), task_context_(task) {
    cache.set_emission(*this, kIsOptional<R>);
  }

  void receive(const K* key, const V& value, Flow& flow) override {
    if (is_null_key(key)) {
      task_context_.drop(DropReason::kNullKey, flow);
      return;
    }
    if constexpr (kIsOptional<V>) {
      if (!value.has_value()) {
        task_context_.drop(DropReason::kNullValue, flow);
        return;
      }
      take(key, &*value, flow);
    } else {
      take(key, &value, flow);
    }
  }

  void emit(const StoreCache::Entry& entry, Flow& flow) override {
    const ByteView key = this->store_.key(entry);
    std::optional<PlainOf<K>> typed_key;
    std::optional<R> typed_value;
    if (!decode<PlainOf<K>>(key, typed_key, task_context_, "key in store") ||
        !decode<R>(this->store_.value(entry), typed_value, task_context_, "value in store")) {
      return;
    }
    flow.key_bytes = key;
    flow.has_key_bytes = true;
    this->emitter_.forward(&*typed_key, *typed_value, flow);
  }

 private:
  void take(const K* key, const PlainOf<V>* value, Flow& flow) {
    if (flow.has_key_bytes) {
      this->update(flow.key_bytes.view_or_empty(), {.value = {}, .typed = value}, flow);
      return;
    }
    key_scratch_.clear();
    append_bytes(*key, key_scratch_);
    this->update(key_scratch_, {.value = {}, .typed = value}, flow);
  }

  TaskContext& task_context_;
  std::string key_scratch_;
};

template <class K, class V>
using CountNode = AggregateNode<CountCore, K, V, std::int64_t>;

template <class K, class V, class F>
class ReduceNode final : public AggregateNode<ReduceCore, K, V, ReducedTo<F, PlainOf<V>>> {
  using Value = PlainOf<V>;
  using Base = AggregateNode<ReduceCore, K, V, ReducedTo<F, Value>>;

 public:
  ReduceNode(StoreCache& cache, TaskContext& task, const F& function)
      : Base(cache, task), function_(function) {}

 protected:
  ReduceCore::Step combine(NullableBytes stored, const AggregateCore::Input& input,
                           std::string& out) override {
    const Value* value = static_cast<const Value*>(input.typed);
    if (value == nullptr) {
      if (!decode<Value>(input.value, value_, this->task_, "value")) {
        return ReduceCore::Step::kFailed;
      }
      value = &*value_;
    }
    if (stored.is_null()) {
      append_bytes(*value, out);
      return ReduceCore::Step::kStore;
    }
    if (!decode<Value>(stored, stored_, this->task_, "value in store")) {
      return ReduceCore::Step::kFailed;
    }
    const ReducedTo<F, Value> result(function_(*stored_, *value));
    return append_bytes(result, out) ? ReduceCore::Step::kStore : ReduceCore::Step::kDelete;
  }

 private:
  F function_;
  std::optional<Value> value_;
  std::optional<Value> stored_;
};

template <class K, class V>
class CountFactory final : public NodeFactory {
 public:
  explicit CountFactory(std::string store) : store_(std::move(store)) {}
  std::unique_ptr<Node> make(NodeId self, NodeId parent, Wiring& wiring) const override {
    auto node = std::make_unique<CountNode<K, V>>(wiring.store(store_), wiring.task());
    typed_emitter<K, V>(wiring, parent).add(*node, node.get());
    wiring.set_emitter(self, node->emitter());
    return node;
  }

 private:
  std::string store_;
};

template <class K, class V, class F>
class ReduceFactory final : public NodeFactory {
 public:
  ReduceFactory(std::string store, F function)
      : store_(std::move(store)), function_(std::move(function)) {}
  std::unique_ptr<Node> make(NodeId self, NodeId parent, Wiring& wiring) const override {
    auto node =
        std::make_unique<ReduceNode<K, V, F>>(wiring.store(store_), wiring.task(), function_);
    typed_emitter<K, V>(wiring, parent).add(*node, node.get());
    wiring.set_emitter(self, node->emitter());
    return node;
  }

 private:
  std::string store_;
  F function_;
};

}  // namespace weir::internal
