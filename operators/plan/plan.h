#pragma once

#include <weir/operators/internal/flow.h>
#include <weir/operators/internal/plan_builder.h>
#include <weir/runtime/result.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::internal {

enum class NodeKind { kSource, kProcessor, kSink };

struct PlanStore {
  std::string name;
  TypeInfo key;
  TypeInfo value;
};

// One node of the logical plan. Topics are named as in describe(): internal ones without the
// application id.
struct PlanNode {
  NodeKind kind = NodeKind::kProcessor;
  std::string name;
  std::vector<NodeId> parents;
  std::vector<NodeId> children;
  std::vector<std::string> child_names;  // filled in by PlanBuilder::build()
  std::vector<std::string> topics;       // kSource: one or more; kSink: one, none if records choose
  bool is_internal = false;              // an end of a repartition topic
  std::string chooser;                   // kSink without a topic: what chooses
  std::vector<std::string> stores;
  TypeInfo key;  // kSource
  TypeInfo value;
  FactoryPtr factory;

  // Tables (streams-features TAB-1).
  bool sends_old_values = false;
  // A store that the table gets when something asks for its old values.
  std::optional<PlanStore> deferred_store;
};

struct RepartitionTopic {
  std::string name;             // "<x>-repartition"
  std::int32_t partitions = 0;  // 0: REP-5
};

// Nodes that run in one task (TOP-2).
struct SubTopology {
  std::vector<NodeId> nodes;  // in order of insertion: parents first
  std::vector<std::string> source_topics;
  std::vector<std::string> sink_topics;
  std::vector<std::string> stores;
};

// What the DSL built. Immutable once a Topology holds it.
struct Plan {
  Status status;
  std::vector<PlanNode> nodes;
  std::vector<PlanStore> stores;
  std::vector<RepartitionTopic> repartition_topics;
  std::vector<SubTopology> sub_topologies;

  bool is_repartition_topic(std::string_view topic) const;
  const PlanStore* find_store(std::string_view name) const;  // null when there is none
  const PlanStore& store(std::string_view name) const;
};

// Cuts the plan: union-find over edges and shared stores, numbered by first member in order of
// insertion.
std::vector<SubTopology> cut_into_sub_topologies(const Plan& plan);

// Topology.describe() of Kafka Streams (TOP-5).
std::string describe_plan(const Plan& plan);

// NAME-6: 1 to 249 of [A-Za-z0-9._-], not "." or "..".
bool is_legal_name(std::string_view name);

// "<application.id>-<name>": internal topics on a log.
std::string internal_topic_name(std::string_view application_id, std::string_view name);
std::string changelog_name(std::string_view store);  // "<store>-changelog", without application id
std::string topic_on_log(const Plan& plan, std::string_view application_id, std::string_view topic);

}  // namespace weir::internal
