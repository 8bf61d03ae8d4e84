#include "log/segment/batch_scanner.h"

#include <weir/runtime/endian.h>

#include <fmt/format.h>

#include <algorithm>
#include <zlib.h>

namespace weir::log {
namespace {

constexpr std::size_t kChunkBytes = 64U << 10U;
constexpr std::size_t kHopBytes = 4U << 10U;
constexpr std::size_t kLargeBatchBytes = 16U << 10U;
constexpr std::size_t kMagicAt = 16;
constexpr std::size_t kBatchBytesMax = 256U << 20U;

}  // namespace

Result<ByteView> BatchScanner::fill(std::uint64_t position, std::size_t need, std::size_t wish) {
  const std::uint64_t left = end_ - position;
  need = static_cast<std::size_t>(std::min<std::uint64_t>(need, left));
  const std::uint64_t buffer_end = buffer_position_ + buffer_.size();
  if (buffer_ && position >= buffer_position_ && position + need <= buffer_end) {
    return buffer_.view().substr(static_cast<std::size_t>(position - buffer_position_));
  }
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(std::max(need, wish), left));
  if (!buffer_ || buffer_.capacity() < size) {
    buffer_ = SharedBytes::allocate(std::max(size, kChunkBytes));
  }
  buffer_.resize(0);
  WEIR_TRY_ASSIGN(const std::size_t got, file_.read_at(position, {buffer_.data(), size}));
  buffer_.resize(got);
  buffer_position_ = position;
  return buffer_.view();
}

Result<std::optional<BatchHeader>> BatchScanner::peek() {
  if (position_ >= end_) {
    return std::optional<BatchHeader>();
  }
  const std::size_t wish = hop_ > kLargeBatchBytes ? kHopBytes : kChunkBytes;
  WEIR_TRY_ASSIGN(const ByteView bytes, fill(position_, kBatchHeaderBytes, wish));
  const std::uint64_t left = end_ - position_;
  if (bytes.size() < kBatchHeaderBytes) {
    return Error(Errc::kCorrupt,
                 fmt::format("{} bytes are left, a header has {}", left, kBatchHeaderBytes));
  }
  Result<BatchHeader> header = read_batch_header(bytes, kBatchBytesMax);
  if (!header.ok()) {
    // Torn bytes look like magic 0 as easily as anything else: only the old CRC proves the format.
    if (header.error().code() == Errc::kUnsupported && !is_legacy_message(bytes)) {
      return Error(Errc::kCorrupt, "bytes that are no batch");
    }
    return std::move(header).error();
  }
  if (!offsets_fit(*header)) {
    return Error(Errc::kCorrupt,
                 fmt::format("base offset {} with lastOffsetDelta {}", header->base_offset.value(),
                             header->last_offset_delta));
  }
  if (header->size_bytes() > left) {
    return Error(Errc::kCorrupt, fmt::format("the batch has {} bytes by its header, {} are left",
                                             header->size_bytes(), left));
  }
  return std::optional<BatchHeader>(*std::move(header));
}

Result<ByteView> BatchScanner::whole(const BatchHeader& header) {
  WEIR_TRY_ASSIGN(const ByteView bytes, fill(position_, header.size_bytes(), kChunkBytes));
  if (bytes.size() < header.size_bytes()) {
    return Error(Errc::kCorrupt,
                 fmt::format("the file ends inside a batch of {} bytes", header.size_bytes()));
  }
  return bytes.substr(0, header.size_bytes());
}

// MessageSet entry (reference old-magic): offset i64 | size i32 | crc u32 of all behind it | magic.
bool BatchScanner::is_legacy_message(ByteView start) {
  constexpr std::size_t kCrcAt = 12;
  const auto size = load_be<std::int32_t>(start.data() + 8);
  const std::uint64_t total = kBatchLengthEnd + static_cast<std::uint64_t>(size);
  if (size < 14 || total > end_ - position_ || total > kBatchBytesMax) {
    return false;
  }
  const auto stated = load_be<std::uint32_t>(start.data() + kCrcAt);
  const Result<ByteView> bytes = fill(position_, static_cast<std::size_t>(total), kChunkBytes);
  if (!bytes.ok() || bytes->size() < total) {
    return false;
  }
  const auto length = static_cast<uInt>(total - kMagicAt);
  return crc32(0, reinterpret_cast<const Bytef*>(bytes->data() + kMagicAt), length) == stated;
}

Result<std::optional<std::uint64_t>> BatchScanner::find_next(std::uint64_t from, Offset low,
                                                             Offset high) {
  const std::uint64_t before = position_;
  std::uint64_t at = from;
  while (at + kBatchHeaderBytes <= end_) {
    WEIR_TRY_ASSIGN(const ByteView bytes, fill(at, kBatchHeaderBytes, kChunkBytes));
    if (bytes.size() < kBatchHeaderBytes) {
      break;
    }
    if (bytes[kMagicAt] != 2 || load_be<std::int64_t>(bytes.data()) < low.value() ||
        load_be<std::int64_t>(bytes.data()) >= high.value()) {
      ++at;
      continue;
    }
    position_ = at;
    const Result<std::optional<BatchHeader>> header = peek();
    if (header.ok() && *header) {
      WEIR_TRY_ASSIGN(const ByteView batch, whole(**header));
      if ((*header)->last_offset() < high && verify_batch(batch).ok()) {
        position_ = before;
        return std::optional(at);
      }
    }
    ++at;
  }
  position_ = before;
  return std::optional<std::uint64_t>();
}

}  // namespace weir::log
