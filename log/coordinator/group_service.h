#pragma once

#include "log/coordinator/group_coordinator.h"
#include "log/coordinator/group_offsets.h"

#include <weir/runtime/clock.h>
#include <weir/runtime/thread_annotations.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::log {

struct GroupServiceOptions {
  GroupConfig groups;
  std::int64_t offsets_retention_ms = 7LL * 24 * 3600 * 1000;  // offsets.retention.minutes
};

// client.host of members that live in the process which holds the directory. They are gone with it.
inline constexpr std::string_view kInProcessHost = "/in-process";

// The driver of GroupCoordinator: groups of one directory, kept in `__consumer_offsets` beside
// their offsets. A partition of that topic is read when the first of its groups is asked for.
//
// Answers:   callbacks run on any thread, with no lock held; they must not block.
// Commits:   a generation's assignments are answered only after every commit that an earlier one
//            was allowed has ended; so its members see all of them.
// Time:      every call does what is due; without calls somebody has to tick().
// Threading: thread-safe. Blocks on the disk: on loading, and while a group's record is written.
class GroupService {
 public:
  using JoinDone = std::function<void(const JoinGroupAnswer&)>;
  using SyncDone = std::function<void(const SyncGroupAnswer&)>;
  using Offsets = std::span<const std::pair<TopicPartition, CommittedOffset>>;

  // Both outlive the service.
  GroupService(OffsetsTopic& topic, GroupOffsets& offsets, const Clock& clock,
               const GroupServiceOptions& options);

  // --- The protocol. Errors: kCorrupt, kIo, kNoSpace (the groups could not be read).
  Status join(const JoinGroupRequest& request, JoinDone done);
  Status sync(const SyncGroupRequest& request, SyncDone done);
  Result<GroupError> heartbeat(const GroupIdentity& who);
  Result<std::vector<GroupError>> leave(const std::string& group,
                                        std::span<const LeavingMember> members);

  // --- Commits

  // While it lives no new generation of the group gets its assignments.
  class CommitPermit {
   public:
    CommitPermit(GroupService& service, std::string group)
        : service_(&service), group_(std::move(group)) {}
    ~CommitPermit();
    CommitPermit(CommitPermit&& other) noexcept
        : service_(std::exchange(other.service_, nullptr)), group_(std::move(other.group_)) {}
    CommitPermit& operator=(CommitPermit&&) = delete;
    CommitPermit(const CommitPermit&) = delete;
    CommitPermit& operator=(const CommitPermit&) = delete;

   private:
    GroupService* service_;
    std::string group_;
  };
  enum class CommitKind {
    kPlain,
    kTransactional,  // Kafka's TxnOffsetCommit
    // Of partitions that the member keeps while the group rebalances (cooperative): nobody else has
    // them before it gives them up, so it may commit at any time. Kafka's coordinator cannot know.
    kKept,
  };
  // Whether the member may commit now; generation -1 without a member id: a simple consumer. Hold
  // the permit until the offsets are in the log, and call nothing else of the service meanwhile:
  // what it has to write for the group waits for the permit.
  // Errors: kFenced, kTimedOut (a rebalance is under way: poll, then again), and those of loading.
  Result<CommitPermit> begin_commit(const GroupIdentity& who, CommitKind kind);
  // Errors: those of begin_commit() and of GroupOffsets::commit().
  Status commit(const GroupIdentity& who, Offsets offsets, CommitKind kind = CommitKind::kPlain);

  // --- Groups that are open in this process. Their members are kept alive between their
  // heartbeats as long as they poll often enough.

  using LocalId = std::uint64_t;
  // `wake` is called when poll_local() would say something new.
  LocalId add_local(const std::string& group, Duration max_poll_interval,
                    std::function<void()> wake);
  void remove_local(LocalId local);
  // Who it is by now; a member id that is empty: nobody yet.
  void set_local(LocalId local, const GroupIdentity& who);
  // It polls: a heartbeat. kNone also without a member id.
  Result<GroupError> poll_local(LocalId local);
  // Why the group's last record could not be written; ok: it was.
  Status last_append(const std::string& group);

  // --- Tools

