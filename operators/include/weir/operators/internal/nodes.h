#pragma once

#include <weir/operators/internal/flow.h>
#include <weir/operators/internal/sink_buffer.h>
#include <weir/operators/internal/traits.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

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

// Reads bytes; false when they are none (the task then fails) or the record was dropped.
template <class T>
bool decode(NullableBytes bytes, std::optional<T>& out, TaskContext& task, const char* what) {
  if constexpr (kIsOptional<T>) {
    if (bytes.is_null()) {
      out.emplace(std::nullopt);
      return true;
    }
  }
  Result<PlainOf<T>> value = Serde<PlainOf<T>>::read(bytes.view());
  if (!value.ok()) {
    task.fail(std::move(value).error().with_context(what));
    return false;
  }
  out.emplace(std::move(value).value());
  return true;
}

template <class K, class V>
class SourceNode final : public EmittingNode<K, V>, public SourceEntry {
 public:
  explicit SourceNode(TaskContext& task) : task_(task) {}

  void consume(std::span<const RecordView> records, Flow& flow, std::size_t& progress) override {
    if (RawReceiver* raw = this->emitter_.raw(); raw != nullptr) {
      raw->receive_run(records, flow, progress);
      return;
    }
    flow.has_key_bytes = true;
    for (progress = 0; progress < records.size() && !task_.failed(); ++progress) {
      consume_one(records[progress], flow);
    }
  }

 private:
  void consume_one(const RecordView& record, Flow& flow) {
    flow.record.timestamp = record.timestamp;
    flow.record.offset = record.offset;
    flow.record.headers = record.headers;
    if (record.timestamp > flow.record.stream_time) {
      flow.record.stream_time = record.timestamp;
    }
    flow.key_bytes = record.key;
    if (!kIsOptional<V> && record.value.is_null()) {
      task_.drop(DropReason::kNullValue, flow);
      return;
    }
    if (!decode(record.value, value_, task_, "value")) {
      return;
    }
    if (!kIsOptional<K> && record.key.is_null()) {
      this->emitter_.forward(nullptr, *value_, flow);
      return;
    }
    if (decode(record.key, key_, task_, "key")) {
      this->emitter_.forward(&*key_, *value_, flow);
    }
  }

  TaskContext& task_;
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

template <class K, class V, class F>
class FilterNode final : public EmittingNode<K, V>, public Receiver<K, V> {
 public:
  FilterNode(TaskContext& task, const F& function, bool keep)
      : task_(task), function_(function), keep_(keep) {}

  void receive(const K* key, const V& value, Flow& flow) override {
    if (lacks_key<F, K, V>(key, task_, flow)) {
      return;
    }
    if (static_cast<bool>(call(function_, key, value, flow.record)) == keep_) {
      this->emitter_.forward(key, value, flow);
    }
  }

 private:
  TaskContext& task_;
  F function_;
  bool keep_;
};

template <class K, class V, class F>
class MapValuesNode final : public EmittingNode<K, Owned<ResultOf<F, K, V>>>,
                            public Receiver<K, V> {
 public:
  MapValuesNode(TaskContext& task, const F& function) : task_(task), function_(function) {}

  void receive(const K* key, const V& value, Flow& flow) override {
    if (lacks_key<F, K, V>(key, task_, flow)) {
      return;
    }
    const Owned<ResultOf<F, K, V>> result(call(function_, key, value, flow.record));
    this->emitter_.forward(key, result, flow);
  }

 private:
  TaskContext& task_;
  F function_;
};

template <class F, class K, class V>
using MappedKey = Owned<decltype(std::declval<ResultOf<F, K, V>>().first)>;
template <class F, class K, class V>
using MappedValue = Owned<decltype(std::declval<ResultOf<F, K, V>>().second)>;

template <class K, class V, class F>
class MapNode final : public EmittingNode<MappedKey<F, K, V>, MappedValue<F, K, V>>,
                      public Receiver<K, V> {
 public:
  MapNode(TaskContext& task, const F& function) : task_(task), function_(function) {}

  void receive(const K* key, const V& value, Flow& flow) override {
    if (lacks_key<F, K, V>(key, task_, flow)) {
      return;
    }
    auto result = call(function_, key, value, flow.record);
    const MappedKey<F, K, V> new_key(std::move(result.first));
    const MappedValue<F, K, V> new_value(std::move(result.second));
    const NewKeyScope scope(flow);
    this->emitter_.forward(&new_key, new_value, flow);
  }

 private:
  TaskContext& task_;
  F function_;
};

template <class F, class K, class V>
using RangeElement = Owned<std::ranges::range_reference_t<std::remove_cvref_t<ResultOf<F, K, V>>>>;

template <class K, class V, class F>
class FlatMapValuesNode final : public EmittingNode<K, RangeElement<F, K, V>>,
                                public Receiver<K, V> {
 public:
  FlatMapValuesNode(TaskContext& task, const F& function) : task_(task), function_(function) {}

  void receive(const K* key, const V& value, Flow& flow) override {
    if (lacks_key<F, K, V>(key, task_, flow)) {
      return;
    }
    using Element = RangeElement<F, K, V>;
    auto&& range = call(function_, key, value, flow.record);
    for (auto&& element : range) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(element)>, Element>) {
        this->emitter_.forward(key, element, flow);
      } else {
        const Element owned(element);
        this->emitter_.forward(key, owned, flow);
      }
    }
  }

 private:
  TaskContext& task_;
  F function_;
};

