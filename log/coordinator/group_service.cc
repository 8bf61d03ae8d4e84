#include "log/coordinator/group_service.h"

#include "log/partition/await.h"
#include "log/partition/replay.h"
#include "log/record/batch_builder.h"

#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

// GroupService: the protocol, commits, and the loop that carries effects out.

namespace weir::log {
namespace {

constexpr auto kWriteTimeout = std::chrono::seconds(30);
constexpr Duration kIdle = std::chrono::hours(1);

Error refused_commit(const GroupIdentity& who, GroupError error) {
  if (error == GroupError::kRebalanceInProgress) {
    return {Errc::kTimedOut,
            fmt::format("group {} is rebalancing, so nothing can be committed for it now; poll, "
                        "then commit again",
                        who.group)};
  }
  if (who.generation < 0 && who.member_id.empty()) {
    return {Errc::kFenced,
            fmt::format("group {} has members that subscribed, and only they commit; close them "
                        "or use another group.id",
                        who.group)};
  }
  return {Errc::kFenced,
          fmt::format("member {} of group {} cannot commit in generation {} ({}): its partitions "
                      "may have another owner by now; poll to join again",
                      who.member_id, who.group, who.generation, group_error_name(error))};
}

}  // namespace

GroupService::GroupService(OffsetsTopic& topic, GroupOffsets& offsets, const Clock& clock,
                           const GroupServiceOptions& options)
    : topic_(topic),
      offsets_(offsets),
      clock_(clock),
      options_(options),
      opened_at_(clock.now()),
      core_(options.groups) {}

// --- Loading

Status GroupService::load_for(const std::string& group, bool create) {
  if (create) {
    WEIR_TRY(topic_.ensure_exists());
  }
  const std::int32_t count = topic_.partition_count();
  return count == 0 ? Status() : load(partition_for_group(group, count));
}

Status GroupService::load(PartitionId index) {
  if (loaded_.contains(index)) {
    return {};
  }
  WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> log, topic_.open(index));
  std::map<std::string, GroupValue> values;
  const Result<Offset> read =
      replay_records(*log, log->offsets().log_start, [&values](const RecordView& record) -> Status {
        if (record.key.is_null()) {
          return Error(Errc::kCorrupt, "offsets record without a key");
        }
        WEIR_TRY_ASSIGN(const std::optional<std::string> group,
                        decode_group_key(record.key.view()));
        if (!group) {
          return {};
        }
        if (record.value.is_null()) {
          values.erase(*group);
          return {};
        }
        WEIR_TRY_ASSIGN(values[*group], decode_group_value(record.value.view()));
        return {};
      });
  if (!read.ok()) {
    return Error(read.error())
        .with_context(fmt::format("read groups from {}", log->options().name.to_string()));
  }
  const GroupTime at = now();
  for (const auto& [group, value] : values) {
    core_.load(group, value, at, effects_);
    std::vector<LeavingMember> gone;
    for (const GroupMemberValue& member : value.members) {
      // The process that held the directory before is gone, and with it its members; static ones
      // may come back.
      if (member.client_host == kInProcessHost && !member.instance_id) {
        gone.push_back({member.member_id, std::nullopt});
      }
    }
    if (!gone.empty() && !log->options().read_only) {
      core_.leave(group, gone, at, effects_);
    }
  }
  loaded_.insert(index);
  return {};
}

void GroupService::invalidate() {
  const MutexLock lock(mutex_);
  for (const std::string& group : core_.groups()) {
    core_.unload(group, effects_);
  }
  effects_.clear();  // nobody joins through a log that is only read
  loaded_.clear();
}

// --- The protocol

Status GroupService::join(const JoinGroupRequest& request, JoinDone done) {
  {
    const MutexLock lock(mutex_);
    WEIR_TRY(load_for(request.group, true));
    const GroupTime at = now();
    advance(at);
    const RequestToken token = next_token_++;
    joins_[token] = std::move(done);
    core_.join(request, token, at, effects_);
    core_.tick(at, effects_);
  }
  pump();
  return {};
}

Status GroupService::sync(const SyncGroupRequest& request, SyncDone done) {
  {
    const MutexLock lock(mutex_);
    WEIR_TRY(load_for(request.group, false));
    const GroupTime at = now();
    advance(at);
    const RequestToken token = next_token_++;
    syncs_[token] = std::move(done);
    core_.sync(request, token, at, effects_);
  }
  pump();
  return {};
}

