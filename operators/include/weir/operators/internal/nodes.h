#pragma once

#include <weir/operators/internal/flow.h>
#include <weir/operators/internal/traits.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// The stateless typed nodes. Each holds the user's function by value.

namespace weir::internal {

// Base of the nodes that have children.
template <class K, class V>
class EmittingNode : public Node {
 public:
  Emitter<K, V>& emitter() { return emitter_; }

 protected:
  Emitter<K, V> emitter_;
};

// Reads bytes; an error when they are no value of the type. Null is a value of an optional only.
template <class T>
Status decode_to(NullableBytes bytes, std::optional<T>& out) {
  if constexpr (kIsOptional<T>) {
    if (bytes.is_null()) {
      out.emplace(std::nullopt);
      return {};
    }
  }
  Result<PlainOf<T>> value = Serde<PlainOf<T>>::read(bytes.view());
  if (!value.ok()) {
    return std::move(value).error();
  }
  out.emplace(std::move(value).value());
  return {};
}

// Reads what the application itself has written; the task fails when it cannot be read.
template <class T>
bool decode_own(NullableBytes bytes, std::optional<T>& out, TaskContext& task, const char* what) {
  Status read = decode_to(bytes, out);
  if (!read.ok()) {
    task.fail(std::move(read).error().with_context(what));
    return false;
  }
  return true;
}

template <class K, class V>
class SourceNode final : public EmittingNode<K, V>, public SourceEntry {
 public:
  explicit SourceNode(const NodeSite& site) : site_(site) {}

  void consume(std::span<const RecordView> records, Flow& flow, std::size_t& progress) override {
    if (RawReceiver* raw = this->emitter_.raw(); raw != nullptr) {
      raw->receive_run(records, flow, progress);
      return;
    }
    flow.has_key_bytes = true;
    for (progress = 0; progress < records.size() && !site_.task.stops_run(); ++progress) {
      consume_one(records[progress], flow);
    }
  }

 private:
  void consume_one(const RecordView& record, Flow& flow) {
    begin_record(record, flow);
    flow.key_bytes = record.key;
    // Key, then value, as Kafka reads them: bad bytes are rejected before nulls are looked at.
    const bool has_key = kIsOptional<K> || !record.key.is_null();
    const bool has_value = kIsOptional<V> || !record.value.is_null();
    if ((has_key && !read(record.key, key_, "key", flow)) ||
        (has_value && !read(record.value, value_, "value", flow))) {
      return;
    }
    if (!has_value) {
      site_.task.drop(DropReason::kNullValue, flow);
      return;
    }
    this->emitter_.forward(has_key ? &*key_ : nullptr, *value_, flow);
  }

  template <class T>
  bool read(NullableBytes bytes, std::optional<T>& out, const char* what, const Flow& flow) {
    return site_.read(flow, what, [&] { return decode_to(bytes, out); });
  }

  NodeSite site_;
  std::optional<K> key_;  // reused, so that long strings keep their buffers
  std::optional<V> value_;
};

// Drops (and counts) a record that has no key for a function that must have one.
template <class F, class K, class V>
bool lacks_key(const K* key, TaskContext& task, const Flow& flow) {
  if constexpr (kNeedsKey<F, K, V>) {
    if (key == nullptr) {
      task.drop(DropReason::kNullKey, flow);
      return true;
    }
  }
  return false;
}

// For the time of a call the record has a key that no bytes are known for.
class NewKeyScope {
 public:
  explicit NewKeyScope(Flow& flow) : flow_(flow), saved_(flow.has_key_bytes) {
    flow.has_key_bytes = false;
  }
  NewKeyScope(const NewKeyScope&) = delete;
  NewKeyScope& operator=(const NewKeyScope&) = delete;
  ~NewKeyScope() { flow_.has_key_bytes = saved_; }

 private:
  Flow& flow_;
  bool saved_;
};

// Forwards an element of a range, converted where its type is another.
template <class T, class Element, class Forward>
void forward_as(Element&& element, Forward&& forward) {
  if constexpr (std::is_same_v<std::remove_cvref_t<Element>, T>) {
    forward(element);
  } else {
    const T owned(std::forward<Element>(element));
    forward(owned);
  }
}

// The nodes that call one user's function for each record: K and V come in, KOut and VOut go out.
// Self::apply(key, value, flow) calls it and forwards.
template <class Self, class K, class V, class KOut, class VOut, class F>
class FunctionNode : public EmittingNode<KOut, VOut>, public Receiver<K, V> {
 public:
  FunctionNode(const NodeSite& site, const F& function) : site_(site), function_(function) {}

