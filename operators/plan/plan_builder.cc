#include "operators/plan/plan.h"

#include <weir/operators/internal/nodes.h>
#include <weir/operators/internal/plan_builder.h>
#include <weir/operators/topic.h>
#include <weir/runtime/assert.h>

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <map>
#include <memory>

namespace weir::internal {

PlanBuilder::PlanBuilder(bool require_names)
    : plan_(std::make_shared<Plan>()), require_names_(require_names) {}

PlanBuilder::~PlanBuilder() = default;

std::string unqualified_type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  std::string_view name = status == 0 ? demangled.get() : type.name();
  if (const std::size_t colon = name.rfind(':'); colon != std::string_view::npos) {
    name.remove_prefix(colon + 1);
  }
  const bool is_plain = name.find_first_of("{}()<>#&* ") == std::string_view::npos;
  return is_plain ? std::string(name) : "function";
}

std::string PlanBuilder::next_name(std::string_view prefix) {
  return fmt::format("{}{:010}", prefix, counter_++);
}

void PlanBuilder::mistake(std::string text) {
  mistakes_.push_back(std::move(text));
}

void PlanBuilder::check_name(std::string_view what, std::string_view name) {
  if (!is_legal_name(name)) {
    mistake(fmt::format(
        "{} name '{}' is not legal: use 1 to 249 of [A-Za-z0-9._-], not '.' or '..'", what, name));
  }
}

NodeId PlanBuilder::add_node(std::vector<NodeId> parents, std::string name, FactoryPtr factory) {
  const auto id = static_cast<NodeId>(plan_->nodes.size());
  for (const NodeId parent : parents) {
    plan_->nodes[parent].children.push_back(id);
  }
  PlanNode node;
  node.name = std::move(name);
  node.parents = std::move(parents);
  node.factory = std::move(factory);
  plan_->nodes.push_back(std::move(node));
  return id;
}

NodeId PlanBuilder::add_source(SourceDeclaration source) {
  WEIR_ASSERT(!built_);
  std::vector<std::string>& topics = source.topics;
  const std::string name = next_name("KSTREAM-SOURCE-");
  if (topics.empty()) {
    mistake("from() needs at least one topic");
  }
  for (const std::string& topic : topics) {
    check_name("topic", topic);
  }
  for (NodeId id = 0; id < plan_->nodes.size(); ++id) {
    PlanNode& node = plan_->nodes[id];
    if (node.kind != NodeKind::kSource || node.topics.empty() ||
        plan_->is_repartition_topic(node.topics.front())) {
      continue;
    }
    const auto shared =
        std::find_first_of(topics.begin(), topics.end(), node.topics.begin(), node.topics.end());
    if (shared == topics.end()) {
      continue;
    }
    if (node.topics != topics) {
      mistake(
          fmt::format("topic '{}' is read by two sources with different lists of topics; read "
                      "the same list twice or each topic alone",
                      *shared));
    } else if (node.key.id != source.key.id || node.value.id != source.value.id) {
      mistake(fmt::format(
          "topic '{}' is read with two different types (<{}, {}> and <{}, {}>; a "
          "table and a stream of std::optional values are the same)",
          *shared, node.key.serde, node.value.serde, source.key.serde, source.value.serde));
    } else {
      return id;
    }
  }
  const NodeId id = add_node({}, name, std::move(source.factory));
  PlanNode& node = plan_->nodes[id];
  node.kind = NodeKind::kSource;
  node.topics = std::move(topics);
  node.key = source.key;
  node.value = source.value;
  return id;
}

NodeId PlanBuilder::add_processor(std::string_view prefix, std::vector<NodeId> parents,
                                  FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  return add_node(std::move(parents), next_name(prefix), std::move(factory));
}

NodeId PlanBuilder::add_sink(std::string_view topic, NodeId parent, FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  check_name("topic", topic);
  const NodeId id = add_node({parent}, next_name("KSTREAM-SINK-"), std::move(factory));
  plan_->nodes[id].kind = NodeKind::kSink;
  plan_->nodes[id].topics.emplace_back(topic);
  return id;
}

NodeId PlanBuilder::add_dynamic_sink(std::string chooser, NodeId parent, FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  const NodeId id = add_node({parent}, next_name("KSTREAM-SINK-"), std::move(factory));
  plan_->nodes[id].kind = NodeKind::kSink;
  plan_->nodes[id].chooser = std::move(chooser);
  return id;
}