Result<GroupError> GroupService::heartbeat(const GroupIdentity& who) {
  GroupError error{};
  {
    const MutexLock lock(mutex_);
    WEIR_TRY(load_for(who.group, false));
    const GroupTime at = now();
    advance(at);
    error = core_.heartbeat(who, at);
  }
  pump();
  return error;
}

Result<std::vector<GroupError>> GroupService::leave(const std::string& group,
                                                    std::span<const LeavingMember> members) {
  std::vector<GroupError> errors;
  {
    const MutexLock lock(mutex_);
    WEIR_TRY(load_for(group, false));
    const GroupTime at = now();
    advance(at);
    errors = core_.leave(group, members, at, effects_);
  }
  pump();
  return errors;
}

// --- Commits

GroupService::CommitPermit::~CommitPermit() {
  if (service_ != nullptr) {
    service_->end_commit(group_);
  }
}

void GroupService::end_commit(const std::string& group) {
  const MutexLock lock(mutex_);
  const auto found = commits_.find(group);
  if (--found->second == 0) {
    commits_.erase(found);
  }
  changed_.notify_all();
}

Result<GroupService::CommitPermit> GroupService::begin_commit(const GroupIdentity& who,
                                                              CommitKind kind) {
  {
    const MutexLock lock(mutex_);
    WEIR_TRY(load_for(who.group, false));
    advance(now());
  }
  // Before the permit is there: a record of this group waits for the end of its commits.
  pump();
  const MutexLock lock(mutex_);
  while (closed_.contains(who.group)) {
    changed_.wait(mutex_);
  }
  GroupError error = core_.commit(who, kind == CommitKind::kTransactional, now());
  if (error == GroupError::kRebalanceInProgress && kind == CommitKind::kKept) {
    error = GroupError::kNone;
  }
  if (error != GroupError::kNone) {
    return refused_commit(who, error);
  }
  ++commits_[who.group];
  return CommitPermit(*this, who.group);
}

Status GroupService::commit(const GroupIdentity& who, Offsets offsets, CommitKind kind) {
  WEIR_TRY_ASSIGN(const CommitPermit permit, begin_commit(who, kind));
  return offsets_.commit(who.group, offsets);
}

Status GroupService::without_commits(const std::string& group,
                                     const std::function<Status()>& action) {
  {
    const MutexLock lock(mutex_);
    while (closed_.contains(group)) {
      changed_.wait(mutex_);
    }
    closed_.insert(group);
    while (commits_.contains(group)) {
      changed_.wait(mutex_);
    }
  }
  Status done = action();
  const MutexLock lock(mutex_);
  closed_.erase(group);
  changed_.notify_all();
  return done;
}

// --- Time and effects

void GroupService::advance(GroupTime at) {
  if (!locals_.empty() && at.monotonic >= next_keep_alive_) {
    keep_alive(at);
  }
  core_.tick(at, effects_);
}

MonotonicTime GroupService::next_due(GroupTime at) {
  MonotonicTime due = at.monotonic + kIdle;
  if (const auto deadline = core_.next_deadline()) {
    due = std::min(due, *deadline);
  }
  return locals_.empty() ? due : std::min(due, next_keep_alive_);
}

Duration GroupService::tick() {
  {
    const MutexLock lock(mutex_);
    advance(now());
  }
  pump();
  const MutexLock lock(mutex_);
  const GroupTime at = now();
  told_due_ = next_due(at);
  return std::max(Duration::zero(), told_due_ - at.monotonic);
}

void GroupService::collect(Outbox& outbox) {
  GroupEffects effects = std::exchange(effects_, {});
  for (GroupEffect& effect : effects) {
    if (auto* join = std::get_if<AnswerJoin>(&effect)) {
      auto waiting = joins_.extract(join->token);
      outbox.calls.emplace_back(
          [done = std::move(waiting.mapped()), answer = std::move(join->answer)] { done(answer); });
    } else if (auto* sync = std::get_if<AnswerSync>(&effect)) {
      auto waiting = syncs_.extract(sync->token);
      outbox.calls.emplace_back(
          [done = std::move(waiting.mapped()), answer = std::move(sync->answer)] { done(answer); });
    } else if (auto* append = std::get_if<AppendGroup>(&effect)) {
      appends_.push_back(std::move(*append));
    } else {
      outbox.notes.push_back(std::get<GroupNote>(std::move(effect)));
      for (const auto& [id, local] : locals_) {
        if (local.who.group == outbox.notes.back().group && local.wake) {
          outbox.calls.push_back(local.wake);
        }
      }
    }
  }
  if (!appending_ && !appends_.empty()) {
    appending_ = true;
    outbox.append = true;
    outbox.next = std::move(appends_.front());
    appends_.pop_front();
  }
}

