#include "runtime/testing/memory_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

namespace weir::testing::memory {

namespace {

// The member that joined last has all partitions of the topics that exist; the one before it is
// fenced.
class Member final : public Group {
 public:
  Member(Log& log, std::string group_id) : log_(log), group_id_(std::move(group_id)) {}

  ~Member() override { leave().ignore("nobody is left to be told"); }

  Status join(std::vector<std::string> topics, std::string /*user_data*/,
              GroupListener& listener) override {
    MutexLock lock(log_.mutex);
    GroupState& state = log_.group(group_id_);
    topics_ = std::set<std::string>(topics.begin(), topics.end());
    listener_ = &listener;
    if (!is_member(state)) {
      ++state.generation;
      member_id_ = fmt::format("{}-member-{}", group_id_, state.generation);
      state.member_id = member_id_;
      generation_ = state.generation;
      assigned_.clear();
      is_first_poll_ = true;
      is_lost_ = false;
    }
    return {};
  }

  Status poll() override {
    if (listener_ == nullptr) {
      return {};
    }
    WEIR_TRY_ASSIGN(const Changes changes, plan());
    // The listener is user code: no lock is held.
    if (!changes.lost.empty()) {
      listener_->on_lost(changes.lost);
    }
    if (!changes.revoked.empty()) {
      listener_->on_revoked(changes.revoked);
    }
    if (!changes.added.empty() || changes.is_first) {
      listener_->on_assigned(changes.added);
    }
    return {};
  }

  Status leave() override {
    MutexLock lock(log_.mutex);
    GroupState& state = log_.group(group_id_);
    if (is_member(state)) {
      state.member_id.clear();
      ++state.generation;
    }
    member_id_.clear();
    generation_ = -1;
    assigned_.clear();
    listener_ = nullptr;
    return {};
  }

  Status commit(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) override {
    MutexLock lock(log_.mutex);
    WEIR_TRY(log_.take_fault(MemoryBackend::FaultPoint::kCommit));
    // Without join() offsets may be written while the group has no member, as tools do.
    if (log_.group(group_id_).member_id != member_id_) {
      return fenced();
    }
    WEIR_TRY(log_.check_offsets(offsets));
    log_.put_offsets(group_id_, Offsets(offsets.begin(), offsets.end()));
    return {};
  }

  Result<std::vector<std::optional<CommittedOffset>>> committed(
      std::span<const TopicPartition> partitions) override {
    MutexLock lock(log_.mutex);
    const GroupState& state = log_.group(group_id_);
    std::vector<std::optional<CommittedOffset>> found;
    for (const TopicPartition& partition : partitions) {
      const auto entry = state.offsets.find(partition);
      found.push_back(entry == state.offsets.end() ? std::nullopt : std::optional(entry->second));
    }
    return found;
  }

  GroupMetadata metadata() const override { return {group_id_, generation_, member_id_}; }

 private:
  struct Changes {
    std::vector<TopicPartition> lost;
    std::vector<TopicPartition> revoked;
    std::vector<TopicPartition> added;
    bool is_first = false;
  };
  using Assigned = std::map<TopicPartition, Uuid>;

  bool is_member(const GroupState& state) const {
    return !member_id_.empty() && state.member_id == member_id_;
  }

  Error fenced() const {
    return {Errc::kFenced,
            fmt::format("another member owns group {}; join again to take it over", group_id_)};
  }

  Assigned wanted() WEIR_REQUIRES(log_.mutex) {
    Assigned partitions;
    for (const std::string& name : topics_) {
      const Topic* topic = log_.find_topic(name);
      if (topic == nullptr) {
        continue;
      }
      for (std::size_t i = 0; i < topic->partitions.size(); ++i) {
        partitions.emplace(TopicPartition{name, PartitionId(static_cast<std::int32_t>(i))},
                           topic->id);
      }
    }
    return partitions;
  }

  Result<Changes> plan() {
    MutexLock lock(log_.mutex);
    GroupState& state = log_.group(group_id_);
    Changes changes;
    if (!is_member(state)) {
      if (is_lost_) {
        return fenced();
      }
      is_lost_ = true;
      for (const auto& [partition, id] : assigned_) {
        changes.lost.push_back(partition);
      }
      assigned_.clear();
      return changes;
    }
    Assigned next = wanted();
    for (const auto& [partition, id] : assigned_) {
      if (log_.find_topic(partition.topic, id) == nullptr) {
        changes.lost.push_back(partition);  // deleted: there is nothing to commit to
      } else if (!next.contains(partition)) {
        changes.revoked.push_back(partition);
      }
    }
    for (const auto& [partition, id] : next) {
      const auto before = assigned_.find(partition);
      if (before == assigned_.end() || before->second != id) {
        changes.added.push_back(partition);
      }
    }
    changes.is_first = std::exchange(is_first_poll_, false);
    const bool has_changed =
        !changes.lost.empty() || !changes.revoked.empty() || !changes.added.empty();
    if (has_changed && !changes.is_first) {
      generation_ = ++state.generation;
    }
    assigned_ = std::move(next);
    return changes;
  }

  Log& log_;
  const std::string group_id_;
  std::set<std::string> topics_;
  GroupListener* listener_ = nullptr;  // null: not joined
  std::string member_id_;
  std::int32_t generation_ = -1;
  Assigned assigned_;
  bool is_first_poll_ = false;
  bool is_lost_ = false;
};

}  // namespace

std::unique_ptr<Group> make_group(Log& log, const std::string& group_id) {
  return std::make_unique<Member>(log, group_id);
}

}  // namespace weir::testing::memory
