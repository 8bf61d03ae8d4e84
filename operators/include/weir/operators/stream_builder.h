#pragma once

#include <weir/operators/internal/plan_builder.h>
#include <weir/operators/stream.h>
#include <weir/operators/table.h>
#include <weir/operators/topic.h>
#include <weir/operators/topology.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
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
// Streams, branched and grouped streams and tables are cheap handles to nodes of the builder's
// plan; using one twice attaches two operators to the same node. User functions take (value), (key,
// value) or (key, value, RecordContext), whichever compiles; they are copied into every task and
// run on the task's thread. Rules (nulls, timestamps, names, repartition): docs/operators.md.

namespace weir {

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
    return {{plan_, plan_->add_source({std::move(names), internal::type_info<K>(),
                                       internal::type_info<V>(),
                                       std::make_shared<internal::SourceFactory<K, V>>()})},
            false};
  }

  // A topic as a table: each record replaces its key's value, null deletes it; null keys are
  // dropped and counted. Kept in the store. Records replace by their order in the topic, whatever
  // their timestamps.
  template <class K, class V>
  auto table_from(Topic<K, V> topic, KvStore<internal::PlainOf<K>, internal::PlainOf<V>> store) {
    using Value = std::optional<internal::PlainOf<V>>;
    return Table<internal::PlainOf<K>, Value>(
        {plan_,
         plan_->add_table_source({{std::string(topic.name)},
                                  internal::type_info<K>(),
                                  internal::type_info<Value>(),
                                  std::make_shared<internal::SourceFactory<K, Value>>()},
                                 {store.name, internal::type_info<internal::PlainOf<K>>(),
                                  internal::type_info<internal::PlainOf<V>>()},
                                 std::make_shared<internal::TableInputFactory<K, Value>>())});
  }
  // Kept in a store (with a generated name: Options::require_names) only if an operator behind it
  // asks for old values.
  template <class K, class V>
  auto table_from(Topic<K, V> topic) {
    return table_from(topic, KvStore<internal::PlainOf<K>, internal::PlainOf<V>>{});
  }

  // The handles must not be used afterwards.
  Topology build() && { return Topology(plan_->build()); }

 private:
  std::shared_ptr<internal::PlanBuilder> plan_;
};

}  // namespace weir
