#pragma once

#include <weir/operators/internal/store_operator.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

// Aggregations of grouped streams (streams-features 2.7, AGG-1 to AGG-5) and of re-grouped tables
// (2.9, GRP-3).

namespace weir::internal {

// int64, big-endian, starts at 0. Needs neither a typed key nor a typed value.
class CountCore : public StoreOperator {
 protected:
  using StoreOperator::StoreOperator;
  std::optional<Timestamp> apply(Entry* entry, NullableBytes stored, const Input& input,
                                 const Flow& flow) final;
};

// The new value is computed from the stored one and the input.
class CombineCore : public StoreOperator {
 protected:
  using StoreOperator::StoreOperator;
  enum class Step { kStore, kDelete, kFailed };
  std::optional<Timestamp> apply(Entry* entry, NullableBytes stored, const Input& input,
                                 const Flow& flow) final;
  // Appends the new value to `out` (empty on entry).
  virtual Step combine(NullableBytes stored, const Input& input, const Flow& flow,
                       std::string& out) = 0;

 private:
  std::string scratch_;
};

// K and V as they come in (either may be optional), R as it goes out.
template <class Core, class K, class V, class R>
class AggregateNode : public TableNode<PlainOf<K>, PlainOf<R>, Core>, public Receiver<K, V> {
  using Base = TableNode<PlainOf<K>, PlainOf<R>, Core>;

 public:
  AggregateNode(const NodeSite& site, StoreCache& cache, bool sends_old_values)
      : Base(kIsOptional<R>, sends_old_values, site, cache,
             StoreOperator::RawChecks{.key = check_bytes_of<K>(), .value = check_bytes_of<V>()}) {}

  RawReceiver* raw_receiver() { return this; }

  void receive(const K* key, const V& value, Flow& flow) override {
    if (is_null_key(key)) {
      this->drop_null_key(flow);
      return;
    }
    if constexpr (kIsOptional<V>) {
      if (!value.has_value()) {
        this->drop_null_value(flow);
        return;
      }
      this->update_typed(*key, &*value, flow);
    } else {
      this->update_typed(*key, &value, flow);
    }
  }

 protected:
  // Null: it cannot be read and the task has failed. Valid until the next call.
  const PlainOf<V>* value_of(const StoreOperator::Input& input) {
    if (input.typed != nullptr) {
      return static_cast<const PlainOf<V>*>(input.typed);
    }
    return decode_own<PlainOf<V>>(input.value, value_, this->site_.task, "value") ? &*value_
                                                                                  : nullptr;
  }

 private:
  std::optional<PlainOf<V>> value_;
};

template <class K, class V>
using CountNode = AggregateNode<CountCore, K, V, std::int64_t>;

template <class K, class V, class F>
class ReduceNode final : public AggregateNode<CombineCore, K, V, ReducedTo<F, PlainOf<V>>> {
  using Value = PlainOf<V>;
  using Base = AggregateNode<CombineCore, K, V, ReducedTo<F, Value>>;
  using Step = CombineCore::Step;

 public:
  ReduceNode(const NodeSite& site, StoreCache& cache, bool sends_old_values, const F& function)
      : Base(site, cache, sends_old_values), function_(function) {}

 protected:
  Step combine(NullableBytes stored, const StoreOperator::Input& input, const Flow& /*flow*/,
               std::string& out) override {
    const Value* value = this->value_of(input);
    if (value == nullptr) {
      return Step::kFailed;
    }
    if (stored.is_null()) {
      append_bytes(*value, out);
      return Step::kStore;
    }
    if (!decode_own<Value>(stored, stored_, this->site_.task, "value in store")) {
      return Step::kFailed;
    }
    const ReducedTo<F, Value> result(function_(*stored_, *value));
    return append_bytes(result, out) ? Step::kStore : Step::kDelete;
  }

