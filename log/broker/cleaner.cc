#include "log/broker/cleaner.h"

#include "log/compaction/log_survey.h"
#include "log/partition/retention.h"
#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace weir::log {
namespace {

constexpr std::uint64_t kStepBytesMax = 1U << 20U;
constexpr std::uint64_t kStepBytesMin = 64U << 10U;
constexpr std::size_t kRetainedInAStep = 64;  // partitions
// A look at the clock when nothing else is to be done; a clock may be set.
constexpr auto kIdleWait = std::chrono::hours(1);

PartitionKey key_of(const CleanupTarget& target) {
  return {target.topic_id, target.name.partition};
}

// Its segments went, or it was closed: no fault of the partition.
bool is_passing(Errc code) {
  return is_shortage(code) || code == Errc::kNotFound || code == Errc::kClosed ||
         code == Errc::kUnknownTopic;
}

// A clock that was set back is no reason to wait for it.
std::int64_t passed(Timestamp since, Timestamp now) {
  return std::max<std::int64_t>(now - since, 0);
}

}  // namespace

Cleaner::Cleaner(FileSystem& files, const Clock& clock, std::string horizons_path,
                 CleanerOptions options, std::map<PartitionKey, Offset> clean_ends,
                 TombstoneHorizons horizons, Host host)
    : files_(files),
      clock_(clock),
      horizons_path_(std::move(horizons_path)),
      options_(options),
      host_(std::move(host)),
      clean_ends_(std::move(clean_ends)),
      horizons_(std::move(horizons)) {}

// --- Steps

Duration Cleaner::step() {
  const MutexLock one(step_mutex_);
  if (stopped_) {
    return kIdleWait;
  }
  if (todo_.empty() && retention_is_due()) {
    begin_retention();
  }
  if (!todo_.empty()) {
    for (std::size_t i = 0; i < kRetainedInAStep && !todo_.empty(); ++i) {
      const CleanupTarget target = std::move(todo_.back());
      todo_.pop_back();
      if (Status kept = retain(target); !kept.ok() && !is_passing(kept.error().code())) {
        WEIR_WARN("old records stay partition={} error=\"{}\"", target.name.to_string(),
                  kept.error().message());
      }
    }
    return Duration::zero();
  }
  if (!running_ && options_.compacts &&
      (looked_ == kNoTimestamp || passed(looked_, clock_.now()) >= options_.backoff_ms)) {
    Status failure;
    if (std::optional<Candidate> next = dirtiest(&failure)) {
      const CleanupTarget target = next->target;
      if (Status begun = begin_pass(*std::move(next)); !begun.ok()) {
        note_failure(target, begun.error());
      }
      return Duration::zero();
    }
    looked_ = clock_.now();
  }
  if (!running_) {
    return until_work();
  }
  const std::uint64_t budget = std::clamp(
      static_cast<std::uint64_t>(options_.io_bytes_per_second) / 4, kStepBytesMin, kStepBytesMax);
  std::uint64_t bytes = 0;
  pass_step(budget, &bytes).status().ignore("it was told");
  return time_for(bytes);
}

