#include "log/segment/segment_scrub.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace weir::log {
namespace {

bool is_at(const std::optional<KnownBatch>& known, std::uint64_t position) {
  return known && known->position == position;
}

}  // namespace

Result<bool> SegmentScrub::step(std::uint64_t bytes) {
  const std::uint64_t until = scanner_.position() + std::max<std::uint64_t>(bytes, 1);
  while (!is_over()) {
    if (scanner_.position() >= until) {
      return true;
    }
    WEIR_TRY(check_one());
  }
  finish();
  return false;
}

bool SegmentScrub::is_over() const {
  // Behind the last offset a crash may have left bytes that nobody reads.
  return scanner_.position() >= range_.end_position ||
         expected_ >= std::min(range_.stop_at, range_.end_offset);
}

Status SegmentScrub::check_one() {
  const std::uint64_t position = scanner_.position();
  WEIR_TRY_ASSIGN(at_, known_.find(position));
  if (range_.depth == ScrubDepth::kHeads && !in_damage_ && !is_at(at_, position)) {
    return pass_unknown();
  }
  if (const Damage* const suspect = suspect_at(position); suspect && !is_at(at_, position)) {
    pass_over_to(std::min(suspect->end_position, range_.end_position), suspect->what);
    return Status();
  }
  WEIR_TRY_ASSIGN(Verdict verdict, judge());
  if (is_foreign_ && at_) {
    at_.reset();
    start_without_side_car();
    return Status();
  }
  if (verdict.fault.empty()) {
    return accept(*verdict.header);
  }
  return pass_over(std::move(verdict.fault), at_);
}

// Of a batch that the side-car does not know nothing can be learned from its head alone.
Status SegmentScrub::pass_unknown() {
  const Result<std::optional<BatchHeader>> header = scanner_.peek();
  if (!header.ok() && header.error().code() == Errc::kIo) {
    return header.error();
  }
  if (header.ok()) {
    WEIR_TRY_ASSIGN(const std::string fault, order_fault(**header));
    if (fault.empty()) {
      return accept(**header);
    }
  }
  scanner_.seek(at_ ? std::min(at_->position, range_.end_position) : range_.end_position);
  return Status();
}

// What it said so far was about other batches, too.
void SegmentScrub::start_without_side_car() {
  known_ = ChecksumReader();
  damage_.clear();
  in_damage_ = false;
  build_status_ = Error(Errc::kClosed, "the walk began anew");
  expected_ = range_.base;
  scanner_.seek(0);
}

Result<SegmentScrub::Verdict> SegmentScrub::judge() {
  Result<std::optional<BatchHeader>> header = scanner_.peek();
  if (!header.ok()) {
    if (header.error().code() == Errc::kIo) {
      return std::move(header).error();
    }
    return Verdict{std::nullopt, header.error().message()};
  }
  Verdict verdict{*header, ""};
  if (is_at(at_, scanner_.position())) {
    WEIR_TRY_ASSIGN(verdict.fault, compare_head(**header, *at_));
    if (verdict.fault.empty() && range_.depth == ScrubDepth::kAll) {
      WEIR_TRY_ASSIGN(verdict.fault, body_fault(**header));
    }
    return verdict;
  }
  WEIR_TRY_ASSIGN(verdict.fault, body_fault(**header));
  if (verdict.fault.empty()) {
    WEIR_TRY_ASSIGN(verdict.fault, order_fault(**header));
  }
  return verdict;
}

Result<std::string> SegmentScrub::compare_head(const BatchHeader& header, const KnownBatch& known) {
  std::array<char, kBatchHeaderBytes> head{};
  write_batch_header(head.data(), header);  // its bytes again: all fields of the head were read
  if (header.size_bytes() == known.size &&
      batch_head_crc({head.data(), head.size()}) == known.header_crc) {
    return std::string();
  }
  const Result<ByteView> bytes = scanner_.whole(header);
  if (!bytes.ok()) {
    return bytes.error().code() == Errc::kIo ? Result<std::string>(bytes.error())
                                             : bytes.error().message();
  }
  const Result<BatchHeader> verified = verify_batch(*bytes);
  if (!verified.ok()) {
    return verified.error().message();
  }
  if (header.crc != known.batch_crc) {
    is_foreign_ = true;
    return std::string();
  }
  return header.base_offset != expected_
             ? fmt::format("base offset {} is not what was written", header.base_offset.value())
             : fmt::format("leader epoch {} is not what was written", header.leader_epoch.value());
}

Result<std::string> SegmentScrub::body_fault(const BatchHeader& header) {
  const Result<ByteView> bytes = scanner_.whole(header);
  if (!bytes.ok()) {
    return bytes.error().code() == Errc::kIo ? Result<std::string>(bytes.error())
                                             : bytes.error().message();
  }
  const Result<BatchHeader> verified = verify_batch(*bytes);
  return verified.ok() ? std::string() : verified.error().message();
}

Result<std::string> SegmentScrub::order_fault(const BatchHeader& header) {
  if (header.base_offset < expected_) {
    return fmt::format("base offset {} falls back behind {}", header.base_offset.value(),
                       expected_.value());
  }
  if (header.last_offset() >= range_.offset_end) {
    return fmt::format("offset {} reaches behind the segment's end at {}",
                       header.last_offset().value(), range_.offset_end.value());
  }
  if (header.base_offset > expected_) {
    WEIR_TRY_ASSIGN(const bool lies, jumps_ahead(*log_, header, scanner_.position(),
                                                 range_.end_position, expected_));
    if (lies) {
      return fmt::format("base offset {} jumps ahead of the next batch",
                         header.base_offset.value());
    }
  }
  return std::string();
}

Status SegmentScrub::accept(const BatchHeader& header) {
  if (std::exchange(in_damage_, false)) {
    damage_.back().to = header.base_offset;
  }
  if (writer_ != nullptr && build_status_.ok() && range_.depth == ScrubDepth::kAll) {
    WEIR_TRY_ASSIGN(const ByteView bytes, scanner_.whole(header));
    build_status_ = writer_->add(checksum_of(header, bytes), scanner_.position());
  }
  expected_ = header.next_offset();
  scanner_.skip(header);
  return Status();
}

Status SegmentScrub::pass_over(std::string fault, const std::optional<KnownBatch>& known) {
  const std::uint64_t position = scanner_.position();
  std::uint64_t end = range_.end_position;
  if (is_at(known, position)) {
    end = std::min(end, position + known->size);
  } else {
    WEIR_TRY_ASSIGN(const std::optional<std::uint64_t> next,
                    scanner_.find_next(position + 1, expected_, range_.offset_end));
    end = std::min({end, next.value_or(end), known ? known->position : end});
  }
  pass_over_to(end, std::move(fault));
  return Status();
}

void SegmentScrub::pass_over_to(std::uint64_t end, std::string fault) {
  if (std::exchange(in_damage_, true)) {
    damage_.back().end_position = end;
  } else {
    damage_.push_back({scanner_.position(), end, expected_, expected_, std::move(fault)});
  }
  scanner_.seek(end);
}

const Damage* SegmentScrub::suspect_at(std::uint64_t position) const {
  const auto found = std::find_if(suspects_.begin(), suspects_.end(), [&](const Damage& damage) {
    return damage.position <= position && position < damage.end_position;
  });
  return found == suspects_.end() ? nullptr : &*found;
}

void SegmentScrub::finish() {
  if (std::exchange(in_damage_, false)) {
    const Offset end = range_.end_offset == kOffsetMax ? known_.end() : range_.end_offset;
    damage_.back().to = std::max(damage_.back().from, end);
  }
}

}  // namespace weir::log
