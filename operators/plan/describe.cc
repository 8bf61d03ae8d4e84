#include "operators/plan/plan.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace weir::internal {

namespace {

// Kafka prints the topics of a source in the order of a Java HashSet: by bucket, in a bucket by
// insertion. (java.util.HashMap.hash, String.hashCode)
std::vector<std::string> in_hash_set_order(std::vector<std::string> topics) {
  std::size_t buckets = 16;
  while (static_cast<double>(topics.size()) > 0.75 * static_cast<double>(buckets)) {
    buckets *= 2;
  }
  const auto bucket = [buckets](const std::string& text) {
    std::uint32_t hash = 0;
    for (const char c : text) {
      hash = hash * 31U + static_cast<unsigned char>(c);
    }
    return (hash ^ (hash >> 16U)) & static_cast<std::uint32_t>(buckets - 1);
  };
  std::multimap<std::uint32_t, std::string> by_bucket;
  for (std::string& topic : topics) {
    by_bucket.emplace(bucket(topic), std::move(topic));
  }
  std::vector<std::string> ordered;
  for (auto& [number, topic] : by_bucket) {
    ordered.push_back(std::move(topic));
  }
  return ordered;
}

// The nodes of one sub-topology with their neighbours, in Kafka's order: larger sub-tree first,
// then by name. Kafka keeps neighbours in trees that are filled while the sizes still grow, node by
// node in the order of a Java HashMap; so do we. (InternalTopologyBuilder.describeSubtopology)
class Describer {
 public:
  explicit Describer(const Plan& plan) : plan_(plan), sizes_(plan.nodes.size(), 1) {
    for (NodeId id = 0; id < plan.nodes.size(); ++id) {
      ids_.emplace(plan.nodes[id].name, id);
      parents_.emplace_back(Larger{*this});
      children_.emplace_back(Larger{*this});
    }
    for (const SubTopology& part : plan.sub_topologies) {
      connect(part);
    }
  }

  std::string text() const {
    std::string out = "Topologies:\n ";
    for (std::size_t i = 0; i < plan_.sub_topologies.size(); ++i) {
      fmt::format_to(std::back_inserter(out), "  Sub-topology: {}\n", i);
      for (const NodeId id : ordered(plan_.sub_topologies[i].nodes)) {
        append_node(id, out);
      }
      out += "\n";
    }
    return out;
  }

 private:
  struct Larger {
    const Describer& describer;
    bool operator()(NodeId a, NodeId b) const {
      const std::vector<std::size_t>& sizes = describer.sizes_;
      return sizes[a] != sizes[b] ? sizes[a] > sizes[b]
                                  : describer.plan_.nodes[a].name < describer.plan_.nodes[b].name;
    }
  };
  using Neighbours = std::set<NodeId, Larger>;

  void connect(const SubTopology& part) {
    std::vector<std::string> names;
    for (const NodeId id : part.nodes) {
      names.push_back(plan_.nodes[id].name);
    }
    for (const std::string& name : in_hash_set_order(std::move(names))) {
      const NodeId id = ids_.at(name);
      for (const NodeId parent : plan_.nodes[id].parents) {
        parents_[id].insert(parent);
        children_[parent].insert(id);
        grow(parent, sizes_[id]);
      }
    }
  }
  void grow(NodeId id, std::size_t by) {
    sizes_[id] += by;
    for (const NodeId parent : parents_[id]) {
      grow(parent, by);
    }
  }

  std::vector<NodeId> ordered(std::vector<NodeId> ids) const {
    std::sort(ids.begin(), ids.end(), Larger{*this});
    return ids;
  }

  std::string names(const Neighbours& ids) const {
    std::vector<std::string_view> list;
    for (const NodeId id : ids) {
      list.push_back(plan_.nodes[id].name);
    }
    return list.empty() ? "none" : fmt::format("{}", fmt::join(list, ", "));
  }

  void append_node(NodeId id, std::string& out) const {
    const PlanNode& node = plan_.nodes[id];
    const auto end = std::back_inserter(out);
    switch (node.kind) {
      case NodeKind::kSource:
        fmt::format_to(end, "    Source: {} (topics: [{}])\n", node.name,
                       fmt::join(in_hash_set_order(node.topics), ", "));
        break;
      case NodeKind::kProcessor:
        fmt::format_to(end, "    Processor: {} (stores: [{}])\n", node.name,
                       fmt::join(node.stores, ", "));
        break;
      case NodeKind::kSink:
        if (node.topics.empty()) {
          fmt::format_to(end, "    Sink: {} (extractor class: {})\n", node.name, node.chooser);
        } else {
          fmt::format_to(end, "    Sink: {} (topic: {})\n", node.name, node.topics.front());
        }
        break;
    }
    if (node.kind != NodeKind::kSink) {
      fmt::format_to(end, "      --> {}\n", names(children_[id]));
    }
    if (node.kind != NodeKind::kSource) {
      fmt::format_to(end, "      <-- {}\n", names(parents_[id]));
    }
  }

  const Plan& plan_;
  std::vector<std::size_t> sizes_;
  std::map<std::string_view, NodeId> ids_;
  std::vector<Neighbours> parents_;
  std::vector<Neighbours> children_;
};

}  // namespace

std::string describe_plan(const Plan& plan) {
  return Describer(plan).text();
}

}  // namespace weir::internal
