#include "log/client/commit_queue.h"
#include "log/client/fetches.h"
#include "log/client/membership.h"
#include "log/client/offset_reset.h"

#include <weir/log/consumer.h>
#include <weir/runtime/logger.h>

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace weir::log {
namespace {

constexpr Duration kTimeoutMax = std::chrono::hours(24 * 365);
// How often a waiting poll() looks whether partitions came or went.
constexpr Duration kGroupInterval = std::chrono::milliseconds(500);
constexpr Duration kWaitMin = std::chrono::milliseconds(10);
// Between two questions for an offset that an open transaction may change.
constexpr Duration kUnstableRetry = std::chrono::milliseconds(50);

}  // namespace

std::size_t ConsumerRecords::count() const {
  std::size_t count = 0;
  for (const ConsumerBatch& batch : batches_) {
    count += batch.records.size();
  }
  return count;
}

Result<std::unique_ptr<Consumer>> Consumer::open(Backend& backend, ConsumerOptions options) {
  WEIR_TRY_ASSIGN(const OffsetReset reset, OffsetReset::parse(options.auto_offset_reset));
  if (options.poll_records_max == 0) {
    return Error(Errc::kInvalidConfig, "max.poll.records is 0; a poll gives at least one record");
  }
  SourceOptions source_options;
  source_options.poll_bytes_max = options.poll_bytes_max;
  source_options.partition_bytes_max = options.partition_bytes_max;
  source_options.check_crcs = options.check_crcs;
  source_options.read_committed = options.isolation_level == IsolationLevel::kReadCommitted;
  WEIR_TRY_ASSIGN(std::unique_ptr<RecordSource> source, backend.make_source(source_options));
  std::unique_ptr<Group> group;
  if (!options.group_id.empty()) {
    GroupOptions group_options;
    group_options.client_id = options.client_id;
    group_options.instance_id = options.instance_id;
    group_options.assignors = options.assignors;
    group_options.session_timeout = options.session_timeout;
    group_options.max_poll_interval = options.max_poll_interval;
    WEIR_TRY_ASSIGN(group, backend.make_group_member(options.group_id, group_options));
    group->set_waker([source = source.get()] { source->wakeup(); });
  }
  return std::unique_ptr<Consumer>(
      new Consumer(backend, std::move(options), reset, std::move(source), std::move(group)));
}

Consumer::Consumer(Backend& backend, ConsumerOptions options, const OffsetReset& reset,
                   std::unique_ptr<RecordSource> source, std::unique_ptr<Group> group)
    : backend_(backend),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock()),
      reset_(std::make_unique<const OffsetReset>(reset)),
      source_(std::move(source)),
      group_(std::move(group)),
      commits_(group_ ? std::make_unique<CommitQueue>(*group_) : nullptr),
      fetches_(std::make_unique<Fetches>(*source_)),
      next_auto_commit_(clock_.monotonic() + options_.auto_commit_interval) {}

Consumer::~Consumer() = default;

Status Consumer::check_open() const {
  if (closed_) {
    return Error(Errc::kClosed, options_.group_id.empty()
                                    ? std::string("the consumer was closed; open another")
                                    : fmt::format("the consumer of group {} was closed; open "
                                                  "another",
                                                  options_.group_id));
  }
  return {};
}

Status Consumer::check_group(const char* action) const {
  WEIR_TRY(check_open());
  if (!group_) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("a consumer without group.id cannot {}; set one", action));
  }
  return {};
}

Status Consumer::assign(const std::vector<TopicPartition>& partitions) {
  WEIR_TRY(check_open());
  if (membership_) {
    return Error(Errc::kInvalidArgument,
                 "the consumer is subscribed to topics; unsubscribe() before assign()");
  }
  auto_commit_now().ignore("it was logged");
  return fetches_->assign(partitions);
}

Status Consumer::subscribe(std::vector<std::string> topics, GroupListener* listener) {
  WEIR_TRY(check_group("subscribe"));
  if (topics.empty()) {
    return unsubscribe();
  }
  if (!membership_ && !fetches_->all().empty()) {
    return Error(Errc::kInvalidArgument,
                 "partitions were assigned to the consumer; unsubscribe() before subscribe()");
  }
  commits_->drain();
  std::unique_ptr<Membership> before = std::exchange(
      membership_, std::make_unique<Membership>(
                       *fetches_, listener, [this] { auto_commit_now().ignore("it was logged"); }));
  if (Status joined = group_->join(topics, "", *membership_); !joined.ok()) {
    membership_ = std::move(before);
    return joined;
  }
  topics_ = std::move(topics);
  return {};
}