  void receive(const K* key, const V& value, Flow& flow) final {
    if (!lacks_key<F, K, V>(key, site_.task, flow)) {
      site_.guard(flow, [&] { static_cast<Self*>(this)->apply(key, value, flow); });
    }
  }

 protected:
  decltype(auto) call_function(const K* key, const V& value, const Flow& flow) {
    return call(function_, key, value, flow.record);
  }

 private:
  NodeSite site_;
  F function_;
};

template <class K, class V, class F, bool Keep>
class FilterNode final : public FunctionNode<FilterNode<K, V, F, Keep>, K, V, K, V, F> {
 public:
  using FunctionNode<FilterNode<K, V, F, Keep>, K, V, K, V, F>::FunctionNode;

  void apply(const K* key, const V& value, Flow& flow) {
    if (static_cast<bool>(this->call_function(key, value, flow)) == Keep) {
      this->emitter_.forward(key, value, flow);
    }
  }
};

template <class K, class V, class F>
class PeekNode final : public FunctionNode<PeekNode<K, V, F>, K, V, K, V, F> {
 public:
  using FunctionNode<PeekNode<K, V, F>, K, V, K, V, F>::FunctionNode;

  void apply(const K* key, const V& value, Flow& flow) {
    this->call_function(key, value, flow);
    this->emitter_.forward(key, value, flow);
  }
};

template <class K, class V, class F>
class MapValuesNode final
    : public FunctionNode<MapValuesNode<K, V, F>, K, V, K, Owned<ResultOf<F, K, V>>, F> {
 public:
  using FunctionNode<MapValuesNode<K, V, F>, K, V, K, Owned<ResultOf<F, K, V>>, F>::FunctionNode;

  void apply(const K* key, const V& value, Flow& flow) {
    const Owned<ResultOf<F, K, V>> result(this->call_function(key, value, flow));
    this->emitter_.forward(key, result, flow);
  }
};

template <class F, class K, class V>
using MappedKey = Owned<decltype(std::declval<ResultOf<F, K, V>>().first)>;
template <class F, class K, class V>
using MappedValue = Owned<decltype(std::declval<ResultOf<F, K, V>>().second)>;

template <class K, class V, class F>
class MapNode final
    : public FunctionNode<MapNode<K, V, F>, K, V, MappedKey<F, K, V>, MappedValue<F, K, V>, F> {
  using KeyOut = MappedKey<F, K, V>;
  using ValueOut = MappedValue<F, K, V>;

 public:
  using FunctionNode<MapNode<K, V, F>, K, V, KeyOut, ValueOut, F>::FunctionNode;

  void apply(const K* key, const V& value, Flow& flow) {
    auto result = this->call_function(key, value, flow);
    const KeyOut new_key(std::move(result.first));
    const ValueOut new_value(std::move(result.second));
    const NewKeyScope scope(flow);
    this->emitter_.forward(&new_key, new_value, flow);
  }
};

template <class F, class K, class V>
using RangeElement = Owned<std::ranges::range_reference_t<std::remove_cvref_t<ResultOf<F, K, V>>>>;
template <class F, class K, class V>
using FlatMappedKey = Owned<decltype(std::declval<RangeElement<F, K, V>>().first)>;
template <class F, class K, class V>
using FlatMappedValue = Owned<decltype(std::declval<RangeElement<F, K, V>>().second)>;

template <class K, class V, class F>
class FlatMapValuesNode final
    : public FunctionNode<FlatMapValuesNode<K, V, F>, K, V, K, RangeElement<F, K, V>, F> {
 public:
  using FunctionNode<FlatMapValuesNode<K, V, F>, K, V, K, RangeElement<F, K, V>, F>::FunctionNode;

  void apply(const K* key, const V& value, Flow& flow) {
    auto&& range = this->call_function(key, value, flow);
    for (auto&& element : range) {
      forward_as<RangeElement<F, K, V>>(
          element, [&](const auto& owned) { this->emitter_.forward(key, owned, flow); });
    }
  }
};

template <class K, class V, class F>
class FlatMapNode final : public FunctionNode<FlatMapNode<K, V, F>, K, V, FlatMappedKey<F, K, V>,
                                              FlatMappedValue<F, K, V>, F> {
  using KeyOut = FlatMappedKey<F, K, V>;
  using ValueOut = FlatMappedValue<F, K, V>;

 public:
  using FunctionNode<FlatMapNode<K, V, F>, K, V, KeyOut, ValueOut, F>::FunctionNode;

  void apply(const K* key, const V& value, Flow& flow) {
    auto&& range = this->call_function(key, value, flow);
    const NewKeyScope scope(flow);
    for (auto&& [first, second] : range) {
      forward_as<KeyOut>(first, [&](const auto& new_key) {
        forward_as<ValueOut>(second, [&](const auto& new_value) {
          this->emitter_.forward(&new_key, new_value, flow);
        });
      });
    }
  }
};

// A new key, the value stays: select_key and group_by.
template <class K, class V, class F>
class SelectKeyNode final
    : public FunctionNode<SelectKeyNode<K, V, F>, K, V, Owned<ResultOf<F, K, V>>, V, F> {
 public:
  using FunctionNode<SelectKeyNode<K, V, F>, K, V, Owned<ResultOf<F, K, V>>, V, F>::FunctionNode;

  void apply(const K* key, const V& value, Flow& flow) {
    const Owned<ResultOf<F, K, V>> new_key(this->call_function(key, value, flow));
    const NewKeyScope scope(flow);
    this->emitter_.forward(&new_key, value, flow);
  }
};

// The end of a stream.
template <class K, class V, class F>
class ForEachNode final : public FunctionNode<ForEachNode<K, V, F>, K, V, K, V, F> {
 public:
  using FunctionNode<ForEachNode<K, V, F>, K, V, K, V, F>::FunctionNode;