NodeId PlanBuilder::add_split(std::string_view name, NodeId parent, FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  std::string generated = next_name("KSTREAM-BRANCH-");
  if (!name.empty()) {
    check_name("split", name);
  }
  return add_node({parent}, name.empty() ? std::move(generated) : std::string(name),
                  std::move(factory));
}

NodeId PlanBuilder::add_branch(NodeId split, std::string_view branch, std::size_t number,
                               FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  ++counter_;  // Kafka takes a number and does not use it
  std::string name = plan_->nodes[split].name;
  name += branch.empty() ? std::to_string(number) : std::string(branch);
  check_name("branch", name);
  return add_node({split}, std::move(name), std::move(factory));
}

NodeId PlanBuilder::add_internal_source(std::string name, const std::string& topic,
                                        FactoryPtr factory) {
  const NodeId id = add_node({}, std::move(name), std::move(factory));
  plan_->nodes[id].kind = NodeKind::kSource;
  plan_->nodes[id].topics.push_back(topic);
  plan_->nodes[id].is_internal = true;
  return id;
}

NodeId PlanBuilder::add_internal_sink(std::string name, const std::string& topic, NodeId parent,
                                      const RepartitionFactories& factories) {
  const NodeId id = add_node({parent}, std::move(name), factories.make_sink(topic));
  plan_->nodes[id].kind = NodeKind::kSink;
  plan_->nodes[id].topics.push_back(topic);
  plan_->nodes[id].is_internal = true;
  return id;
}

void PlanBuilder::declare_repartition(const std::string& topic, bool generated,
                                      std::int32_t partitions) {
  if (generated && require_names_) {
    mistake(
        fmt::format("repartition topic '{}' has a generated name: name the repartition, the "
                    "group or the store, or build with require_names = false",
                    topic));
  }
  if (plan_->is_repartition_topic(topic)) {
    mistake(fmt::format("two repartition topics are named '{}'", topic));
  }
  plan_->repartition_topics.push_back({topic, partitions});
}

NodeId PlanBuilder::add_repartition_nodes(std::string_view name, bool generated,
                                          std::int32_t partitions, NodeId parent,
                                          const RepartitionFactories& factories) {
  // Three numbers, in this order, even when the user's name replaces them (REP-4).
  std::string sink_name = next_name("KSTREAM-SINK-");
  std::string filter_name = next_name("KSTREAM-FILTER-");
  std::string source_name = next_name("KSTREAM-SOURCE-");
  const std::string topic = fmt::format("{}-repartition", name);
  if (!generated) {
    sink_name = topic + "-sink";
    filter_name = topic + "-filter";
    source_name = topic + "-source";
  }
  declare_repartition(topic, generated, partitions);
  const NodeId filter =
      add_node({parent}, std::move(filter_name), std::make_shared<const PassFactory>());
  add_internal_sink(std::move(sink_name), topic, filter, factories);
  return add_internal_source(std::move(source_name), topic, factories.source);
}

NodeId PlanBuilder::add_repartition(std::string_view name, std::int32_t partitions, NodeId parent,
                                    const RepartitionFactories& factories) {
  WEIR_ASSERT(!built_);
  const std::string generated = name.empty() ? next_name("KSTREAM-REPARTITION-") : std::string();
  if (partitions < 0) {
    mistake(fmt::format("repartition '{}' asks for {} partitions", name, partitions));
    partitions = 0;
  }
  if (!name.empty()) {
    check_name("repartition", name);
  }
  return add_repartition_nodes(name.empty() ? generated : name, name.empty(), partitions, parent,
                               factories);
}

GroupId PlanBuilder::add_group(NodeId parent, bool key_changed, bool owns_node) {
  WEIR_ASSERT(!built_);
  groups_.push_back({.parent = parent,
                     .key_changed = key_changed,
                     .owns_node = owns_node,
                     .name = {},
                     .shared_repartition = {}});
  return static_cast<GroupId>(groups_.size() - 1);
}

void PlanBuilder::name_group(GroupId group, std::string_view name) {
  check_name("group", name);
  groups_[group].name = name;
  if (groups_[group].owns_node) {
    rename(groups_[group].parent, name);
  }
}

