#include "runtime/dispatch/dispatcher.h"

#include <weir/runtime/assert.h>

#include <algorithm>
#include <utility>

// What the dispatcher commits, what it reads back, and which gaps it lets go of.

namespace weir::internal {

namespace {

constexpr std::size_t kUnfinishedMax = 8'192;  // more never fit into a lane map
constexpr std::size_t kSessionsMax = 512;
constexpr std::size_t kSeenSessions = 2'048;  // a power of two, well above kSessionsMax
constexpr std::uint64_t kGapSkipsSaved = 16;  // an outage must not dump the log

// True when `hash` was not in `table` (open addressing; 0 is no entry).
bool insert_hash(std::vector<std::uint64_t>& table, std::uint64_t hash) {
  for (std::size_t i = hash % kSeenSessions;; i = (i + 1) % kSeenSessions) {
    if (table[i] == hash + 1) {
      return false;
    }
    if (table[i] == 0) {
      table[i] = hash + 1;
      return true;
    }
  }
}

}  // namespace

// Everything that decides which records are one session.
std::uint16_t Dispatcher::session_maker() const {
  const unsigned nulls = options_.has_unordered_null_sessions ? kExtractorsMax : 0U;
  return static_cast<std::uint16_t>(options_.extractor | nulls);
}

void Dispatcher::read_map(Partition& partition, const CommittedOffset& committed, Offset log_end) {
  Result<CommitMetadata> metadata = decode_commit_metadata(committed.metadata);
  if (!metadata.ok()) {
    ++counters_.maps_ignored;
    return;
  }
  const std::string bytes = std::exchange(metadata->lane_map, {});
  partition.times = std::move(metadata).value();
  if (bytes.empty()) {
    return;
  }
  Result<LaneMap> map = decode_lane_map(bytes);
  if (!map.ok() || map->base != committed.offset ||
      (map->form == LaneMap::Form::kSessions && map->extractor != session_maker())) {
    ++counters_.maps_ignored;
    return;
  }
  partition.finished.emplace(std::move(map).value());
  if (log_end != kNoOffset) {
    partition.finished->cut(log_end);
  }
}

void Dispatcher::list_unfinished(const CommitTracker& tracker, LaneMap& offsets,
                                 LaneMap& sessions) {
  const Offset highest = tracker.highest_done();
  offsets.last = sessions.last = highest;
  seen_sessions_.assign(kSeenSessions, 0);
  bool takes_offsets = true;
  bool takes_sessions = true;
  tracker.for_each_unfinished([&](std::uint64_t, Offset offset, std::uint64_t hash) {
    if (offset > highest) {
      return false;
    }
    if (takes_offsets && offsets.unfinished.size() == kUnfinishedMax) {
      offsets.last = offset.plus(-1);
      takes_offsets = false;
    }
    if (takes_offsets) {
      offsets.unfinished.push_back(offset);
    }
    const std::uint64_t session = hash & kSessionHashMask;
    if (takes_sessions && insert_hash(seen_sessions_, session)) {
      if (sessions.heads.size() == kSessionsMax) {
        sessions.last = offset.plus(-1);
        takes_sessions = false;
      } else {
        sessions.heads.push_back({session, offset});
      }
    }
    return takes_offsets || takes_sessions;
  });
}

std::string Dispatcher::lane_map(const Partition& partition, std::size_t bytes_max) {
  const CommitTracker& tracker = *partition.tracker;
  const Offset base = tracker.commit_value();
  LaneMap offsets{.base = base, .last = base.plus(-1)};
  for (const auto& [seq, failures] : partition.failures) {
    if (offsets.attempts.size() < kLaneMapAttemptsMax) {
      offsets.attempts.push_back(
          {tracker.offset_of(seq), static_cast<std::uint8_t>(std::min<unsigned>(failures, 255))});
    }
  }
  LaneMap sessions = offsets;
  sessions.form = LaneMap::Form::kSessions;
  sessions.extractor = session_maker();
  if (tracker.highest_done() >= base) {
    list_unfinished(tracker, offsets, sessions);
  } else if (offsets.attempts.empty()) {
    return {};
  }
  const LaneMap forms[] = {std::move(offsets), std::move(sessions)};
  return encode_lane_map(forms, bytes_max);
}

std::optional<PartitionCommit> Dispatcher::snapshot(std::uint32_t number) {
  Partition& partition = partitions_[number];
  if (partition.state == State::kUnassigned) {
    return std::nullopt;
  }
  const CommitTracker& tracker = *partition.tracker;
  if (tracker.version() == partition.acked_version) {
    return std::nullopt;
  }
  const Offset value = tracker.commit_value();
  if (value < partition.acked) {
    ++counters_.commit_regressions;
    return std::nullopt;
  }
  CommitMetadata metadata = partition.times;
  const bool may_have_map = options_.writes_lane_map && !partition.drops_map;
  if (may_have_map) {
    metadata.lane_map = lane_map(partition, lane_map_room(metadata));
  }
  PartitionCommit commit{
      .partition = number,
      .epoch = partition.epoch,
      .version = tracker.version(),
      .offset = {value, tracker.commit_epoch(), encode_commit_metadata(metadata)},
      .may_have_map = may_have_map};
  if (value == partition.acked && commit.offset.metadata == partition.acked_metadata) {
    partition.acked_version = commit.version;
    return std::nullopt;
  }
  return commit;
}

bool Dispatcher::is_commit_due(MonotonicTime now) const {
  if (!in_flight_.empty()) {
    return false;
  }
  const bool is_time = now - last_commit_ >= options_.commit_interval;
  return std::any_of(partitions_.begin(), partitions_.end(), [&](const Partition& partition) {
    return partition.state != State::kUnassigned &&
           partition.tracker->version() != partition.acked_version &&
           (is_time || partition.drops_map || partition.newly_terminal >= options_.commit_records);
  });
}

std::vector<PartitionCommit> Dispatcher::begin_commit(MonotonicTime now,
                                                      std::span<const std::uint32_t> only) {
  WEIR_ASSERT(in_flight_.empty());
  last_commit_ = now;
  for (std::uint32_t number = 0; number < partitions_.size(); ++number) {
    if (!only.empty() && std::find(only.begin(), only.end(), number) == only.end()) {
      continue;
    }
    std::optional<PartitionCommit> commit = snapshot(number);
    if (commit.has_value()) {
      partitions_[number].newly_terminal = 0;
      in_flight_.push_back(std::move(*commit));
    }
  }
  return in_flight_;
}

void Dispatcher::finish_commit(CommitResult result) {
  for (PartitionCommit& commit : std::exchange(in_flight_, {})) {
    Partition& partition = partitions_[commit.partition];
    if (partition.epoch != commit.epoch) {
      continue;
    }
    switch (result) {
      case CommitResult::kOk:
        partition.acked = commit.offset.offset;
        partition.acked_metadata = std::move(commit.offset.metadata);
        partition.acked_version = commit.version;
        partition.drops_map = false;
        break;
      case CommitResult::kMetadataTooLarge:
        ++counters_.maps_dropped;
        partition.drops_map = true;
        break;
      case CommitResult::kRetry:
      case CommitResult::kFenced:
        break;
    }
  }
}

bool Dispatcher::may_skip(const Partition& partition, Duration age) const {
  if (age <= options_.gap_timeout || partition.gap_credit < options_.gap_token_records) {
    return false;
  }
  const CommitTracker& tracker = *partition.tracker;
  const std::size_t done = tracker.window() - tracker.unfinished();
  const bool is_nearly_full =
      tracker.window() * 10 > options_.window_max * 9 && done * 100 >= tracker.window() * 98;
  return !options_.has_gap_guard || is_nearly_full || age > options_.gap_timeout * 10;
}

void Dispatcher::check_gaps(MonotonicTime now) {
  if (options_.gap_timeout == Duration::zero()) {
    return;
  }
  for (std::uint32_t number = 0; number < partitions_.size(); ++number) {
    Partition& partition = partitions_[number];
    if (partition.state != State::kOpen || partition.tracker->empty()) {
      continue;
    }
    partition.gap_credit =
        std::min(partition.gap_credit, kGapSkipsSaved * options_.gap_token_records);
    for (const CommitTracker::Unfinished& stuck : partition.tracker->stuck(1)) {
      // Asked for again when the first time came to nothing (no skip while no letter is written).
      const bool is_asked =
          stuck.seq == partition.skipping && now - partition.skipping_since <= options_.gap_timeout;
      if (is_asked || !may_skip(partition, now - stuck.accepted_at)) {
        continue;
      }
      partition.gap_credit -= options_.gap_token_records;
      partition.skipping = stuck.seq;
      partition.skipping_since = now;
      send_command(worker_of(number, stuck.session_hash),
                   {.kind = ShardCommand::Kind::kSkip,
                    .partition = number,
                    .epoch = partition.epoch,
                    .seq = static_cast<std::uint32_t>(stuck.seq)});
    }
  }
}

std::vector<CommitTracker::Unfinished> Dispatcher::stuck(std::uint32_t partition,
                                                         std::size_t count) const {
  return is_assigned(partition) ? partitions_[partition].tracker->stuck(count)
                                : std::vector<CommitTracker::Unfinished>();
}

}  // namespace weir::internal