  void apply(const K* key, const V& value, Flow& flow) { this->call_function(key, value, flow); }
};

// Where several streams meet, and the ends of a split.
template <class K, class V>
class MergeNode final : public EmittingNode<K, V>, public Receiver<K, V> {
 public:
  explicit MergeNode(const NodeSite& /*site*/) {}
  void receive(const K* key, const V& value, Flow& flow) override {
    this->emitter_.forward(key, value, flow);
  }
};

// Sends each record to the branch of the first predicate that is true (streams-features BR-1). The
// branches are the node's children in the plan; one behind the last predicate is the default.
template <class K, class V>
using BranchPredicate = std::function<bool(const K* key, const V& value, const Flow& flow)>;

// What a split has: complete when the plan is built, and shared with its builder until then.
template <class K, class V>
struct Branches {
  std::vector<BranchPredicate<K, V>> predicates;
  bool has_default = false;
};

template <class K, class V>
class BranchNode final : public EmittingNode<K, V>, public Receiver<K, V> {
 public:
  BranchNode(const NodeSite& site, const std::shared_ptr<const Branches<K, V>>& branches)
      : site_(site), predicates_(branches->predicates) {}

  void receive(const K* key, const V& value, Flow& flow) override {
    site_.guard(flow, [&] {
      std::size_t branch = 0;
      while (branch < predicates_.size() && !predicates_[branch](key, value, flow)) {
        ++branch;
      }
      if (branch < this->emitter_.size()) {
        this->emitter_.forward_to(branch, key, value, flow);
      }
    });
  }

 private:
  NodeSite site_;
  std::vector<BranchPredicate<K, V>> predicates_;
};

// ---- factories -------------------------------------------------------------------------------

template <class NodeType>
class SourceNodeFactory final : public NodeFactory {
 public:
  std::unique_ptr<Node> make(const NodeSlot& slot, Wiring& wiring) const override {
    auto node = std::make_unique<NodeType>(NodeSite{wiring.task(), slot.name});
    wiring.set_emitter(slot.id, node->emitter());
    wiring.set_source(slot.id, *node);
    return node;
  }
};
template <class K, class V>
using SourceFactory = SourceNodeFactory<SourceNode<K, V>>;

// A node that only exists in the plan: the filter of a repartition, which its sink does.
class PassFactory final : public NodeFactory {
 public:
  std::unique_ptr<Node> make(const NodeSlot& slot, Wiring& wiring) const override {
    wiring.set_emitter(slot.id, wiring.emitter(slot.parents.front()));
    return nullptr;
  }
};

// Nodes made from copies of `arguments`; K, V: what comes in.
template <class NodeType, class K, class V, class... Arguments>
class FunctionFactory final : public NodeFactory {
 public:
  explicit FunctionFactory(Arguments... arguments) : arguments_(std::move(arguments)...) {}
  std::unique_ptr<Node> make(const NodeSlot& slot, Wiring& wiring) const override {
    auto node = std::apply(
        [&](const Arguments&... arguments) {
          return std::make_unique<NodeType>(NodeSite{wiring.task(), slot.name}, arguments...);
        },
        arguments_);
    return wire<K, V>(slot, wiring, std::move(node));
  }

 private:
  std::tuple<Arguments...> arguments_;
};

template <class K, class V>
using MergeFactory = FunctionFactory<MergeNode<K, V>, K, V>;
template <class K, class V>
using BranchFactory =
    FunctionFactory<BranchNode<K, V>, K, V, std::shared_ptr<const Branches<K, V>>>;

}  // namespace weir::internal
