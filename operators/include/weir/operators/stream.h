#pragma once

#include <weir/operators/internal/aggregate.h>
#include <weir/operators/internal/nodes.h>
#include <weir/operators/internal/plan_builder.h>
#include <weir/operators/internal/sink_nodes.h>
#include <weir/operators/processor.h>
#include <weir/operators/table.h>
#include <weir/operators/topic.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

namespace internal {

template <class K, class V>
RepartitionFactories repartition_factories() {
  return {.make_sink = [](std::string topic) -> std::shared_ptr<const NodeFactory> {
            return std::make_shared<SinkFactory<K, V>>(std::move(topic), true);
          },
          .source = std::make_shared<SourceFactory<K, V>>()};
}

// A stream of (K, V) may be written to a topic of the same types; an optional side may meet a plain
// one, since a topic takes null keys and null values.
template <class K, class V, class TopicK, class TopicV>
concept FitsTopic =
    std::same_as<PlainOf<K>, PlainOf<TopicK>> && std::same_as<PlainOf<V>, PlainOf<TopicV>>;

// What describe() calls a function object: its type's last name.
template <class F>
std::string function_name() {
  return unqualified_type_name(typeid(F));
}

}  // namespace internal

// Settings of an explicit repartition.
struct Repartitioned {
  std::string_view name;        // the topic is "<application.id>-<name>-repartition"
  std::int32_t partitions = 0;  // 0: as many as the largest source topic before it
};

// Records grouped by key, ready to be aggregated. Null keys and null values are dropped and counted
// by the aggregation (null keys without a count where a repartition comes first).
template <class K, class V>
class GroupedStream {
  using Key = internal::PlainOf<K>;
  using Value = internal::PlainOf<V>;

 public:
  GroupedStream(std::shared_ptr<internal::PlanBuilder> plan, internal::GroupId group)
      : plan_(std::move(plan)), group_(group) {}  // for the library

  // Names the repartition topic, if one is needed; otherwise it is named after the store.
  GroupedStream named(std::string_view name) const {
    plan_->name_group(group_, name);
    return *this;
  }

  // Number of records of each key, from 0.
  Table<Key, std::int64_t> count(KvStore<Key, std::int64_t> store) const {
    return add<internal::CountNode<K, V>, std::int64_t>(false, store.name);
  }
  // With a generated store name (StreamBuilder::Options::require_names is off).
  Table<Key, std::int64_t> count() const { return count(KvStore<Key, std::int64_t>{}); }

  // new = function(stored, value); the first value is stored as it is. A function that returns
  // std::optional deletes the entry by returning nothing.
  template <internal::Reducer<Value> F>
  Table<Key, internal::ReducedTo<F, Value>> reduce(KvStore<Key, Value> store, F function) const {
    return add<internal::ReduceNode<K, V, F>, internal::ReducedTo<F, Value>>(true, store.name,
                                                                             std::move(function));
  }
  template <internal::Reducer<Value> F>
  Table<Key, internal::ReducedTo<F, Value>> reduce(F function) const {
    return reduce(KvStore<Key, Value>{}, std::move(function));
  }

  // new = function(key, value, stored or init()), also without the key. The aggregate is given as
  // an rvalue: a function that takes it by value and returns it reuses its memory. A function that
  // returns std::optional deletes the entry by returning nothing.
  template <class A, internal::Initializer<A> Init, internal::Aggregator<Key, Value, A> F>
  Table<Key, internal::AggregatedTo<F, Key, Value, A>> aggregate(KvStore<Key, A> store, Init init,
                                                                 F function) const {
    return add<internal::AggregateByNode<K, V, A, Init, F>,
               internal::AggregatedTo<F, Key, Value, A>>(false, store.name, std::move(init),
                                                         std::move(function));
  }

 private:
  template <class Node, class R, class... Functions>
  Table<Key, R> add(bool is_reduce, std::string_view store, Functions... functions) const {
    using Factory = internal::StoreNodeFactory<Node, K, V, Functions...>;
    return Table<Key, R>(
        {plan_, plan_->add_aggregation(group_, is_reduce,
                                       {store, internal::type_info<Key>(),
                                        internal::type_info<internal::PlainOf<R>>()},
                                       internal::repartition_factories<K, V>(),
                                       std::make_shared<Factory>(std::move(functions)...))});
  }

  std::shared_ptr<internal::PlanBuilder> plan_;
  internal::GroupId group_;
};

