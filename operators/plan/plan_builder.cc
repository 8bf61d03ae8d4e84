#include "operators/plan/plan.h"

#include <weir/operators/internal/nodes.h>
#include <weir/operators/internal/plan_builder.h>
#include <weir/operators/topic.h>
#include <weir/runtime/assert.h>

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace weir::internal {

PlanBuilder::PlanBuilder(bool require_names)
    : plan_(std::make_shared<Plan>()), require_names_(require_names) {}

PlanBuilder::~PlanBuilder() = default;

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

NodeId PlanBuilder::add_node(NodeId parent, std::string name, FactoryPtr factory) {
  const auto id = static_cast<NodeId>(plan_->nodes.size());
  PlanNode node;
  node.name = std::move(name);
  node.parents.push_back(parent);
  node.factory = std::move(factory);
  plan_->nodes.push_back(std::move(node));
  plan_->nodes[parent].children.push_back(id);
  return id;
}

NodeId PlanBuilder::add_source(std::vector<std::string> topics, TypeInfo key, TypeInfo value,
                               FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  const std::string name = next_name("KSTREAM-SOURCE-");
  if (topics.empty()) {
    mistake("from() needs at least one topic");
  }
  for (const std::string& topic : topics) {
    check_name("topic", topic);
  }
  for (NodeId id = 0; id < plan_->nodes.size(); ++id) {
    PlanNode& node = plan_->nodes[id];
    if (node.kind != NodeKind::kSource || plan_->is_repartition_topic(node.topics.front())) {
      continue;
    }
    const auto shared =
        std::find_first_of(topics.begin(), topics.end(), node.topics.begin(), node.topics.end());
    if (shared == topics.end()) {
      continue;
    }
    if (node.topics != topics) {
      mistake(
          fmt::format("topic '{}' is read by two from() with different lists of topics; read "
                      "the same list twice or each topic alone",
                      *shared));
    } else if (node.key.id != key.id || node.value.id != value.id) {
      mistake(fmt::format("topic '{}' is read with two different types (<{}, {}> and <{}, {}>)",
                          *shared, node.key.serde, node.value.serde, key.serde, value.serde));
    } else {
      return id;
    }
  }
  PlanNode node;
  node.kind = NodeKind::kSource;
  node.name = name;
  node.topics = std::move(topics);
  node.key = key;
  node.value = value;
  node.factory = std::move(factory);
  plan_->nodes.push_back(std::move(node));
  return static_cast<NodeId>(plan_->nodes.size() - 1);
}

NodeId PlanBuilder::add_processor(std::string_view prefix, NodeId parent, FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  return add_node(parent, next_name(prefix), std::move(factory));
}

NodeId PlanBuilder::add_sink(std::string_view topic, NodeId parent, FactoryPtr factory) {
  WEIR_ASSERT(!built_);
  check_name("topic", topic);
  const NodeId id = add_node(parent, next_name("KSTREAM-SINK-"), std::move(factory));
  plan_->nodes[id].kind = NodeKind::kSink;
  plan_->nodes[id].topics.emplace_back(topic);
  return id;
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
  } else if (require_names_) {
    mistake(
        fmt::format("repartition topic '{}' has a generated name: name the repartition, the "
                    "group or the store, or build with require_names = false",
                    topic));
  }
  if (plan_->is_repartition_topic(topic)) {
    mistake(fmt::format("two repartition topics are named '{}'", topic));
  }
  plan_->repartition_topics.push_back({topic, partitions});
  const NodeId filter =
      add_node(parent, std::move(filter_name), std::make_shared<const PassFactory>());
  const NodeId sink = add_node(filter, std::move(sink_name), factories.make_sink(topic));
  plan_->nodes[sink].kind = NodeKind::kSink;
  plan_->nodes[sink].topics.push_back(topic);
  PlanNode source;
  source.kind = NodeKind::kSource;
  source.name = std::move(source_name);
  source.topics.push_back(topic);
  source.factory = factories.source;
  plan_->nodes.push_back(std::move(source));
  return static_cast<NodeId>(plan_->nodes.size() - 1);
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

NodeId PlanBuilder::add_aggregation(GroupId group, bool is_reduce, const StoreDeclaration& store,
                                    const RepartitionFactories& repartition,
                                    const std::function<FactoryPtr(std::string store)>& make) {
  WEIR_ASSERT(!built_);
  const std::string prefix = is_reduce ? "KSTREAM-REDUCE-" : "KSTREAM-AGGREGATE-";
  const bool generated = store.name.empty();
  const std::string store_name =
      generated ? next_name(prefix + "STATE-STORE-") : std::string(store.name);
  check_name("store", store_name);
  if (generated && require_names_) {
    mistake(
        fmt::format("store '{}' has a generated name: pass a KvStore, or build with "
                    "require_names = false",
                    store_name));
  }
  if (std::any_of(plan_->stores.begin(), plan_->stores.end(),
                  [&](const PlanStore& other) { return other.name == store_name; })) {
    mistake(fmt::format("store '{}' is used by two operators", store_name));
  }
  std::string node_name = next_name(prefix);

  Group& grouped = groups_[group];
  NodeId parent = grouped.parent;
  if (grouped.key_changed && grouped.shared_repartition.has_value()) {
    counter_ += 3;  // as if it had been made again
    parent = *grouped.shared_repartition;
  } else if (grouped.key_changed) {
    const bool named = !grouped.name.empty();
    parent = add_repartition_nodes(named ? grouped.name : store_name, !named && generated, 0,
                                   parent, repartition);
    if (named) {
      grouped.shared_repartition = parent;
    }
  }
  plan_->stores.push_back(
      {store_name, std::string(store.key.serde), std::string(store.value.serde)});
  const NodeId node = add_node(parent, std::move(node_name), make(store_name));
  plan_->nodes[node].stores.push_back(store_name);
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
    mistake("the topology reads no topic: call from()");
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