Duration Cleaner::time_for(std::uint64_t bytes) const {
  const double seconds =
      static_cast<double>(bytes) / static_cast<double>(options_.io_bytes_per_second);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

Duration Cleaner::until_work() const {
  const Timestamp now = clock_.now();
  std::int64_t left = options_.retention_check_interval_ms - passed(retained_, now);
  if (options_.compacts) {
    left = std::min(left, options_.backoff_ms - passed(looked_, now));
  }
  return std::min<Duration>(std::chrono::milliseconds(std::max<std::int64_t>(left, 0)), kIdleWait);
}

Status Cleaner::clean_now() {
  const MutexLock one(step_mutex_);
  Status first;
  const auto note = [&first](Status status) {
    if (!status.ok() && first.ok()) {
      first = std::move(status);
    }
  };
  if (stopped_) {
    return Error(Errc::kClosed, "the log is closed");
  }
  begin_retention();
  while (!todo_.empty()) {
    const CleanupTarget target = std::move(todo_.back());
    todo_.pop_back();
    note(retain(target));
  }
  if (running_) {
    note(run_pass());
  }
  for (auto& [key, failure] : failed_) {
    failure.tried = INT64_MIN;  // what passes may have passed
  }
  while (!stopped_) {
    std::optional<Candidate> next = dirtiest(&first);
    if (!next) {
      break;
    }
    const CleanupTarget target = next->target;
    Status done = begin_pass(*std::move(next));
    if (!done.ok()) {
      note_failure(target, done.error());
    } else {
      done = run_pass();
    }
    note(std::move(done));
  }
  return first;
}

Status Cleaner::compact_now(const TopicPartition& name) {
  const MutexLock one(step_mutex_);
  if (stopped_) {
    return Error(Errc::kClosed, "the log is closed");
  }
  if (running_) {
    WEIR_TRY(run_pass());
  }
  for (const CleanupTarget& target : host_.targets()) {
    if (target.name != name) {
      continue;
    }
    if (!target.settings.compacts) {
      return Error(
          Errc::kInvalidConfig,
          fmt::format("{} is not compacted: its cleanup.policy is delete; set it to compact",
                      name.topic));
    }
    failed_.erase(key_of(target));
    WEIR_TRY_ASSIGN(std::optional<Candidate> candidate, examine(target));
    if (!candidate || candidate->range.end == Offset(0)) {
      return Status();
    }
    if (Status begun = begin_pass(*std::move(candidate)); !begun.ok()) {
      note_failure(target, begun.error());
      return begun;
    }
    return run_pass();
  }
  return Status();  // it has no records yet
}

void Cleaner::forget(const Uuid& topic_id) {
  ++wait_for_turn_;
  const MutexLock one(step_mutex_);
  --wait_for_turn_;
  turn_.notify_all();
  const auto is_its = [&topic_id](const auto& entry) { return entry.first.first == topic_id; };
  if (running_ && running_->target.topic_id == topic_id) {
    running_.reset();
  }
  std::erase_if(failed_, is_its);
  const MutexLock lock(mutex_);
  std::erase_if(clean_ends_, is_its);
  std::erase_if(horizons_, is_its);
}

void Cleaner::stop() {
  ++wait_for_turn_;
  const MutexLock one(step_mutex_);
  --wait_for_turn_;
  turn_.notify_all();
  stopped_ = true;
  running_.reset();
  todo_.clear();
}

// --- Retention

bool Cleaner::retention_is_due() const {
  return retained_ == kNoTimestamp ||
         passed(retained_, clock_.now()) >= options_.retention_check_interval_ms;
}

void Cleaner::begin_retention() {
  retained_ = clock_.now();
  todo_ = host_.targets();
  std::erase_if(todo_, [](const CleanupTarget& target) {
    const CleanupSettings& settings = target.settings;
    return !settings.deletes || (settings.retention_ms < 0 && settings.retention_bytes < 0);
  });
  std::reverse(todo_.begin(), todo_.end());
}

Status Cleaner::retain(const CleanupTarget& target) {
  const std::shared_ptr<Partition> partition = host_.open(target.name);
  if (partition == nullptr) {
    return Status();
  }
  const Timestamp now = clock_.now();
  const PartitionOffsets at = partition->offsets();
  std::vector<RetainedSegment> segments;
  bool asks_for_age = target.settings.retention_ms >= 0;
  for (const std::shared_ptr<Segment>& segment : partition->segments()) {
    const auto [size, end] = segment->published_end();
    RetainedSegment facts{segment->base_offset(), end, size, std::nullopt};
    if (asks_for_age && size > 0) {
      WEIR_TRY_ASSIGN(Timestamp largest, segment->largest_timestamp());
      if (largest < 0) {
        WEIR_TRY_ASSIGN(const FileInfo info, files_.info(segment->path(kLogSuffix)));
        largest = info.modified;
      }
      facts.largest_timestamp = largest;
      asks_for_age = is_expired(largest, target.settings, now);
    }
    segments.push_back(facts);
  }
  const RetentionDecision decision =
      decide_retention(segments, target.settings, at.log_start, at.high_watermark, now);
  if (decision.log_start == at.log_start) {
    // Segments below it are left of a round that could not finish.
    const bool is_left = segments.size() > 1 && segments[1].base <= at.log_start;
    return is_left ? host_.give_up(*partition, at.log_start) : Status();
  }
  if (decision.rolls_active) {
    WEIR_TRY(partition->roll_active());
  }
  WEIR_TRY(host_.give_up(*partition, decision.log_start));
  const bool by_time = decision.reason == RetentionReason::kTime;
  // The time too: a producer that stamps in seconds has all its records removed.
  WEIR_INFO("old records removed partition={} log_start={} setting={} newest_timestamp={} now={}",
            target.name.to_string(), decision.log_start.value(),
            by_time ? "retention.ms" : "retention.bytes", decision.newest, now);
  const MutexLock lock(mutex_);
  progress_.records_expired +=
      static_cast<std::uint64_t>(decision.log_start.value() - at.log_start.value());
  return Status();
}

// --- Compaction

Result<std::optional<Cleaner::Candidate>> Cleaner::examine(const CleanupTarget& target) {
  const std::shared_ptr<Partition> partition = host_.open(target.name);
  if (partition == nullptr) {
    return std::optional<Candidate>();
  }
  const PartitionOffsets at = partition->offsets();
  // Read before the list, so that no segment is sealed in between.
  const Offset limit = std::min({at.last_stable, at.high_watermark, partition->recovery_point()});
  const std::vector<std::shared_ptr<Segment>> all = partition->segments();
  std::vector<SegmentFacts> facts;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    SegmentFacts one{all[i]->base_offset(), all[i + 1]->base_offset(), all[i]->size_bytes()};
    const bool is_dirty = one.end > clean_end(key_of(target)).value_or(Offset(0));
    if (is_dirty && target.settings.min_compaction_lag_ms > 0) {
      WEIR_TRY_ASSIGN(one.largest_timestamp, all[i]->largest_timestamp());
    }
    if (is_dirty && target.settings.max_compaction_lag_ms < INT64_MAX) {
      WEIR_TRY_ASSIGN(one.first_timestamp, all[i]->first_timestamp());
    }
    facts.push_back(one);
  }
  Candidate candidate{
      target, partition,
      cleanable_range(facts, target.settings, limit, clean_end(key_of(target)), clock_.now())};
  return std::optional(std::move(candidate));
}