void GroupService::pump() {
  for (;;) {
    Outbox outbox;
    {
      const MutexLock lock(mutex_);
      collect(outbox);
    }
    for (const GroupNote& note : outbox.notes) {
      tell(note);
    }
    for (const auto& call : outbox.calls) {
      call();
    }
    if (!outbox.append) {
      break;
    }
    const Status written = write(outbox.next);
    if (!written.ok() && written.error().code() != Errc::kClosed) {
      WEIR_WARN("record of a group could not be written group={} error=\"{}\"", outbox.next.group,
                written.error().to_string());
    }
    const MutexLock lock(mutex_);
    appending_ = false;
    if (written.ok()) {
      failed_appends_.erase(outbox.next.group);
    } else {
      failed_appends_.insert_or_assign(outbox.next.group, written.error());
    }
    core_.appended(outbox.next.id, written.ok(), now(), effects_);
    appends_done_ = std::max(appends_done_, outbox.next.id);
    changed_.notify_all();
  }
  bool earlier = false;
  {
    const MutexLock lock(mutex_);
    const MonotonicTime due = next_due(now());
    earlier = due < told_due_;
    told_due_ = std::min(told_due_, due);
  }
  if (earlier && earlier_) {
    earlier_();
  }
}

// No commit comes in between, so that no offset of an older generation stands behind the record.
Status GroupService::write(const AppendGroup& append) {
  bool closes = false;
  {
    const MutexLock lock(mutex_);
    closes = closed_.insert(append.group).second;  // else without_commits() has done so
    while (commits_.contains(append.group)) {
      changed_.wait(mutex_);
    }
  }
  Status written = write_record(append);
  if (closes) {
    const MutexLock lock(mutex_);
    closed_.erase(append.group);
    changed_.notify_all();
  }
  return written;
}

Status GroupService::write_record(const AppendGroup& append) {
  const PartitionId index = partition_for_group(append.group, topic_.partition_count());
  WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> log, topic_.open(index));
  if (append.value) {
    WEIR_TRY(offsets_.note_group(append.group));
  }
  const std::string key = encode_group_key(append.group);
  const std::string value = append.value ? encode_group_value(*append.value) : std::string();
  BatchBuilder builder(64U << 20U);
  RecordRef record{ByteView(key), {}, clock_.now(), {}};
  if (append.value) {
    record.value = ByteView(value);
  }
  WEIR_ASSERT(builder.append(record));
  WEIR_TRY_ASSIGN(const Partition::Appended appended,
                  log->append(builder.seal(), AppendOrigin::kBuilder));
  if (!append.value) {
    offsets_.forget_group(append.group);
  }
  return await_high_watermark(log, appended.next_offset, kWriteTimeout);
}

Status GroupService::await_append(const std::string& group, AppendId id) {
  pump();  // unless another thread does
  {
    const MutexLock lock(mutex_);
    while (appends_done_ < id) {
      changed_.wait(mutex_);
    }
  }
  return last_append(group);
}

Status GroupService::last_append(const std::string& group) {
  const MutexLock lock(mutex_);
  const auto failed = failed_appends_.find(group);
  return failed == failed_appends_.end() ? Status() : Status(failed->second);
}

void GroupService::tell(const GroupNote& note) {
  switch (note.kind) {
    case GroupNote::Kind::kRebalance:
      WEIR_DEBUG("group rebalances group={} generation={} members={} reason=\"{}\"", note.group,
                 note.generation, note.members, note.detail);
      return;
    case GroupNote::Kind::kStable:
      WEIR_INFO("group is stable group={} generation={} members={}", note.group, note.generation,
                note.members);
      return;
    case GroupNote::Kind::kEmpty:
      WEIR_DEBUG("group is empty group={} generation={}", note.group, note.generation);
      return;
    case GroupNote::Kind::kMemberRemoved:
      WEIR_INFO("member removed group={} generation={} member={} members={} reason=\"{}\"",
                note.group, note.generation, note.member_id, note.members, note.detail);
      return;
    case GroupNote::Kind::kMemberFenced:
      WEIR_INFO("member fenced group={} generation={} member={} reason=\"{}\"", note.group,
                note.generation, note.member_id, note.detail);
      return;
    case GroupNote::Kind::kNobodyRejoined:
      WEIR_WARN("no member joined a rebalance, which is tried again group={} generation={}",
                note.group, note.generation);
      return;
  }
}

}  // namespace weir::log
