#include "log/segment/segment.h"

#include "log/segment/batch_scanner.h"
#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <fmt/format.h>

#include <algorithm>

namespace weir::log {
namespace {

constexpr std::uint64_t kReserveStepMin = 64U << 10U;
constexpr std::uint64_t kReserveStepMax = 64U << 20U;

}  // namespace

Segment::~Segment() {
  if (resources_ != nullptr) {
    resources_->closed(*this);
    resources_->return_unused(unused_bytes_);
  }
}

std::string Segment::path(std::string_view suffix) const {
  return join_path(folder_, segment_file_name(base_, suffix));
}

void Segment::adopt(const ScanResult& scan, SegmentIndexes indexes,
                    std::int64_t index_interval_bytes) {
  const MutexLock lock(mutex_);
  size_bytes_ = scan.valid_bytes;
  next_offset_ = scan.next_offset;
  largest_timestamp_ = indexes.largest_timestamp();
  indexes_ = std::make_unique<SegmentIndexes>(std::move(indexes));
  index_interval_bytes_ = index_interval_bytes;
  reserved_bytes_ = scan.valid_bytes;
}

void Segment::adopt_sealed(std::uint64_t size_bytes, Offset end_offset,
                           std::int64_t index_interval_bytes) {
  const MutexLock lock(mutex_);
  size_bytes_ = size_bytes;
  next_offset_ = end_offset;
  index_interval_bytes_ = index_interval_bytes;
  sealed_ = true;
}

Status Segment::create(const SegmentSettings& settings, Timestamp now) {
  WEIR_ASSERT(writable_);
  // Truncates: a file of this name that is not part of the log is what a failed attempt left.
  WEIR_TRY_ASSIGN(std::shared_ptr<File> file,
                  files_.open(path(kLogSuffix), OpenMode::kCreateTruncate));
  files_.remove_file(path(kTransactionIndexSuffix)).ignore("hardly ever there");
  created_ = now;
  {
    const MutexLock lock(mutex_);
    aborted_.emplace();
    file_ = std::move(file);
    indexes_ = std::make_unique<SegmentIndexes>(base_);
    next_offset_ = base_;
    checksums_trusted_ = base_;  // an earlier segment of this name may have left a side-car
    index_interval_bytes_ = settings.index_interval_bytes;
  }
  if (resources_ != nullptr) {
    resources_->opened(*this);
  }
  return Status();
}

bool Segment::must_roll(const BatchHeader& header, const SegmentSettings& settings,
                        Timestamp now) const {
  const MutexLock lock(mutex_);
  if (size_bytes_ == 0) {
    return header.last_offset().value() - base_.value() > INT32_MAX;
  }
  if (size_bytes_ + header.size_bytes() > static_cast<std::uint64_t>(settings.segment_bytes)) {
    return true;
  }
  // Kafka's rule: by the batches' own time, and by the clock only when the first has none.
  const Timestamp first = indexes_->first_timestamp();
  const std::int64_t waited = first > kNoTimestamp       ? header.max_timestamp - first
                              : created_ == kNoTimestamp ? 0
                                                         : now - created_;
  return waited > settings.segment_ms || indexes_->full(settings.segment_index_bytes) ||
         header.last_offset().value() - base_.value() > INT32_MAX;
}

Status Segment::reserve_for(std::uint64_t needed, std::int64_t segment_bytes) {
  if (needed <= reserved_bytes_) {
    return Status();
  }
  const std::uint64_t step = std::clamp(reserved_bytes_, kReserveStepMin, kReserveStepMax);
  const std::uint64_t wish =
      std::min(reserved_bytes_ + step, static_cast<std::uint64_t>(segment_bytes));
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, this->file());
  set_unused(0);
  const std::uint64_t unused = wish > needed ? wish - needed : 0;
  if (unused > 0 && (resources_ == nullptr || resources_->take_unused(unused))) {
    unused_bytes_ = unused;
    if (file->reserve(wish).ok()) {
      reserved_bytes_ = wish;
      return Status();
    }
    set_unused(0);
  }
  // A disk that is nearly full has no room to spare, but perhaps for this batch.
  Status exact = file->reserve(needed);
  if (!exact.ok() && exact.error().code() == Errc::kNoSpace) {
    return exact;
  }
  reserved_bytes_ = needed;
  return Status();
}

// Fewer than before.
void Segment::set_unused(std::uint64_t bytes) {
  if (resources_ != nullptr && bytes < unused_bytes_) {
    resources_->return_unused(unused_bytes_ - bytes);
  }
  unused_bytes_ = std::min(unused_bytes_, bytes);
}

