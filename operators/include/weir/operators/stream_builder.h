#pragma once

#include <weir/operators/internal/aggregate.h>
#include <weir/operators/internal/nodes.h>
#include <weir/operators/internal/plan_builder.h>
#include <weir/operators/topic.h>
#include <weir/operators/topology.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The pipeline language:
//
//   weir::StreamBuilder b;
//   b.from(kLines)
//       .flat_map_values(words)
//       .group_by([](const std::string& word) { return word; })
//       .count(kCounts)
//       .to_stream()
//       .to(kWordCounts);
//   weir::Topology topology = std::move(b).build();
//
// Streams, grouped streams and tables are cheap handles to nodes of the builder's plan; using one
// twice attaches two operators to the same node. User functions take (value), (key, value) or
// (key, value, RecordContext), whichever compiles; they are copied into every task and run on the
// task's thread. Rules (nulls, timestamps, names, repartition): docs/operators.md.

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

}  // namespace internal

template <class K, class V>
class Stream;

// Settings of an explicit repartition.
struct Repartitioned {
  std::string_view name;        // the topic is "<application.id>-<name>-repartition"
  std::int32_t partitions = 0;  // 0: as many as the largest source topic before it
};

// The current value of each key: the result of count and reduce.
template <class K, class V>
class Table {
 public:
  // Each change as a record.
  Stream<K, V> to_stream() const;
  // Name of the operator in describe().
  Table named(std::string_view name) const {
    plan_->rename(node_, name);
    return *this;
  }

 private:
  template <class, class>
  friend class GroupedStream;
  Table(std::shared_ptr<internal::PlanBuilder> plan, internal::NodeId node)
      : plan_(std::move(plan)), node_(node) {}
  std::shared_ptr<internal::PlanBuilder> plan_;  // handles may outlive the builder object
  internal::NodeId node_;
};

// Records grouped by key, ready to be aggregated. Null keys and null values are dropped and counted
// by the aggregation (null keys without a count where a repartition comes first).
template <class K, class V>
class GroupedStream {
  using Key = internal::PlainOf<K>;
  using Value = internal::PlainOf<V>;

 public:
  // Names the repartition topic, if one is needed; otherwise it is named after the store.
  GroupedStream named(std::string_view name) const {
    plan_->name_group(group_, name);
    return *this;
  }

  // Number of records of each key, from 0.
  Table<Key, std::int64_t> count(KvStore<Key, std::int64_t> store) const {
    return add_count(store.name);
  }
  // With a generated store name (StreamBuilder::Options::require_names is off).
  Table<Key, std::int64_t> count() const { return add_count({}); }

  // new = function(stored, value); the first value is stored as it is. A function that returns
  // std::optional deletes the entry by returning nothing.
  template <internal::Reducer<Value> F>
  Table<Key, internal::ReducedTo<F, Value>> reduce(KvStore<Key, Value> store, F function) const {
    return add_reduce(store.name, std::move(function));
  }
  template <internal::Reducer<Value> F>
  Table<Key, internal::ReducedTo<F, Value>> reduce(F function) const {
    return add_reduce({}, std::move(function));
  }

 private:
  template <class, class>
  friend class Stream;
  GroupedStream(std::shared_ptr<internal::PlanBuilder> plan, internal::GroupId group)
      : plan_(std::move(plan)), group_(group) {}

  Table<Key, std::int64_t> add_count(std::string_view store) const {
    const internal::NodeId node = plan_->add_aggregation(
        group_, false, {store, internal::type_info<Key>(), internal::type_info<std::int64_t>()},
        internal::repartition_factories<K, V>(), [](std::string name) -> internal::FactoryPtr {
          return std::make_shared<internal::CountFactory<K, V>>(std::move(name));
        });
    return {plan_, node};
  }
  template <class F>
  Table<Key, internal::ReducedTo<F, Value>> add_reduce(std::string_view store, F function) const {
    const internal::NodeId node = plan_->add_aggregation(
        group_, true, {store, internal::type_info<Key>(), internal::type_info<Value>()},
        internal::repartition_factories<K, V>(),
        [&function](std::string name) -> internal::FactoryPtr {
          return std::make_shared<internal::ReduceFactory<K, V, F>>(std::move(name),
                                                                    std::move(function));
        });
    return {plan_, node};
  }

  std::shared_ptr<internal::PlanBuilder> plan_;
  internal::GroupId group_;
};

// Records one after the other.
template <class K, class V>
class Stream {
 public:
  // Keeps the records for which the function is true.
  template <class F>
    requires internal::Predicate<F, K, V>
  Stream filter(F function) const {
    using Factory = internal::FilterFactory<K, V, F>;
    return {plan_,
            plan_->add_processor("KSTREAM-FILTER-", node_,
                                 std::make_shared<Factory>(std::move(function), true)),
            key_changed_};
  }

  // A new value; the key stays.
  template <class F>
    requires internal::RecordFunction<F, K, V>
  Stream<K, internal::Owned<internal::ResultOf<F, K, V>>> map_values(F function) const {
    using Node = internal::MapValuesNode<K, V, F>;
    return {plan_, add<Node>("KSTREAM-MAPVALUES-", std::move(function)), key_changed_};
  }

