#pragma once

#include <weir/operators/internal/sink_nodes.h>
#include <weir/operators/internal/store_operator.h>
#include <weir/runtime/varint.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

// Operators of tables (streams-features 2.9). K, V and R are plain here: a deleted key is a Change
// without new value.

namespace weir::internal {

// Records become the values of a table. InK, InV: as the stream has them.
template <class InK, class InV>
class TableInput : public Receiver<InK, InV> {
 public:
  explicit TableInput(TaskContext& task) : task_(task) {}

  void receive(const InK* key, const InV& value, Flow& flow) override {
    if (is_null_key(key)) {
      task_.drop(DropReason::kNullKey, flow);
      return;
    }
    if constexpr (kIsOptional<InK>) {
      take(**key, std::optional<PlainOf<InV>>(value), flow);
    } else {
      take(*key, std::optional<PlainOf<InV>>(value), flow);
    }
  }

 protected:
  virtual void take(const PlainOf<InK>& key, std::optional<PlainOf<InV>> value, Flow& flow) = 0;

 private:
  TaskContext& task_;
};

// A table that nobody looks into: changes pass.
template <class InK, class InV>
class TablePassNode final : public EmittingNode<PlainOf<InK>, Change<PlainOf<InV>>>,
                            public TableInput<InK, InV> {
 public:
  explicit TablePassNode(const NodeSite& site) : TableInput<InK, InV>(site.task) {}

 protected:
  void take(const PlainOf<InK>& key, std::optional<PlainOf<InV>> value, Flow& flow) override {
    this->emitter_.forward(&key, {std::move(value), std::nullopt}, flow);
  }
};

// Keeps the last change of each key: behind an operator, or behind a source.
template <class K, class V>
class TableStoreNode : public TableNode<K, V>, public Receiver<K, Change<V>> {
  using Base = TableNode<K, V>;

 public:
  // `skips_needless_tombstones`: a delete of what is not there is not forwarded.
  TableStoreNode(const NodeSite& site, StoreCache& cache, bool sends_old_values,
                 bool skips_needless_tombstones)
      : Base(true, sends_old_values, site, cache,
             StoreOperator::RawChecks{.key = check_bytes_of<K>(),
                                      .value = check_bytes_of<V>(),
                                      .takes_null_values = true}),
        skips_needless_tombstones_(skips_needless_tombstones) {}

  RawReceiver* raw_receiver() { return this; }

  void receive(const K* key, const Change<V>& change, Flow& flow) override {
    this->update_typed(*key, &change.new_value, flow);
  }

 protected:
  // By order of offsets, whatever the timestamps (TAB-2).
  std::optional<Timestamp> apply(StoreOperator::Entry* entry, NullableBytes stored,
                                 const StoreOperator::Input& input, const Flow& flow) override {
    NullableBytes value = input.value;
    if (input.typed != nullptr) {
      scratch_.clear();
      if (append_bytes(*static_cast<const std::optional<V>*>(input.typed), scratch_)) {
        value = ByteView(scratch_);
      }
    }
    if (skips_needless_tombstones_ && value.is_null() && stored.is_null()) {
      return std::nullopt;
    }
    if (!this->put(entry, value, flow.record.timestamp)) {
      return std::nullopt;
    }
    return flow.record.timestamp;
  }

