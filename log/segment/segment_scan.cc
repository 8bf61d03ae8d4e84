#include "log/segment/segment_scan.h"

#include "log/segment/batch_scanner.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir::log {
namespace {

const Damage* known_damage_at(const ScanRange& range, std::uint64_t position) {
  if (range.known_damage == nullptr) {
    return nullptr;
  }
  const auto found = std::find_if(
      range.known_damage->begin(), range.known_damage->end(), [position](const Damage& damage) {
        return damage.position <= position && position < damage.end_position;
      });
  return found == range.known_damage->end() ? nullptr : &*found;
}

class Walk {
 public:
  Walk(File& file, const ScanRange& range, SegmentIndexes& indexes)
      : range_(range), indexes_(indexes), scanner_(file, range.begin, range.end), file_(file) {
    result_.valid_bytes = range.begin;
    result_.next_offset = range.expected;
  }

  Result<ScanResult> run() {
    while (result_.next_offset < range_.stop_at) {
      WEIR_TRY_ASSIGN(const bool more, step());
      if (!more) {
        break;
      }
    }
    return std::move(result_);
  }

 private:
  // False at the end.
  Result<bool> step() {
    if (const Damage* const known = known_damage_at(range_, scanner_.position())) {
      result_.damage.push_back(*known);
      result_.next_offset = known->to;
      result_.valid_bytes = known->end_position;
      scanner_.seek(known->end_position);
      return true;
    }
    Result<std::optional<BatchHeader>> header = scanner_.peek();
    if (!header.ok()) {
      if (header.error().code() != Errc::kCorrupt) {
        return std::move(header).error();
      }
      return damaged(header.error().message());
    }
    if (!*header) {
      return false;
    }
    WEIR_TRY_ASSIGN(const std::string wrong, check(**header));
    if (!wrong.empty()) {
      return damaged(wrong);
    }
    accept(**header);
    return true;
  }

  void accept(const BatchHeader& header) {
    result_.has_hole |= header.base_offset > result_.next_offset;
    indexes_.add(header, scanner_.position(), range_.index_interval_bytes);
    note_epoch(result_.epochs, header);
    result_.has_producers |= header.producer_id.value() >= 0;
    result_.last_epoch = header.leader_epoch;
    if (header.last_offset() >= range_.collect_from) {
      result_.batches.push_back({header.base_offset, header.leader_epoch, header.crc});
    }
    result_.next_offset = header.next_offset();
    scanner_.skip(header);
    result_.valid_bytes = scanner_.position();
  }

  // What is wrong with the batch at the scanner's position; empty when nothing is.
  Result<std::string> check(const BatchHeader& header) {
    if (header.records_count < 0) {
      return fmt::format("recordsCount {} is negative", header.records_count);
    }
    if (header.base_offset < result_.next_offset) {
      return fmt::format("base offset {} falls back behind {}", header.base_offset.value(),
                         result_.next_offset.value());
    }
    if (header.last_offset() >= range_.offset_end) {
      return fmt::format("offset {} reaches behind the segment's end at {}",
                         header.last_offset().value(), range_.offset_end.value());
    }
    if (header.last_offset() >= range_.verify_from) {
      WEIR_TRY_ASSIGN(const ByteView batch, scanner_.whole(header));
      const Result<BatchHeader> verified = verify_batch(batch);
      if (!verified.ok()) {
        return verified.error().message();
      }
    }
    if (header.base_offset > result_.next_offset) {
      WEIR_TRY_ASSIGN(const bool lies, jumps_ahead(file_, header, scanner_.position(), range_.end,
                                                   result_.next_offset));
      if (lies) {
        return fmt::format("base offset {} jumps ahead of the next batch",
                           header.base_offset.value());
      }
    }
    return std::string();
  }

  Result<bool> damaged(const std::string& what) {
    const std::uint64_t position = scanner_.position();
    if (result_.next_offset < range_.durable_to) {
      WEIR_TRY_ASSIGN(const std::optional<std::uint64_t> next,
                      scanner_.find_next(position + 1, result_.next_offset, range_.offset_end));
      if (next) {
        scanner_.seek(*next);
        WEIR_TRY_ASSIGN(const std::optional<BatchHeader> header, scanner_.peek());
        WEIR_ASSERT(header.has_value());
        result_.damage.push_back({position, *next, result_.next_offset, header->base_offset, what});
        result_.next_offset = header->base_offset;
        return true;
      }
    }
    result_.stop_reason = fmt::format("{} at position {}", what, position);
    return false;
  }

