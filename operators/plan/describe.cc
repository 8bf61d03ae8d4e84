#include "operators/plan/plan.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
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

class Describer {
 public:
  explicit Describer(const Plan& plan) : plan_(plan), sizes_(plan.nodes.size(), 1) {
    // Children stand behind their parents.
    for (NodeId id = static_cast<NodeId>(plan.nodes.size()); id-- > 0;) {
      for (const NodeId parent : plan.nodes[id].parents) {
        sizes_[parent] += sizes_[id];
      }
    }
  }

  std::string text() const {
    std::string out = "Topologies:\n ";
    for (std::size_t i = 0; i < plan_.sub_topologies.size(); ++i) {
      fmt::format_to(std::back_inserter(out), "  Sub-topology: {}\n", i);
      for (const NodeId id : ordered(plan_.sub_topologies[i].nodes)) {
        append_node(plan_.nodes[id], out);
      }
      out += "\n";
    }
    return out;
  }

 private:
  // Larger sub-tree first, then by name.
  std::vector<NodeId> ordered(std::vector<NodeId> ids) const {
    std::sort(ids.begin(), ids.end(), [this](NodeId a, NodeId b) {
      return sizes_[a] != sizes_[b] ? sizes_[a] > sizes_[b]
                                    : plan_.nodes[a].name < plan_.nodes[b].name;
    });
    return ids;
  }

  std::string names(const std::vector<NodeId>& ids) const {
    std::vector<std::string_view> list;
    for (const NodeId id : ordered(ids)) {
      list.push_back(plan_.nodes[id].name);
    }
    return list.empty() ? "none" : fmt::format("{}", fmt::join(list, ", "));
  }

  void append_node(const PlanNode& node, std::string& out) const {
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
      fmt::format_to(end, "      --> {}\n", names(node.children));
    }
    if (node.kind != NodeKind::kSource) {
      fmt::format_to(end, "      <-- {}\n", names(node.parents));
    }
  }

  const Plan& plan_;
  std::vector<std::size_t> sizes_;
};

}  // namespace

std::string describe_plan(const Plan& plan) {
  return Describer(plan).text();
}

}  // namespace weir::internal
