#include "log/dump/segment_walk.h"

#include "log/segment/segment_scan.h"

#include <weir/runtime/endian.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <zlib.h>

namespace weir::log {
namespace {

constexpr std::size_t kReadBytes = 64U << 10U;

// One entry of a message set from before Kafka 0.11 (org.apache.kafka.common.record.LegacyRecord):
//    0 offset i64 | 8 size i32 (bytes behind this field) | 12 crc u32 (CRC-32 of byte 16 to the
//    end)
//   16 magic i8 = 0 or 1 | ...
struct MessageSetEntry {
  Offset offset;
  std::uint64_t size = 0;  // all of it
  std::int8_t magic = 0;
};
constexpr std::size_t kEntryMagicAt = 16;
constexpr std::int32_t kEntrySizeMin = 14;
constexpr std::uint64_t kEntryBytesMax = 256U << 20U;

Result<std::uint32_t> crc32_of(File& file, std::uint64_t position, std::uint64_t end) {
  std::array<char, kReadBytes> buffer{};
  uLong crc = crc32(0, nullptr, 0);
  while (position < end) {
    const auto wish = static_cast<std::size_t>(std::min<std::uint64_t>(kReadBytes, end - position));
    WEIR_TRY_ASSIGN(const std::size_t got, file.read_at(position, {buffer.data(), wish}));
    if (got == 0) {
      break;
    }
    crc = crc32(crc, reinterpret_cast<const Bytef*>(buffer.data()), static_cast<uInt>(got));
    position += got;
  }
  return static_cast<std::uint32_t>(crc);
}

// Only the entry's own CRC proves the old format: torn bytes look like magic 0 too.
Result<std::optional<MessageSetEntry>> read_message_set_entry(File& file, std::uint64_t position,
                                                              std::uint64_t end) {
  std::array<char, kEntryMagicAt + 1> start{};
  if (end - position < start.size()) {
    return std::optional<MessageSetEntry>();
  }
  WEIR_TRY_ASSIGN(const std::size_t got, file.read_at(position, start));
  const auto size = load_be<std::int32_t>(start.data() + 8);
  MessageSetEntry entry;
  entry.magic = static_cast<std::int8_t>(start[kEntryMagicAt]);
  if (got < start.size() || entry.magic < 0 || entry.magic > 1 || size < kEntrySizeMin) {
    return std::optional<MessageSetEntry>();
  }
  entry.offset = Offset(load_be<std::int64_t>(start.data()));
  entry.size = kBatchLengthEnd + static_cast<std::uint64_t>(size);
  if (entry.size > end - position || entry.size > kEntryBytesMax) {
    return std::optional<MessageSetEntry>();
  }
  WEIR_TRY_ASSIGN(const std::uint32_t crc,
                  crc32_of(file, position + kEntryMagicAt, position + entry.size));
  return crc == load_be<std::uint32_t>(start.data() + kBatchLengthEnd)
             ? std::optional(entry)
             : std::optional<MessageSetEntry>();
}

Result<bool> is_zero(File& file, std::uint64_t position, std::uint64_t end) {
  std::array<char, kReadBytes> buffer{};
  while (position < end) {
    const auto wish = static_cast<std::size_t>(std::min<std::uint64_t>(kReadBytes, end - position));
    WEIR_TRY_ASSIGN(const std::size_t got, file.read_at(position, {buffer.data(), wish}));
    if (got == 0) {
      break;
    }
    const ByteView bytes(buffer.data(), got);
    if (bytes.find_first_not_of('\0') != ByteView::npos) {
      return false;
    }
    position += got;
  }
  return true;
}

}  // namespace

DamagedRange undecodable(const WalkedBatch& batch, const std::string& reason) {
  return {.position = batch.position,
          .end_position = batch.position + batch.header.size_bytes(),
          .first_offset = batch.header.base_offset,
          .next_offset = batch.header.next_offset(),
          .reason = reason,
          .is_zero = false,
          .is_old_format = false,
          .header = std::nullopt,
          .is_crc_right = true,
          .is_message_set = false};
}

SegmentWalk::SegmentWalk(File& file, std::uint64_t size, Offset base, Offset offset_end,
                         std::vector<Damage> known)
    : file_(file),
      size_(size),
      offset_end_(offset_end),
      known_(std::move(known)),
      scanner_(file, 0, size),
      next_offset_(base) {}

Result<WalkItem> SegmentWalk::next() {
  while (true) {
    if (pass_over_known()) {
      continue;
    }
    WEIR_TRY_ASSIGN(Step at, step());
    if (at.fault) {
      WEIR_TRY_ASSIGN(const bool passed, pass_over_message_sets());
      if (passed) {
        return finish_range(next_offset_);
      }
      WEIR_TRY(pass_over(*std::move(at.fault)));
      continue;
    }
    if (!at.batch) {
      return finish();
    }
    const BatchHeader& header = at.batch->header;
    if (range_) {
      return finish_range(header.base_offset);  // the next call finds the batch again
    }
    next_offset_ = header.next_offset();
    scanner_.skip(header);
    valid_bytes_ = scanner_.position();
    return WalkItem(*at.batch);
  }
}

Result<WalkItem> SegmentWalk::finish() {
  if (!range_) {
    return WalkItem();
  }
  WEIR_TRY_ASSIGN(const bool is_growing, is_being_appended(*range_));
  if (is_growing) {
    range_.reset();
    return WalkItem();
  }
  const bool is_last = offset_end_ == kOffsetMax;
  return finish_range(is_last ? std::nullopt : std::optional(offset_end_));
}

Result<bool> SegmentWalk::is_being_appended(const DamagedRange& range) {
  WEIR_TRY_ASSIGN(const std::uint64_t size_now, file_.size());
  if (size_now <= size_) {
    return false;
  }
  std::array<char, kEntryMagicAt + 1> start{};
  const std::uint64_t left = size_ - range.position;
  WEIR_TRY_ASSIGN(const std::size_t got, file_.read_at(range.position, start));
  if (got < start.size() || start[kEntryMagicAt] != 2) {
    return left < start.size();
  }
  const auto length = load_be<std::int32_t>(start.data() + 8);
  return length >= 0 && kBatchLengthEnd + static_cast<std::uint64_t>(length) > left;
}

Result<SegmentWalk::Step> SegmentWalk::step() {
  Step at;
  Result<std::optional<BatchHeader>> header = scanner_.peek();
  if (!header.ok()) {
    if (header.error().code() != Errc::kCorrupt && header.error().code() != Errc::kUnsupported) {
      return std::move(header).error();
    }
    at.fault = Fault{header.error().message(), std::nullopt, false};
    return at;
  }
  if (!*header) {
    return at;
  }
  WEIR_TRY_ASSIGN(at.fault, check(**header));
  if (!at.fault) {
    // check() has just read it: from the buffer.
    WEIR_TRY_ASSIGN(const ByteView bytes, scanner_.whole(**header));
    at.batch = WalkedBatch{scanner_.position(), **header, bytes};
  }
  return at;
}

Result<std::optional<SegmentWalk::Fault>> SegmentWalk::check(const BatchHeader& header) {
  const auto fault = [&](std::string what, bool is_crc_right = true) {
    return std::optional(Fault{std::move(what), header, is_crc_right});
  };
  const Result<ByteView> bytes = scanner_.whole(header);
  if (!bytes.ok()) {
    if (bytes.error().code() != Errc::kCorrupt) {
      return bytes.error();
    }
    return fault(bytes.error().message(), false);
  }
  if (const Result<BatchHeader> verified = verify_batch(*bytes); !verified.ok()) {
    return fault(verified.error().message(), false);
  }
  if (header.base_offset < next_offset_) {
    return fault(
        fmt::format("batch at offset {}: falls back behind {}, the offset that was to "
                    "come next",
                    header.base_offset.value(), next_offset_.value()));
  }
  if (header.last_offset() >= offset_end_ || header.last_offset() < header.base_offset) {
    return fault(fmt::format("batch at offset {}: its last offset {} reaches into the next segment",
                             header.base_offset.value(), header.last_offset().value()));
  }
  if (header.base_offset > next_offset_) {
    WEIR_TRY_ASSIGN(const bool lies, lies_about_offset(header));
    if (lies) {
      return fault(
          fmt::format("batch at offset {}: jumps ahead, the batch behind it goes on from "
                      "{}",
                      header.base_offset.value(), next_offset_.value()));
    }
  }
  return std::optional<Fault>();
}

// Offsets may have holes (compaction), but base offsets are not covered by the CRC: if the next
// batch goes on from before the end of this one, this one lies.
Result<bool> SegmentWalk::lies_about_offset(const BatchHeader& header) {
  BatchScanner ahead(file_, scanner_.position() + header.size_bytes(), size_);
  const Result<std::optional<BatchHeader>> next = ahead.peek();
  if (!next.ok()) {
    if (next.error().code() == Errc::kIo) {
      return next.error();
    }
    return false;
  }
  return *next && (*next)->base_offset >= next_offset_ &&
         (*next)->base_offset < header.next_offset();
}

Status SegmentWalk::pass_over(Fault fault) {
  const std::uint64_t position = scanner_.position();
  WEIR_TRY_ASSIGN(const std::optional<std::uint64_t> found,
                  scanner_.find_next(position + 1, next_offset_, offset_end_));
  const std::uint64_t end = found.value_or(size_);
  if (range_) {
    range_->end_position = end;  // two neighbours: the reason of the first
    range_->header.reset();
  } else {
    range_ = DamagedRange{.position = position,
                          .end_position = end,
                          .first_offset = next_offset_,
                          .next_offset = std::nullopt,
                          .reason = std::move(fault.what),
                          .is_zero = false,
                          .is_old_format = false,
                          .header = std::nullopt,
                          .is_crc_right = fault.is_crc_right,
                          .is_message_set = false};
    if (fault.header && position + fault.header->size_bytes() == end) {
      range_->header = fault.header;
    }
    WEIR_TRY_ASSIGN(const bool zero, is_zero(file_, position, end));
    if (zero && !found) {
      range_->is_zero = true;
    }
    if (range_->is_zero && end - position >= kBatchHeaderBytes) {
      range_->reason = "zeroes up to the end of the file: preallocated, or lost with the power";
    }
  }
  scanner_.seek(end);
  return Status();
}

bool SegmentWalk::pass_over_known() {
  const std::uint64_t position = scanner_.position();
  const auto found = std::find_if(known_.begin(), known_.end(), [position](const Damage& damage) {
    return damage.position <= position && position < damage.end_position;
  });
  if (found == known_.end()) {
    return false;
  }
  if (range_) {
    range_->end_position = found->end_position;
    range_->header.reset();
  } else {
    range_ = DamagedRange{};
    range_->position = position;
    range_->end_position = found->end_position;
    range_->first_offset = next_offset_;
    range_->reason = found->what;
  }
  scanner_.seek(found->end_position);
  return true;
}

// True when the scanner stood at entries of magic 0 or 1; range_ then has all of them.
Result<bool> SegmentWalk::pass_over_message_sets() {
  if (range_) {
    return false;  // they are behind damage, a part of it
  }
  const std::uint64_t start = scanner_.position();
  const Offset first = next_offset_;
  std::uint64_t position = start;
  bool has_magic[2] = {false, false};
  while (position < size_) {
    WEIR_TRY_ASSIGN(const std::optional<MessageSetEntry> entry,
                    read_message_set_entry(file_, position, size_));
    if (!entry) {
      break;
    }
    has_magic[entry->magic == 0 ? 0 : 1] = true;
    position += entry->size;
    if (entry->offset >= next_offset_ && entry->offset < offset_end_) {
      next_offset_ = entry->offset.next();
    }
  }
  if (position == start) {
    return false;
  }
  range_ = DamagedRange{};
  range_->is_message_set = true;
  range_->position = start;
  range_->end_position = position;
  range_->first_offset = first;
  range_->is_old_format = true;
  range_->reason = fmt::format(
      "message sets of magic {} (from before Kafka 0.11) are not supported; copy the topic through "
      "a newer Kafka producer to get magic 2",
      has_magic[0] && has_magic[1] ? "0 and 1"
      : has_magic[0]               ? "0"
                                   : "1");
  scanner_.seek(position);
  return true;
}

WalkItem SegmentWalk::finish_range(std::optional<Offset> next_offset) {
  DamagedRange range = *std::exchange(range_, std::nullopt);
  range.next_offset = next_offset;
  return range;
}

}  // namespace weir::log
