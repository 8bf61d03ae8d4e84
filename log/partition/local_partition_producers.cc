#include "log/partition/local_partition.h"
#include "log/partition/producer_loader.h"
#include "log/record/control_record.h"

#include <weir/runtime/endian.h>
#include <weir/runtime/logger.h>

#include <fmt/format.h>

#include <algorithm>

// The part of LocalPartition that knows producers and transactions.

namespace weir::log {
namespace {

constexpr std::size_t kProducerIdAt = 43;
// producer.id.expiration.check.interval.ms
constexpr std::int64_t kExpireIntervalMs = 600'000;

}  // namespace

bool LocalPartition::has_producer(const SharedBytes& batch) {
  return load_be<std::int64_t>(batch.data() + kProducerIdAt) >= 0;
}

Result<std::optional<Partition::Appended>> LocalPartition::check_producer(
    const SharedBytes& batch, const AppendOptions& options) {
  const Timestamp now = environment_.clock.now();
  if (now - producers_expired_ >= kExpireIntervalMs || now < producers_expired_) {
    producers_.expire(now);
    producers_expired_ = now;
  }
  WEIR_TRY_ASSIGN(const BatchHeader header, read_batch_header(batch.view(), SIZE_MAX));
  Appended answer;
  answer.duplicate = true;
  {
    const MutexLock lock(mutex_);
    answer.base_offset = log_end_;
    answer.next_offset = log_end_;
    answer.leader_epoch = leader_epoch_;
  }
  const auto named = [this](Error error) {
    return std::move(error).with_context(options_.name.to_string());
  };
  if (header.is_control()) {
    WEIR_TRY_ASSIGN(const std::optional<ControlRecord> marker,
                    read_end_transaction_marker(header, batch.view()));
    if (!marker) {
      return Error(Errc::kInvalidRecord,
                   fmt::format("a control batch of producer {} for {} is no "
                               "marker",
                               header.producer_id.value(), options_.name.to_string()));
    }
    const Result<bool> wanted =
        producers_.check_marker(header, *marker, options.transaction_version);
    if (!wanted.ok()) {
      return named(wanted.error());
    }
    return *wanted ? std::optional<Appended>() : std::optional(answer);
  }
  const Result<std::optional<ProducerState::Batch>> known = producers_.check(header, options);
  if (!known.ok()) {
    return named(known.error());
  }
  if (!*known) {
    return std::optional<Appended>();
  }
  answer.base_offset = (*known)->first_offset();
  answer.next_offset = (*known)->last_offset.next();
  if (header.timestamp_type() == TimestampType::kLogAppendTime) {
    answer.log_append_time = (*known)->timestamp;
  }
  return std::optional(answer);
}

void LocalPartition::note_producer(const BatchHeader& header, ByteView batch) {
  if (!header.is_control()) {
    if (const std::size_t forgotten = producers_.add(header); forgotten > 0) {
      WEIR_WARN(
          "too many producers, the oldest are forgotten: a batch that one of them sends again "
          "would be taken for a new one partition={} forgotten={} left={}",
          options_.name.to_string(), forgotten, producers_.size());
    }
    if (producers_.find(header.producer_id)->transaction_first == header.base_offset) {
      const MutexLock lock(mutex_);
      unstable_.begin(header.base_offset);
    }
    return;
  }
  const Result<std::optional<ControlRecord>> marker = read_end_transaction_marker(header, batch);
  WEIR_ASSERT(marker.ok() && marker->has_value());  // check_producer() has read it
  const std::optional<EndedTransaction> ended = producers_.add_marker(header, **marker);
  if (!ended) {
    return;
  }
  if (ended->aborted) {
    if (!active_->has_aborted()) {
      note_side_change();  // a file is made, whose name must be as durable as what it says
    }
    active_->add_aborted(index_entry_of(*ended, producers_));
  }
  const MutexLock lock(mutex_);
  unstable_.end(ended->first, ended->last);
  if (ended->aborted) {
    newest_abort_ = ended->last;
  }
}

Result<std::optional<std::uint64_t>> LocalPartition::start_verification(
    ProducerId id, ProducerEpoch epoch, std::int32_t base_sequence) {
  const MutexLock appending(append_mutex_);
  WEIR_TRY(check_open());
  return producers_.start_verification(id, epoch, base_sequence, environment_.clock.now());
}

bool LocalPartition::has_open_transaction(ProducerId id, ProducerEpoch epoch) const {
  const MutexLock appending(append_mutex_);
  return producers_.has_open_transaction(id, epoch);
}

ProducerState LocalPartition::producers() const {
  const MutexLock appending(append_mutex_);
  return producers_;
}

std::optional<ProducersAt> LocalPartition::flushed_producers() const {
  const MutexLock lock(mutex_);
  return flushed_producers_;
}

// --- Files

// Without it a start after a crash reads an older one and more of the log.
void LocalPartition::write_snapshot(Offset at, bool durable) {
  const std::string path = snapshot_path(options_.path, at);
  const std::string bytes = encode_producer_snapshot(producers_.entries());
  const Status written = durable ? replace_file(environment_.files, path, bytes)
                                 : replace_file_unsynced(environment_.files, path, bytes);
  if (!written.ok()) {
    WEIR_WARN("producer snapshot not written file={} error=\"{}\"", path,
              written.error().message());
    return;
  }
  has_snapshots_ = true;
}

void LocalPartition::capture_producers(Offset at) {
  if (producers_.empty() || !writes_ahead()) {
    return;
  }
  ProducersAt captured{at, producers_.encode()};
  const MutexLock lock(mutex_);
  if (at == log_end_) {
    captured_producers_ = std::move(captured);
  }
}

// --- Readers

Offset LocalPartition::last_stable() const {
  // Records of an open transaction may have been deleted.
  return std::max(log_start_, options_.read_only ? std::min(told_last_stable_, high_watermark_)
                                                 : unstable_.last_stable(high_watermark_));
}

Status LocalPartition::collect_aborted(FetchResult& result) const {
  const Offset from = result.batches.front().header.base_offset;
  Segments segments;
  {
    const MutexLock lock(mutex_);
    if (newest_abort_ < from) {
      return Status();
    }
    const auto above = std::upper_bound(
        segments_.begin(), segments_.end(), from,
        [](Offset value, const auto& segment) { return value < segment->base_offset(); });
    segments.assign(above == segments_.begin() ? above : std::prev(above), segments_.end());
  }
  for (const std::shared_ptr<Segment>& segment : segments) {
    WEIR_TRY_ASSIGN(const bool complete,
                    segment->collect_aborted(from, result.next_offset, result.aborted));
    if (complete) {
      break;
    }
  }
  return Status();
}

// Of a directory without a holder.
Status LocalPartition::find_last_stable(Offset high_watermark, const Segments& segments,
                                        Offset* last_stable) {
  *last_stable = high_watermark;
  Result<std::vector<DirectoryEntry>> entries = environment_.files.list(options_.path);
  if (!entries.ok()) {
    return entries.error().code() == Errc::kNotFound ? Status() : entries.status();
  }
  std::set<std::string> names;
  for (const DirectoryEntry& entry : *entries) {
    names.insert(entry.name);
  }
  ProducerLoad load{environment_.files, options_.path,      options_.name, names,
                    segments,           options_.log_start, high_watermark};
  load.clean = options_.clean;
  load.read_only = true;
  load.trusted = options_.clean ? kOffsetMax : options_.recovery_point;
  load.limits = environment_.producers;
  load.now = environment_.clock.now();
  WEIR_TRY_ASSIGN(const LoadedProducers loaded, load_producers(load));
  const auto& open = loaded.state.open_transactions();
  if (!open.empty()) {
    *last_stable = std::min(high_watermark, open.begin()->first);
  }
  return Status();
}

}  // namespace weir::log