std::string PlanBuilder::store_name(const StoreDeclaration& store, std::string_view prefix) {
  return store.name.empty() ? next_name(fmt::format("{}STATE-STORE-", prefix))
                            : std::string(store.name);
}

void PlanBuilder::add_store(NodeId node, const std::string& name, const StoreDeclaration& store,
                            bool generated) {
  check_name("store", name);
  if (generated && require_names_) {
    mistake(
        fmt::format("store '{}' has a generated name: pass a KvStore, or build with "
                    "require_names = false",
                    name));
  }
  if (plan_->find_store(name) != nullptr) {
    mistake(fmt::format("store '{}' is used by two operators", name));
  }
  plan_->stores.push_back({name, store.key, store.value});
  plan_->nodes[node].stores.push_back(name);
}

void PlanBuilder::connect_store(NodeId node, const StoreDeclaration& store) {
  WEIR_ASSERT(!built_);
  const std::string name(store.name);
  const PlanStore* present = plan_->find_store(name);
  if (present == nullptr) {
    add_store(node, name, store, false);
    return;
  }
  if (present->key.id != store.key.id || present->value.id != store.value.id) {
    mistake(fmt::format("store '{}' is used with two different types (<{}, {}> and <{}, {}>)", name,
                        present->key.serde, present->value.serde, store.key.serde,
                        store.value.serde));
  }
  plan_->nodes[node].stores.push_back(name);
}

NodeId PlanBuilder::add_aggregation(GroupId group, bool is_reduce, const StoreDeclaration& store,
                                    const RepartitionFactories& repartition, FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  const std::string_view prefix = is_reduce ? "KSTREAM-REDUCE-" : "KSTREAM-AGGREGATE-";
  const bool generated = store.name.empty();
  const std::string name = store_name(store, prefix);
  std::string node_name = next_name(prefix);

  Group& grouped = groups_[group];
  NodeId parent = grouped.parent;
  if (grouped.key_changed && grouped.shared_repartition.has_value()) {
    counter_ += 3;  // as if it had been made again
    parent = *grouped.shared_repartition;
  } else if (grouped.key_changed) {
    const bool named = !grouped.name.empty();
    parent = add_repartition_nodes(named ? grouped.name : name, !named && generated, 0, parent,
                                   repartition);
    if (named) {
      grouped.shared_repartition = parent;
    }
  }
  const NodeId node = add_node({parent}, std::move(node_name), std::move(factory));
  add_store(node, name, store, generated);
  return node;
}

// ---- tables ----------------------------------------------------------------------------------

NodeId PlanBuilder::add_table_source(SourceDeclaration source, const StoreDeclaration& store,
                                     FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  // The number of the store's name is taken before the source's.
  const std::string name =
      store_name(store, source.topics.empty() ? "" : source.topics.front() + "-");
  const NodeId parent = add_source(std::move(source));
  const NodeId node = add_node({parent}, next_name("KTABLE-SOURCE-"), std::move(factory));
  keep_table(node, name, store);
  return node;
}

// Kept in a store if it was given a name, else only if something asks for old values.
void PlanBuilder::keep_table(NodeId node, const std::string& name, const StoreDeclaration& store) {
  if (store.name.empty()) {
    plan_->nodes[node].deferred_store = PlanStore{name, store.key, store.value};
  } else {
    add_store(node, name, store, false);
  }
}

NodeId PlanBuilder::add_to_table(NodeId parent, bool key_changed, const StoreDeclaration& store,
                                 const RepartitionFactories& repartition, FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  constexpr std::string_view kPrefix = "KSTREAM-TOTABLE-";
  std::string node_name = next_name(kPrefix);
  const std::string name = store_name(store, kPrefix);
  if (key_changed) {
    // Kafka generates the topic's name even if the store has one.
    const bool by_store = !store.name.empty() && require_names_;
    parent = add_repartition_nodes(by_store ? name : node_name, !by_store, 0, parent, repartition);
  }
  const NodeId node = add_node({parent}, std::move(node_name), std::move(factory));
  keep_table(node, name, store);
  return node;
}

NodeId PlanBuilder::add_table_processor(std::string_view prefix, NodeId parent,
                                        const StoreDeclaration& store, FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  const NodeId node = add_node({parent}, next_name(prefix), std::move(factory));
  if (!store.name.empty()) {
    add_store(node, std::string(store.name), store, false);
  }
  return node;
}

