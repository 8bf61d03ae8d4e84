#pragma once

#include <weir/operators/internal/nodes.h>
#include <weir/operators/internal/store_cache.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace weir::internal {

// What travels between the operators of a table (streams-features TAB-1).
template <class V>
struct Change {
  std::optional<V> new_value;  // empty: the key was deleted
  std::optional<V> old_value;  // only where something downstream asks for it
};

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

// The byte half of every operator that owns a store: works on the serialised key that the source
// read, looks 16 records ahead into the store.
//
// Threading: confined to the task.
class StoreOperator : public RawReceiver, public StoreCache::Emission {
 public:
  using Entry = StoreCache::Entry;

  void receive_run(std::span<const RecordView> records, Flow& flow, std::size_t& progress) override;

 protected:
  struct RawChecks {
    CheckBytes key = nullptr;
    CheckBytes value = nullptr;
    bool takes_null_values = false;  // else they are dropped and counted
  };
  StoreOperator(const NodeSite& site, StoreCache& cache, const RawChecks& checks);

  // One input. `value` is set on the raw path, `typed` on the other.
  struct Input {
    ByteView key;
    NullableBytes value;
    const void* typed = nullptr;
  };
  // Applies one input and hands the result on.
  void update(const Input& input, Flow& flow);
  // Writes the new value and returns the result's timestamp; nullopt: there is no result.
  virtual std::optional<Timestamp> apply(Entry* entry, NullableBytes stored, const Input& input,
                                         const Flow& flow) = 0;
  [[gnu::always_inline]] bool put(Entry* entry, NullableBytes value, Timestamp timestamp) {
    Status done = store_.put(entry, value, timestamp);
    if (!done.ok()) [[unlikely]] {
      site_.task.fail(std::move(done).error(), FailureKind::kInfrastructure);
      return false;
    }
    return true;
  }
  // AGG-2: the later of record and stored value. A deleted entry's time does not count.
  Timestamp later(const Entry& entry, NullableBytes stored, const Flow& flow) const {
    return stored.is_null()
               ? flow.record.timestamp
               : std::max(state::KeyValueStore::timestamp(entry), flow.record.timestamp);
  }
  void drop_null_key(const Flow& flow) { site_.task.drop(DropReason::kNullKey, flow); }
  void drop_null_value(const Flow& flow) { site_.task.drop(DropReason::kNullValue, flow); }

  NodeSite site_;
  StoreCache& cache_;
  state::KeyValueStore& store_;

 private:
  void receive_one(const RecordView& record, std::uint64_t hash, Flow& flow);
  bool check(const RecordView& record, const Flow& flow);
  void update_hashed(std::uint64_t hash, const Input& input, Flow& flow);
  void update_entry(Entry* entry, const Input& input, Flow& flow);

  RawChecks checks_;
  std::string old_value_;
};

// The typed half: emits the store's changes. K and V are plain.
template <class K, class V, class Core = StoreOperator>
class TableNode : public EmittingNode<K, Change<V>>, public Core {
 protected:
  // `can_delete`: results may be tombstones.
  template <class... CoreArguments>
  TableNode(bool can_delete, bool sends_old_values, const NodeSite& site, StoreCache& cache,
            CoreArguments&&... arguments)
      : Core(site, cache, std::forward<CoreArguments>(arguments)...) {
    cache.set_emission(*this, can_delete, sends_old_values);
  }

  // Calls update() with the key's bytes.
  template <class InputK>
  void update_typed(const InputK& key, const void* typed, Flow& flow) {
    if (flow.has_key_bytes) {
      const ByteView bytes = flow.key_bytes.view_or_empty();
      this->update({.key = bytes, .value = {}, .typed = typed}, flow);
      return;
    }
    key_scratch_.clear();
    append_bytes(key, key_scratch_);
    this->update({.key = key_scratch_, .value = {}, .typed = typed}, flow);
  }

 public:
  void emit(const StoreCache::Entry& entry, NullableBytes old_value, Flow& flow) override {
    if (!this->emitter_.empty()) {
      this->site_.guard(flow, [&] { emit_typed(entry, old_value, flow); });
    }
  }

 private:
  void emit_typed(const StoreCache::Entry& entry, NullableBytes old_value, Flow& flow) {
    TaskContext& task = this->site_.task;
    const ByteView key_bytes = this->store_.key(entry);
    std::optional<K> key;
    Change<V> change;
    if (!decode_own<K>(key_bytes, key, task, "key in store") ||
        !decode_stored(this->store_.value(entry), change.new_value, task) ||
        !decode_stored(old_value, change.old_value, task)) {
      return;
    }
    flow.key_bytes = key_bytes;
    flow.has_key_bytes = true;
    this->emitter_.forward(&*key, change, flow);
  }

  static bool decode_stored(NullableBytes bytes, std::optional<V>& out, TaskContext& task) {
    return bytes.is_null() || decode_own<V>(bytes, out, task, "value in store");
  }

  std::string key_scratch_;
};

// Nodes with a store, made from copies of `arguments`: NodeType(site, cache, sends_old_values,
// arguments...). K, V: what comes in.
template <class NodeType, class K, class V, class... Arguments>
class StoreNodeFactory final : public NodeFactory {
 public:
  explicit StoreNodeFactory(Arguments... arguments) : arguments_(std::move(arguments)...) {}
  std::unique_ptr<Node> make(const NodeSlot& slot, Wiring& wiring) const override {
    auto node = std::apply(
        [&](const Arguments&... arguments) {
          return std::make_unique<NodeType>(NodeSite{wiring.task(), slot.name},
                                            wiring.store(slot.stores.front()),
                                            slot.sends_old_values, arguments...);
        },
        arguments_);
    RawReceiver* raw = node->raw_receiver();
    return wire<K, V>(slot, wiring, std::move(node), raw);
  }

 private:
  std::tuple<Arguments...> arguments_;
};

}  // namespace weir::internal
