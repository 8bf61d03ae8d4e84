#include "state/store/checkpoint_job.h"
#include "state/store/ordered_index.h"

#include <weir/runtime/logger.h>
#include <weir/state/key_value_store.h>

#include <utility>

// The store's side of a checkpoint: freeze, copy on write, settle.

namespace weir::state {
namespace {

constexpr std::int64_t kRefreshAfterMs = 3'600'000;

// Whether both stand at the same record, whenever they were made.
bool same_place(StorePosition a, const StorePosition& b) {
  a.time = b.time;
  return a == b;
}

}  // namespace

// A moment at which nothing had been appended above position_: what is above it is younger, and so
// are its tombstones. During a restore that is the time of the checkpoint it began with.
Timestamp KeyValueStore::checkpoint_time() const {
  if (!caught_up_) {
    return checkpoint_time_;
  }
  return changelog_begun_ ? promoted_at_ : clock_.now();
}

void KeyValueStore::mark_dirty(Entry& entry) {
  if (options_.mode != StoreMode::kHot) {
    return;
  }
  entry.dirty.store(dirty_generation(), std::memory_order_relaxed);
  dirty_.push_back(&entry);
  dirty_bytes_ += footprint(entry);
}

void KeyValueStore::preserve_frozen(Entry& entry) {
  if (job_ == nullptr) {
    return;
  }
  const std::uint8_t dirty = entry.dirty.load(std::memory_order_acquire);
  if (dirty == kBusy || dirty == job_->generation()) {
    job_->preserve(entry);
  }
}

Status KeyValueStore::begin_checkpoint() {
  WEIR_TRY(poll_checkpoint());
  return start_checkpoint();
}

// A position ages although nothing changes: written anew while it is surely right, it stays valid
// for a backend that only knows delete.retention.ms.
bool KeyValueStore::checkpoint_is_current() const {
  return dirty_.empty() && checkpointed_.has_value() && same_place(*position_, *checkpointed_) &&
         (!caught_up_ || clock_.now() - checkpoint_time_ < kRefreshAfterMs);
}

Status KeyValueStore::start_checkpoint() {
  if (options_.mode == StoreMode::kMemory || !position_.has_value() || job_ != nullptr ||
      checkpoint_is_current()) {
    return {};
  }
  StorePosition position = *position_;
  position.time = checkpoint_time();
  const bool is_direct = options_.mode == StoreMode::kDirect;
  if (is_direct) {
    WEIR_TRY(checkpoints_->write({}, position));
  }
  const std::uint8_t frozen = dirty_generation();
  job_ = std::make_shared<CheckpointJob>(*checkpoints_, std::exchange(dirty_, {}), frozen, position,
                                         is_direct);
  frozen_bytes_ = std::exchange(dirty_bytes_, 0);
  odd_generation_ = !odd_generation_;
  if (background_ == nullptr) {
    job_->run_if_waiting();
    return settle();
  }
  background_->post([job = job_] { job->run_if_waiting(); });
  return {};
}

Status KeyValueStore::poll_checkpoint() {
  if (job_ != nullptr && job_->done()) {
    remember(settle());
  }
  return std::exchange(failure_, Status());
}

Status KeyValueStore::wait_checkpoint() {
  finish_checkpoint();
  return std::exchange(failure_, Status());
}

void KeyValueStore::finish_checkpoint() {
  if (job_ == nullptr) {
    return;
  }
  // The executor may be busy or stopped: built here unless it has begun.
  job_->run_if_waiting();
  job_->wait();
  remember(settle());
}

void KeyValueStore::remember(Status failure) {
  if (!failure.ok()) {
    failure_ = std::move(failure);
  }
}

// Requires: the job is done.
Status KeyValueStore::settle() {
  const std::shared_ptr<CheckpointJob> job = std::exchange(job_, nullptr);
  frozen_bytes_ = 0;
  if (!job->result().ok()) {
    metrics_.checkpoint_failures.add(1);
    for (Entry* entry : job->entries()) {
      if (entry->dirty.load(std::memory_order_acquire) == kClean) {
        mark_dirty(*entry);
      }
    }
    return Error(job->result().error()).with_context("checkpoint of store " + options_.name);
  }
  metrics_.checkpoints.add(1);
  checkpointed_ = job->position();
  checkpoint_time_ = job->position().time;
  ++checkpoint_version_;
  release_deleted(job->entries());
  publish_metrics();
  WEIR_DEBUG("checkpoint done store={} keys={} next_offset={}", options_.name,
             job->entries().size(), job->position().next_offset.value());
  return {};
}

// Deleted keys whose delete is where it must be are of no use in memory.
void KeyValueStore::release_deleted(const std::vector<Entry*>& entries) {
  bool has_dead = false;
  for (const Entry* entry : entries) {
    if (entry->committed_size == kNull && entry->open_size == kNone &&
        (entry->flags & kPending) == 0 && entry->dirty.load(std::memory_order_acquire) == kClean &&
        (entry->touched != scope_epoch_ || options_.mode == StoreMode::kMemory)) {
      release_entry(*entry);
      has_dead = true;
    }
  }
  if (has_dead) {
    index_->purge();
  }
}

void KeyValueStore::abandon_checkpoint() {
  if (job_ != nullptr && !job_->cancel()) {
    job_->wait();
  }
  job_.reset();
}

Result<std::optional<StorePosition>> KeyValueStore::checkpoint_position() {
  if (checkpoints_ == nullptr) {
    return std::optional<StorePosition>();
  }
  return checkpoints_->position();
}

}  // namespace weir::state
