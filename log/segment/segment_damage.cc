#include "log/segment/segment.h"
#include "log/segment/segment_names.h"
#include "log/segment/segment_scrub.h"

#include <weir/runtime/logger.h>

#include <algorithm>
#include <utility>

// The part of Segment that keeps the side-car, and the ranges that are known to be damaged.

namespace weir::log {
namespace {

constexpr std::size_t kCollectedMax = 65'536;

}  // namespace

// --- The side-car

void Segment::keep_checksums(const std::string& folder) {
  checksum_folder_ = folder;
}

std::string Segment::checksum_path() const {
  return checksum_folder_.empty()
             ? std::string()
             : join_path(checksum_folder_, segment_file_name(base_, kChecksumSuffix));
}

void Segment::distrust_checksums(Offset end) {
  const MutexLock lock(mutex_);
  checksums_trusted_ = end;
}

void Segment::collect_checksum(const BatchHeader& header, ByteView batch, std::uint64_t position) {
  if (checksums_overflow_) {
    return;
  }
  if (checksums_.size() == kCollectedMax) {
    checksums_overflow_ = true;
    checksums_ = {};
    return;
  }
  if (checksums_.empty()) {
    checksums_from_ = position;
  }
  checksums_.push_back(checksum_of(header, batch));
}

// The batches below `end`, and the position of the first.
std::pair<std::vector<BatchChecksum>, std::uint64_t> Segment::take_checksums(Offset end) {
  const MutexLock lock(mutex_);
  const auto behind = std::find_if(checksums_.begin(), checksums_.end(),
                                   [end](const BatchChecksum& batch) { return batch.next > end; });
  std::vector<BatchChecksum> rest(behind, checksums_.end());
  checksums_.erase(behind, checksums_.end());
  std::uint64_t next_from = checksums_from_;
  for (const BatchChecksum& batch : checksums_) {
    next_from += batch.size;
  }
  checksums_overflow_ = false;
  return {std::exchange(checksums_, std::move(rest)), std::exchange(checksums_from_, next_from)};
}

Status Segment::write_checksums(Offset end) {
  if (checksum_folder_.empty()) {
    return Status();
  }
  const auto [batches, position] = take_checksums(end);
  Offset trusted;
  {
    const MutexLock lock(mutex_);
    trusted = checksums_trusted_;
  }
  if (batches.empty() && trusted == kOffsetMax) {
    return Status();
  }
  const std::string path = checksum_path();
  if (!side_car_ || (!batches.empty() && position < side_car_->end_position)) {
    // What stands in it from the first batch of this life on is of batches that are gone.
    const Result<ChecksumEnd> found =
        find_checksum_end(files_, path, trusted, batches.empty() ? UINT64_MAX : position);
    side_car_ = found.ok() ? *found : ChecksumEnd{.has_more = true};  // one that is not readable
  }
  if (side_car_->has_more) {
    const Result<std::shared_ptr<File>> file = files_.open(path, OpenMode::kReadWrite);
    if (file.ok()) {
      WEIR_TRY((*file)->truncate(side_car_->bytes));
      WEIR_TRY((*file)->sync());
    } else if (file.error().code() != Errc::kNotFound) {
      return file.error();
    } else {
      side_car_ = ChecksumEnd{};  // removed meanwhile: it says nothing
    }
    side_car_->has_more = false;
  }
  {
    const MutexLock lock(mutex_);
    checksums_trusted_ = kOffsetMax;
  }
  if (Status written = append_checksums(path, batches, position); !written.ok()) {
    WEIR_WARN("side-car ends early file={} error=\"{}\"", path, written.error().message());
    side_car_.reset();  // the next one looks where it ends
  }
  return Status();
}

Status Segment::append_checksums(const std::string& path, std::span<const BatchChecksum> batches,
                                 std::uint64_t position) {
  if (batches.empty()) {
    return Status();
  }
  std::uint64_t chain = position == side_car_->end_position ? side_car_->chain : 0;
  const std::string text = encode_checksums(batches, position, chain);
  Result<std::shared_ptr<File>> file = files_.open(path, OpenMode::kCreateOrOpen);
  if (!file.ok() && file.error().code() == Errc::kNotFound) {
    WEIR_TRY(files_.create_directories(checksum_folder_));
    file = files_.open(path, OpenMode::kCreateOrOpen);
  }
  WEIR_TRY(file.status());
  WEIR_TRY((*file)->write_at(side_car_->bytes, text));
  side_car_->bytes += text.size();
  side_car_->chain = chain;
  side_car_->end_position = position;
  for (const BatchChecksum& batch : batches) {
    side_car_->end_position += batch.size;
  }
  if (!sealed()) {
    return Status();
  }
  // It is complete: kept over a power cut, for what it alone can tell.
  WEIR_TRY((*file)->sync());
  WEIR_TRY(files_.sync_directory(checksum_folder_));
  return files_.sync_directory(parent_path(checksum_folder_));
}

Result<ChecksumReader> Segment::checksums(Offset limit) const {
  if (checksum_folder_.empty()) {
    return ChecksumReader();
  }
  {
    const MutexLock lock(mutex_);
    limit = std::min(limit, checksums_trusted_);
  }
  return ChecksumReader::open(files_, checksum_path(), limit);
}

// --- Damage

std::pair<std::uint64_t, Offset> Segment::published_end() const {
  const MutexLock lock(mutex_);
  return {size_bytes_, next_offset_};
}

void Segment::set_damage(std::vector<Damage> damage) {
  auto shared =
      damage.empty() ? nullptr : std::make_shared<const std::vector<Damage>>(std::move(damage));
  const MutexLock lock(mutex_);
  damage_ = std::move(shared);
}

std::vector<Damage> Segment::damage() const {
  const MutexLock lock(mutex_);
  return damage_ == nullptr ? std::vector<Damage>() : *damage_;
}

std::uint64_t Segment::readable_end(std::uint64_t position) const {
  const MutexLock lock(mutex_);
  if (damage_ != nullptr) {
    for (const Damage& damage : *damage_) {
      if (position < damage.end_position) {
        return std::min(size_bytes_, std::max(position, damage.position));
      }
    }
  }
  return size_bytes_;
}

const Damage* Segment::View::damage_at(std::uint64_t position) const {
  if (damage == nullptr) {
    return nullptr;
  }
  const auto found = std::find_if(damage->begin(), damage->end(), [&](const Damage& one) {
    return one.position <= position && position < one.end_position;
  });
  return found == damage->end() ? nullptr : &*found;
}

Result<std::vector<Damage>> Segment::compare_heads(Offset limit, std::uint64_t bytes, Offset end) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, this->file());
  WEIR_TRY_ASSIGN(ChecksumReader known, checksums(limit));
  const ScrubRange range{.base = base_,
                         .offset_end = segment_offset_end(base_, end),
                         .end_position = bytes,
                         .end_offset = end,
                         .stop_at = limit,
                         .depth = ScrubDepth::kHeads};
  SegmentScrub scrub(file, range, std::move(known));
  WEIR_TRY(scrub.step(UINT64_MAX / 2).status());
  return scrub.damage();
}

// Once, when the order of the batches shows that one of them lies: whether the side-car knows
// which.
Result<bool> Segment::learn_damage() {
  {
    const MutexLock lock(mutex_);
    if (damage_learned_ || checksum_folder_.empty()) {
      return false;
    }
    damage_learned_ = true;
  }
  const auto [bytes, end] = published_end();
  WEIR_TRY_ASSIGN(std::vector<Damage> found, compare_heads(kOffsetMax, bytes, end));
  const std::vector<Damage> known = this->damage();
  std::erase_if(found, [&known](const Damage& one) {
    return std::any_of(known.begin(), known.end(), [&one](const Damage& other) {
      return one.position >= other.position && one.end_position <= other.end_position;
    });
  });
  if (found.empty()) {
    return false;
  }
  for (const Damage& one : found) {
    WEIR_ERROR("durable bytes damaged file={} position={} offsets={}-{} what=\"{}\"",
               path(kLogSuffix), one.position, one.from.value(), one.to.value() - 1, one.what);
  }
  found.insert(found.end(), known.begin(), known.end());
  std::sort(found.begin(), found.end(),
            [](const Damage& a, const Damage& b) { return a.position < b.position; });
  set_damage(std::move(found));
  return true;
}

}  // namespace weir::log
