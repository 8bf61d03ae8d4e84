#include "log/client/assignors.h"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::log {
namespace {

struct Strategy {
  AssignmentStrategy strategy;
  std::string_view name;
  std::string_view kafka_class;
};
constexpr std::array kStrategies{
    Strategy{AssignmentStrategy::kRange, "range",
             "org.apache.kafka.clients.consumer.RangeAssignor"},
    Strategy{AssignmentStrategy::kRoundRobin, "roundrobin",
             "org.apache.kafka.clients.consumer.RoundRobinAssignor"},
    Strategy{AssignmentStrategy::kCooperativeSticky, "cooperative-sticky",
             "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"},
};

// Kafka's MemberInfo: those with an instance id first, by it; then by member id.
std::vector<const GroupSubscriber*> in_order(const std::vector<GroupSubscriber>& members) {
  std::vector<const GroupSubscriber*> sorted;
  for (const GroupSubscriber& member : members) {
    sorted.push_back(&member);
  }
  std::ranges::sort(sorted, [](const GroupSubscriber* a, const GroupSubscriber* b) {
    if (a->instance_id.has_value() != b->instance_id.has_value()) {
      return a->instance_id.has_value();
    }
    return a->instance_id ? *a->instance_id < *b->instance_id : a->member_id < b->member_id;
  });
  return sorted;
}

GroupAssignment nothing_for(const std::vector<GroupSubscriber>& members) {
  GroupAssignment assignment;
  for (const GroupSubscriber& member : members) {
    assignment[member.member_id];
  }
  return assignment;
}

// Whether the member may go on with a partition that these say to own: nobody else does, or not
// since as lately.
bool owns(const std::string& member_id, const std::vector<const GroupSubscriber*>& claims) {
  const auto mine = std::ranges::find(claims, member_id, &GroupSubscriber::member_id);
  return mine != claims.end() && std::ranges::all_of(claims, [&](const GroupSubscriber* other) {
           return other == *mine || other->generation < (*mine)->generation;
         });
}

}  // namespace

std::optional<AssignmentStrategy> parse_assignment_strategy(std::string_view name) {
  const auto found = std::ranges::find_if(
      kStrategies, [&](const Strategy& s) { return s.name == name || s.kafka_class == name; });
  return found == kStrategies.end() ? std::nullopt : std::optional(found->strategy);
}

std::string_view assignment_strategy_name(AssignmentStrategy strategy) {
  return std::ranges::find(kStrategies, strategy, &Strategy::strategy)->name;
}

bool is_cooperative(AssignmentStrategy strategy) {
  return strategy == AssignmentStrategy::kCooperativeSticky;
}

GroupAssignment assign_partitions(AssignmentStrategy strategy, const PartitionCounts& topics,
                                  const std::vector<GroupSubscriber>& members) {
  switch (strategy) {
    case AssignmentStrategy::kRange:
      return assign_range(topics, members);
    case AssignmentStrategy::kRoundRobin:
      return assign_round_robin(topics, members);
    case AssignmentStrategy::kCooperativeSticky:
      return assign_cooperative_sticky(topics, members);
  }
  return {};
}

GroupAssignment assign_range(const PartitionCounts& topics,
                             const std::vector<GroupSubscriber>& members) {
  GroupAssignment assignment = nothing_for(members);
  const auto sorted = in_order(members);
  for (const auto& [topic, count] : topics) {
    std::vector<const GroupSubscriber*> readers;
    for (const GroupSubscriber* member : sorted) {
      if (member->topics.contains(topic)) {
        readers.push_back(member);
      }
    }
    if (readers.empty()) {
      continue;
    }
    const auto among = static_cast<std::int32_t>(readers.size());
    std::int32_t next = 0;
    for (std::int32_t i = 0; i < among; ++i) {
      const std::int32_t end = next + count / among + (i < count % among ? 1 : 0);
      for (; next < end; ++next) {
        assignment[readers[static_cast<std::size_t>(i)]->member_id].push_back(
            {topic, PartitionId(next)});
      }
    }
  }
  return assignment;
}

GroupAssignment assign_round_robin(const PartitionCounts& topics,
                                   const std::vector<GroupSubscriber>& members) {
  GroupAssignment assignment = nothing_for(members);
  const auto sorted = in_order(members);
  std::size_t next = 0;
  for (const auto& [topic, count] : topics) {
    const bool read = std::ranges::any_of(
        sorted, [&](const GroupSubscriber* member) { return member->topics.contains(topic); });
    for (std::int32_t i = 0; read && i < count; ++i) {
      while (!sorted[next % sorted.size()]->topics.contains(topic)) {
        ++next;
      }
      assignment[sorted[next % sorted.size()]->member_id].push_back({topic, PartitionId(i)});
      ++next;
    }
  }
  return assignment;
}

GroupAssignment assign_cooperative_sticky(const PartitionCounts& topics,
                                          const std::vector<GroupSubscriber>& members) {
  GroupAssignment assignment = assign_sticky(topics, members);
  std::map<TopicPartition, std::vector<const GroupSubscriber*>> claims;
  for (const GroupSubscriber& member : members) {
    for (const TopicPartition& partition : std::set(member.owned.begin(), member.owned.end())) {
      claims[partition].push_back(&member);
    }
  }
  for (auto& [member_id, partitions] : assignment) {
    std::erase_if(partitions, [&, &id = member_id](const TopicPartition& partition) {
      const auto claimed = claims.find(partition);
      return claimed != claims.end() && !owns(id, claimed->second);
    });
  }
  return assignment;
}

}  // namespace weir::log
