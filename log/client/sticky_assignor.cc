#include "log/client/assignors.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace weir::log {
namespace {

// Members and partitions by number, so that the search below touches no text.
class Sticky {
 public:
  Sticky(const PartitionCounts& topics, const std::vector<GroupSubscriber>& members);
  GroupAssignment run();

 private:
  struct Member {
    const GroupSubscriber* who = nullptr;
    std::set<std::size_t> has;   // partitions
    std::set<std::size_t> kept;  // of those: owned before, so they are better left here
  };
  static constexpr std::size_t kNobody = SIZE_MAX;

  void find_former_owners();
  void keep_equal();
  void keep_all();
  void give_out();
  void balance();
  bool shorten(std::size_t from);
  void give(std::size_t partition, std::size_t member);
  void move(std::size_t partition, std::size_t from, std::size_t to);
  bool wants(std::size_t member, std::size_t partition) const;
  std::size_t lightest_for(std::size_t partition) const;

  std::vector<Member> members_;  // by member id
  std::vector<TopicPartition> partitions_;
  std::map<TopicPartition, std::size_t> index_;
  std::vector<std::vector<std::size_t>> readers_;  // of each partition
  std::vector<std::size_t> former_;                // owner of each partition
  std::vector<bool> given_;
  bool equal_ = true;  // all subscribe to the same
};

Sticky::Sticky(const PartitionCounts& topics, const std::vector<GroupSubscriber>& members) {
  for (const GroupSubscriber& member : members) {
    members_.push_back({&member, {}, {}});
  }
  std::ranges::sort(members_, {}, [](const Member& m) { return m.who->member_id; });
  for (const auto& [topic, count] : topics) {
    std::vector<std::size_t> readers;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].who->topics.contains(topic)) {
        readers.push_back(i);
      }
    }
    if (readers.empty()) {
      continue;
    }
    equal_ = equal_ && readers.size() == members_.size();
    for (std::int32_t i = 0; i < count; ++i) {
      const TopicPartition name{topic, PartitionId(i)};
      index_[name] = partitions_.size();
      partitions_.push_back(name);
      readers_.push_back(readers);
    }
  }
  given_.assign(partitions_.size(), false);
  former_.assign(partitions_.size(), kNobody);
  find_former_owners();
}

// The newest generation in which somebody says to own it; when two say so of the same, nobody is
// believed.
void Sticky::find_former_owners() {
  std::vector<std::int32_t> generation(partitions_.size(), INT32_MIN);
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const GroupSubscriber& who = *members_[m].who;
    const std::set<TopicPartition> owned(who.owned.begin(), who.owned.end());
    for (const TopicPartition& name : owned) {
      const auto found = index_.find(name);
      if (found == index_.end()) {
        continue;
      }
      const std::size_t p = found->second;
      if (who.generation > generation[p]) {
        generation[p] = who.generation;
        former_[p] = m;
      } else if (who.generation == generation[p]) {
        former_[p] = kNobody;
      }
    }
  }
  for (std::size_t p = 0; p < partitions_.size(); ++p) {
    if (former_[p] != kNobody && !wants(former_[p], p)) {
      former_[p] = kNobody;
    }
  }
}

bool Sticky::wants(std::size_t member, std::size_t partition) const {
  return std::ranges::binary_search(readers_[partition], member);
}

void Sticky::give(std::size_t partition, std::size_t member) {
  members_[member].has.insert(partition);
  if (former_[partition] == member) {
    members_[member].kept.insert(partition);
  }
  given_[partition] = true;
}

void Sticky::move(std::size_t partition, std::size_t from, std::size_t to) {
  members_[from].has.erase(partition);
  members_[from].kept.erase(partition);
  give(partition, to);
}

// Everybody may have all: the sizes are known beforehand, `more` members have one more.
void Sticky::keep_equal() {
  const std::size_t least = partitions_.size() / members_.size();
  std::size_t more = partitions_.size() % members_.size();
  std::vector<std::vector<std::size_t>> owned(members_.size());
  for (std::size_t p = 0; p < partitions_.size(); ++p) {
    if (former_[p] != kNobody) {
      owned[former_[p]].push_back(p);
    }
  }
  for (std::size_t m = 0; m < members_.size(); ++m) {
    std::size_t quota = least;
    if (owned[m].size() > least && more > 0) {
      ++quota;
      --more;
    }
    for (std::size_t i = 0; i < std::min(quota, owned[m].size()); ++i) {
      give(owned[m][i], m);
    }
  }
}

void Sticky::keep_all() {
  for (std::size_t p = 0; p < partitions_.size(); ++p) {
    if (former_[p] != kNobody) {
      give(p, former_[p]);
    }
  }
}

std::size_t Sticky::lightest_for(std::size_t partition) const {
  return *std::ranges::min_element(readers_[partition], {},
                                   [this](std::size_t m) { return members_[m].has.size(); });
}

// Those with the fewest readers first: the others have more choice.
void Sticky::give_out() {
  std::vector<std::size_t> open;
  for (std::size_t p = 0; p < partitions_.size(); ++p) {
    if (!given_[p]) {
      open.push_back(p);
    }
  }
  std::ranges::stable_sort(open, {}, [this](std::size_t p) { return readers_[p].size(); });
  for (const std::size_t p : open) {
    give(p, lightest_for(p));
  }
}

// A chain of moves that takes one from `from` and ends at a member with at least two fewer. Without
// such a chain from anybody the assignment is as balanced as can be (Harvey, Ladner, Lovasz, Tamir:
// Semi-matchings for bipartite graphs and load balancing, 2003).
bool Sticky::shorten(std::size_t from) {
  struct Step {
    std::size_t member = kNobody;     // where it comes from
    std::size_t partition = kNobody;  // what moves
  };
  const std::size_t size = members_[from].has.size();
  std::vector<Step> back(members_.size());
  std::vector<bool> seen(members_.size(), false);
  std::deque<std::size_t> queue{from};
  seen[from] = true;
  while (!queue.empty()) {
    const std::size_t at = queue.front();
    queue.pop_front();
    if (members_[at].has.size() + 2 <= size) {
      for (std::size_t to = at; to != from; to = back[to].member) {
        move(back[to].partition, back[to].member, to);
      }
      return true;
    }
    // What nobody owned before goes first.
    for (const bool kept : {false, true}) {
      for (const std::size_t p : members_[at].has) {
        if (members_[at].kept.contains(p) != kept) {
          continue;
        }
        for (const std::size_t to : readers_[p]) {
          if (!seen[to]) {
            seen[to] = true;
            back[to] = {at, p};
            queue.push_back(to);
          }
        }
      }
    }
  }
  return false;
}

void Sticky::balance() {
  // Each chain lowers the sum of squares, so this ends.
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      while (shorten(m)) {
        moved = true;
      }
    }
  }
}

GroupAssignment Sticky::run() {
  if (!members_.empty() && !partitions_.empty()) {
    if (equal_) {
      keep_equal();
      give_out();
    } else {
      keep_all();
      give_out();
      balance();
    }
  }
  GroupAssignment assignment;
  for (const Member& member : members_) {
    std::vector<TopicPartition>& partitions = assignment[member.who->member_id];
    for (const std::size_t p : member.has) {
      partitions.push_back(partitions_[p]);
    }
  }
  return assignment;
}

}  // namespace

GroupAssignment assign_sticky(const PartitionCounts& topics,
                              const std::vector<GroupSubscriber>& members) {
  return Sticky(topics, members).run();
}

}  // namespace weir::log