Status Consumer::unsubscribe() {
  WEIR_TRY(check_open());
  return stop_reading();
}

Status Consumer::stop_reading() {
  if (!membership_) {
    auto_commit_now().ignore("it was logged");
    return fetches_->assign({});
  }
  membership_->revoke_all();
  commits_->drain();
  Status left = group_->leave();
  membership_.reset();
  topics_.clear();
  return left;
}

Status Consumer::close() {
  if (closed_) {
    return {};
  }
  Status committed = auto_commit_now();
  Status stopped = stop_reading();
  if (commits_) {
    commits_->drain();
    commits_->run_callbacks();
  }
  closed_ = true;
  return committed.ok() ? std::move(stopped) : std::move(committed);
}

std::vector<TopicPartition> Consumer::assignment() const {
  std::vector<TopicPartition> partitions;
  for (const Fetches::Assigned& assigned : fetches_->all()) {
    partitions.push_back(*assigned.name);
  }
  return partitions;
}

Result<GroupMetadata> Consumer::group_metadata() const {
  WEIR_TRY(check_group("tell its membership"));
  return group_->metadata();
}

void Consumer::wakeup() {
  woken_.store(true, std::memory_order_release);
  source_->wakeup();
}

// While a commit is under way its thread has the group; the next look is soon enough.
Status Consumer::poll_group() {
  if (!membership_ || !commits_->idle()) {
    return {};
  }
  WEIR_TRY(group_->poll());
  return membership_->take_failure();
}

// How long to wait for records before something else is due.
Duration Consumer::wait_limit(Duration left) const {
  Duration limit = left;
  if (membership_) {
    limit = std::min(limit, kGroupInterval);
  }
  if (commits_automatically()) {
    limit = std::min(limit, std::max(kWaitMin, next_auto_commit_ - clock_.monotonic()));
  }
  return std::max(limit, Duration::zero());
}

Result<ConsumerRecords> Consumer::poll(Duration timeout) {
  WEIR_TRY(check_open());
  if (!membership_ && fetches_->all().empty()) {
    return Error(Errc::kInvalidArgument,
                 "the consumer reads nothing; assign() partitions or subscribe() to topics");
  }
  if (commits_) {
    commits_->run_callbacks();
  }
  // A wait is real time, whatever the clock of the commits says.
  const MonotonicTime deadline = system_clock().monotonic() + std::min(timeout, kTimeoutMax);
  bool retried = false;
  for (;;) {
    WEIR_TRY(poll_group());
    auto_commit_if_due();
    const Status found = find_positions();
    // An open transaction decides where its reader goes on; what has a position is read meanwhile.
    const bool unstable = !found.ok() && found.error().code() == Errc::kUnstableOffset;
    WEIR_TRY(unstable ? Status() : found);
    if (woken_.exchange(false, std::memory_order_acq_rel)) {
      return ConsumerRecords();
    }
    std::vector<ConsumerBatch> batches = fetches_->take(options_.poll_records_max);
    if (!batches.empty()) {
      return ConsumerRecords(std::move(batches));
    }
    const Status failure = fetches_->failure();
    const Duration left = failure.ok() ? deadline - system_clock().monotonic() : Duration::zero();
    WEIR_TRY_ASSIGN(const bool moved,
                    fetch(wait_limit(unstable ? std::min(left, kUnstableRetry) : left)));
    batches = fetches_->take(options_.poll_records_max);
    if (!batches.empty()) {
      return ConsumerRecords(std::move(batches));
    }
    WEIR_TRY(failure);
    if (left <= Duration::zero() && (!moved || std::exchange(retried, true))) {
      return ConsumerRecords();
    }
  }
}

Result<bool> Consumer::fetch(Duration timeout) {
  WEIR_TRY_ASSIGN(std::vector<RecordBlock> blocks, source_->poll(timeout));
  bool moved = false;
  Status failure;
  for (RecordBlock& block : blocks) {
    const std::uint32_t index = block.assignment;
    const Status status = block.status.ok() ? fetches_->add(std::move(block)) : block.status;
    if (status.ok()) {
      continue;
    }
    // Everything else of this fetch is kept before the error is told.
    if (Status recovered = recover_position(index, status.error()); recovered.ok()) {
      moved = true;
    } else if (failure.ok()) {
      failure = std::move(recovered);
    }
  }
  WEIR_TRY(failure);
  return moved;
}