  const ScanRange& range_;
  SegmentIndexes& indexes_;
  BatchScanner scanner_;
  File& file_;
  ScanResult result_;
};

// Whether the batches from `start` on include those that the last entries name.
Result<bool> names_batches(File& file, std::uint64_t start, const ScanRange& range,
                           const SegmentIndexes& indexes) {
  const std::optional<OffsetIndex::Entry> entry = indexes.offsets().last();
  const std::optional<TimeIndex::Entry> time = indexes.times().last();
  bool entry_found = !entry;
  bool time_found = !time;
  BatchScanner scanner(file, start, range.end);
  while (!entry_found || !time_found) {
    if (const Damage* const known = known_damage_at(range, scanner.position())) {
      scanner.seek(known->end_position);
      continue;
    }
    Result<std::optional<BatchHeader>> header = scanner.peek();
    if (!header.ok()) {
      if (header.error().code() == Errc::kIo) {
        return std::move(header).error();
      }
      return false;
    }
    if (!*header) {
      return false;
    }
    const Offset last_offset = (*header)->last_offset();
    entry_found |=
        entry && scanner.position() == entry->position && last_offset == entry->last_offset;
    time_found |=
        time && last_offset == time->offset && (*header)->max_timestamp == time->timestamp;
    scanner.skip(**header);
  }
  return true;
}

}  // namespace

Offset segment_offset_end(Offset base, Offset next_base) {
  constexpr std::int64_t kReach = std::int64_t{1} << 31;
  const Offset reach(base.value() > INT64_MAX - kReach ? INT64_MAX : base.value() + kReach);
  return std::min(next_base, reach);
}

Result<bool> jumps_ahead(File& file, const BatchHeader& header, std::uint64_t position,
                         std::uint64_t end, Offset expected) {
  // Offsets may have holes: compaction leaves them.
  BatchScanner ahead(file, position + header.size_bytes(), end);
  const Result<std::optional<BatchHeader>> next = ahead.peek();
  if (!next.ok()) {
    return next.error().code() == Errc::kIo ? Result<bool>(next.error()) : Result<bool>(false);
  }
  return *next && (*next)->base_offset >= expected && (*next)->base_offset < header.next_offset();
}

void note_epoch(std::vector<EpochStart>& epochs, const BatchHeader& header) {
  if (header.leader_epoch < LeaderEpoch(0)) {
    return;
  }
  while (!epochs.empty() && epochs.back().epoch > header.leader_epoch) {
    epochs.pop_back();
  }
  if (epochs.empty() || epochs.back().epoch < header.leader_epoch) {
    epochs.push_back({header.leader_epoch, header.base_offset});
  }
}

Result<ScanResult> scan_segment(File& file, const ScanRange& range, SegmentIndexes& indexes) {
  return Walk(file, range, indexes).run();
}

Result<ScanResult> resume_scan(File& file, ScanRange range, SegmentIndexes& indexes) {
  std::uint64_t start = 0;
  if (const std::optional<TimeIndex::Entry> time = indexes.times().last()) {
    const std::optional<OffsetIndex::Entry> near = indexes.offsets().lookup(time->offset);
    start = near ? near->position : 0;
  }
  WEIR_TRY_ASSIGN(const bool sound, names_batches(file, start, range, indexes));
  if (!sound || known_damage_at(range, start) != nullptr) {
    return Error(Errc::kCorrupt, "the last entries name no batch of the log");
  }
  if (start > 0) {
    WEIR_TRY_ASSIGN(const std::optional<BatchHeader> first,
                    BatchScanner(file, 0, range.end).peek());
    WEIR_TRY_ASSIGN(const std::optional<BatchHeader> header,
                    BatchScanner(file, start, range.end).peek());
    WEIR_ASSERT(header.has_value());
    indexes.set_first_timestamp(first ? first->max_timestamp : kNoTimestamp);
    range.expected = header->base_offset;
  }
  range.begin = start;
  return scan_segment(file, range, indexes);
}

}  // namespace weir::log
