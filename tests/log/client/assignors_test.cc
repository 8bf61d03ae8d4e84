// Assignors: the examples of Kafka's own documentation (RangeAssignor, RoundRobinAssignor,
// StickyAssignor), and properties over random groups. Optimal balance is checked against a flow
// search that shares nothing with the assignor.
#include "log/client/assignors.h"

#include <weir/runtime/rng.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace weir::log {
namespace {

std::vector<TopicPartition> parts(const std::vector<std::string>& names) {
  std::vector<TopicPartition> result;
  for (const std::string& name : names) {
    const std::size_t at = name.find('p');
    result.push_back({name.substr(0, at), PartitionId(std::stoi(name.substr(at + 1)))});
  }
  return result;
}

GroupSubscriber member(const std::string& id, std::set<std::string> topics,
                       const std::vector<std::string>& owned = {}, std::int32_t generation = 1) {
  return {id, std::nullopt, std::move(topics), parts(owned), generation};
}

GroupAssignment expect(std::map<std::string, std::vector<std::string>> names) {
  GroupAssignment result;
  for (const auto& [id, list] : names) {
    result[id] = parts(list);
  }
  return result;
}

// --- Documented examples

TEST(RangeAssignor, GivesRunsOfNeighboursTopicByTopic) {
  const PartitionCounts topics{{"t0", 3}, {"t1", 3}};
  EXPECT_EQ(assign_range(topics, {member("C0", {"t0", "t1"}), member("C1", {"t0", "t1"})}),
            expect({{"C0", {"t0p0", "t0p1", "t1p0", "t1p1"}}, {"C1", {"t0p2", "t1p2"}}}));
}

TEST(RangeAssignor, OrdersStaticMembersByInstanceId) {
  // The documented case: members restart under other ids and keep their partitions.
  std::vector<GroupSubscriber> before = {member("m9", {"t0"}), member("m2", {"t0"})};
  before[0].instance_id = "I1";
  before[1].instance_id = "I2";
  std::vector<GroupSubscriber> after = {member("m1", {"t0"}), member("m7", {"t0"})};
  after[0].instance_id = "I2";
  after[1].instance_id = "I1";
  EXPECT_EQ(assign_range({{"t0", 2}}, before), expect({{"m9", {"t0p0"}}, {"m2", {"t0p1"}}}));
  EXPECT_EQ(assign_range({{"t0", 2}}, after), expect({{"m7", {"t0p0"}}, {"m1", {"t0p1"}}}));
}

TEST(RangeAssignor, LeavesOutWhoDoesNotSubscribeAndTopicsThatAreNotThere) {
  EXPECT_EQ(assign_range({{"t0", 1}}, {member("C0", {"t0"}), member("C1", {"t0", "gone"}),
                                       member("C2", {"gone"})}),
            expect({{"C0", {"t0p0"}}, {"C1", {}}, {"C2", {}}}));
}

TEST(RoundRobinAssignor, GoesAroundTheMembers) {
  EXPECT_EQ(assign_round_robin({{"t0", 3}, {"t1", 3}},
                               {member("C0", {"t0", "t1"}), member("C1", {"t0", "t1"})}),
            expect({{"C0", {"t0p0", "t0p2", "t1p1"}}, {"C1", {"t0p1", "t1p0", "t1p2"}}}));
  EXPECT_EQ(assign_round_robin({{"t0", 1}, {"t1", 2}, {"t2", 3}},
                               {member("C0", {"t0"}), member("C1", {"t0", "t1"}),
                                member("C2", {"t0", "t1", "t2"})}),
            expect({{"C0", {"t0p0"}}, {"C1", {"t1p0"}}, {"C2", {"t1p1", "t2p0", "t2p1", "t2p2"}}}));
}

TEST(StickyAssignor, IsBalancedAndMovesLittle) {
  const PartitionCounts topics{{"t0", 2}, {"t1", 2}, {"t2", 2}, {"t3", 2}};
  const std::set<std::string> all{"t0", "t1", "t2", "t3"};
  EXPECT_EQ(assign_sticky(topics, {member("C0", all), member("C1", all), member("C2", all)}),
            expect({{"C0", {"t0p0", "t1p1", "t3p0"}},
                    {"C1", {"t0p1", "t2p0", "t3p1"}},
                    {"C2", {"t1p0", "t2p1"}}}));
  // C1 is gone.
  EXPECT_EQ(
      assign_sticky(topics, {member("C0", all, {"t0p0", "t1p1", "t3p0"}),
                             member("C2", all, {"t1p0", "t2p1"})}),
      expect({{"C0", {"t0p0", "t1p1", "t2p0", "t3p0"}}, {"C2", {"t0p1", "t1p0", "t2p1", "t3p1"}}}));
}

TEST(StickyAssignor, FollowsDifferentSubscriptions) {
  const PartitionCounts topics{{"t0", 1}, {"t1", 2}, {"t2", 3}};
  EXPECT_EQ(assign_sticky(topics, {member("C0", {"t0"}), member("C1", {"t0", "t1"}),
                                   member("C2", {"t0", "t1", "t2"})}),
            expect({{"C0", {"t0p0"}}, {"C1", {"t1p0", "t1p1"}}, {"C2", {"t2p0", "t2p1", "t2p2"}}}));
  // C0 is gone.
  EXPECT_EQ(assign_sticky(topics, {member("C1", {"t0", "t1"}, {"t1p0", "t1p1"}),
                                   member("C2", {"t0", "t1", "t2"}, {"t2p0", "t2p1", "t2p2"})}),
            expect({{"C1", {"t0p0", "t1p0", "t1p1"}}, {"C2", {"t2p0", "t2p1", "t2p2"}}}));
}

TEST(StickyAssignor, BelievesTheNewestGenerationAndNobodyWhenTwoSayTheSame) {
  // C0 was away while C1 got what it had.
  const std::set<std::string> t{"t"};
  EXPECT_EQ(
      assign_sticky({{"t", 2}}, {member("C0", t, {"tp0", "tp1"}, 3), member("C1", t, {"tp0"}, 4)}),
      expect({{"C0", {"tp1"}}, {"C1", {"tp0"}}}));
  EXPECT_EQ(assign_sticky({{"t", 2}}, {member("C0", t, {"tp1"}, 4), member("C1", t, {"tp1"}, 4)}),
            expect({{"C0", {"tp0"}}, {"C1", {"tp1"}}}));
}

TEST(CooperativeStickyAssignor, HandsOverInTwoSteps) {
  const std::set<std::string> t{"t"};
  // C1 comes. C0 has all four, and keeps two.
  const auto first = assign_cooperative_sticky(
      {{"t", 4}}, {member("C0", t, {"tp0", "tp1", "tp2", "tp3"}), member("C1", t, {}, -1)});
  EXPECT_EQ(first, expect({{"C0", {"tp0", "tp1"}}, {"C1", {}}}));
  const auto second = assign_cooperative_sticky(
      {{"t", 4}}, {member("C0", t, {"tp0", "tp1"}, 2), member("C1", t, {}, 2)});
  EXPECT_EQ(second, expect({{"C0", {"tp0", "tp1"}}, {"C1", {"tp2", "tp3"}}}));
}

TEST(CooperativeStickyAssignor, AStaleClaimTakesNothingFromTheOwner) {
  const std::set<std::string> t{"t"};
  EXPECT_EQ(assign_cooperative_sticky(
                {{"t", 2}}, {member("C0", t, {"tp0", "tp1"}, 3), member("C1", t, {"tp0"}, 4)}),
            expect({{"C0", {"tp1"}}, {"C1", {"tp0"}}}));
  // Two claims of one generation: both have to give it up first.
  EXPECT_EQ(assign_cooperative_sticky({{"t", 1}},
                                      {member("C0", t, {"tp0"}, 4), member("C1", t, {"tp0"}, 4)}),
            expect({{"C0", {}}, {"C1", {}}}));
}

TEST(AssignmentStrategy, IsNamedAsInKafka) {
  EXPECT_EQ(parse_assignment_strategy("range"), AssignmentStrategy::kRange);
  EXPECT_EQ(parse_assignment_strategy("org.apache.kafka.clients.consumer.RoundRobinAssignor"),
            AssignmentStrategy::kRoundRobin);
  EXPECT_EQ(parse_assignment_strategy("sticky-ish"), std::nullopt);
  EXPECT_EQ(parse_assignment_strategy(kDefaultAssignmentStrategy),
            AssignmentStrategy::kCooperativeSticky);
  EXPECT_EQ(assignment_strategy_name(AssignmentStrategy::kCooperativeSticky), "cooperative-sticky");
}

// --- Properties

struct Group {
  PartitionCounts topics;
  std::vector<GroupSubscriber> members;
  bool equal = false;
};

Group random_group(Rng& rng) {
  Group group;
  const auto topics = static_cast<int>(rng.below(5));
  for (int t = 0; t < topics; ++t) {
    group.topics["t" + std::to_string(t)] = static_cast<std::int32_t>(rng.below(9));
  }
  group.equal = rng.chance(1, 2);
  const std::uint64_t count = 1 + rng.below(6);
  for (std::uint64_t m = 0; m < count; ++m) {
    GroupSubscriber one = member("m" + std::to_string(rng.below(90) * 10 + m), {});
    for (int t = 0; t < 5; ++t) {  // one topic may not exist
      if (group.equal || rng.chance(1, 2)) {
        one.topics.insert("t" + std::to_string(t));
      }
    }
    one.generation = static_cast<std::int32_t>(rng.below(3)) + 4;
    group.members.push_back(std::move(one));
  }
  for (const auto& [topic, partitions] : group.topics) {
    for (std::int32_t p = 0; p < partitions; ++p) {
      if (rng.chance(3, 4)) {
        group.members[rng.below(count)].owned.push_back({topic, PartitionId(p)});
      }
      if (rng.chance(1, 30)) {  // another says so too
        group.members[rng.below(count)].owned.push_back({topic, PartitionId(p)});
      }
    }
  }
  return group;
}

const GroupSubscriber& find(const Group& group, const std::string& id) {
  return *std::ranges::find(group.members, id, &GroupSubscriber::member_id);
}

// Every partition that somebody subscribed to has at most one owner, who subscribed to it; with
// `whole`, exactly one.
void check_owners(const Group& group, const GroupAssignment& assignment, bool whole) {
  EXPECT_EQ(assignment.size(), group.members.size());
  std::map<TopicPartition, std::string> owner;
  for (const auto& [id, partitions] : assignment) {
    EXPECT_TRUE(std::ranges::is_sorted(partitions));
    for (const TopicPartition& partition : partitions) {
      EXPECT_TRUE(owner.emplace(partition, id).second) << partition.to_string() << " twice";
      EXPECT_TRUE(find(group, id).topics.contains(partition.topic));
      ASSERT_TRUE(group.topics.contains(partition.topic));
      EXPECT_LT(partition.partition.value(), group.topics.at(partition.topic));
    }
  }
  if (!whole) {
    return;
  }
  for (const auto& [topic, count] : group.topics) {
    const bool read = std::ranges::any_of(
        group.members, [&, &name = topic](const auto& m) { return m.topics.contains(name); });
    for (std::int32_t p = 0; p < count; ++p) {
      EXPECT_EQ(owner.contains({topic, PartitionId(p)}), read);
    }
  }
}

// Whether all partitions fit when member i takes at most limits[i]: bipartite matching.
bool fits(const Group& group, const std::vector<std::size_t>& limits) {
  std::vector<std::vector<std::size_t>> readers;
  for (const auto& [topic, count] : group.topics) {
    std::vector<std::size_t> can;
    for (std::size_t m = 0; m < group.members.size(); ++m) {
      if (group.members[m].topics.contains(topic)) {
        can.push_back(m);
      }
    }
    if (!can.empty()) {
      readers.insert(readers.end(), static_cast<std::size_t>(count), can);
    }
  }
  std::vector<std::vector<std::size_t>> has(group.members.size());
  std::vector<bool> seen;
  const std::function<bool(std::size_t)> place = [&](std::size_t p) {
    for (const std::size_t m : readers[p]) {
      if (seen[m]) {
        continue;
      }
      seen[m] = true;
      if (has[m].size() < limits[m]) {
        has[m].push_back(p);
        return true;
      }
      for (std::size_t& other : has[m]) {
        if (place(other)) {
          other = p;
          return true;
        }
      }
    }
    return false;
  };
  for (std::size_t p = 0; p < readers.size(); ++p) {
    seen.assign(group.members.size(), false);
    if (!place(p)) {
      return false;
    }
  }
  return true;
}

// No member could have one less without another of its size or larger... having more: checked by
// asking whether everything also fits when the largest members' common size is one smaller.
void check_balance(const Group& group, const GroupAssignment& assignment) {
  std::vector<std::size_t> sizes;
  for (const GroupSubscriber& one : group.members) {
    sizes.push_back(assignment.at(one.member_id).size());
  }
  for (std::size_t m = 0; m < sizes.size(); ++m) {
    if (sizes[m] < 2) {
      continue;
    }
    // m gives one away, and nobody then has more than m has left, save those that had more before.
    std::vector<std::size_t> limits = sizes;
    for (std::size_t& limit : limits) {
      limit = std::max(limit, sizes[m] - 1);
    }
    limits[m] = sizes[m] - 1;
    // Only members with at least two fewer may grow, else nothing is gained.
    for (std::size_t o = 0; o < sizes.size(); ++o) {
      if (o != m && sizes[o] + 1 >= sizes[m]) {
        limits[o] = sizes[o];
      }
    }
    EXPECT_FALSE(fits(group, limits))
        << "member " << group.members[m].member_id << " could give one to a member with two fewer";
  }
}

TEST(AssignorProperties, EveryPartitionHasOneOwnerWhoSubscribed) {
  Rng rng(1);
  for (int i = 0; i < 2'000; ++i) {
    SCOPED_TRACE(i);
    const Group group = random_group(rng);
    check_owners(group, assign_range(group.topics, group.members), true);
    check_owners(group, assign_round_robin(group.topics, group.members), true);
    check_owners(group, assign_sticky(group.topics, group.members), true);
    check_owners(group, assign_cooperative_sticky(group.topics, group.members), false);
  }
}

TEST(AssignorProperties, RangeIsBalancedTopicByTopicAndRoundRobinOverall) {
  Rng rng(2);
  for (int i = 0; i < 1'000; ++i) {
    SCOPED_TRACE(i);
    const Group group = random_group(rng);
    for (const auto& [topic, count] : group.topics) {
      std::vector<std::size_t> sizes;
      const GroupAssignment range = assign_range(group.topics, group.members);
      for (const GroupSubscriber& one : group.members) {
        if (one.topics.contains(topic)) {
          sizes.push_back(static_cast<std::size_t>(
              std::ranges::count(range.at(one.member_id), topic, &TopicPartition::topic)));
        }
      }
      if (!sizes.empty()) {
        EXPECT_LE(std::ranges::max(sizes) - std::ranges::min(sizes), 1U);
      }
    }
    if (group.equal) {
      std::vector<std::size_t> sizes;
      for (const auto& [id, partitions] : assign_round_robin(group.topics, group.members)) {
        sizes.push_back(partitions.size());
      }
      EXPECT_LE(std::ranges::max(sizes) - std::ranges::min(sizes), 1U);
    }
  }
}

TEST(AssignorProperties, StickyIsAsBalancedAsSubscriptionsAllow) {
  Rng rng(3);
  for (int i = 0; i < 2'000; ++i) {
    SCOPED_TRACE(i);
    const Group group = random_group(rng);
    check_balance(group, assign_sticky(group.topics, group.members));
  }
}

TEST(AssignorProperties, StickyKeepsAllThatBalanceLeaves) {
  Rng rng(4);
  for (int i = 0; i < 2'000; ++i) {
    SCOPED_TRACE(i);
    const Group group = random_group(rng);
    const GroupAssignment assignment = assign_sticky(group.topics, group.members);
    // What each is believed to own.
    std::map<TopicPartition, std::vector<const GroupSubscriber*>> claims;
    for (const GroupSubscriber& one : group.members) {
      for (const TopicPartition& partition : one.owned) {
        auto& of = claims[partition];
        if (std::ranges::find(of, &one) == of.end()) {
          of.push_back(&one);
        }
      }
    }
    std::map<std::string, std::size_t> owned;
    std::map<std::string, std::size_t> kept;
    for (auto& [partition, of] : claims) {
      std::ranges::sort(of,
                        [](const auto* a, const auto* b) { return a->generation > b->generation; });
      if ((of.size() == 1 || of[0]->generation > of[1]->generation) &&
          of[0]->topics.contains(partition.topic)) {
        ++owned[of[0]->member_id];
        const auto& now = assignment.at(of[0]->member_id);
        kept[of[0]->member_id] += std::ranges::count(now, partition) > 0 ? 1U : 0U;
      }
    }
    if (!group.equal) {
      // Nobody gave up a partition without being fuller than who got one: an assignment that is
      // assigned again stays as it is.
      Group again = group;
      for (GroupSubscriber& one : again.members) {
        one.owned = assignment.at(one.member_id);
        one.generation = 9;
      }
      EXPECT_EQ(assign_sticky(again.topics, again.members), assignment);
      continue;
    }
    // The most that can be kept: each keeps `least`, and as many as there are places for one more.
    std::size_t total = 0;
    for (const auto& [topic, count] : group.topics) {
      total += static_cast<std::size_t>(count);
    }
    const std::size_t least = total / group.members.size();
    std::size_t more = total % group.members.size();
    std::size_t most = 0;
    std::size_t is = 0;
    for (const GroupSubscriber& one : group.members) {
      most += std::min(owned[one.member_id], least);
      if (owned[one.member_id] > least && more > 0) {
        ++most;
        --more;
      }
      is += kept[one.member_id];
    }
    EXPECT_EQ(is, most);
  }
}

TEST(AssignorProperties, ACooperativeGroupSettlesAndNeverGivesWhatAnotherStillHas) {
  Rng rng(5);
  for (int i = 0; i < 2'000; ++i) {
    SCOPED_TRACE(i);
    Group group = random_group(rng);
    for (int round = 0;; ++round) {
      ASSERT_LT(round, 4) << "it does not settle";
      const GroupAssignment next = assign_cooperative_sticky(group.topics, group.members);
      check_owners(group, next, false);
      bool revoked = false;
      for (const GroupSubscriber& one : group.members) {
        for (const TopicPartition& partition : next.at(one.member_id)) {
          for (const GroupSubscriber& other : group.members) {
            const bool claims = std::ranges::count(other.owned, partition) > 0;
            if (&other != &one && claims) {
              // Only a claim that is older than its own.
              EXPECT_GT(std::ranges::count(one.owned, partition), 0);
              EXPECT_LT(other.generation, one.generation);
            }
          }
        }
      }
      for (GroupSubscriber& one : group.members) {
        const auto& now = next.at(one.member_id);
        for (const TopicPartition& partition : one.owned) {
          revoked = revoked || std::ranges::count(now, partition) == 0;
        }
        one.owned = now;
        one.generation = 10 + round;
      }
      if (!revoked) {
        check_owners(group, next, true);
        check_balance(group, next);
        break;
      }
    }
  }
}

}  // namespace
}  // namespace weir::log