Status Segment::append(ByteView batch, const BatchHeader& header, const SegmentSettings& settings) {
  std::uint64_t position = 0;
  {
    const MutexLock lock(mutex_);
    WEIR_ASSERT(!sealed_ && indexes_ != nullptr);
    WEIR_ASSERT(header.base_offset >= next_offset_);
    position = size_bytes_;
  }
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, this->file());
  Status written = reserve_for(position + batch.size(), settings.segment_bytes);
  if (written.ok()) {
    written = file->write_at(position, batch);
  }
  if (!written.ok()) {
    if (written.error().code() != Errc::kNoSpace) {
      return written;
    }
    reserved_bytes_ = position;
    if (Status cut = file->truncate(position); !cut.ok()) {
      return Error(Errc::kIo, fmt::format("{}: disk full and the partial batch at position {} "
                                          "could not be cut: {}",
                                          file->path(), position, cut.error().message()));
    }
    return written;
  }
  set_unused(reserved_bytes_ - std::min(reserved_bytes_, position + batch.size()));
  const MutexLock lock(mutex_);
  if (settings.collects_checksums && !checksum_folder_.empty()) {
    collect_checksum(header, batch, position);
  }
  indexes_->add(header, position, settings.index_interval_bytes);
  index_interval_bytes_ = settings.index_interval_bytes;
  size_bytes_ = position + batch.size();
  next_offset_ = header.next_offset();
  return Status();
}

Status Segment::trim() {
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, this->file());
  const std::uint64_t size = size_bytes();
  WEIR_TRY(file->truncate(size));
  reserved_bytes_ = size;
  set_unused(0);
  return Status();
}

Status Segment::sync() {
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, this->file());
  return file->sync();
}

Status Segment::write_index_file(std::string_view suffix, ByteView bytes, bool durable) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file,
                  files_.open(path(suffix), OpenMode::kCreateTruncate));
  if (!bytes.empty()) {
    WEIR_TRY(file->write_at(0, bytes));
  }
  return durable ? file->sync() : Status();
}

Status Segment::write_indexes(bool durable) {
  std::string offsets;
  std::string times;
  {
    const MutexLock lock(mutex_);
    WEIR_ASSERT(writable_ && indexes_ != nullptr);
    indexes_->finish();
    largest_timestamp_ = indexes_->largest_timestamp();
    offsets = indexes_->offsets().encode();
    times = indexes_->times().encode();
  }
  return write_index_files(offsets, times, durable);
}

Status Segment::write_index_files(ByteView offsets, ByteView times, bool durable) {
  Status written = write_index_file(kOffsetIndexSuffix, offsets, durable);
  if (written.ok()) {
    written = write_index_file(kTimeIndexSuffix, times, durable);
  }
  if (!written.ok()) {
    // A missing index is made anew from the log; half of one would have to be found out.
    files_.remove_file(path(kOffsetIndexSuffix)).ignore("it may not exist");
    files_.remove_file(path(kTimeIndexSuffix)).ignore("it may not exist");
  }
  return written;
}

void Segment::seal(Offset end) {
  const MutexLock lock(mutex_);
  sealed_ = true;
  next_offset_ = end;
  if (indexes_ != nullptr) {
    indexes_->finish();
    largest_timestamp_ = indexes_->largest_timestamp();
  }
}

std::uint64_t Segment::size_bytes() const {
  const MutexLock lock(mutex_);
  return size_bytes_;
}

Offset Segment::next_offset() const {
  const MutexLock lock(mutex_);
  return next_offset_;
}

bool Segment::sealed() const {
  const MutexLock lock(mutex_);
  return sealed_;
}

std::uint32_t Segment::indexes_rebuilt() const {
  const MutexLock lock(mutex_);
  return indexes_rebuilt_;
}

void Segment::release() {
  {
    const MutexLock lock(mutex_);
    if (!sealed_) {
      return;
    }
    file_.reset();
    indexes_.reset();
    if (aborted_written_ == aborted_count_ && !retired_) {
      aborted_.reset();
    }
  }
  if (resources_ != nullptr) {
    resources_->closed(*this);
  }
}

void Segment::close_file() {
  const MutexLock lock(mutex_);
  file_.reset();
}

void Segment::retire() {
  const MutexLock lock(mutex_);
  retired_ = true;
}

bool Segment::is_retired() const {
  const MutexLock lock(mutex_);
  return retired_;
}

Error Segment::replaced() const {
  return Error(Errc::kNotFound,
               fmt::format("{} was removed or replaced; look again", path(kLogSuffix)));
}

// Another process may have compacted a segment that is only read here.
Status Segment::check_opened(File& opened) const {
  {
    const MutexLock lock(mutex_);
    if (writable_ || !sealed_) {
      return Status();
    }
  }
  WEIR_TRY_ASSIGN(const std::uint64_t size, opened.size());
  return size == size_bytes() ? Status() : Status(replaced());
}

Result<std::shared_ptr<File>> Segment::file() {
  {
    const MutexLock lock(mutex_);
    if (file_ != nullptr) {
      return file_;
    }
    if (retired_) {
      return replaced();
    }
  }
  const OpenMode mode = writable_ ? OpenMode::kReadWrite : OpenMode::kRead;
  WEIR_TRY_ASSIGN(std::shared_ptr<File> opened, files_.open(path(kLogSuffix), mode));
  WEIR_TRY(check_opened(*opened));
  {
    const MutexLock lock(mutex_);
    if (retired_) {  // perhaps only after it was opened: then it may be another's
      return replaced();
    }
    if (file_ == nullptr) {
      file_ = opened;
    } else {
      opened = file_;
    }
  }
  if (resources_ != nullptr) {
    resources_->opened(*this);
  }
  return opened;
}

}  // namespace weir::log
