#pragma once

#include <weir/runtime/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// Who of a consumer group reads which partition (Kafka's ConsumerPartitionAssignor). Pure
// functions; the leader of the group runs one of them.

namespace weir::log {

struct GroupSubscriber {
  std::string member_id;
  std::optional<std::string> instance_id;  // members with one come first, in the order of theirs
  std::set<std::string> topics;
  std::vector<TopicPartition> owned;  // as the member said
  std::int32_t generation = -1;       // that it got them in
};

// Partitions of every topic that somebody subscribed to; topics that do not exist are left out.
using PartitionCounts = std::map<std::string, std::int32_t>;
// Has every member; partitions in ascending order.
using GroupAssignment = std::map<std::string, std::vector<TopicPartition>>;

enum class AssignmentStrategy { kRange, kRoundRobin, kCooperativeSticky };
inline constexpr std::string_view kDefaultAssignmentStrategy = "cooperative-sticky";

// "range", "roundrobin", "cooperative-sticky", or the name of Kafka's class for it; nullopt:
// another.
std::optional<AssignmentStrategy> parse_assignment_strategy(std::string_view name);
std::string_view assignment_strategy_name(AssignmentStrategy strategy);
// Members of a cooperative strategy keep what they own while the group rebalances.
bool is_cooperative(AssignmentStrategy strategy);

GroupAssignment assign_partitions(AssignmentStrategy strategy, const PartitionCounts& topics,
                                  const std::vector<GroupSubscriber>& members);

// Topic by topic: each of its members, in their order, gets a run of neighbours; the first ones one
// more when it does not divide. Topics with as many partitions and the same members are
// co-partitioned.
GroupAssignment assign_range(const PartitionCounts& topics,
                             const std::vector<GroupSubscriber>& members);
// One after the other around all members.
GroupAssignment assign_round_robin(const PartitionCounts& topics,
                                   const std::vector<GroupSubscriber>& members);
// As balanced as the subscriptions allow: no member could give a partition to one that has two
// fewer, also not over others. Among those it keeps what members own, as far as they agree about
// it; when all subscribe to the same topics, it keeps as much as possible.
GroupAssignment assign_sticky(const PartitionCounts& topics,
                              const std::vector<GroupSubscriber>& members);
// The sticky one without the partitions that another member still owns: that one gives them up
// first, and the rebalance that follows hands them over.
GroupAssignment assign_cooperative_sticky(const PartitionCounts& topics,
                                          const std::vector<GroupSubscriber>& members);

}  // namespace weir::log