 private:
  bool skips_needless_tombstones_;
  std::string scratch_;
};

template <class InK, class InV>
class TableSourceStoreNode final : public TableStoreNode<PlainOf<InK>, PlainOf<InV>>,
                                   public TableInput<InK, InV> {
 public:
  TableSourceStoreNode(const NodeSite& site, StoreCache& cache, bool sends_old_values)
      : TableStoreNode<PlainOf<InK>, PlainOf<InV>>(site, cache, sends_old_values, false),
        TableInput<InK, InV>(site.task) {}

 protected:
  void take(const PlainOf<InK>& key, std::optional<PlainOf<InV>> value, Flow& flow) override {
    this->update_typed(key, &value, flow);
  }
};

// table_from and to_table: with a store if the plan gave the node one.
template <class InK, class InV>
class TableInputFactory final : public NodeFactory {
 public:
  std::unique_ptr<Node> make(const NodeSlot& slot, Wiring& wiring) const override {
    const NodeSite site{wiring.task(), slot.name};
    if (slot.stores.empty()) {
      return wire<InK, InV>(slot, wiring, std::make_unique<TablePassNode<InK, InV>>(site));
    }
    auto node = std::make_unique<TableSourceStoreNode<InK, InV>>(
        site, wiring.store(slot.stores.front()), slot.sends_old_values);
    RawReceiver* raw = node->raw_receiver();
    return wire<InK, InV>(slot, wiring, std::move(node), raw);
  }
};

// Out: V, or std::optional<V> where there may be tombstones.
template <class K, class V, class Out>
class ToStreamNode final : public EmittingNode<K, Out>, public Receiver<K, Change<V>> {
 public:
  explicit ToStreamNode(const NodeSite& /*site*/) {}

  void receive(const K* key, const Change<V>& change, Flow& flow) override {
    if constexpr (kIsOptional<Out>) {
      this->emitter_.forward(key, change.new_value, flow);
    } else if (change.new_value.has_value()) {  // a processor may have deleted it
      this->emitter_.forward(key, *change.new_value, flow);
    }
  }
};

// Base of the stateless table operators: Self::compute(key, value, flow) gives the new value.
template <class Self, class K, class V, class R>
class TableFunctionNode : public EmittingNode<K, Change<R>>, public Receiver<K, Change<V>> {
 public:
  TableFunctionNode(const NodeSite& site, bool sends_old_values, bool skips_empty)
      : site_(site), sends_old_values_(sends_old_values), skips_empty_(skips_empty) {}

  void receive(const K* key, const Change<V>& change, Flow& flow) final {
    site_.guard(flow, [&] {
      Change<R> result{compute(key, change.new_value, flow), std::nullopt};
      if (sends_old_values_) {
        result.old_value = compute(key, change.old_value, flow);
        if (skips_empty_ && !result.new_value.has_value() && !result.old_value.has_value()) {
          return;
        }
      }
      this->emitter_.forward(key, result, flow);
    });
  }

 private:
  std::optional<R> compute(const K* key, const std::optional<V>& value, const Flow& flow) {
    return value.has_value() ? static_cast<Self*>(this)->compute_value(key, *value, flow)
                             : std::nullopt;
  }

  NodeSite site_;
  bool sends_old_values_;
  bool skips_empty_;
};

template <class K, class V, class F, bool Keep>
class TableFilterNode final : public TableFunctionNode<TableFilterNode<K, V, F, Keep>, K, V, V> {
 public:
  static constexpr bool kSkipsEmpty = true;
  TableFilterNode(const NodeSite& site, bool sends_old_values, const F& function)
      : TableFunctionNode<TableFilterNode, K, V, V>(site, sends_old_values, kSkipsEmpty),
        function_(function) {}

  std::optional<V> compute_value(const K* key, const V& value, const Flow& flow) {
    return static_cast<bool>(call(function_, key, value, flow.record)) == Keep
               ? std::optional<V>(value)
               : std::nullopt;
  }

 private:
  F function_;
};

template <class K, class V, class R, class F>
class TableMapValuesNode final : public TableFunctionNode<TableMapValuesNode<K, V, R, F>, K, V, R> {
 public:
  static constexpr bool kSkipsEmpty = false;
  TableMapValuesNode(const NodeSite& site, bool sends_old_values, const F& function)
      : TableFunctionNode<TableMapValuesNode, K, V, R>(site, sends_old_values, kSkipsEmpty),
        function_(function) {}

  std::optional<R> compute_value(const K* key, const V& value, const Flow& flow) {
    return std::optional<R>(call(function_, key, value, flow.record));
  }