template <class K, class V>
class BranchedStream;

// Records one after the other.
template <class K, class V>
class Stream {
  template <class F>
  using Result = internal::Owned<internal::ResultOf<F, K, V>>;

 public:
  Stream(internal::Handle handle, bool key_changed)
      : handle_(std::move(handle)), key_changed_(key_changed) {}  // for the library

  // Keeps the records for which the function is true.
  template <class F>
    requires internal::Predicate<F, K, V>
  Stream filter(F function) const {
    return {add<internal::FilterNode<K, V, F, true>>("KSTREAM-FILTER-", std::move(function)),
            key_changed_};
  }
  // Keeps the others.
  template <class F>
    requires internal::Predicate<F, K, V>
  Stream filter_not(F function) const {
    return {add<internal::FilterNode<K, V, F, false>>("KSTREAM-FILTER-", std::move(function)),
            key_changed_};
  }

  // A new value; the key stays.
  template <class F>
    requires internal::RecordFunction<F, K, V>
  Stream<K, Result<F>> map_values(F function) const {
    return {add<internal::MapValuesNode<K, V, F>>("KSTREAM-MAPVALUES-", std::move(function)),
            key_changed_};
  }

  // No, one or several values in the order of the returned range; the key stays.
  template <class F>
    requires internal::RangeFunction<F, K, V>
  Stream<K, internal::RangeElement<F, K, V>> flat_map_values(F function) const {
    return {
        add<internal::FlatMapValuesNode<K, V, F>>("KSTREAM-FLATMAPVALUES-", std::move(function)),
        key_changed_};
  }

  // A new key and value: the function returns a std::pair. What follows is repartitioned where it
  // needs all records of a key in one place.
  template <class F>
    requires internal::PairFunction<F, K, V>
  Stream<internal::MappedKey<F, K, V>, internal::MappedValue<F, K, V>> map(F function) const {
    return {add<internal::MapNode<K, V, F>>("KSTREAM-MAP-", std::move(function)), true};
  }

  // No, one or several new keys and values: the function returns a range of std::pair.
  template <class F>
    requires internal::PairRangeFunction<F, K, V>
  Stream<internal::FlatMappedKey<F, K, V>, internal::FlatMappedValue<F, K, V>> flat_map(
      F function) const {
    return {add<internal::FlatMapNode<K, V, F>>("KSTREAM-FLATMAP-", std::move(function)), true};
  }

  // A new key; the value stays.
  template <class F>
    requires internal::RecordFunction<F, K, V>
  Stream<Result<F>, V> select_key(F function) const {
    return {add<internal::SelectKeyNode<K, V, F>>("KSTREAM-KEY-SELECT-", std::move(function)),
            true};
  }

  // Calls the function for each record and passes it on. After a crash it sees some records again.
  template <class F>
    requires internal::RecordFunction<F, K, V>
  Stream peek(F function) const {
    return {add<internal::PeekNode<K, V, F>>("KSTREAM-PEEK-", std::move(function)), key_changed_};
  }
  // The end of the stream: calls the function for each record.
  template <class F>
    requires internal::RecordFunction<F, K, V>
  void for_each(F function, std::string_view name = {}) const {
    rename(add<internal::ForEachNode<K, V, F>>("KSTREAM-FOREACH-", std::move(function)), name);
  }

  // The records of both; in which order is not said.
  Stream merge(const Stream& other) const {
    if (handle_.plan != other.handle_.plan) {
      handle_.plan->mistake("merge() of streams of two builders");
      return *this;
    }
    return {{handle_.plan,
             handle_.plan->add_processor("KSTREAM-MERGE-", {handle_.node, other.handle_.node},
                                         std::make_shared<internal::MergeFactory<K, V>>())},
            key_changed_ || other.key_changed_};
  }

  // Each record goes to one of the branches that the result makes. `name`: of the operator, and the
  // beginning of the branches' names.
  BranchedStream<K, V> split(std::string_view name = {}) const;

  // Groups by a new key: the function's result, or nothing (std::optional) to drop the record.
  template <class F>
    requires internal::RecordFunction<F, K, V> && internal::NullableSerdeable<Result<F>> &&
             internal::NullableSerdeable<V>
  GroupedStream<Result<F>, V> group_by(F function) const {
    const internal::Handle node =
        add<internal::SelectKeyNode<K, V, F>>("KSTREAM-KEY-SELECT-", std::move(function));
    return {handle_.plan, handle_.plan->add_group(node.node, true, true)};
  }