NodeId PlanBuilder::add_table_filter(NodeId parent, const StoreDeclaration& store,
                                     FactoryPtr factory) {
  const NodeId node = add_table_processor("KTABLE-FILTER-", parent, store, std::move(factory));
  plan_->nodes[node].sends_old_values = request_old_values(parent, Materialize::kNever);
  return node;
}

// The store of the nearest table that has one tells the old values; tables in between compute them.
bool PlanBuilder::request_old_values(NodeId node, Materialize materialize) {
  PlanNode& table = plan_->nodes[node];
  if (table.sends_old_values) {
    return true;
  }
  if (table.stores.empty() && table.deferred_store.has_value()) {
    if (materialize == Materialize::kNever) {
      return false;
    }
    const PlanStore store = *table.deferred_store;
    add_store(node, store.name, {store.name, store.key, store.value}, true);
  } else if (table.stores.empty()) {
    for (const NodeId parent : table.parents) {
      if (!request_old_values(parent, materialize)) {
        return false;
      }
    }
  }
  plan_->nodes[node].sends_old_values = true;
  return true;
}

GroupId PlanBuilder::add_table_group(NodeId parent, FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  const NodeId node = add_node({parent}, next_name("KTABLE-SELECT-"), std::move(factory));
  request_old_values(parent, Materialize::kIfNeeded);
  return add_group(node, true, true);
}

NodeId PlanBuilder::add_table_aggregation(GroupId group, bool is_reduce,
                                          const StoreDeclaration& store,
                                          const RepartitionFactories& repartition,
                                          FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  const std::string_view prefix = is_reduce ? "KTABLE-REDUCE-" : "KTABLE-AGGREGATE-";
  const bool generated = store.name.empty();
  const std::string name = store_name(store, prefix);
  std::string sink_name = next_name("KSTREAM-SINK-");
  std::string source_name = next_name("KSTREAM-SOURCE-");
  std::string node_name = next_name(prefix);

  Group& grouped = groups_[group];
  NodeId parent = 0;
  if (grouped.shared_repartition.has_value()) {
    parent = *grouped.shared_repartition;
  } else {
    const bool named = !grouped.name.empty();
    const std::string topic = fmt::format("{}-repartition", named ? grouped.name : name);
    declare_repartition(topic, !named && generated, 0);
    add_internal_sink(std::move(sink_name), topic, grouped.parent, repartition);
    parent = add_internal_source(std::move(source_name), topic, repartition.source);
    if (named) {
      grouped.shared_repartition = parent;
    }
  }
  const NodeId node = add_node({parent}, std::move(node_name), std::move(factory));
  add_store(node, name, store, generated);
  return node;
}

void PlanBuilder::rename(NodeId node, std::string_view name) {
  WEIR_ASSERT(!built_);
  check_name("operator", name);
  plan_->nodes[node].name = name;
}

std::shared_ptr<const Plan> PlanBuilder::build() {
  WEIR_ASSERT(!built_);
  built_ = true;
  std::map<std::string_view, NodeId> names;
  for (NodeId id = 0; id < plan_->nodes.size(); ++id) {
    if (!names.emplace(plan_->nodes[id].name, id).second) {
      mistake(fmt::format("two operators are named '{}'", plan_->nodes[id].name));
    }
  }
  if (plan_->nodes.empty()) {
    mistake("the topology reads no topic: call from() or table_from()");
  }
  for (PlanNode& node : plan_->nodes) {
    for (const NodeId child : node.children) {
      node.child_names.push_back(plan_->nodes[child].name);
    }
  }
  for (const PlanNode& node : plan_->nodes) {
    for (const std::string& topic : node.topics) {
      if (!node.is_internal && plan_->is_repartition_topic(topic)) {
        mistake(
            fmt::format("topic '{}' has the name of a repartition topic of this topology", topic));
      }
    }
  }
  plan_->sub_topologies = cut_into_sub_topologies(*plan_);
  if (!mistakes_.empty()) {
    plan_->status =
        Error(Errc::kInvalidArgument, fmt::format("the topology has {} mistake(s): {}",
                                                  mistakes_.size(), fmt::join(mistakes_, "; ")));
  }
  return std::move(plan_);
}

}  // namespace weir::internal
