#pragma once

#include "log/broker/log_directory.h"
#include "log/client/assignors.h"
#include "log/coordinator/consumer_protocol.h"

#include <weir/runtime/backend.h>
#include <weir/runtime/thread_annotations.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weir::log {

// A member of a consumer group whose coordinator is in this process (Kafka's ConsumerCoordinator).
// Everything happens in poll(): joining, assigning when it is the leader, callbacks.
//
// Rebalance: with range or roundrobin a member gives up everything before it joins again; with
//            cooperative-sticky it keeps what it will own further, and gives up the rest when it
//            knows. Either way a partition is revoked, then committed, then assigned to another.
// Alive:     as long as it polls within max.poll.interval.ms.
// Read-only: through a log that was opened for reading there is no group; it reads every partition
//            of its topics and commits nothing.
// Threading: confined to one thread at a time. Ownership: `directory` outlives it.
class EmbeddedGroup : public Group {
 public:
  // Errors: kInvalidConfig.
  static Result<std::unique_ptr<Group>> make(LogDirectory& directory, std::string group_id,
                                             GroupOptions options);
  // Leaves, unless it is a static member.
  ~EmbeddedGroup() override;

  // Again with other topics: as of the next poll().
  Status join(std::vector<std::string> topics, std::string user_data,
              GroupListener& listener) override;
  Status poll() override;
  // Without callbacks. A static member's partitions wait session.timeout.ms for its return.
  Status leave() override;
  Status commit(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) override;
  Result<std::vector<std::optional<CommittedOffset>>> committed(
      std::span<const TopicPartition> partitions) override;
  Result<std::vector<std::optional<CommittedOffset>>> committed_stable(
      std::span<const TopicPartition> partitions) override;
  GroupMetadata metadata() const override;
  std::string assigned_user_data() const override { return assigned_user_data_; }
  void set_waker(std::function<void()> waker) override;

 private:
  enum class Phase { kMustJoin, kJoining, kSyncing, kMember };
  using Owned = std::map<TopicPartition, Uuid>;  // with the topic's id: one made anew is another
  struct TopicState {
    Uuid id;  // zero: there is none
    std::int32_t partitions = 0;
    bool operator==(const TopicState&) const = default;
  };
  // Where the coordinator's answers land. It outlives the group: answers may come later.
  struct Mailbox {
    Mutex mutex;
    std::uint64_t ticket WEIR_GUARDED_BY(mutex) = 0;  // of the request that is waited for
    std::optional<JoinGroupAnswer> join WEIR_GUARDED_BY(mutex);
    std::optional<SyncGroupAnswer> sync WEIR_GUARDED_BY(mutex);
    std::function<void()> waker WEIR_GUARDED_BY(mutex);
    std::atomic<bool> news{false};  // the coordinator may say something else than the last time
    void wake();
  };

  EmbeddedGroup(LogDirectory& directory, std::string group_id, GroupOptions options);
  GroupService& groups() { return directory_.groups(); }
  GroupIdentity identity() const;
  GroupIdentity newest_identity() const;
  Status check_alive();
  // true: there may be more to do.
  Result<bool> step();
  Status ask_to_join();
  Status or_join_again(Status asked);
  Result<bool> take_join();
  Status ask_to_sync(const JoinGroupAnswer& answer);
  Result<bool> take_sync();
  Status refused(GroupError error);
  void take_assignment(const ConsumerAssignment& assignment);
  bool topics_changed_for_leader();
  void lose_gone_topics();
  void lose_everything();
  void give_up(const std::vector<TopicPartition>& partitions);
  TopicState topic_state(const std::string& topic) const;
  std::vector<TopicPartition> owned_names() const;
  std::vector<std::string> protocol_names() const;
  std::uint64_t new_ticket();

  // embedded_group_leader.cc
  Result<std::vector<std::pair<std::string, std::string>>> assign(const JoinGroupAnswer& answer);
  void watch_topics(const std::vector<GroupSubscriber>& members);
  Result<std::map<std::string, ConsumerAssignment>> assign_by_own(
      const std::vector<GroupSubscriber>& members,
      const std::map<std::string, std::string>& user_data);

  Status poll_alone();

  LogDirectory& directory_;
  const std::string group_id_;
  const GroupOptions options_;
  std::vector<AssignmentStrategy> strategies_;  // empty: options_.assignor
  bool cooperative_ = false;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  GroupService::LocalId local_ = 0;  // 0: read only

  std::set<std::string> topics_;
  std::string user_data_;
  std::string assigned_user_data_;
  GroupListener* listener_ = nullptr;  // null: not joined
  Phase phase_ = Phase::kMustJoin;
  MonotonicTime heard_at_{};  // of the coordinator, last
  Status fatal_;              // every poll() answers it
  std::string member_id_;
  std::int32_t generation_ = -1;
  Owned owned_;
  bool first_assignment_ = true;
  std::uint64_t topics_seen_ = 0;
  bool is_leader_ = false;
  std::map<std::string, TopicState> watched_;  // by the leader: what its assignment was made from
  std::uint64_t watched_at_ = 0;
};

}  // namespace weir::log
