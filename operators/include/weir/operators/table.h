#pragma once

#include <weir/operators/internal/aggregate.h>
#include <weir/operators/internal/plan_builder.h>
#include <weir/operators/internal/table_nodes.h>
#include <weir/operators/topic.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir {

template <class K, class V>
class Stream;
template <class K, class V>
class GroupedTable;

// The current value of each key: of a topic, an aggregation, or another table. With V an optional
// its stream has tombstones; functions are given plain values and are not called for deletes.
// Values that are not kept in a store need no serde.
template <class K, class V>
class Table {
  using Value = internal::PlainOf<V>;
  template <class F>
  using MappedPlain = internal::PlainOf<internal::Owned<internal::ResultOf<F, K, Value>>>;
  // Tombstones come from either side.
  template <class F>
  using Mapped = std::conditional_t<internal::kIsOptional<V>, std::optional<MappedPlain<F>>,
                                    internal::Owned<internal::ResultOf<F, K, Value>>>;

 public:
  explicit Table(internal::Handle handle) : handle_(std::move(handle)) {}  // for the library

  // Each change as a record: its new value, or a tombstone.
  Stream<K, V> to_stream() const;

  // Keys whose value does not match are not in the result: they are deleted there.
  template <class F>
    requires internal::Predicate<F, K, Value>
  Table<K, std::optional<Value>> filter(F function) const {
    return add_filter<true>(std::move(function), {});
  }
  // With results kept in a store.
  template <class F, class Store>
    requires internal::Predicate<F, K, Value> && std::same_as<Store, KvStore<K, Value>>
  Table<K, std::optional<Value>> filter(F function, Store store) const {
    return add_filter<true>(std::move(function), store.name);
  }
  template <class F>
    requires internal::Predicate<F, K, Value>
  Table<K, std::optional<Value>> filter_not(F function) const {
    return add_filter<false>(std::move(function), {});
  }
  template <class F, class Store>
    requires internal::Predicate<F, K, Value> && std::same_as<Store, KvStore<K, Value>>
  Table<K, std::optional<Value>> filter_not(F function, Store store) const {
    return add_filter<false>(std::move(function), store.name);
  }

  // A new value for each; nothing (std::optional) deletes the key.
  template <class F>
    requires internal::RecordFunction<F, K, Value>
  Table<K, Mapped<F>> map_values(F function) const {
    return add_map_values(std::move(function), {});
  }
  template <class F>
    requires internal::RecordFunction<F, K, Value>
  Table<K, Mapped<F>> map_values(F function, KvStore<K, MappedPlain<F>> store) const {
    return add_map_values(std::move(function), store.name);
  }

  // Groups by a new key and value: the function returns a std::pair, or nothing (std::optional,
  // also for either half) to leave the row out. It runs on the old and on the new value of a
  // change, so it must depend on its arguments alone. Always through a repartition topic.
  template <class F>
    requires internal::Regrouper<F, K, Value> && Serdeable<internal::RegroupedKey<F, K, Value>> &&
             Serdeable<internal::RegroupedValue<F, K, Value>>
  GroupedTable<internal::RegroupedKey<F, K, Value>, internal::RegroupedValue<F, K, Value>> group_by(
      F function) const {
    using Node = internal::RegroupNode<K, Value, F>;
    using Factory = internal::FunctionFactory<Node, K, internal::Change<Value>, F>;
    return GroupedTable<internal::RegroupedKey<F, K, Value>, internal::RegroupedValue<F, K, Value>>(
        handle_.plan, handle_.plan->add_table_group(
                          handle_.node, std::make_shared<Factory>(std::move(function))));
  }

  // Name of the operator in describe().
  Table named(std::string_view name) const {
    handle_.plan->rename(handle_.node, name);
    return *this;
  }

