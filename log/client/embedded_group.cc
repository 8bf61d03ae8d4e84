#include "log/client/embedded_group.h"

#include "log/coordinator/consumer_protocol.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace weir::log {
namespace {

// A rebalance of two phases takes about ten; more come with the next poll().
constexpr int kStepsMax = 32;
constexpr Duration kAskInterval = std::chrono::milliseconds(100);

std::int32_t to_ms(Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(ms, 1, INT32_MAX));
}

std::optional<std::string> instance_of(const GroupOptions& options) {
  return options.instance_id.empty() ? std::nullopt : std::optional(options.instance_id);
}

}  // namespace

Result<std::unique_ptr<Group>> EmbeddedGroup::make(LogDirectory& directory, std::string group_id,
                                                   GroupOptions options) {
  if (group_id.empty() || group_id.size() > INT16_MAX) {
    return Error(Errc::kInvalidArgument, "a group id has 1 to 32,767 bytes");
  }
  if (options.instance_id.size() > 249) {
    return Error(Errc::kInvalidConfig,
                 fmt::format("group.instance.id of {} bytes: at most 249 are allowed",
                             options.instance_id.size()));
  }
  std::vector<AssignmentStrategy> strategies;
  if (options.assignor == nullptr) {
    if (options.assignors.empty()) {
      options.assignors.emplace_back(kDefaultAssignmentStrategy);
    }
    for (const std::string& name : options.assignors) {
      const auto strategy = parse_assignment_strategy(name);
      if (!strategy) {
        return Error(Errc::kInvalidConfig,
                     fmt::format("partition.assignment.strategy={}: unknown; there are range, "
                                 "roundrobin and cooperative-sticky",
                                 name));
      }
      strategies.push_back(*strategy);
    }
  }
  std::unique_ptr<EmbeddedGroup> group(
      new EmbeddedGroup(directory, std::move(group_id), std::move(options)));
  // As in Kafka: what the members do is what all their assignors can.
  group->cooperative_ = group->options_.assignor != nullptr
                            ? group->options_.assignor->is_cooperative()
                            : std::ranges::all_of(strategies, is_cooperative);
  group->strategies_ = std::move(strategies);
  return std::unique_ptr<Group>(std::move(group));
}

EmbeddedGroup::EmbeddedGroup(LogDirectory& directory, std::string group_id, GroupOptions options)
    : directory_(directory), group_id_(std::move(group_id)), options_(std::move(options)) {
  if (!directory_.read_only()) {
    local_ = groups().add_local(group_id_, options_.max_poll_interval,
                                [mailbox = mailbox_] { mailbox->wake(); });
  }
}

EmbeddedGroup::~EmbeddedGroup() {
  set_waker({});
  leave().ignore("its session ends without it");
  if (local_ != 0) {
    groups().remove_local(local_);
  }
}

void EmbeddedGroup::Mailbox::wake() {
  news.store(true, std::memory_order_release);
  const MutexLock lock(mutex);
  if (waker) {
    waker();
  }
}

void EmbeddedGroup::set_waker(std::function<void()> waker) {
  const MutexLock lock(mailbox_->mutex);
  mailbox_->waker = std::move(waker);
}

std::uint64_t EmbeddedGroup::new_ticket() {
  const MutexLock lock(mailbox_->mutex);
  mailbox_->join.reset();
  mailbox_->sync.reset();
  return ++mailbox_->ticket;
}

GroupIdentity EmbeddedGroup::identity() const {
  GroupIdentity who;
  who.group = group_id_;
  if (!member_id_.empty() && generation_ >= 0) {
    who.generation = generation_;
    who.member_id = member_id_;
    who.instance_id = instance_of(options_);
  }
  return who;
}

// Of a new generation, too, that poll() has not looked at yet.
GroupIdentity EmbeddedGroup::newest_identity() const {
  GroupIdentity who = identity();
  const MutexLock lock(mailbox_->mutex);
  if (!who.member_id.empty() && mailbox_->join && mailbox_->join->error == GroupError::kNone &&
      mailbox_->join->member_id == who.member_id) {
    who.generation = mailbox_->join->generation;
  }
  return who;
}

// --- The port

Status EmbeddedGroup::join(std::vector<std::string> topics, std::string user_data,
                           GroupListener& listener) {
  topics_ = std::set<std::string>(topics.begin(), topics.end());
  user_data_ = std::move(user_data);
  if (listener_ == nullptr) {
    first_assignment_ = true;
    fatal_ = Status();
    phase_ = Phase::kMustJoin;
  } else if (phase_ == Phase::kMember) {
    phase_ = Phase::kMustJoin;
  }
  listener_ = &listener;
  topics_seen_ = 0;
  return {};
}

Status EmbeddedGroup::poll() {
  if (listener_ == nullptr) {
    return {};
  }
  WEIR_TRY(directory_.refresh());
  if (directory_.read_only()) {
    return poll_alone();
  }
  WEIR_TRY(fatal_);
  lose_gone_topics();
  WEIR_TRY(check_alive());
  for (int i = 0; i < kStepsMax; ++i) {
    WEIR_TRY_ASSIGN(const bool more, step());
    if (!more) {
      break;
    }
  }
  return {};
}

