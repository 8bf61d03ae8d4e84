#pragma once

#include "log/coordinator/group_codec.h"

#include <weir/runtime/clock.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// What goes into and comes out of the group coordinator (group_coordinator.h). Fields and errors
// are those of Kafka's JoinGroup, SyncGroup, Heartbeat, LeaveGroup and OffsetCommit.

namespace weir::log {

// Numbers and names of Kafka's protocol (org.apache.kafka.common.protocol.Errors).
enum class GroupError : std::int16_t {
  kNone = 0,
  kCoordinatorNotAvailable = 15,  // the group's record could not be written: join again
  kNotCoordinator = 16,           // the group was unloaded
  kIllegalGeneration = 22,
  kInconsistentGroupProtocol = 23,
  kInvalidGroupId = 24,
  kUnknownMemberId = 25,
  kInvalidSessionTimeout = 26,
  kRebalanceInProgress = 27,
  kNonEmptyGroup = 68,
  kGroupIdNotFound = 69,
  kMemberIdRequired = 79,  // join again under the id that the answer gives
  kGroupMaxSizeReached = 81,
  kFencedInstanceId = 82,
  kGroupSubscribedToTopic = 86,
};
std::string_view group_error_name(GroupError error);

enum class GroupState { kEmpty, kPreparingRebalance, kCompletingRebalance, kStable, kDead };
std::string_view group_state_name(GroupState state);  // "PreparingRebalance", Kafka's

// Both clocks, read once for one input.
struct GroupTime {
  MonotonicTime monotonic{};
  Timestamp wall = 0;
};

// Names a request whose answer comes later; chosen by the driver, never used twice.
using RequestToken = std::uint64_t;
using AppendId = std::uint64_t;

struct GroupProtocol {
  std::string name;      // of an assignor
  std::string metadata;  // opaque; for consumers a ConsumerSubscription
  friend bool operator==(const GroupProtocol&, const GroupProtocol&) = default;
};

struct JoinGroupRequest {
  std::string group;
  std::string member_id;                   // empty: a new member
  std::optional<std::string> instance_id;  // a static member's name
  std::string client_id;
  std::string client_host;
  std::int32_t session_timeout_ms = 45'000;
  std::int32_t rebalance_timeout_ms = -1;  // negative: the session timeout (version 0)
  std::string protocol_type = "consumer";
  std::vector<GroupProtocol> protocols;  // in the member's order of preference
  bool requires_known_id = true;         // version 4 and above
  bool can_skip_assignment = true;       // version 9 and above
};

struct JoinedMember {
  std::string member_id;
  std::optional<std::string> instance_id;
  std::string metadata;
};

struct JoinGroupAnswer {
  GroupError error = GroupError::kNone;
  std::int32_t generation = -1;
  std::string protocol_type;
  std::string protocol;
  std::string leader;
  bool skip_assignment = false;
  std::string member_id;
  std::vector<JoinedMember> members;  // for the leader
};

struct SyncGroupRequest {
  std::string group;
  std::int32_t generation = -1;
  std::string member_id;
  std::optional<std::string> instance_id;
  std::optional<std::string> protocol_type;                      // version 5 and above
  std::optional<std::string> protocol;                           // version 5 and above
  std::vector<std::pair<std::string, std::string>> assignments;  // member id, bytes; the leader's
};

struct SyncGroupAnswer {
  GroupError error = GroupError::kNone;
  std::string protocol_type;
  std::string protocol;
  std::string assignment;  // empty: the leader gave nothing
};

// Who says it: heartbeats and commits.
struct GroupIdentity {
  std::string group;
  std::int32_t generation = -1;
  std::string member_id;
  std::optional<std::string> instance_id;
};

struct LeavingMember {
  std::string member_id;  // empty: by instance id alone, as tools do
  std::optional<std::string> instance_id;
};

// --- Effects

struct AnswerJoin {
  RequestToken token = 0;
  JoinGroupAnswer answer;
};
struct AnswerSync {
  RequestToken token = 0;
  SyncGroupAnswer answer;
};
// Write the group's record, a tombstone when `value` is empty; then say appended(id). Records of
// one group are written in the order of their ids.
struct AppendGroup {
  AppendId id = 0;
  std::string group;
  std::optional<GroupValue> value;
};
// For the diagnostics.
struct GroupNote {
  enum class Kind {
    kRebalance,       // began; `detail` says why
    kStable,          // generation begins; `members`
    kEmpty,           // the last member is gone
    kMemberRemoved,   // `detail` says why
    kMemberFenced,    // a static member's earlier incarnation
    kNobodyRejoined,  // the rebalance waits for another round
  };
  Kind kind{};
  std::string group;
  std::int32_t generation = -1;
  std::string member_id;
  std::string_view detail;
  std::size_t members = 0;
};
using GroupEffect = std::variant<AnswerJoin, AnswerSync, AppendGroup, GroupNote>;
using GroupEffects = std::vector<GroupEffect>;

}  // namespace weir::log