Status Consumer::recover_position(std::uint32_t index, const Error& error) {
  Fetches::Assigned& assigned = fetches_->at(index);
  if (error.code() == Errc::kUnknownTopic && membership_) {
    return {};  // the group tells that the partition is lost
  }
  if (error.code() != Errc::kOffsetOutOfRange || reset_->kind == OffsetReset::Kind::kNone) {
    assigned.failure =
        error.code() == Errc::kOffsetOutOfRange
            ? Error(error.code(),
                    fmt::format("{}; auto.offset.reset is none: set it to earliest or latest, or "
                                "seek",
                                error.message()))
            : error;
    assigned.fetched.clear();
    return assigned.failure;
  }
  const Offset lost = assigned.position;
  WEIR_TRY(reset_position(index, error.message()));
  WEIR_WARN(
      "position was outside the log partition={} group={} position={} records_gone={} "
      "continues_at={}",
      assigned.name->to_string(), options_.group_id, lost.value(),
      std::max<std::int64_t>(0, assigned.position.value() - lost.value()),
      assigned.position.value());
  return {};
}

Status Consumer::find_positions() {
  std::vector<std::uint32_t> unset;
  for (std::uint32_t i = 0; i < fetches_->all().size(); ++i) {
    if (fetches_->at(i).position == kNoOffset) {
      unset.push_back(i);
    }
  }
  return find_positions(unset);
}

Status Consumer::find_positions(std::span<const std::uint32_t> indices) {
  if (indices.empty()) {
    return {};
  }
  std::vector<TopicPartition> names;
  for (const std::uint32_t index : indices) {
    names.push_back(*fetches_->at(index).name);
  }
  std::vector<std::optional<CommittedOffset>> committed(names.size());
  if (group_) {
    commits_->drain();
    WEIR_TRY_ASSIGN(committed, options_.isolation_level == IsolationLevel::kReadCommitted
                                   ? group_->committed_stable(names)
                                   : group_->committed(names));
  }
  Status failure;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    Fetches::Assigned& assigned = fetches_->at(indices[i]);
    Status found = find_position(indices[i], committed[i]);
    if (found.ok() || (membership_ && found.error().code() == Errc::kUnknownTopic)) {
      continue;  // the group tells that the partition is lost
    }
    if (assigned.failure.ok() && failure.ok()) {
      failure = found;
    }
    assigned.failure = std::move(found);
  }
  return failure;
}

Status Consumer::find_position(std::uint32_t index,
                               const std::optional<CommittedOffset>& committed) {
  if (fetches_->at(index).start) {
    return reset_position(index, "");
  }
  return committed ? start_at_committed(index, *committed)
                   : reset_position(index, "no offset is committed");
}

Status Consumer::start_at_committed(std::uint32_t index, const CommittedOffset& committed) {
  Fetches::Assigned& assigned = fetches_->at(index);
  assigned.committed = committed.offset;
  if (committed.leader_epoch != kNoLeaderEpoch) {
    WEIR_TRY_ASSIGN(const std::optional<Offset> end,
                    backend_.admin().epoch_end_offset(*assigned.name, committed.leader_epoch));
    if (end && *end < committed.offset) {
      const std::string what = fmt::format(
          "offset {} of {} was committed in leader epoch {}, which ended at {}: the log lost the "
          "records between",
          committed.offset.value(), assigned.name->to_string(), committed.leader_epoch.value(),
          end->value());
      if (reset_->kind == OffsetReset::Kind::kNone) {
        return Error(Errc::kOffsetOutOfRange,
                     what + "; auto.offset.reset is none: set it to earliest or latest, or seek");
      }
      WEIR_WARN("{} group={} continues_at={}", what, options_.group_id, end->value());
      return fetches_->seek(index, *end, committed.leader_epoch);
    }
  }
  return fetches_->seek(index, committed.offset, committed.leader_epoch);
}

Status Consumer::reset_position(std::uint32_t index, const std::string& why) {
  Fetches::Assigned& assigned = fetches_->at(index);
  const OffsetReset& reset = assigned.start ? *assigned.start : *reset_;
  if (reset.kind == OffsetReset::Kind::kNone) {
    return Error(Errc::kOffsetOutOfRange,
                 fmt::format("{} of group '{}': {} and auto.offset.reset is none; set it to "
                             "earliest or latest, or seek",
                             assigned.name->to_string(), options_.group_id, why));
  }
  WEIR_TRY_ASSIGN(const ResetPosition found,
                  find_reset_position(backend_.admin(), *assigned.name, reset, clock_,
                                      options_.isolation_level));
  return fetches_->seek(index, found.offset, found.leader_epoch);
}

}  // namespace weir::log