 private:
  F function_;
};

// An operator whose results are kept in a store behind it.
template <class Inner, class K, class R>
class MaterializedNode final : public Node {
 public:
  template <class... Arguments>
  MaterializedNode(const NodeSite& site, StoreCache& cache, bool sends_old_values,
                   const Arguments&... arguments)
      : inner_(site, false, arguments...),
        store_(site, cache, sends_old_values, sends_old_values && Inner::kSkipsEmpty) {
    inner_.emitter().add(store_, nullptr);
  }
  Inner& inner() { return inner_; }
  Emitter<K, Change<R>>& emitter() { return store_.emitter(); }

 private:
  Inner inner_;
  TableStoreNode<K, R> store_;
};

// NodeType(site, sends_old_values, function); with a store if the plan gave the node one.
template <class NodeType, class K, class V, class R, class F>
class TableFunctionFactory final : public NodeFactory {
 public:
  explicit TableFunctionFactory(F function) : function_(std::move(function)) {}
  std::unique_ptr<Node> make(const NodeSlot& slot, Wiring& wiring) const override {
    const NodeSite site{wiring.task(), slot.name};
    if constexpr (Serdeable<K> && Serdeable<R>) {
      if (!slot.stores.empty()) {
        auto node = std::make_unique<MaterializedNode<NodeType, K, R>>(
            site, wiring.store(slot.stores.front()), slot.sends_old_values, function_);
        attach<K, Change<V>>(slot, wiring, node->inner());
        wiring.set_emitter(slot.id, node->emitter());
        return node;
      }
    }
    return wire<K, Change<V>>(slot, wiring,
                              std::make_unique<NodeType>(site, slot.sends_old_values, function_));
  }

 private:
  F function_;
};

// group_by of a table (GRP-1): the mapper runs on both halves of a change. Equal keys: one change;
// else the removal goes first, to the old key.
template <class K, class V, class F>
class RegroupNode final
    : public EmittingNode<RegroupedKey<F, K, V>, Change<RegroupedValue<F, K, V>>>,
      public Receiver<K, Change<V>> {
  using KeyOut = RegroupedKey<F, K, V>;
  using ValueOut = RegroupedValue<F, K, V>;
  using Pair = std::optional<std::pair<KeyOut, ValueOut>>;

 public:
  RegroupNode(const NodeSite& site, const F& function) : site_(site), function_(function) {}

  void receive(const K* key, const Change<V>& change, Flow& flow) override {
    site_.guard(flow, [&] {
      Pair added = map(key, change.new_value, flow);
      Pair removed = map(key, change.old_value, flow);
      const NewKeyScope scope(flow);
      if (added.has_value() && removed.has_value() && added->first == removed->first) {
        this->emitter_.forward(&added->first,
                               {std::move(added->second), std::move(removed->second)}, flow);
        return;
      }
      if (removed.has_value()) {
        this->emitter_.forward(&removed->first, {std::nullopt, std::move(removed->second)}, flow);
      }
      if (added.has_value()) {
        this->emitter_.forward(&added->first, {std::move(added->second), std::nullopt}, flow);
      }
    });
  }

 private:
  Pair map(const K* key, const std::optional<V>& value, const Flow& flow) {
    if (!value.has_value()) {
      return std::nullopt;
    }
    auto result = call(function_, key, *value, flow.record);
    if constexpr (kIsOptional<decltype(result)>) {
      return result.has_value() ? complete(std::move(*result)) : std::nullopt;
    } else {
      return complete(std::move(result));
    }
  }
  template <class Result>
  static Pair complete(Result&& result) {
    std::optional<KeyOut> new_key(std::move(result.first));
    std::optional<ValueOut> new_value(std::move(result.second));
    if (!new_key.has_value() || !new_value.has_value()) {
      return std::nullopt;
    }
    return std::pair(std::move(*new_key), std::move(*new_value));
  }

  NodeSite site_;
  F function_;
};

// Changes in the bytes of Kafka's ChangedSerializer (GRP-2): old | 0, new | 1, or
// varint length of new | new | old | 2.
enum class ChangeFlag : char { kOldOnly = 0, kNewOnly = 1, kBoth = 2 };

template <class V>
void write_change(const Change<V>& change, std::string& out) {
  if (!change.new_value.has_value()) {
    append_bytes(change.old_value, out);
    out.push_back(static_cast<char>(ChangeFlag::kOldOnly));
    return;
  }
  if (!change.old_value.has_value()) {
    append_bytes(change.new_value, out);
    out.push_back(static_cast<char>(ChangeFlag::kNewOnly));
    return;
  }
  std::string new_bytes;
  append_bytes(change.new_value, new_bytes);
  char size[10];
  const char* end = write_varint(size, static_cast<std::int32_t>(new_bytes.size()));
  out.append(size, static_cast<std::size_t>(end - size));
  out.append(new_bytes);
  append_bytes(change.old_value, out);
  out.push_back(static_cast<char>(ChangeFlag::kBoth));
}

struct ChangeBytes {
  NullableBytes new_value;
  NullableBytes old_value;
};
// Errors: kCorrupt.
Result<ChangeBytes> split_change(ByteView bytes);

template <class K, class V>
class ChangeSinkNode final : public Node, public Receiver<K, Change<V>> {
 public:
  ChangeSinkNode(const NodeSite& site, SinkBuffer& buffer) : site_(site), buffer_(buffer) {}

