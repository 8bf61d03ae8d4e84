#pragma once

#include <weir/operators/internal/flow.h>
#include <weir/runtime/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

namespace weir::internal {

struct Plan;

// The type's name without namespaces; "function" for a lambda and the like.
std::string unqualified_type_name(const std::type_info& type);

using FactoryPtr = std::shared_ptr<const NodeFactory>;
using GroupId = std::uint32_t;

struct StoreDeclaration {
  std::string_view name;  // empty: generated
  TypeInfo key;
  TypeInfo value;
};

struct SourceDeclaration {
  std::vector<std::string> topics;
  TypeInfo key;
  TypeInfo value;
  FactoryPtr factory;
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
  NodeId add_source(SourceDeclaration source);
  // `prefix`: "KSTREAM-MAP-" and so on.
  NodeId add_processor(std::string_view prefix, std::vector<NodeId> parents, FactoryPtr factory);
  NodeId add_sink(std::string_view topic, NodeId parent, FactoryPtr factory);
  // Topics chosen by record; `chooser` is what describe() calls it.
  NodeId add_dynamic_sink(std::string chooser, NodeId parent, FactoryPtr factory);
  // `name` empty: generated. `partitions` 0: follows from the sources. Returns the new source.
  NodeId add_repartition(std::string_view name, std::int32_t partitions, NodeId parent,
                         const RepartitionFactories& factories);
  // `name` empty: generated. Its branches are its children, in order; `branch` empty: `number`.
  NodeId add_split(std::string_view name, NodeId parent, FactoryPtr factory);
  NodeId add_branch(NodeId split, std::string_view branch, std::size_t number, FactoryPtr factory);

  // A processor's store; made here unless another operator has it already.
  void connect_store(NodeId node, const StoreDeclaration& store);

  // `owns_node`: the parent is the node of group_by and takes the group's name.
  GroupId add_group(NodeId parent, bool key_changed, bool owns_node);
  void name_group(GroupId group, std::string_view name);
  // Store, repartition (if the group's key was changed) and operator.
  NodeId add_aggregation(GroupId group, bool is_reduce, const StoreDeclaration& store,
                         const RepartitionFactories& repartition, FactoryPtr factory);

  // A source and the table of its records. A table whose store has no name is kept in a store only
  // when something asks for its old values.
  NodeId add_table_source(SourceDeclaration source, const StoreDeclaration& store,
                          FactoryPtr factory);
  // The table of a stream's records, repartitioned if the key was changed.
  NodeId add_to_table(NodeId parent, bool key_changed, const StoreDeclaration& store,
                      const RepartitionFactories& repartition, FactoryPtr factory);
  // A filter of a table is told the old values if that costs nothing: then it sends no tombstones
  // for what it never let through.
  NodeId add_table_filter(NodeId parent, const StoreDeclaration& store, FactoryPtr factory);
  // An operator of a table; results are kept if `store` has a name.
  NodeId add_table_processor(std::string_view prefix, NodeId parent, const StoreDeclaration& store,
                             FactoryPtr factory);
  // group_by of a table: always repartitioned (REP-3).
  GroupId add_table_group(NodeId parent, FactoryPtr factory);
  NodeId add_table_aggregation(GroupId group, bool is_reduce, const StoreDeclaration& store,
                               const RepartitionFactories& repartition, FactoryPtr factory);

  void rename(NodeId node, std::string_view name);
  void mistake(std::string text);
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
  NodeId add_node(std::vector<NodeId> parents, std::string name, FactoryPtr factory);
  NodeId add_internal_source(std::string name, const std::string& topic, FactoryPtr factory);
  NodeId add_internal_sink(std::string name, const std::string& topic, NodeId parent,
                           const RepartitionFactories& factories);
  void check_name(std::string_view what, std::string_view name);
  std::string store_name(const StoreDeclaration& store, std::string_view prefix);
  void add_store(NodeId node, const std::string& name, const StoreDeclaration& store,
                 bool generated);
  void keep_table(NodeId node, const std::string& name, const StoreDeclaration& store);
  enum class Materialize { kIfNeeded, kNever };
  // False: they would need a store, which is kNever.
  bool request_old_values(NodeId node, Materialize materialize);
  void declare_repartition(const std::string& topic, bool generated, std::int32_t partitions);
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

// What a handle of the DSL points to. Handles may outlive the builder object.
struct Handle {
  std::shared_ptr<PlanBuilder> plan;
  NodeId node = 0;
};

}  // namespace weir::internal