  // Groups with a record, in the order of their bytes. Reads the whole topic.
  Result<std::vector<std::string>> groups();
  // kDead: there is no such group.
  Result<GroupSnapshot> describe(const std::string& group);
  // The group and its offsets, durable when ok. Errors: kNotFound, kLocked (it has members).
  Status delete_group(const std::string& group);
  // Errors: kLocked (a member subscribes to one of the topics); nothing was deleted then.
  Status delete_offsets(const std::string& group, std::span<const TopicPartition> partitions);
  // Deletes what expired_offsets() says, with a line for each group. A group that is open in this
  // process keeps everything. Returns how many offsets.
  Result<std::size_t> expire_offsets();

  // Does what is due. Returns how long nothing will be; at most an hour.
  Duration tick();
  // Called, with no lock held, when something may be due earlier than tick() said. Set once, before
  // other calls.
  void set_timer(std::function<void()> earlier) { earlier_ = std::move(earlier); }
  // Read-only processes: what was written since is read again at the next question.
  void invalidate();

 private:
  struct Local {
    GroupIdentity who;
    MonotonicTime polled{};
    Duration max_poll_interval{};
    std::function<void()> wake;
    bool overdue = false;
  };
  // What is to be done with no lock held.
  struct Outbox {
    std::vector<std::function<void()>> calls;
    std::vector<GroupNote> notes;
    bool append = false;
    AppendGroup next;
  };

  GroupTime now() const { return {clock_.monotonic(), clock_.now()}; }
  Status load_for(const std::string& group, bool create) WEIR_REQUIRES(mutex_);
  Status load(PartitionId index) WEIR_REQUIRES(mutex_);
  void advance(GroupTime now) WEIR_REQUIRES(mutex_);
  void keep_alive(GroupTime now) WEIR_REQUIRES(mutex_);
  MonotonicTime next_due(GroupTime now) WEIR_REQUIRES(mutex_);
  void collect(Outbox& outbox) WEIR_REQUIRES(mutex_);
  // Carries effects out until there are none. One thread at a time writes records.
  void pump() WEIR_EXCLUDES(mutex_);
  Status write(const AppendGroup& append) WEIR_EXCLUDES(mutex_);
  Status write_record(const AppendGroup& append) WEIR_EXCLUDES(mutex_);
  void end_commit(const std::string& group) WEIR_EXCLUDES(mutex_);
  // While `action` runs no commit of the group is under way.
  Status without_commits(const std::string& group, const std::function<Status()>& action)
      WEIR_EXCLUDES(mutex_);
  // The record is in the log, or could not be written. Records are written one by one, in order.
  Status await_append(const std::string& group, AppendId id) WEIR_EXCLUDES(mutex_);
  bool is_used(const std::string& group) const WEIR_REQUIRES(mutex_);
  static void tell(const GroupNote& note);

  OffsetsTopic& topic_;
  GroupOffsets& offsets_;
  const Clock& clock_;
  const GroupServiceOptions options_;
  const Timestamp opened_at_;
  std::function<void()> earlier_;

  Mutex mutex_;
  CondVar changed_;
  GroupCoordinator core_ WEIR_GUARDED_BY(mutex_);
  GroupEffects effects_ WEIR_GUARDED_BY(mutex_);
  std::set<PartitionId> loaded_ WEIR_GUARDED_BY(mutex_);
  std::map<RequestToken, JoinDone> joins_ WEIR_GUARDED_BY(mutex_);
  std::map<RequestToken, SyncDone> syncs_ WEIR_GUARDED_BY(mutex_);
  std::deque<AppendGroup> appends_ WEIR_GUARDED_BY(mutex_);
  bool appending_ WEIR_GUARDED_BY(mutex_) = false;
  AppendId appends_done_ WEIR_GUARDED_BY(mutex_) = 0;  // all up to it
  std::map<std::string, Error> failed_appends_ WEIR_GUARDED_BY(mutex_);
  std::map<std::string, std::size_t> commits_ WEIR_GUARDED_BY(mutex_);  // under way
  std::set<std::string> closed_ WEIR_GUARDED_BY(mutex_);                // for commits, for a moment
  std::map<LocalId, Local> locals_ WEIR_GUARDED_BY(mutex_);
  std::map<std::string, Timestamp> used_at_ WEIR_GUARDED_BY(mutex_);  // groups of former locals
  MonotonicTime next_keep_alive_ WEIR_GUARDED_BY(mutex_){};
  MonotonicTime told_due_ WEIR_GUARDED_BY(mutex_){};
  RequestToken next_token_ WEIR_GUARDED_BY(mutex_) = 1;
  LocalId next_local_ WEIR_GUARDED_BY(mutex_) = 1;
};

}  // namespace weir::log