  void receive(const K* key, const Change<V>& change, Flow& flow) override {
    write_record(site_, buffer_, key, flow, [&](std::string& out) {
      write_change(change, out);
      return true;
    });
  }

 private:
  NodeSite site_;
  SinkBuffer& buffer_;
};

template <class K, class V>
class ChangeSourceNode final : public EmittingNode<K, Change<V>>, public SourceEntry {
 public:
  explicit ChangeSourceNode(const NodeSite& site) : site_(site) {}

  void consume(std::span<const RecordView> records, Flow& flow, std::size_t& progress) override {
    flow.has_key_bytes = true;
    for (progress = 0; progress < records.size() && !site_.task.stops_run(); ++progress) {
      begin_record(records[progress], flow);
      flow.key_bytes = records[progress].key;
      std::optional<K> key;
      Change<V> change;
      if (site_.read(flow, "change", [&] { return parse(records[progress], key, change); })) {
        this->emitter_.forward(&*key, change, flow);
      }
    }
  }

 private:
  static Status parse(const RecordView& record, std::optional<K>& key, Change<V>& change) {
    if (record.key.is_null() || record.value.is_null()) {
      return Error(Errc::kCorrupt, "a change of a table has neither null key nor null value");
    }
    WEIR_TRY(decode_to(record.key, key));
    WEIR_TRY_ASSIGN(const ChangeBytes bytes, split_change(record.value.view()));
    if (!bytes.new_value.is_null()) {
      WEIR_TRY(decode_to(bytes.new_value, change.new_value));
    }
    if (!bytes.old_value.is_null()) {
      WEIR_TRY(decode_to(bytes.old_value, change.old_value));
    }
    return {};
  }

  NodeSite site_;
};

template <class K, class V>
class ChangeSinkFactory final : public NodeFactory {
 public:
  explicit ChangeSinkFactory(std::string topic) : topic_(std::move(topic)) {}
  std::unique_ptr<Node> make(const NodeSlot& slot, Wiring& wiring) const override {
    auto node = std::make_unique<ChangeSinkNode<K, V>>(NodeSite{wiring.task(), slot.name},
                                                       wiring.sink(topic_));
    attach<K, Change<V>>(slot, wiring, *node);
    return node;
  }

 private:
  std::string topic_;
};

template <class K, class V>
using ChangeSourceFactory = SourceNodeFactory<ChangeSourceNode<K, V>>;

}  // namespace weir::internal