 private:
  F function_;
  std::optional<Value> stored_;
};

template <class K, class V, class A, class Init, class F>
class AggregateByNode final
    : public AggregateNode<CombineCore, K, V, AggregatedTo<F, PlainOf<K>, PlainOf<V>, A>> {
  using Key = PlainOf<K>;
  using Value = PlainOf<V>;
  using Base = AggregateNode<CombineCore, K, V, AggregatedTo<F, Key, Value, A>>;
  using Step = CombineCore::Step;

 public:
  AggregateByNode(const NodeSite& site, StoreCache& cache, bool sends_old_values, const Init& init,
                  const F& function)
      : Base(site, cache, sends_old_values), init_(init), function_(function) {}

 protected:
  Step combine(NullableBytes stored, const StoreOperator::Input& input, const Flow& /*flow*/,
               std::string& out) override {
    TaskContext& task = this->site_.task;
    const Value* value = this->value_of(input);
    if (value == nullptr) {
      return Step::kFailed;
    }
    if constexpr (kAggregatorTakesKey<F, Key, Value, A>) {
      if (!decode_own<Key>(input.key, key_, task, "key")) {
        return Step::kFailed;
      }
    }
    std::optional<A> aggregate;
    if (stored.is_null()) {
      aggregate.emplace(init_());
    } else if (!decode_own<A>(stored, aggregate, task, "value in store")) {
      return Step::kFailed;
    }
    const AggregatedTo<F, Key, Value, A> result(call_aggregator(
        function_, key_.has_value() ? &*key_ : nullptr, *value, std::move(*aggregate)));
    return append_bytes(result, out) ? Step::kStore : Step::kDelete;
  }

 private:
  Init init_;
  F function_;
  std::optional<Key> key_;
};

// A re-grouped table: the old half of a change is taken away, the new half added. K, V, A plain.
template <class K, class V, class A, class Policy>
class TableAggregateNode final : public TableNode<K, A>, public Receiver<K, Change<V>> {
  using Base = TableNode<K, A>;

 public:
  TableAggregateNode(const NodeSite& site, StoreCache& cache, bool sends_old_values,
                     const Policy& policy)
      : Base(true, sends_old_values, site, cache, StoreOperator::RawChecks{}), policy_(policy) {}

  RawReceiver* raw_receiver() { return nullptr; }

  void receive(const K* key, const Change<V>& change, Flow& flow) override {
    if (key == nullptr) {
      this->drop_null_key(flow);
      return;
    }
    key_ = key;
    this->update_typed(*key, &change, flow);
  }

 protected:
  std::optional<Timestamp> apply(StoreOperator::Entry* entry, NullableBytes stored,
                                 const StoreOperator::Input& input, const Flow& flow) override {
    const auto& change = *static_cast<const Change<V>*>(input.typed);
    std::optional<A> aggregate;
    if (!stored.is_null() &&
        !decode_own<A>(stored, aggregate, this->site_.task, "value in store")) {
      return std::nullopt;
    }
    Timestamp timestamp = flow.record.timestamp;
    if (!stored.is_null() && (change.old_value.has_value() || change.new_value.has_value())) {
      timestamp = this->later(*entry, stored, flow);
    }
    if (change.old_value.has_value() && aggregate.has_value()) {
      aggregate = policy_.subtract(*key_, *change.old_value, std::move(*aggregate));
    }
    if (change.new_value.has_value()) {
      aggregate = policy_.add(*key_, *change.new_value, std::move(aggregate));
    }
    scratch_.clear();
    const bool is_value = append_bytes(aggregate, scratch_);
    if (!this->put(entry, is_value ? NullableBytes(ByteView(scratch_)) : NullableBytes(),
                   is_value ? timestamp : flow.record.timestamp)) {
      return std::nullopt;
    }
    return timestamp;
  }

 private:
  Policy policy_;
  const K* key_ = nullptr;
  std::string scratch_;
};

struct TableCountPolicy {
  template <class K, class V>
  std::optional<std::int64_t> subtract(const K& /*key*/, const V& /*value*/,
                                       std::int64_t count) const {
    return count - 1;
  }
  template <class K, class V>
  std::optional<std::int64_t> add(const K& /*key*/, const V& /*value*/,
                                  std::optional<std::int64_t> count) const {
    return count.value_or(0) + 1;
  }
};

template <class Adder, class Subtractor>
struct TableReducePolicy {
  Adder adder;
  Subtractor subtractor;
  template <class K, class V>
  std::optional<V> subtract(const K& /*key*/, const V& value, V&& reduced) {
    return subtractor(std::as_const(reduced), value);
  }
  template <class K, class V>
  std::optional<V> add(const K& /*key*/, const V& value, std::optional<V>&& reduced) {
    if (!reduced.has_value()) {
      return value;
    }
    return adder(std::as_const(*reduced), value);
  }
};

template <class Init, class Adder, class Subtractor>
struct TableAggregatePolicy {
  Init init;
  Adder adder;
  Subtractor subtractor;
  template <class K, class V, class A>
  std::optional<A> subtract(const K& key, const V& value, A&& aggregate) {
    return call_aggregator(subtractor, &key, value, std::forward<A>(aggregate));
  }
  template <class K, class V, class A>
  std::optional<A> add(const K& key, const V& value, std::optional<A>&& aggregate) {
    return call_aggregator(adder, &key, value,
                           aggregate.has_value() ? std::move(*aggregate) : A(init()));
  }
};

}  // namespace weir::internal