std::optional<Cleaner::Candidate> Cleaner::dirtiest(Status* first) {
  std::optional<Candidate> best;
  for (const CleanupTarget& target : host_.targets()) {
    if (!target.settings.compacts || rests(key_of(target))) {
      continue;
    }
    Result<std::optional<Candidate>> candidate = examine(target);
    if (!candidate.ok()) {
      note_failure(target, candidate.error());
      if (first->ok()) {
        *first = candidate.status();
      }
    } else if (*candidate && (*candidate)->range.is_due &&
               (!best || (*candidate)->range.dirty_ratio() > best->range.dirty_ratio())) {
      best = *std::move(candidate);
    }
  }
  return best;
}

Status Cleaner::begin_pass(Candidate candidate) {
  // A start after a crash compares what is not on record as flushed with the write-ahead log: a
  // compacted batch would be taken for one that a power cut brought back.
  WEIR_TRY_ASSIGN(const Offset flushed, host_.record_flushed(*candidate.partition));
  if (flushed < candidate.range.end) {
    return Error(Errc::kClosed,
                 fmt::format("{} was not flushed up to offset {} after all",
                             candidate.target.name.to_string(), candidate.range.end.value()));
  }
  WEIR_TRY_ASSIGN(LogSurvey survey, survey_log(*candidate.partition, clock_.now()));
  CompactionPlan plan;
  plan.range = candidate.range;
  plan.now = clock_.now();
  plan.map_bytes_max = options_.dedupe_buffer_bytes;
  plan.seed = std::hash<Uuid>{}(candidate.target.topic_id) + ++passes_begun_;
  plan.aborted = std::move(survey.aborted);
  plan.producers = std::move(survey.producers);
  const PartitionKey key = key_of(candidate.target);
  running_ = Running{std::move(candidate.target),
                     std::make_unique<CompactionPass>(
                         files_, std::move(candidate.partition), std::move(plan),
                         [this, key](Offset horizon) { return raise_horizon(key, horizon); })};
  return Status();
}

Result<std::uint64_t> Cleaner::step_alone(std::uint64_t budget) {
  const MutexLock lock(host_.maintenance);
  return running_->pass->step(budget);
}

