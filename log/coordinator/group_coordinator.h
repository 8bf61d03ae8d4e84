#pragma once

#include "log/coordinator/classic_group.h"
#include "log/coordinator/group_messages.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace weir::log {

// Names in brackets are Kafka's broker settings.
struct GroupConfig {
  std::int32_t session_timeout_min_ms = 6'000;      // group.min.session.timeout.ms
  std::int32_t session_timeout_max_ms = 1'800'000;  // group.max.session.timeout.ms
  std::int32_t initial_delay_ms = 3'000;            // group.initial.rebalance.delay.ms
  std::int32_t members_max = 10'000;                // group.max.size; Kafka has no limit
  std::int32_t new_member_timeout_ms = 300'000;     // of a parked join without an id yet
  std::uint64_t member_id_seed = 0;                 // makes ids of this life unlike those before
};

// What the coordinator knows of a group, for tools and for the expiry of offsets.
struct GroupSnapshot {
  GroupState state = GroupState::kDead;  // kDead: there is no such group
  std::string protocol_type;
  std::string protocol;
  std::string leader;
  std::int32_t generation = 0;
  Timestamp state_timestamp = kNoTimestamp;
  std::vector<GroupMemberValue> members;
  std::optional<std::set<std::string>> subscribed_topics;  // nullopt: cannot be told
};

// The coordinator of classic consumer groups as a state machine without clock, I/O, threads, log
// lines or randomness (Kafka's GroupMetadataManager, reference K 2.7 and 2.8).
//
// Input:    requests, each with the time; appended() for every AppendGroup; tick().
// Output:   effects behind those that are in `out` already, in the order in which they are to be
//           done. Joins and syncs have a token: exactly one answer for each, now or by a later
//           input. When a member asks again while its earlier request is parked, the earlier one is
//           answered kRebalanceInProgress.
// Durable:  a generation's assignments are answered only after its record was appended; so a
//           coordinator that was loaded from the records never gives another assignment under the
//           same generation.
// Bounds:   members_max members a group, twice as many while a rebalance shows who is left, and as
//           many ids that were given out and not used yet; one timer for each and two a group.
// Threading: confined to its owner.
class GroupCoordinator {
 public:
  explicit GroupCoordinator(const GroupConfig& config) : config_(config) {}

  void join(const JoinGroupRequest& request, RequestToken token, GroupTime now, GroupEffects& out);
  void sync(const SyncGroupRequest& request, RequestToken token, GroupTime now, GroupEffects& out);
  // kRebalanceInProgress: join again.
  GroupError heartbeat(const GroupIdentity& who, GroupTime now);
  // One answer for each, in their order.
  std::vector<GroupError> leave(const std::string& group, std::span<const LeavingMember> members,
                                GroupTime now, GroupEffects& out);
  // Whether offsets may be committed. Generation -1 without a member id is a simple consumer or a
  // tool: only while the group has no member; it makes the group known. `transactional` offsets
  // were checked before by their coordinator when they come without a member.
  GroupError commit(const GroupIdentity& who, bool transactional, GroupTime now);
  // Whether offsets of the topic may be deleted. kGroupIdNotFound, kNonEmptyGroup (members of
  // another protocol type), kGroupSubscribedToTopic.
  GroupError may_delete_offsets(const std::string& group, const std::string& topic) const;
  // Forgets the group; its tombstone is an effect. kNonEmptyGroup, kGroupIdNotFound.
  GroupError remove(const std::string& group, GroupEffects& out);

  // Makes a group known as it stands in the log. Of a group that is known already: replaces it.
  void load(const std::string& group, const GroupValue& value, GroupTime now, GroupEffects& out);
  // Forgets the group without a record; parked requests are answered kNotCoordinator.
  void unload(const std::string& group, GroupEffects& out);

  // The record of AppendGroup `id` is durable, or could not be written.
  void appended(AppendId id, bool durable, GroupTime now, GroupEffects& out);
  // Does what was due at or before `now`, in the order of the times.
  void tick(GroupTime now, GroupEffects& out);
  // nullopt: nothing waits for time.
  std::optional<MonotonicTime> next_deadline() const;

  GroupSnapshot snapshot(const std::string& group) const;
  std::vector<std::string> groups() const;  // in the order of their bytes
  bool knows(const std::string& group) const { return groups_.contains(group); }

