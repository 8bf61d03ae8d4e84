#pragma once

#include <weir/operators/internal/flow.h>
#include <weir/runtime/result.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::internal {

struct Plan;

// Identity of a type and what the plan records of it.
struct TypeInfo {
  const void* id = nullptr;
  std::string_view serde;
};
template <class T>
inline constexpr char kTypeTag = 0;
template <class T>
TypeInfo type_info() {
  return {&kTypeTag<T>, Serde<PlainOf<T>>::kName};
}

using FactoryPtr = std::shared_ptr<const NodeFactory>;
using GroupId = std::uint32_t;

struct StoreDeclaration {
  std::string_view name;  // empty: generated
  TypeInfo key;
  TypeInfo value;
};

// The two ends of a repartition topic.
struct RepartitionFactories {
  // The sink needs the topic's name, which is known later.
  std::shared_ptr<const NodeFactory> (*make_sink)(std::string topic) = nullptr;
  FactoryPtr source;
};

// Collects the logical plan while the user's code calls the DSL: names as Kafka Streams generates
// them (streams-features 2.5), repartition topics (2.4), stores. Mistakes are collected, not
// thrown. Threading: confined to the building thread.
class PlanBuilder {
 public:
  // `require_names`: a store or internal topic without a name of the user's is a mistake.
  explicit PlanBuilder(bool require_names);
  ~PlanBuilder();
  PlanBuilder(const PlanBuilder&) = delete;
  PlanBuilder& operator=(const PlanBuilder&) = delete;

  // A topic that is read already: the same node again.
  NodeId add_source(std::vector<std::string> topics, TypeInfo key, TypeInfo value,
                    FactoryPtr factory);
  // `prefix`: "KSTREAM-MAP-" and so on.
  NodeId add_processor(std::string_view prefix, NodeId parent, FactoryPtr factory);
  NodeId add_sink(std::string_view topic, NodeId parent, FactoryPtr factory);
  // `name` empty: generated. `partitions` 0: follows from the sources. Returns the new source.
  NodeId add_repartition(std::string_view name, std::int32_t partitions, NodeId parent,
                         const RepartitionFactories& factories);

  // `owns_node`: the parent is the node of group_by and takes the group's name.
  GroupId add_group(NodeId parent, bool key_changed, bool owns_node);
  void name_group(GroupId group, std::string_view name);
  // Store, repartition (if the group's key was changed) and operator. `make` gets the store's name.
  NodeId add_aggregation(GroupId group, bool is_reduce, const StoreDeclaration& store,
                         const RepartitionFactories& repartition,
                         const std::function<FactoryPtr(std::string store)>& make);

  void rename(NodeId node, std::string_view name);
  std::shared_ptr<const Plan> build();

 private:
  struct Group {
    NodeId parent = 0;
    bool key_changed = false;
    bool owns_node = false;
    std::string name;
    std::optional<NodeId> shared_repartition;
  };

  std::string next_name(std::string_view prefix);
  NodeId add_node(NodeId parent, std::string name, FactoryPtr factory);
  void mistake(std::string text);
  void check_name(std::string_view what, std::string_view name);
  // Takes the three numbers of REP-4.
  NodeId add_repartition_nodes(std::string_view name, bool generated, std::int32_t partitions,
                               NodeId parent, const RepartitionFactories& factories);

  std::shared_ptr<Plan> plan_;
  bool require_names_;
  bool built_ = false;
  std::uint32_t counter_ = 0;
  std::vector<Group> groups_;
  std::vector<std::string> mistakes_;
};

}  // namespace weir::internal
