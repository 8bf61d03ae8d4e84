#include "log/segment/segment_indexes.h"

namespace weir::log {

SegmentIndexes::SegmentIndexes(OffsetIndex offsets, TimeIndex times)
    : offsets_(std::move(offsets)), times_(std::move(times)) {
  if (const std::optional<TimeIndex::Entry> last = times_.last()) {
    largest_timestamp_ = last->timestamp;
    largest_offset_ = last->offset;
  }
}

void SegmentIndexes::note(const BatchHeader& header, std::uint64_t position) {
  if (position == 0) {
    first_timestamp_ = header.max_timestamp;
  }
  if (header.max_timestamp > largest_timestamp_) {
    largest_timestamp_ = header.max_timestamp;
    largest_offset_ = header.last_offset();
  }
}

void SegmentIndexes::add(const BatchHeader& header, std::uint64_t position,
                         std::int64_t interval_bytes) {
  note(header, position);
  const std::optional<OffsetIndex::Entry> last = offsets_.last();
  const std::uint64_t indexed = last ? last->position : 0;
  if (position > indexed + static_cast<std::uint64_t>(interval_bytes)) {
    offsets_.append(header.last_offset(), position);
    times_.append(largest_timestamp_, largest_offset_);
  }
}

bool SegmentIndexes::full(std::int64_t segment_index_bytes) const {
  const auto bytes = static_cast<std::size_t>(segment_index_bytes);
  return offsets_.size() >= bytes / OffsetIndex::kEntryBytes ||
         times_.size() + 1 >= bytes / TimeIndex::kEntryBytes;
}

}  // namespace weir::log
