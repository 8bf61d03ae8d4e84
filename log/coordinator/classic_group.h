#pragma once

#include "log/coordinator/group_messages.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weir::log {

// A timer of the coordinator: when it is due and the order of its making.
using GroupTimer = std::pair<MonotonicTime, std::uint64_t>;

struct ClassicMember {
  std::string id;
  std::optional<std::string> instance_id;
  std::string client_id;
  std::string client_host;
  std::int32_t session_timeout_ms = 0;
  std::int32_t rebalance_timeout_ms = 0;
  std::vector<GroupProtocol> protocols;
  std::string assignment;
  bool is_new = false;               // has not had an answer to a join yet, so it cannot heartbeat
  std::optional<RequestToken> join;  // parked
  std::optional<RequestToken> sync;  // parked
  std::optional<GroupTimer> session;

  // Parked members are alive: the coordinator owes them, not they the coordinator.
  bool may_expire() const { return is_new || (!join && !sync); }
  const std::string* metadata(const std::string& protocol) const;
};

// One group of the classic protocol: its members and what can be asked about them (Kafka's
// ClassicGroup). It decides nothing; GroupCoordinator does.
// Threading: confined to its owner.
class ClassicGroup {
 public:
  using Members = std::map<std::string, ClassicMember>;

  ClassicGroup(std::string name, Timestamp now) : id(std::move(name)), state_timestamp(now) {}

  ClassicMember* find(const std::string& member_id);
  const ClassicMember* find(const std::string& member_id) const;
  // Elects the first member a leader. Requires: no member has this id.
  ClassicMember& add(ClassicMember member);
  // Requires: the member is there.
  void remove(const std::string& member_id);
  // The member goes on under another id. Requires: old is there, new is not.
  ClassicMember& rename(const std::string& old_id, const std::string& new_id);
  // nullptr when nobody has this instance id.
  const std::string* static_member(const std::string& instance_id) const;

  // kNone, kUnknownMemberId or kFencedInstanceId.
  GroupError check_member(const std::string& member_id,
                          const std::optional<std::string>& instance_id) const;
  bool supports(const std::string& type, const std::vector<GroupProtocol>& protocols) const;
  // By votes: each member votes for the first of its protocols that all support; at a tie the one
  // that the leader likes best. Requires: members that share a protocol.
  std::string select_protocol() const;
  bool all_joined() const { return parked_joins() == members.size() && pending.empty(); }
  std::size_t parked_joins() const;
  // Longest of the members'; at least 1.
  std::int32_t rebalance_timeout_ms() const;
  bool is_leader(const std::string& member_id) const { return leader && *leader == member_id; }
  // A member whose join is parked; false when there is none.
  bool elect_joined_leader();

  void move_to(GroupState next, Timestamp now);
  // The next generation of the members that are there.
  void begin_generation(Timestamp now);
  // nullopt: it cannot be told (another protocol type, unreadable bytes).
  std::optional<std::set<std::string>> subscribed_topics() const;
  std::vector<JoinedMember> joined_members() const;
  // With these assignments; a member without one gets none.
  GroupValue to_value(const std::map<std::string, std::string>& assignments) const;

  const std::string id;
  GroupState state = GroupState::kEmpty;
  GroupState previous_state = GroupState::kEmpty;
  Timestamp state_timestamp;  // of the last change of state
  std::string protocol_type;  // empty: only offsets so far
  std::string protocol;       // empty: no members
  std::int32_t generation = 0;
  std::optional<std::string> leader;
  Members members;
  std::map<std::string, std::string> instances;  // instance id to member id
  std::map<std::string, GroupTimer> pending;     // ids that were given and not used yet
  std::set<std::string> missing_syncs;           // members that did not sync in this generation
  bool member_added = false;                     // since the initial delay was last prolonged
  std::optional<GroupTimer> join_timer;
  std::optional<GroupTimer> sync_timer;
  std::optional<AppendId> assignment_append;  // of this generation, not durable yet
};

}  // namespace weir::log