Result<bool> Cleaner::pass_step(std::uint64_t budget, std::uint64_t* bytes) {
  Result<std::uint64_t> done = step_alone(budget);
  Status status = done.status();
  if (done.ok()) {
    *bytes = *done;
    if (*done > 0) {
      return true;
    }
    status = finish_pass();
  }
  if (!status.ok()) {
    note_failure(running_->target, status.error());
  }
  running_.reset();
  return status.ok() ? Result<bool>(false) : Result<bool>(status.error());
}

Status Cleaner::run_pass() {
  while (true) {
    std::uint64_t bytes = 0;
    WEIR_TRY_ASSIGN(const bool more, pass_step(kStepBytesMax, &bytes));
    if (!more) {
      return Status();
    }
    while (wait_for_turn_ > 0) {
      turn_.wait(step_mutex_);
    }
    if (!running_) {
      return stopped_ ? Error(Errc::kClosed, "the log is closed")
                      : Error(Errc::kUnknownTopic, "the topic was deleted during the pass");
    }
  }
}

Status Cleaner::finish_pass() {
  const CompactionPass& pass = *running_->pass;
  const CompactionCounts& counts = pass.counts();
  failed_.erase(key_of(running_->target));
  {
    const MutexLock lock(mutex_);
    clean_ends_[key_of(running_->target)] = pass.clean_end();
    ++progress_.passes;
    progress_.bytes_read += counts.bytes_read;
    progress_.bytes_written += counts.bytes_written;
    progress_.records_compacted += counts.records_read - counts.records_kept;
  }
  WEIR_INFO(
      "compacted partition={} clean_end={} keys={} records={} kept={} without_key={} bytes={} "
      "left_bytes={}",
      running_->target.name.to_string(), pass.clean_end().value(), pass.keys(), counts.records_read,
      counts.records_kept, counts.records_without_key, counts.bytes_read, counts.bytes_written);
  return host_.write_checkpoint();
}

bool Cleaner::rests(const PartitionKey& key) const {
  const auto failed = failed_.find(key);
  if (failed == failed_.end()) {
    return false;
  }
  const Timestamp tried = failed->second.tried;
  return !is_passing(failed->second.error.code()) ||
         (tried != INT64_MIN &&
          passed(tried, clock_.now()) < std::max<std::int64_t>(options_.backoff_ms, 1));
}

// Told once; another reason is told, too.
void Cleaner::note_failure(const CleanupTarget& target, const Error& error) {
  const auto [at, is_new] = failed_.try_emplace(key_of(target), Failure{error, clock_.now()});
  at->second.tried = clock_.now();
  if (!is_new && at->second.error.code() == error.code()) {
    return;
  }
  at->second.error = error;
  if (!is_passing(error.code())) {
    WEIR_ERROR("partition is not compacted until the next start partition={} error=\"{}\"",
               target.name.to_string(), error.message());
    const MutexLock lock(mutex_);
    ++progress_.partitions_failed;
  } else if (is_shortage(error.code())) {
    WEIR_WARN("compaction waits for room partition={} error=\"{}\"", target.name.to_string(),
              error.message());
  }
}

Status Cleaner::raise_horizon(const PartitionKey& key, Offset horizon) {
  TombstoneHorizons raised;
  {
    const MutexLock lock(mutex_);
    const auto known = horizons_.find(key);
    if (horizon <= (known == horizons_.end() ? Offset(0) : known->second)) {
      return Status();
    }
    raised = horizons_;
  }
  raised[key] = horizon;
  WEIR_TRY(write_tombstone_horizons(files_, horizons_path_, raised));
  const MutexLock lock(mutex_);
  horizons_ = std::move(raised);
  return Status();
}

// --- What is known

std::optional<Offset> Cleaner::clean_end(const PartitionKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = clean_ends_.find(key);
  return found == clean_ends_.end() ? std::nullopt : std::optional(found->second);
}

std::map<PartitionKey, Offset> Cleaner::clean_ends() const {
  const MutexLock lock(mutex_);
  return clean_ends_;
}

Offset Cleaner::tombstone_horizon(const PartitionKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = horizons_.find(key);
  return found == horizons_.end() ? Offset(0) : found->second;
}

CleanerProgress Cleaner::progress() const {
  const MutexLock lock(mutex_);
  return progress_;
}

}  // namespace weir::log
