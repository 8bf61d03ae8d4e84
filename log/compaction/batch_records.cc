#include "log/compaction/batch_records.h"

#include "log/record/compression.h"

#include <fmt/format.h>

namespace weir::log {

Result<BatchRecords> BatchRecords::open(const BatchHeader& header, ByteView batch,
                                        std::size_t decompressed_bytes_max) {
  const ByteView records = batch.substr(kBatchHeaderBytes);
  // An empty batch has no stream, whatever its codec was.
  if (header.codec_bits() == 0 || header.records_count == 0) {
    return BatchRecords(header, SharedBytes(), records);
  }
  Result<SharedBytes> plain = decompress(header.codec_bits(), records, decompressed_bytes_max);
  if (!plain.ok()) {
    return std::move(plain).error().with_context(
        fmt::format("the batch at offset {}", header.base_offset.value()));
  }
  const ByteView bytes = plain->view();
  return BatchRecords(header, *std::move(plain), bytes);
}

Result<bool> BatchRecords::next(One& record) {
  if (read_ == header_.records_count) {
    return false;
  }
  const char* const start = at_;
  const char* const next = read_record(at_, end_, record.raw);
  if (next == nullptr || record.raw.offset_delta < 0 ||
      record.raw.offset_delta > header_.last_offset_delta) {
    return Error(Errc::kCorrupt, fmt::format("record {} of the batch at offset {} is damaged",
                                             read_, header_.base_offset.value()));
  }
  ++read_;
  at_ = next;
  record.size_bytes = static_cast<std::size_t>(next - start);
  record.headers =
      ByteView(record.raw.headers, static_cast<std::size_t>(next - record.raw.headers));
  record.offset = header_.base_offset.plus(record.raw.offset_delta);
  const auto timestamp = static_cast<std::uint64_t>(header_.base_timestamp) +
                         static_cast<std::uint64_t>(record.raw.timestamp_delta);
  record.timestamp = header_.timestamp_type() == TimestampType::kLogAppendTime
                         ? header_.max_timestamp
                         : static_cast<Timestamp>(timestamp);
  return true;
}

}  // namespace weir::log
