#include "log/record/batch_decoder.h"

#include "log/record/compression.h"
#include "log/record/record_reader.h"

#include <weir/runtime/assert.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace weir::log {

namespace {

std::int64_t wrapping_plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

Error bad_batch(const BatchHeader& header, std::string_view what) {
  return Error(Errc::kCorrupt,
               fmt::format("batch at offset {}: {}", header.base_offset.value(), what));
}

Error bad_record(const BatchHeader& header, std::int32_t index, const char* in, const char* end) {
  RawRecord record;
  const char* fault = "";
  read_record_carefully(in, end, record, &fault);
  return bad_batch(header, fmt::format("record {} of {}: {}", index, header.records_count, fault));
}

// Room for `count` more without making repeated calls quadratic.
void reserve_more(RecordViews& out, std::size_t count) {
  const std::size_t needed = out.size() + count;
  if (needed > out.capacity()) {
    out.reserve(std::max(needed, 2 * out.capacity()));
  }
}

// Requires: room for header.records_count more in `out`.
template <TimestampType Type>
Status decode_plain(const BatchHeader& header, ByteView records, RecordViews& out) {
  const char* in = records.data();
  const char* const end = in + records.size();
  const std::int64_t base_offset = header.base_offset.value();
  const std::int64_t base_timestamp = header.base_timestamp;
  const std::int64_t max_timestamp = header.max_timestamp;
  const std::int32_t count = header.records_count;

  RawRecord record;
  for (std::int32_t i = 0; i < count; ++i) {
    const char* const next = read_record(in, end, record);
    if (next == nullptr) [[unlikely]] {
      return bad_record(header, i, in, end);
    }
    in = next;
    if (out.size() == out.capacity()) {
      __builtin_unreachable();  // lets the compiler build the record in place
    }
    out.emplace_back(
        record.key, record.value, Offset(wrapping_plus(base_offset, record.offset_delta)),
        Type == TimestampType::kLogAppendTime
            ? max_timestamp
            : wrapping_plus(base_timestamp, record.timestamp_delta),
        HeadersView(ByteView(record.headers, static_cast<std::size_t>(next - record.headers)),
                    static_cast<std::uint32_t>(record.header_count)));
  }
  if (in != end) [[unlikely]] {
    return bad_batch(header, fmt::format("{} bytes behind the last of {} records", end - in,
                                         header.records_count));
  }
  return Status();
}

}  // namespace

Status decode_records(const BatchHeader& header, ByteView batch, const DecodeLimits& limits,
                      RecordViews& out, SharedBytes& decompressed) {
  WEIR_ASSERT(batch.size() >= kBatchHeaderBytes);
  decompressed = SharedBytes();
  ByteView records = batch.substr(kBatchHeaderBytes);
  if (header.codec_bits() != 0) {
    Result<SharedBytes> plain =
        decompress(header.codec_bits(), records, limits.decompressed_bytes_max);
    if (!plain.ok()) [[unlikely]] {
      return std::move(plain).error().with_context(
          fmt::format("batch at offset {}", header.base_offset.value()));
    }
    decompressed = std::move(plain).value();
    records = decompressed.view();
  }
  if (header.records_count == 0) {
    return Status();  // what compaction leaves; Kafka does not look at bytes behind the header
  }
  // A count that the bytes cannot hold allocates nothing.
  const auto count = static_cast<std::size_t>(std::max(header.records_count, 0));
  if (header.records_count < 0 || count > records.size() / kRecordBytesMin) [[unlikely]] {
    return bad_batch(header, fmt::format("recordsCount {} does not fit into {} bytes",
                                         header.records_count, records.size()));
  }
  const std::size_t size_before = out.size();
  reserve_more(out, count);
  WEIR_ASSERT(out.capacity() - size_before >= count);
  Status decoded = header.timestamp_type() == TimestampType::kLogAppendTime
                       ? decode_plain<TimestampType::kLogAppendTime>(header, records, out)
                       : decode_plain<TimestampType::kCreateTime>(header, records, out);
  if (!decoded.ok()) [[unlikely]] {
    out.resize(size_before);
  }
  return decoded;
}

}  // namespace weir::log