  // Groups by the key that the records have.
  GroupedStream<K, V> group_by_key() const
    requires internal::NullableSerdeable<K> && internal::NullableSerdeable<V>
  {
    return {handle_.plan, handle_.plan->add_group(handle_.node, key_changed_, false)};
  }

  // The last value of each key; with V an optional, nulls delete. Null keys are dropped and
  // counted. Kept in the store; without one, only if an operator behind it asks for old values.
  template <class StoreK, class StoreV>
    requires std::same_as<StoreK, internal::PlainOf<K>> &&
             std::same_as<StoreV, internal::PlainOf<V>>
  Table<StoreK, V> to_table(KvStore<StoreK, StoreV> store) const {
    return add_to_table(store.name);
  }
  Table<internal::PlainOf<K>, V> to_table() const
    requires internal::NullableSerdeable<K> && internal::NullableSerdeable<V>
  {
    return add_to_table({});
  }

  // Through an internal topic, so that all records of a key are on one partition again. Records
  // with a null key are dropped without a count.
  Stream repartition(const Repartitioned& how = {}) const
    requires internal::NullableSerdeable<K> && internal::NullableSerdeable<V>
  {
    return {{handle_.plan, handle_.plan->add_repartition(how.name, how.partitions, handle_.node,
                                                         internal::repartition_factories<K, V>())},
            false};
  }

  // An operator of your own. `supply` makes a Processor<K, V, KOut, VOut> for each task; `stores`
  // are those that it uses. It may change the key, and must be repartitioned before if its stores
  // are by another key than the topic's.
  template <class F, class... Stores>
    requires internal::ProcessorSupplier<F, K, V>
  auto process(F supply, Stores... stores) const {
    using Made = internal::SuppliedProcessor<F>;
    using Base = Processor<K, V, typename Made::KeyOut, typename Made::ValueOut>;
    using Node = internal::ProcessorNode<K, V, typename Made::KeyOut, Base>;
    return Stream<typename Made::KeyOut, typename Made::ValueOut>(
        add_processor<Node>("KSTREAM-PROCESSOR-", std::move(supply), stores...), true);
  }
  // The same with a FixedKeyProcessor<K, V, VOut>, which keeps the key.
  template <class F, class... Stores>
    requires internal::FixedKeyProcessorSupplier<F, K, V>
  auto process_values(F supply, Stores... stores) const {
    using Made = internal::SuppliedProcessor<F>;
    using Base = FixedKeyProcessor<K, V, typename Made::ValueOut>;
    using Node = internal::ProcessorNode<K, V, K, Base>;
    return Stream<K, typename Made::ValueOut>(
        add_processor<Node>("KSTREAM-PROCESSVALUES-", std::move(supply), stores...), key_changed_);
  }

  // Writes key, value, timestamp and headers to the topic. `name`: of the node in describe().
  template <class TopicK, class TopicV>
    requires internal::FitsTopic<K, V, TopicK, TopicV>
  void to(Topic<TopicK, TopicV> topic, std::string_view name = {}) const {
    const internal::NodeId sink = handle_.plan->add_sink(
        topic.name, handle_.node,
        std::make_shared<internal::SinkFactory<K, V>>(std::string(topic.name), false));
    rename({handle_.plan, sink}, name);
  }
  // To the topic that the function names for each record; it must exist. At most 1,000 topics a
  // task.
  template <class F>
    requires internal::RecordFunction<F, K, V> &&
             std::convertible_to<internal::ResultOf<F, K, V>, std::string> &&
             internal::NullableSerdeable<K> && internal::NullableSerdeable<V>
  void to(F choose, std::string_view name = {}) const {
    internal::TopicChooser<K, V> chooser = [choose = std::move(choose)](
                                               const K* key, const V& value,
                                               const internal::Flow& flow) mutable -> std::string {
      return internal::call(choose, key, value, flow.record);
    };
    const internal::NodeId sink = handle_.plan->add_dynamic_sink(
        internal::function_name<F>(), handle_.node,
        std::make_shared<internal::DynamicSinkFactory<K, V>>(std::move(chooser)));
    rename({handle_.plan, sink}, name);
  }

  // Name of the operator just made, in describe().
  Stream named(std::string_view name) const {
    handle_.plan->rename(handle_.node, name);
    return *this;
  }