// group_by: a new key, the value stays.
template <class K, class V, class F>
class SelectKeyNode final : public EmittingNode<Owned<ResultOf<F, K, V>>, V>,
                            public Receiver<K, V> {
 public:
  SelectKeyNode(TaskContext& task, const F& function) : task_(task), function_(function) {}

  void receive(const K* key, const V& value, Flow& flow) override {
    if (lacks_key<F, K, V>(key, task_, flow)) {
      return;
    }
    const Owned<ResultOf<F, K, V>> new_key(call(function_, key, value, flow.record));
    const NewKeyScope scope(flow);
    this->emitter_.forward(&new_key, value, flow);
  }

 private:
  TaskContext& task_;
  F function_;
};

// Serialises into the topic's buffer. With `drop_null_keys` it is the filter of a repartition too:
// such records go without metric or log (Kafka's repartition filter).
template <class K, class V>
class SinkNode final : public Node, public Receiver<K, V> {
 public:
  SinkNode(SinkBuffer& buffer, bool drop_null_keys)
      : buffer_(buffer), drop_null_keys_(drop_null_keys) {}

  void receive(const K* key, const V& value, Flow& flow) override {
    if (drop_null_keys_ && is_null_key(key)) {
      return;
    }
    std::string& out = buffer_.bytes();
    SinkMark mark{.begin = out.size()};
    if (is_null_key(key)) {
      mark.key_is_null = true;
    } else if (flow.has_key_bytes) {
      out.append(flow.key_bytes.view_or_empty());
    } else {
      append_bytes(*key, out);
    }
    mark.key_end = out.size();
    mark.value_is_null = !append_bytes(value, out);
    buffer_.add(mark, flow.record.timestamp, flow.record.headers);
  }

 private:
  SinkBuffer& buffer_;
  bool drop_null_keys_;
};

// ---- factories -------------------------------------------------------------------------------

template <class K, class V>
class SourceFactory final : public NodeFactory {
 public:
  std::unique_ptr<Node> make(NodeId self, NodeId /*parent*/, Wiring& wiring) const override {
    auto node = std::make_unique<SourceNode<K, V>>(wiring.task());
    wiring.set_emitter(self, node->emitter());
    wiring.set_source(self, *node);
    return node;
  }
};

// A node that only exists in the plan (a repartition's filter, to_stream).
class PassFactory final : public NodeFactory {
 public:
  std::unique_ptr<Node> make(NodeId self, NodeId parent, Wiring& wiring) const override {
    wiring.set_emitter(self, wiring.emitter(parent));
    return nullptr;
  }
};

template <class K, class V>
class SinkFactory final : public NodeFactory {
 public:
  SinkFactory(std::string topic, bool drop_null_keys)
      : topic_(std::move(topic)), drop_null_keys_(drop_null_keys) {}
  std::unique_ptr<Node> make(NodeId /*self*/, NodeId parent, Wiring& wiring) const override {
    auto node = std::make_unique<SinkNode<K, V>>(wiring.sink(topic_), drop_null_keys_);
    typed_emitter<K, V>(wiring, parent).add(*node, nullptr);
    return node;
  }

 private:
  std::string topic_;
  bool drop_null_keys_;
};

// Nodes made from the task and one function.
template <class NodeType, class K, class V, class F>
class FunctionFactory final : public NodeFactory {
 public:
  explicit FunctionFactory(F function) : function_(std::move(function)) {}
  std::unique_ptr<Node> make(NodeId self, NodeId parent, Wiring& wiring) const override {
    auto node = std::make_unique<NodeType>(wiring.task(), function_);
    typed_emitter<K, V>(wiring, parent).add(*node, nullptr);
    wiring.set_emitter(self, node->emitter());
    return node;
  }

 private:
  F function_;
};

template <class K, class V, class F>
class FilterFactory final : public NodeFactory {
 public:
  FilterFactory(F function, bool keep) : function_(std::move(function)), keep_(keep) {}
  std::unique_ptr<Node> make(NodeId self, NodeId parent, Wiring& wiring) const override {
    auto node = std::make_unique<FilterNode<K, V, F>>(wiring.task(), function_, keep_);
    typed_emitter<K, V>(wiring, parent).add(*node, nullptr);
    wiring.set_emitter(self, node->emitter());
    return node;
  }

 private:
  F function_;
  bool keep_;
};

}  // namespace weir::internal
