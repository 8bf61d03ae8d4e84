#include "operators/plan/plan.h"

#include <weir/operators/topic.h>
#include <weir/operators/topology.h>
#include <weir/runtime/assert.h>
#include <weir/runtime/thread_annotations.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace weir {

namespace internal {

namespace {

constexpr std::size_t kInternedNamesMax = 65'536;

class NameTable {
 public:
  std::string_view intern(std::string_view name) {
    const MutexLock lock(mutex_);
    if (const auto found = names_.find(name); found != names_.end()) {
      return *found;
    }
    if (names_.size() >= kInternedNamesMax) {
      return kNameTableFull;
    }
    return *names_.emplace(name).first;
  }

 private:
  Mutex mutex_;
  std::set<std::string, std::less<>> names_ WEIR_GUARDED_BY(mutex_);
};

class UnionFind {
 public:
  explicit UnionFind(std::size_t size) : parents_(size) {
    std::iota(parents_.begin(), parents_.end(), 0U);
  }
  std::uint32_t root(std::uint32_t node) {
    while (parents_[node] != node) {
      parents_[node] = parents_[parents_[node]];
      node = parents_[node];
    }
    return node;
  }
  void join(std::uint32_t a, std::uint32_t b) { parents_[root(b)] = root(a); }

 private:
  std::vector<std::uint32_t> parents_;
};

void add_unique(std::vector<std::string>& list, const std::string& name) {
  if (std::find(list.begin(), list.end(), name) == list.end()) {
    list.push_back(name);
  }
}

void add_node_to(SubTopology& group, NodeId id, const PlanNode& node) {
  group.nodes.push_back(id);
  for (const std::string& topic : node.topics) {
    add_unique(node.kind == NodeKind::kSource ? group.source_topics : group.sink_topics, topic);
  }
  for (const std::string& store : node.stores) {
    add_unique(group.stores, store);
  }
}

}  // namespace

std::string_view intern_name(std::string_view name) {
  // Never destroyed: the views that it gave out live as long as the process.
  static NameTable& table = *new NameTable;
  return table.intern(name);
}

bool Plan::is_repartition_topic(std::string_view topic) const {
  return std::any_of(repartition_topics.begin(), repartition_topics.end(),
                     [&](const RepartitionTopic& internal) { return internal.name == topic; });
}

const PlanStore* Plan::find_store(std::string_view name) const {
  const auto found = std::find_if(stores.begin(), stores.end(),
                                  [&](const PlanStore& store) { return store.name == name; });
  return found == stores.end() ? nullptr : &*found;
}

const PlanStore& Plan::store(std::string_view name) const {
  const PlanStore* found = find_store(name);
  WEIR_ASSERT(found != nullptr);
  return *found;
}

std::vector<SubTopology> cut_into_sub_topologies(const Plan& plan) {
  UnionFind groups(plan.nodes.size());
  std::map<std::string, NodeId> store_owner;
  for (NodeId id = 0; id < plan.nodes.size(); ++id) {
    for (const NodeId parent : plan.nodes[id].parents) {
      groups.join(parent, id);
    }
    for (const std::string& store : plan.nodes[id].stores) {
      groups.join(store_owner.emplace(store, id).first->second, id);
    }
  }
  std::vector<SubTopology> cut;
  std::map<std::uint32_t, std::size_t> number_of_root;
  for (NodeId id = 0; id < plan.nodes.size(); ++id) {
    const auto [found, is_new] = number_of_root.emplace(groups.root(id), cut.size());
    if (is_new) {
      cut.emplace_back();
    }
    add_node_to(cut[found->second], id, plan.nodes[id]);
  }
  return cut;
}

bool is_legal_name(std::string_view name) {
  if (name.empty() || name.size() > 249 || name == "." || name == "..") {
    return false;
  }
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string internal_topic_name(std::string_view application_id, std::string_view name) {
  return std::string(application_id).append("-").append(name);
}

std::string changelog_name(std::string_view store) {
  return std::string(store).append("-changelog");
}

std::string topic_on_log(const Plan& plan, std::string_view application_id,
                         std::string_view topic) {
  return plan.is_repartition_topic(topic) ? internal_topic_name(application_id, topic)
                                          : std::string(topic);
}

}  // namespace internal

Topology::Topology(std::shared_ptr<const internal::Plan> plan) : plan_(std::move(plan)) {}

const Status& Topology::status() const {
  return plan_->status;
}

std::string Topology::describe() const {
  return plan_->status.ok() ? internal::describe_plan(*plan_) : std::string();
}

}  // namespace weir