 private:
  friend class BranchedStream<K, V>;

  template <class Node, class F>
  internal::Handle add(std::string_view prefix, F function) const {
    using Factory = internal::FunctionFactory<Node, K, V, F>;
    return {handle_.plan,
            handle_.plan->add_processor(prefix, {handle_.node},
                                        std::make_shared<Factory>(std::move(function)))};
  }
  template <class Node, class F, class... Stores>
  internal::Handle add_processor(std::string_view prefix, F supply, Stores... stores) const {
    using Factory = internal::ProcessorFactory<Node, K, V, F>;
    const internal::NodeId node = handle_.plan->add_processor(
        prefix, {handle_.node}, std::make_shared<Factory>(std::move(supply)));
    (handle_.plan->connect_store(node, {stores.name, internal::type_info<typename Stores::Key>(),
                                        internal::type_info<typename Stores::Value>()}),
     ...);
    return {handle_.plan, node};
  }
  Table<internal::PlainOf<K>, V> add_to_table(std::string_view store) const {
    return Table<internal::PlainOf<K>, V>(
        {handle_.plan,
         handle_.plan->add_to_table(handle_.node, key_changed_,
                                    {store, internal::type_info<internal::PlainOf<K>>(),
                                     internal::type_info<internal::PlainOf<V>>()},
                                    internal::repartition_factories<K, V>(),
                                    std::make_shared<internal::TableInputFactory<K, V>>())});
  }
  static void rename(const internal::Handle& node, std::string_view name) {
    if (!name.empty()) {
      node.plan->rename(node.node, name);
    }
  }

  internal::Handle handle_;
  bool key_changed_;
};

// The branches of a split: each record goes to the first branch whose predicate is true, else to
// the default branch, else nowhere.
//
//   auto orders = stream.split("orders-");
//   auto large = orders.branch([](const Order& order) { return order.sum > 1000; }, "large");
//   auto others = orders.default_branch("others");
template <class K, class V>
class BranchedStream {
 public:
  BranchedStream(internal::Handle handle, bool key_changed,
                 std::shared_ptr<internal::Branches<K, V>> branches)
      : handle_(std::move(handle)),
        key_changed_(key_changed),
        branches_(std::move(branches)) {}  // for the library

  // `name` empty: the branch's number, from 1.
  template <class F>
    requires internal::Predicate<F, K, V>
  Stream<K, V> branch(F predicate, std::string_view name = {}) {
    if (branches_->has_default) {
      handle_.plan->mistake("branch() behind default_branch()");
    }
    branches_->predicates.push_back(
        [predicate = std::move(predicate)](const K* key, const V& value,
                                           const internal::Flow& flow) mutable {
          return static_cast<bool>(internal::call(predicate, key, value, flow.record));
        });
    return add(name, branches_->predicates.size());
  }
  // What no predicate took. `name` empty: "0". Once, behind all others.
  Stream<K, V> default_branch(std::string_view name = {}) {
    if (branches_->has_default) {
      handle_.plan->mistake("two default_branch() of one split()");
    }
    branches_->has_default = true;
    return add(name, 0);
  }

 private:
  Stream<K, V> add(std::string_view name, std::size_t number) {
    return {
        {handle_.plan, handle_.plan->add_branch(handle_.node, name, number,
                                                std::make_shared<internal::MergeFactory<K, V>>())},
        key_changed_};
  }

  internal::Handle handle_;
  bool key_changed_;
  std::shared_ptr<internal::Branches<K, V>> branches_;  // copies are the same split
};

template <class K, class V>
BranchedStream<K, V> Stream<K, V>::split(std::string_view name) const {
  auto branches = std::make_shared<internal::Branches<K, V>>();
  const internal::NodeId node = handle_.plan->add_split(
      name, handle_.node, std::make_shared<internal::BranchFactory<K, V>>(branches));
  return {{handle_.plan, node}, key_changed_, std::move(branches)};
}

template <class K, class V>
Stream<K, V> Table<K, V>::to_stream() const {
  using Node = internal::ToStreamNode<K, Value, V>;
  using Factory = internal::FunctionFactory<Node, K, internal::Change<Value>>;
  return {{handle_.plan, handle_.plan->add_processor("KTABLE-TOSTREAM-", {handle_.node},
                                                     std::make_shared<Factory>())},
          false};
}

}  // namespace weir