 private:
  template <bool Keep, class F>
  Table<K, std::optional<Value>> add_filter(F function, std::string_view store) const {
    using Node = internal::TableFilterNode<K, Value, F, Keep>;
    using Factory = internal::TableFunctionFactory<Node, K, Value, Value, F>;
    return Table<K, std::optional<Value>>(
        {handle_.plan,
         handle_.plan->add_table_filter(
             handle_.node, {store, internal::type_info<K>(), internal::type_info<Value>()},
             std::make_shared<Factory>(std::move(function)))});
  }
  template <class F>
  Table<K, Mapped<F>> add_map_values(F function, std::string_view store) const {
    using Result = MappedPlain<F>;
    using Node = internal::TableMapValuesNode<K, Value, Result, F>;
    using Factory = internal::TableFunctionFactory<Node, K, Value, Result, F>;
    return Table<K, Mapped<F>>(
        {handle_.plan, handle_.plan->add_table_processor(
                           "KTABLE-MAPVALUES-", handle_.node,
                           {store, internal::type_info<K>(), internal::type_info<Result>()},
                           std::make_shared<Factory>(std::move(function)))});
  }

  internal::Handle handle_;
};

// A re-grouped table, ready to be aggregated: each row of the table counts once, with its present
// value. Between the removal of an old value and the addition of the new one to another key, both
// aggregates are seen without it.
template <class K, class V>
class GroupedTable {
 public:
  GroupedTable(std::shared_ptr<internal::PlanBuilder> plan, internal::GroupId group)
      : plan_(std::move(plan)), group_(group) {}  // for the library

  // Names the operator and the repartition topic, which otherwise is named after the store.
  GroupedTable named(std::string_view name) const {
    plan_->name_group(group_, name);
    return *this;
  }

  // Number of rows of each key.
  Table<K, std::optional<std::int64_t>> count(KvStore<K, std::int64_t> store) const {
    return add<std::int64_t>(false, store.name, internal::TableCountPolicy());
  }
  Table<K, std::optional<std::int64_t>> count() const {
    return add<std::int64_t>(false, {}, internal::TableCountPolicy());
  }

  // new = adder(stored, value) and subtractor(stored, value); the first value is stored as it is.
  template <internal::Reducer<V> Adder, internal::Reducer<V> Subtractor>
  Table<K, std::optional<V>> reduce(KvStore<K, V> store, Adder adder, Subtractor subtractor) const {
    return add<V>(
        true, store.name,
        internal::TableReducePolicy<Adder, Subtractor>{std::move(adder), std::move(subtractor)});
  }
  template <internal::Reducer<V> Adder, internal::Reducer<V> Subtractor>
  Table<K, std::optional<V>> reduce(Adder adder, Subtractor subtractor) const {
    return reduce(KvStore<K, V>{}, std::move(adder), std::move(subtractor));
  }

  // new = adder(key, value, stored or init()) and subtractor(key, value, stored); both also without
  // the key. A function that returns std::optional deletes the entry by returning nothing.
  template <class A, internal::Initializer<A> Init, internal::Aggregator<K, V, A> Adder,
            internal::Aggregator<K, V, A> Subtractor>
  Table<K, std::optional<A>> aggregate(KvStore<K, A> store, Init init, Adder adder,
                                       Subtractor subtractor) const {
    return add<A>(false, store.name,
                  internal::TableAggregatePolicy<Init, Adder, Subtractor>{
                      std::move(init), std::move(adder), std::move(subtractor)});
  }

 private:
  template <class A, class Policy>
  Table<K, std::optional<A>> add(bool is_reduce, std::string_view store, Policy policy) const {
    using Node = internal::TableAggregateNode<K, V, A, Policy>;
    using Factory = internal::StoreNodeFactory<Node, K, internal::Change<V>, Policy>;
    const internal::RepartitionFactories repartition{
        .make_sink = [](std::string topic) -> internal::FactoryPtr {
          return std::make_shared<internal::ChangeSinkFactory<K, V>>(std::move(topic));
        },
        .source = std::make_shared<internal::ChangeSourceFactory<K, V>>()};
    return Table<K, std::optional<A>>(
        {plan_, plan_->add_table_aggregation(
                    group_, is_reduce, {store, internal::type_info<K>(), internal::type_info<A>()},
                    repartition, std::make_shared<Factory>(std::move(policy)))});
  }

  std::shared_ptr<internal::PlanBuilder> plan_;
  internal::GroupId group_;
};

}  // namespace weir
