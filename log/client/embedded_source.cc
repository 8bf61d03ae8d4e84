#include "log/client/embedded_source.h"

#include "log/client/record_block.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

namespace weir::log {
namespace {

// How often a read-only process looks at what the holder published: no wake-up crosses processes.
constexpr auto kReadOnlyInterval = std::chrono::milliseconds(10);

}  // namespace

EmbeddedSource::EmbeddedSource(LogDirectory& directory, const SourceOptions& options)
    : directory_(directory), options_(options), notifier_(std::make_shared<Notifier>()) {
  directory_.add_topic_waiter(notifier_);
}

EmbeddedSource::~EmbeddedSource() {
  directory_.remove_topic_waiter(notifier_);
}

Status EmbeddedSource::assign(std::vector<TopicPartition> partitions) {
  assigned_.clear();
  for (TopicPartition& name : partitions) {
    Assigned assigned;
    assigned.name = std::move(name);
    assigned_.push_back(std::move(assigned));
  }
  topics_seen_ = 0;
  next_ = 0;
  return {};
}

Status EmbeddedSource::seek(std::uint32_t assignment, Offset offset) {
  if (assignment >= assigned_.size() || offset < Offset(0)) {
    return Error(Errc::kInvalidArgument, fmt::format("cannot seek assignment {} of {} to offset {}",
                                                     assignment, assigned_.size(), offset.value()));
  }
  Assigned& assigned = assigned_[assignment];
  assigned.position = offset;
  if (assigned.failed) {
    assigned.failed = false;
    assigned.waiter.reset();
    assigned.log.reset();
    topics_seen_ = 0;
  }
  return {};
}

Offset EmbeddedSource::position(std::uint32_t assignment) const {
  return assignment < assigned_.size() ? assigned_[assignment].position : kNoOffset;
}

void EmbeddedSource::pause(std::uint32_t assignment) {
  if (assignment < assigned_.size()) {
    assigned_[assignment].paused = true;
  }
}

void EmbeddedSource::resume(std::uint32_t assignment) {
  if (assignment < assigned_.size()) {
    assigned_[assignment].paused = false;
  }
}

void EmbeddedSource::wakeup() {
  woken_.store(true, std::memory_order_release);
  notifier_->notify();
}

bool EmbeddedSource::wants_records(const Assigned& assigned) const {
  return !assigned.paused && !assigned.failed && assigned.position >= Offset(0);
}

void EmbeddedSource::fail(std::uint32_t index, Error error, std::vector<RecordBlock>& blocks) {
  Assigned& assigned = assigned_[index];
  assigned.failed = true;
  RecordBlock block;
  block.assignment = index;
  block.topic_id = assigned.log ? assigned.log->options().topic_id : Uuid{};
  block.next_offset = assigned.position;
  block.status = std::move(error);
  blocks.push_back(std::move(block));
}

// Follows what happened to the topic since the last look.
void EmbeddedSource::resolve(Assigned& assigned, std::vector<RecordBlock>& blocks) {
  const auto index = static_cast<std::uint32_t>(&assigned - assigned_.data());
  Result<std::shared_ptr<Partition>> now = directory_.partition(assigned.name);
  const bool missing = !now.ok() && now.error().code() == Errc::kUnknownTopic;
  if (assigned.log && (missing || (now.ok() && *now != assigned.log))) {
    fail(index,
         Error(Errc::kUnknownTopic, fmt::format("topic {} was deleted while {} was being read",
                                                assigned.name.topic, assigned.name.to_string())),
         blocks);
    assigned.waiter.reset();
    assigned.log.reset();
    return;
  }
  if (assigned.log || missing) {
    return;
  }
  if (!now.ok()) {
    fail(index, std::move(now).error(), blocks);
    return;
  }
  assigned.log = *now;
  assigned.waiter = std::make_unique<WatermarkWaiter>(assigned.log, notifier_);
}

void EmbeddedSource::resolve_all(std::vector<RecordBlock>& blocks) {
  const std::uint64_t topics = directory_.topic_generation();
  if (topics == topics_seen_) {
    return;
  }
  topics_seen_ = topics;
  for (Assigned& assigned : assigned_) {
    if (!assigned.failed) {
      resolve(assigned, blocks);
    }
  }
}

Status EmbeddedSource::read(std::uint32_t index, std::size_t bytes_max,
                            std::vector<RecordBlock>& blocks, std::size_t* bytes) {
  Assigned& assigned = assigned_[index];
  WEIR_TRY_ASSIGN(FetchResult fetched,
                  assigned.log->read(assigned.position, bytes_max, isolation()));
  for (FetchedBatch& batch : fetched.batches) {
    *bytes += batch.bytes.bytes.size();
    if (options_.check_crcs && !batch.verified) {
      Result<BatchHeader> sound = verify_batch(batch.bytes.bytes);
      if (!sound.ok()) {
        return std::move(sound).error().with_context(fmt::format(
            "{} offset {}", assigned.name.to_string(), batch.header.base_offset.value()));
      }
    }
    const bool is_aborted = std::any_of(
        fetched.aborted.begin(), fetched.aborted.end(),
        [&batch](const AbortedTransaction& aborted) { return aborted.covers(batch.header); });
    Result<RecordBlock> decoded =
        is_aborted ? block_without_records(batch) : decode_block(batch, assigned.position);
    if (!decoded.ok()) {
      return std::move(decoded).error().with_context(assigned.name.to_string());
    }
    RecordBlock& block = *decoded;
    block.assignment = index;
    block.topic_id = assigned.log->options().topic_id;
    block.high_watermark = fetched.high_watermark;
    block.last_stable_offset = fetched.last_stable_offset;
    assigned.position = block.next_offset;
    blocks.push_back(std::move(block));
  }
  return {};
}

Status EmbeddedSource::collect(std::vector<RecordBlock>& blocks) {
  std::size_t bytes = 0;
  for (std::size_t tried = 0; tried < assigned_.size() && bytes < options_.poll_bytes_max;
       ++tried) {
    const auto index = static_cast<std::uint32_t>(next_);
    next_ = (next_ + 1) % assigned_.size();
    Assigned& assigned = assigned_[index];
    if (!assigned.log || !wants_records(assigned)) {
      continue;
    }
    WEIR_TRY(directory_.refresh_partition(*assigned.log));
    const PartitionOffsets at = assigned.log->offsets();
    if ((options_.read_committed ? at.last_stable : at.high_watermark) == assigned.position) {
      if (Status health = assigned.log->health(); !health.ok() && !directory_.read_only()) {
        fail(index, std::move(health).error(), blocks);
      }
      continue;
    }
    const std::size_t bytes_max =
        std::min(options_.partition_bytes_max, options_.poll_bytes_max - bytes);
    if (Status done = read(index, bytes_max, blocks, &bytes); !done.ok()) {
      fail(index, std::move(done).error(), blocks);
    }
  }
  return {};
}

Result<std::vector<RecordBlock>> EmbeddedSource::poll(Duration timeout) {
  const Clock& clock = system_clock();  // a wait is real time, whatever the records' clock says
  const MonotonicTime deadline = clock.monotonic() + timeout;
  std::vector<RecordBlock> blocks;
  for (;;) {
    const std::uint64_t seen = notifier_->generation();
    WEIR_TRY(directory_.refresh());
    resolve_all(blocks);
    WEIR_TRY(collect(blocks));
    if (!blocks.empty() || woken_.exchange(false, std::memory_order_acq_rel)) {
      return blocks;
    }
    const Duration left = deadline - clock.monotonic();
    if (left <= Duration::zero()) {
      return blocks;
    }
    notifier_->wait(seen,
                    directory_.read_only() ? std::min<Duration>(left, kReadOnlyInterval) : left);
  }
}

}  // namespace weir::log