 private:
  enum class TimerKind { kSession, kPending, kInitialDelay, kJoin, kSync };
  struct Timer {
    TimerKind kind{};
    std::string group;
    std::string member_id;          // kSession, kPending
    std::int32_t generation = 0;    // kSync
    std::int32_t delay_ms = 0;      // kInitialDelay: of this round
    std::int32_t remaining_ms = 0;  // kInitialDelay: at most, after this round
  };
  struct AssignmentAppend {
    std::int32_t generation = 0;
    std::map<std::string, std::string> assignments;
  };
  struct StaticAppend {
    RequestToken token = 0;
    std::string old_leader;
    bool can_skip_assignment = false;
    ClassicMember before;  // to go back to
    std::string member_id;
  };
  struct PendingAppend {
    std::string group;
    std::uint64_t incarnation = 0;
    std::variant<std::monostate, AssignmentAppend, StaticAppend> then;
  };

  // --- joining (group_coordinator_join.cc)
  void join_new(ClassicGroup& group, const JoinGroupRequest& request, RequestToken token,
                GroupTime now, GroupEffects& out);
  void join_existing(ClassicGroup& group, const JoinGroupRequest& request, RequestToken token,
                     GroupTime now, GroupEffects& out);
  void add_member(ClassicGroup& group, const std::string& member_id,
                  const JoinGroupRequest& request, RequestToken token, GroupTime now,
                  GroupEffects& out);
  void update_member(ClassicMember& member, const JoinGroupRequest& request, RequestToken token,
                     GroupEffects& out);
  void replace_static(ClassicGroup& group, const std::string& old_id, const std::string& new_id,
                      const JoinGroupRequest& request, RequestToken token, GroupTime now,
                      GroupEffects& out);
  static bool same_demand(const ClassicGroup& group, const ClassicMember& before,
                          const ClassicMember& now);
  bool accepts(const ClassicGroup& group, const std::string& member_id) const;
  std::string make_member_id(const ClassicGroup& group, const JoinGroupRequest& request);
  static JoinGroupAnswer current_generation(const ClassicGroup& group,
                                            const std::string& member_id);

  // --- phases (group_coordinator_phases.cc)
  void prepare_or_complete(ClassicGroup& group, std::string_view why, GroupTime now,
                           GroupEffects& out);
  void prepare(ClassicGroup& group, std::string_view why, GroupTime now, GroupEffects& out);
  void complete_join_if_all(ClassicGroup& group, GroupTime now, GroupEffects& out);
  void complete_join(ClassicGroup& group, GroupTime now, GroupEffects& out);
  void after_initial_delay(ClassicGroup& group, const Timer& timer, GroupTime now,
                           GroupEffects& out);
  void expire_syncs(ClassicGroup& group, std::int32_t generation, GroupTime now, GroupEffects& out);
  void finish_assignment(ClassicGroup& group, AssignmentAppend& done, bool durable, GroupTime now,
                         GroupEffects& out);
  void finish_static(ClassicGroup& group, StaticAppend& done, bool durable, GroupTime now,
                     GroupEffects& out);
  // Answers every parked sync.
  void answer_syncs(ClassicGroup& group, GroupError error, GroupTime now, GroupEffects& out);
  void drop_member(ClassicGroup& group, const std::string& member_id, std::string_view why,
                   GroupEffects& out);
  void after_removal(ClassicGroup& group, std::string_view why, GroupTime now, GroupEffects& out);
  void remove_pending(ClassicGroup& group, const std::string& member_id);
  AppendId append(ClassicGroup& group, GroupValue value,
                  std::variant<std::monostate, AssignmentAppend, StaticAppend> then,
                  GroupEffects& out);

  GroupTimer arm(Timer timer, std::int32_t delay_ms, GroupTime now);
  void disarm(std::optional<GroupTimer>& timer);
  // A member of this generation is alive: its session starts anew.
  GroupError hear_from(ClassicGroup& group, const GroupIdentity& who, GroupTime now);
  void arm_session(ClassicGroup& group, ClassicMember& member, std::int32_t delay_ms,
                   GroupTime now);
  void fire(const Timer& timer, GroupTime now, GroupEffects& out);
  ClassicGroup* find(const std::string& group);
  const ClassicGroup* find(const std::string& group) const;
  ClassicGroup& make(const std::string& group, Timestamp now);
  void forget(const std::string& group);

  struct Known {
    std::unique_ptr<ClassicGroup> group;
    std::uint64_t incarnation = 0;
  };
  const GroupConfig config_;
  std::map<std::string, Known> groups_;
  std::map<GroupTimer, Timer> timers_;
  std::map<AppendId, PendingAppend> appends_;
  std::uint64_t next_timer_ = 0;
  AppendId next_append_ = 1;
  std::uint64_t next_member_ = 0;
  std::uint64_t next_incarnation_ = 0;
};

}  // namespace weir::log
