#include "log/partition/partition_scrub.h"

#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <algorithm>
#include <utility>

namespace weir::log {
namespace {

// What a step costs at least: names and side-cars are read, too.
constexpr std::uint64_t kSegmentCost = 4096;

// Whether the side-car knows every batch of the first `bytes`.
Result<bool> knows_all(ChecksumReader known, std::uint64_t bytes) {
  std::uint64_t end = 0;
  while (end < bytes) {
    WEIR_TRY_ASSIGN(const ChecksumGroup* const group, known.next_group());
    if (group == nullptr || group->position != end) {
      return false;
    }
    end = group->end_position;
  }
  return true;
}

}  // namespace

PartitionScrub::Progress PartitionScrub::step(std::uint64_t bytes) {
  Progress progress;
  if (segment_ != nullptr && segment_->is_retired()) {
    // Removed, or compacted: what took its place was read when it was written.
    end_side_car();
    scrub_.reset();
    segment_.reset();
  }
  if (segment_ == nullptr) {
    if (!begin()) {
      progress.is_done = true;
      return progress;
    }
    progress.bytes = kSegmentCost;
  }
  if (!scrub_) {  // begin() could not open it
    segment_.reset();
    return progress;
  }
  const std::uint64_t before = scrub_->position();
  const Result<bool> more = scrub_->step(bytes);
  progress.bytes += scrub_->position() > before ? scrub_->position() - before : bytes;
  Status status = more.status();
  if (more.ok() && !*more) {
    status = end_segment(progress);
  }
  if (!status.ok()) {
    leave_out(status.error());
  }
  if (!more.ok() || !*more) {
    end_side_car();
    scrub_.reset();
    segment_.reset();
  }
  return progress;
}

// Takes the next segment with durable bytes.
bool PartitionScrub::begin() {
  const Offset durable = partition_->recovery_point();
  for (const std::shared_ptr<Segment>& segment : partition_->segments()) {
    if (segment->base_offset() < next_ || segment->base_offset() >= durable) {
      continue;
    }
    next_ = segment->base_offset().next();
    segment_ = segment;
    if (Status begun = begin_segment(segment);
        !begun.ok() && begun.error().code() != Errc::kNotFound) {  // DeleteRecords took it away
      leave_out(begun.error());
    }
    return true;
  }
  return false;
}

Status PartitionScrub::begin_segment(const std::shared_ptr<Segment>& segment) {
  const Offset durable = partition_->recovery_point();
  const bool is_sealed = segment->sealed();
  const auto [bytes, end] = segment->published_end();
  WEIR_TRY_ASSIGN(std::shared_ptr<File> file,
                  files_.open(segment->path(kLogSuffix), OpenMode::kRead));
  WEIR_TRY_ASSIGN(ChecksumReader known, segment->checksums(durable));
  scrub_.emplace(std::move(file),
                 ScrubRange{.base = segment->base_offset(),
                            .offset_end = segment_offset_end(segment->base_offset(),
                                                             is_sealed ? end : kOffsetMax),
                            .end_position = bytes,
                            .end_offset = end,
                            .stop_at = durable},
                 std::move(known));
  scrub_->suspect(segment->damage());
  if (is_sealed && end <= durable && !segment->checksum_path().empty()) {
    return begin_side_car(*segment, durable, bytes);
  }
  return Status();
}

Status PartitionScrub::begin_side_car(const Segment& segment, Offset end, std::uint64_t bytes) {
  WEIR_TRY_ASSIGN(ChecksumReader known, segment.checksums(end));
  WEIR_TRY_ASSIGN(const bool is_complete, knows_all(std::move(known), bytes));
  if (is_complete) {
    return Status();
  }
  Result<ChecksumWriter> writer = ChecksumWriter::create(files_, segment.checksum_path());
  if (writer.ok()) {  // else the segment is scrubbed all the same
    side_car_ = *std::move(writer);
    scrub_->build(&*side_car_);
  }
  return Status();
}

Status PartitionScrub::end_segment(Progress& progress) {
  if (!partition_->health().ok()) {
    return Status();  // closed, or it was deleted meanwhile
  }
  const std::string file = segment_->path(kLogSuffix);
  if (scrub_->side_car_is_foreign()) {
    WEIR_WARN("side-car is of another log, it is made anew file={}", segment_->checksum_path());
    files_.remove_file(segment_->checksum_path()).ignore("the next pass meets it again");
  }
  const std::vector<Damage> before = segment_->damage();
  const std::vector<Damage>& now = scrub_->damage();
  const Offset log_start = partition_->offsets().log_start;
  for (const Damage& damage : now) {
    const bool is_known = std::any_of(before.begin(), before.end(), [&](const Damage& other) {
      return other.position == damage.position && other.end_position == damage.end_position;
    });
    if (!is_known && damage.to > log_start) {
      WEIR_ERROR("durable bytes damaged partition={} file={} position={} offsets={}-{} what=\"{}\"",
                 partition_->options().name.to_string(), file, damage.position, damage.from.value(),
                 damage.to.value() - 1, damage.what);
      progress.news.push_back({segment_->base_offset(), damage});
    }
  }
  if (before != now) {
    progress.damage_changed = true;
    segment_->set_damage(now);
  }
  if (side_car_ && now.empty() && scrub_->build_status().ok()) {
    Status made = side_car_->finish();
    side_car_.reset();
    return made;
  }
  return Status();
}

void PartitionScrub::end_side_car() {
  if (side_car_) {
    side_car_->abandon();
    side_car_.reset();
  }
}

void PartitionScrub::leave_out(const Error& error) {
  WEIR_ERROR("segment not scrubbed partition={} file={} error=\"{}\"",
             partition_->options().name.to_string(), segment_->path(kLogSuffix), error.message());
}

}  // namespace weir::log