  // No, one or several values in the order of the returned range; the key stays.
  template <class F>
    requires internal::RangeFunction<F, K, V>
  Stream<K, internal::RangeElement<F, K, V>> flat_map_values(F function) const {
    using Node = internal::FlatMapValuesNode<K, V, F>;
    return {plan_, add<Node>("KSTREAM-FLATMAPVALUES-", std::move(function)), key_changed_};
  }

  // A new key and value: the function returns a std::pair. What follows is repartitioned where it
  // needs all records of a key in one place.
  template <class F>
    requires internal::PairFunction<F, K, V>
  Stream<internal::MappedKey<F, K, V>, internal::MappedValue<F, K, V>> map(F function) const {
    using Node = internal::MapNode<K, V, F>;
    return {plan_, add<Node>("KSTREAM-MAP-", std::move(function)), true};
  }

  // Groups by a new key: the function's result, or nothing (std::optional) to drop the record.
  template <class F>
    requires internal::RecordFunction<F, K, V> &&
             internal::NullableSerdeable<internal::Owned<internal::ResultOf<F, K, V>>> &&
             internal::NullableSerdeable<V>
  GroupedStream<internal::Owned<internal::ResultOf<F, K, V>>, V> group_by(F function) const {
    using Node = internal::SelectKeyNode<K, V, F>;
    return {plan_,
            plan_->add_group(add<Node>("KSTREAM-KEY-SELECT-", std::move(function)), true, true)};
  }

  // Groups by the key that the records have.
  GroupedStream<K, V> group_by_key() const
    requires internal::NullableSerdeable<K> && internal::NullableSerdeable<V>
  {
    return {plan_, plan_->add_group(node_, key_changed_, false)};
  }

  // Through an internal topic, so that all records of a key are on one partition again. Records
  // with a null key are dropped without a count.
  Stream repartition(const Repartitioned& how = {}) const
    requires internal::NullableSerdeable<K> && internal::NullableSerdeable<V>
  {
    return {plan_,
            plan_->add_repartition(how.name, how.partitions, node_,
                                   internal::repartition_factories<K, V>()),
            false};
  }

  // Writes key, value, timestamp and headers to the topic. `name`: of the node in describe().
  template <class TopicK, class TopicV>
    requires internal::FitsTopic<K, V, TopicK, TopicV>
  void to(Topic<TopicK, TopicV> topic, std::string_view name = {}) const {
    const internal::NodeId sink = plan_->add_sink(
        topic.name, node_,
        std::make_shared<internal::SinkFactory<K, V>>(std::string(topic.name), false));
    if (!name.empty()) {
      plan_->rename(sink, name);
    }
  }

  // Name of the operator just made, in describe().
  Stream named(std::string_view name) const {
    plan_->rename(node_, name);
    return *this;
  }

 private:
  template <class, class>
  friend class Stream;
  template <class, class>
  friend class Table;
  friend class StreamBuilder;

  Stream(std::shared_ptr<internal::PlanBuilder> plan, internal::NodeId node, bool key_changed)
      : plan_(std::move(plan)), node_(node), key_changed_(key_changed) {}

  template <class NodeType, class F>
  internal::NodeId add(std::string_view prefix, F function) const {
    using Factory = internal::FunctionFactory<NodeType, K, V, F>;
    return plan_->add_processor(prefix, node_, std::make_shared<Factory>(std::move(function)));
  }

  std::shared_ptr<internal::PlanBuilder> plan_;
  internal::NodeId node_;
  bool key_changed_;
};

template <class K, class V>
Stream<K, V> Table<K, V>::to_stream() const {
  return {
      plan_,
      plan_->add_processor("KTABLE-TOSTREAM-", node_, std::make_shared<internal::PassFactory>()),
      false};
}

// Threading: confined to the building thread.
class StreamBuilder {
 public:
  struct Options {
    // A store or an internal topic whose name was generated is a mistake: the generated number
    // shifts when an operator is inserted above it, and the state is lost (streams-features
    // NAME-7).
    bool require_names = true;
  };

  StreamBuilder() : StreamBuilder(Options{}) {}
  explicit StreamBuilder(const Options& options)
      : plan_(std::make_shared<internal::PlanBuilder>(options.require_names)) {}

  // Reads a topic.
  template <class K, class V>
  Stream<K, V> from(Topic<K, V> topic) {
    return from({topic});
  }
  // Reads several topics as one stream.
  template <class K, class V>
  Stream<K, V> from(std::initializer_list<Topic<K, V>> topics) {
    std::vector<std::string> names;
    for (const Topic<K, V>& topic : topics) {
      names.emplace_back(topic.name);
    }
    return {plan_,
            plan_->add_source(std::move(names), internal::type_info<K>(), internal::type_info<V>(),
                              std::make_shared<internal::SourceFactory<K, V>>()),
            false};
  }

  // The handles must not be used afterwards.
  Topology build() && { return Topology(plan_->build()); }

 private:
  std::shared_ptr<internal::PlanBuilder> plan_;
};

}  // namespace weir