Status EmbeddedGroup::leave() {
  if (local_ != 0 && listener_ != nullptr) {
    GroupIdentity nobody;
    nobody.group = group_id_;
    groups().set_local(local_, nobody);
    new_ticket();
    if (!member_id_.empty() && options_.instance_id.empty()) {
      const LeavingMember one{member_id_, std::nullopt};
      WEIR_TRY(groups().leave(group_id_, {&one, 1}));
    }
  }
  member_id_.clear();
  generation_ = -1;
  owned_.clear();
  assigned_user_data_.clear();
  listener_ = nullptr;
  is_leader_ = false;
  phase_ = Phase::kMustJoin;
  return {};
}

Status EmbeddedGroup::commit(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) {
  if (directory_.read_only()) {
    return Error(Errc::kReadOnly,
                 "offsets cannot be committed through a log that was opened for reading");
  }
  const GroupIdentity who = newest_identity();
  if (listener_ != nullptr && who.member_id.empty()) {
    // Who subscribed must not pass for a simple consumer when it is no member.
    return Error(Errc::kFenced,
                 fmt::format("a consumer of group {} that is not a member of it cannot commit: it "
                             "has not joined yet, or its partitions were lost; poll to join",
                             group_id_));
  }
  const bool kept = cooperative_ && std::ranges::all_of(offsets, [this](const auto& offset) {
                      return owned_.contains(offset.first);
                    });
  return groups().commit(who, offsets,
                         kept ? GroupService::CommitKind::kKept : GroupService::CommitKind::kPlain);
}

Result<std::vector<std::optional<CommittedOffset>>> EmbeddedGroup::committed(
    std::span<const TopicPartition> partitions) {
  if (directory_.read_only()) {
    WEIR_TRY(directory_.refresh());
    directory_.offsets().invalidate();
  }
  return directory_.offsets().committed(group_id_, partitions);
}

Result<std::vector<std::optional<CommittedOffset>>> EmbeddedGroup::committed_stable(
    std::span<const TopicPartition> partitions) {
  if (directory_.read_only()) {
    WEIR_TRY(directory_.refresh());
    directory_.offsets().invalidate();
  }
  return directory_.offsets().committed(group_id_, partitions, true);
}

GroupMetadata EmbeddedGroup::metadata() const {
  const GroupIdentity who = newest_identity();
  return GroupMetadata{group_id_, who.generation, who.member_id, who.instance_id.value_or("")};
}

// --- The member

// Asking costs a lock that all groups share; between two polls there is rarely anything new.
Status EmbeddedGroup::check_alive() {
  const MonotonicTime now = directory_.clock().monotonic();
  if (phase_ == Phase::kMember && !mailbox_->news.exchange(false, std::memory_order_acq_rel) &&
      now - heard_at_ < std::min(kAskInterval, options_.max_poll_interval / 4)) {
    return {};
  }
  heard_at_ = now;
  WEIR_TRY_ASSIGN(const GroupError heard, groups().poll_local(local_));
  if (phase_ != Phase::kMember || heard == GroupError::kNone) {
    return {};
  }
  if (heard == GroupError::kRebalanceInProgress) {
    phase_ = Phase::kMustJoin;
    return {};
  }
  return refused(heard);
}

Result<bool> EmbeddedGroup::step() {
  switch (phase_) {
    case Phase::kMustJoin:
      WEIR_TRY(ask_to_join());
      return true;
    case Phase::kJoining:
      return take_join();
    case Phase::kSyncing:
      return take_sync();
    case Phase::kMember:
      if (is_leader_ && topics_changed_for_leader()) {
        phase_ = Phase::kMustJoin;
        return true;
      }
      return false;
  }
  return false;
}

Status EmbeddedGroup::ask_to_join() {
  std::vector<TopicPartition> gone;
  for (const auto& [partition, id] : owned_) {
    if (!cooperative_ || !topics_.contains(partition.topic)) {
      gone.push_back(partition);
    }
  }
  give_up(gone);
  ConsumerSubscription subscription;
  subscription.topics.assign(topics_.begin(), topics_.end());
  if (!user_data_.empty()) {
    subscription.user_data = user_data_;
  }
  subscription.owned = owned_names();
  subscription.generation = generation_;
  JoinGroupRequest request;
  request.group = group_id_;
  request.member_id = member_id_;
  request.instance_id = instance_of(options_);
  request.client_id = options_.client_id.empty() ? "weir" : options_.client_id;
  request.client_host = kInProcessHost;
  request.session_timeout_ms = to_ms(options_.session_timeout);
  request.rebalance_timeout_ms = to_ms(options_.max_poll_interval);
  request.protocol_type = kConsumerProtocolType;
  for (const std::string& name : protocol_names()) {
    request.protocols.push_back({name, encode_subscription(subscription)});
  }
  phase_ = Phase::kJoining;
  return or_join_again(groups().join(
      request, [mailbox = mailbox_, ticket = new_ticket()](const JoinGroupAnswer& answer) {
        {
          const MutexLock lock(mailbox->mutex);
          if (mailbox->ticket != ticket) {
            return;
          }
          mailbox->join = answer;
        }
        mailbox->wake();
      }));
}

