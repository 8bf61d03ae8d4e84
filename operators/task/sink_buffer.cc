#include <weir/operators/internal/sink_buffer.h>
#include <weir/runtime/assert.h>
#include <weir/runtime/murmur2.h>

#include <algorithm>

namespace weir::internal {

SinkBuffer::SinkBuffer(RecordSink& sink, SinkTopicInfo info, TaskContext& task,
                       std::size_t records_max)
    : sink_(sink), info_(info), task_(task), records_max_(std::min(records_max, kRecordsMax)) {
  WEIR_ASSERT(info.partitions > 0);
  counts_.resize(static_cast<std::size_t>(info.partitions));
}

std::uint32_t SinkBuffer::choose_partition(const SinkMark& mark) {
  if (info_.partitions == 1) {
    return 0;
  }
  if (mark.key_is_null) {
    return keyless_partition_;
  }
  const ByteView key(bytes_.data() + mark.begin, mark.key_end - mark.begin);
  return static_cast<std::uint32_t>(partition_for_key(key, info_.partitions).value());
}

void SinkBuffer::add(const SinkMark& mark, Timestamp timestamp, HeadersView headers) {
  const std::size_t value_end = bytes_.size();
  // Headers are copied: those of a cached result do not outlive its flush.
  bytes_.append(headers.encoded());
  const std::uint32_t partition = choose_partition(mark);
  entries_.push_back({.begin = mark.begin,
                      .key_end = mark.key_end,
                      .value_end = value_end,
                      .headers_end = bytes_.size(),
                      .timestamp = timestamp,
                      .header_count = headers.count(),
                      .partition = partition,
                      .key_is_null = mark.key_is_null,
                      .value_is_null = mark.value_is_null});
  if (++counts_[partition] >= records_max_ || bytes_.size() >= kBytesMax) {
    flush();
  }
}

void SinkBuffer::flush() {
  if (entries_.empty()) {
    return;
  }
  // Counting sort by partition; the order inside a partition stays.
  starts_.assign(counts_.size() + 1, 0);
  for (std::size_t p = 0; p < counts_.size(); ++p) {
    starts_[p + 1] = starts_[p] + counts_[p];
  }
  refs_.resize(entries_.size());
  for (const Entry& entry : entries_) {
    RecordRef& ref = refs_[starts_[entry.partition]++];
    const char* base = bytes_.data();
    ref.key = entry.key_is_null
                  ? NullableBytes()
                  : NullableBytes(ByteView(base + entry.begin, entry.key_end - entry.begin));
    ref.value =
        entry.value_is_null
            ? NullableBytes()
            : NullableBytes(ByteView(base + entry.key_end, entry.value_end - entry.key_end));
    ref.timestamp = entry.timestamp;
    ref.headers = HeadersView(ByteView(base + entry.value_end, entry.headers_end - entry.value_end),
                              entry.header_count);
  }
  std::size_t begin = 0;
  for (std::uint32_t p = 0; p < counts_.size(); ++p) {
    if (counts_[p] != 0) {
      send(p, std::span<const RecordRef>(refs_).subspan(begin, counts_[p]));
      begin += counts_[p];
    }
  }
  sent_ += entries_.size();
  clear();
  keyless_partition_ = (keyless_partition_ + 1) % static_cast<std::uint32_t>(info_.partitions);
}

void SinkBuffer::send(std::uint32_t partition, std::span<const RecordRef> records) {
  if (task_.failed()) {
    return;
  }
  Status sent =
      sink_.send(info_.handle, PartitionId(static_cast<std::int32_t>(partition)), records);
  if (!sent.ok()) {
    // A record that the log refuses for what it is would be refused again.
    const Errc code = sent.error().code();
    const bool is_record = code == Errc::kRecordTooLarge || code == Errc::kInvalidTimestamp ||
                           code == Errc::kInvalidRecord;
    task_.fail(std::move(sent).error(),
               is_record ? FailureKind::kRecord : FailureKind::kInfrastructure);
  }
}

void SinkBuffer::clear() {
  entries_.clear();
  bytes_.clear();
  std::fill(counts_.begin(), counts_.end(), 0U);
}

}  // namespace weir::internal
