#include "log/partition/batch_reader.h"

#include "log/segment/batch_scanner.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir::log {
namespace {

constexpr std::size_t kBatchBytesMax = 256U << 20U;

class Reading {
 public:
  Reading(File& file, const ReadRange& range) : file_(file), range_(range) {
    out_.end_position = range.position;
    expected_ = range.from;
  }

  Result<ReadBatches> run() {
    WEIR_TRY(fill(std::max(range_.bytes_max, kBatchHeaderBytes)));
    while (true) {
      Result<bool> more = next();
      if (more.ok() && *more) {
        continue;
      }
      // Damage is reported by the read that starts at it.
      if (!more.ok() && out_.batches.empty()) {
        return std::move(more).error();
      }
      return std::move(out_);
    }
  }

 private:
  Status fill(std::size_t wish) {
    const std::uint64_t left = range_.end_position - range_.position;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(wish, left));
    buffer_ = SharedBytes::allocate(std::max<std::size_t>(size, 1));
    WEIR_TRY_ASSIGN(const std::size_t got, file_.read_at(range_.position, {buffer_.data(), size}));
    buffer_.resize(got);
    return Status();
  }

  // Takes the batch at `at_`; false when there is none to take.
  Result<bool> next() {
    const std::uint64_t position = range_.position + at_;
    if (position >= range_.end_position || buffer_.size() - at_ < kBatchHeaderBytes) {
      if (position < range_.end_position && at_ == 0) {
        return corrupt(position, "the file ends inside a header");
      }
      return false;
    }
    Result<BatchHeader> read = read_batch_header(buffer_.view().substr(at_), kBatchBytesMax);
    if (!read.ok()) {
      return read.error().code() == Errc::kUnsupported
                 ? Error(Errc::kUnsupported, fmt::format("{} at position {}: {}", file_.path(),
                                                         position, read.error().message()))
                 : corrupt(position, read.error().message());
    }
    const BatchHeader header = *std::move(read);
    if (!offsets_fit(header)) {
      return corrupt(position, fmt::format("base offset {} with lastOffsetDelta {}",
                                           header.base_offset.value(), header.last_offset_delta));
    }
    WEIR_TRY(check_offsets(header, position));
    if (header.base_offset >= range_.limit) {
      return false;
    }
    const std::size_t size = header.size_bytes();
    if (size > range_.end_position - position) {
      return corrupt(position, fmt::format("the batch has {} bytes by its header, {} are left",
                                           size, range_.end_position - position));
    }
    if (buffer_.size() - at_ < size) {
      if (!out_.batches.empty() || at_ > 0) {
        return false;  // straddles the end of the buffer: the next read starts with it
      }
      WEIR_TRY(fill(size));
      return buffer_.size() < size ? Result<bool>(corrupt(position, "the file ends inside a batch"))
                                   : Result<bool>(true);
    }
    if (header.last_offset() >= range_.from) {
      out_.batches.push_back({{buffer_, buffer_.view().substr(at_, size)}, header, false});
    }
    at_ += size;
    out_.end_position = range_.position + at_;
    expected_ = std::max(expected_, header.next_offset());
    return true;
  }

  // Base offsets are not covered by the CRC; their neighbours tell.
  Status check_offsets(const BatchHeader& header, std::uint64_t position) {
    if (header.last_offset() >= range_.offset_end) {
      return corrupt(position,
                     fmt::format("offsets {} to {} do not fit below {}", header.base_offset.value(),
                                 header.last_offset().value(), range_.offset_end.value()));
    }
    if (!out_.batches.empty() && header.base_offset < expected_) {
      return corrupt(position, fmt::format("base offset {} falls back behind {}",
                                           header.base_offset.value(), expected_.value()));
    }
    if (header.base_offset <= expected_) {
      return Status();
    }
    WEIR_TRY_ASSIGN(const bool lies,
                    jumps_ahead(file_, header, position, range_.end_position, expected_));
    return lies ? Status(
                      corrupt(position, fmt::format("base offset {} jumps ahead of the next batch",
                                                    header.base_offset.value())))
                : Status();
  }

  Error corrupt(std::uint64_t position, std::string_view what) const {
    return Error(Errc::kCorrupt,
                 fmt::format("{} is damaged at position {}, offset {}: {}", file_.path(), position,
                             std::max(expected_, range_.from).value(), what));
  }

  File& file_;
  const ReadRange& range_;
  SharedBytes buffer_;
  std::size_t at_ = 0;
  Offset expected_;
  ReadBatches out_;
};

}  // namespace

Result<ReadBatches> read_batches(File& file, const ReadRange& range) {
  return Reading(file, range).run();
}

}  // namespace weir::log