// A request that never arrived has no answer to wait for.
Status EmbeddedGroup::or_join_again(Status asked) {
  if (!asked.ok()) {
    phase_ = Phase::kMustJoin;
  }
  return asked;
}

Result<bool> EmbeddedGroup::take_join() {
  std::optional<JoinGroupAnswer> answer;
  {
    const MutexLock lock(mailbox_->mutex);
    answer = std::exchange(mailbox_->join, std::nullopt);
  }
  if (!answer) {
    return false;
  }
  if (answer->error == GroupError::kMemberIdRequired) {
    member_id_ = answer->member_id;
    phase_ = Phase::kMustJoin;
    return true;
  }
  if (answer->error != GroupError::kNone) {
    WEIR_TRY(refused(answer->error));
    return true;
  }
  member_id_ = answer->member_id;
  generation_ = answer->generation;
  is_leader_ = answer->leader == member_id_;
  groups().set_local(local_, identity());
  WEIR_TRY(ask_to_sync(*answer));
  return true;
}

Status EmbeddedGroup::ask_to_sync(const JoinGroupAnswer& answer) {
  SyncGroupRequest request;
  request.group = group_id_;
  request.generation = generation_;
  request.member_id = member_id_;
  request.instance_id = instance_of(options_);
  request.protocol_type = answer.protocol_type;
  request.protocol = answer.protocol;
  if (is_leader_) {
    auto assignments = assign(answer);
    if (!assignments.ok()) {
      phase_ = Phase::kMustJoin;
      return std::move(assignments).error();
    }
    request.assignments = std::move(*assignments);
  }
  phase_ = Phase::kSyncing;
  return or_join_again(groups().sync(
      request, [mailbox = mailbox_, ticket = new_ticket()](const SyncGroupAnswer& synced) {
        {
          const MutexLock lock(mailbox->mutex);
          if (mailbox->ticket != ticket) {
            return;
          }
          mailbox->sync = synced;
        }
        mailbox->wake();
      }));
}

Result<bool> EmbeddedGroup::take_sync() {
  std::optional<SyncGroupAnswer> answer;
  {
    const MutexLock lock(mailbox_->mutex);
    answer = std::exchange(mailbox_->sync, std::nullopt);
  }
  if (!answer) {
    return false;
  }
  if (answer->error != GroupError::kNone) {
    WEIR_TRY(refused(answer->error));
    return true;
  }
  Result<ConsumerAssignment> assignment = decode_assignment(answer->assignment);
  if (!assignment.ok()) {
    return std::move(assignment)
        .error()
        .with_context(fmt::format("what the leader of group {} assigned", group_id_));
  }
  phase_ = Phase::kMember;
  take_assignment(*assignment);
  return phase_ != Phase::kMember;
}

// What the coordinator's refusal means, and whether the caller hears of it.
Status EmbeddedGroup::refused(GroupError error) {
  phase_ = Phase::kMustJoin;
  switch (error) {
    case GroupError::kNone:
    case GroupError::kRebalanceInProgress:
    case GroupError::kMemberIdRequired:
      return {};
    case GroupError::kIllegalGeneration:
      lose_everything();
      return {};
    case GroupError::kCoordinatorNotAvailable: {
      WEIR_TRY(groups().last_append(group_id_));
      return {};
    }
    case GroupError::kInvalidSessionTimeout:
      return Error(Errc::kInvalidConfig,
                   fmt::format("session.timeout.ms={} is outside the limits of this log "
                               "(group.min.session.timeout.ms, group.max.session.timeout.ms)",
                               to_ms(options_.session_timeout)));
    case GroupError::kGroupMaxSizeReached:
      lose_everything();
      member_id_.clear();
      return Error(
          Errc::kLocked,
          fmt::format("group {} is full (group.max.size); close one of its consumers", group_id_));
    case GroupError::kInconsistentGroupProtocol:
      lose_everything();
      member_id_.clear();
      return Error(Errc::kInvalidConfig,
                   fmt::format("members of group {} share no partition.assignment.strategy with "
                               "this one ({}); use one that all have",
                               group_id_, fmt::join(protocol_names(), ", ")));
    case GroupError::kFencedInstanceId:
      lose_everything();
      member_id_.clear();
      fatal_ = Error(Errc::kFenced,
                     fmt::format("another member of group {} joined as group.instance.id={} and "
                                 "took its place; each member needs an id of its own",
                                 group_id_, options_.instance_id));
      return fatal_;
    default:
      lose_everything();
      member_id_.clear();
      return {};
  }
}

}  // namespace weir::log
