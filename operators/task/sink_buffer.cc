#include <weir/operators/internal/sink_buffer.h>
#include <weir/runtime/assert.h>
#include <weir/runtime/murmur2.h>

#include <fmt/core.h>

#include <algorithm>

namespace weir::internal {

SinkBuffer::SinkBuffer(RecordSink& sink, std::string topic, SinkTopicInfo info, TaskContext& task,
                       std::size_t records_max)
    : sink_(sink),
      topic_(std::move(topic)),
      info_(info),
      task_(task),
      records_max_(std::min(records_max, kRecordsMax)) {
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

void SinkBuffer::add(const SinkMark& mark, Timestamp timestamp, HeadersView headers,
                     const Flow& flow) {
  const std::size_t value_end = bytes_.size();
  const bool alone = value_end - mark.begin >= kAloneBytes && task_.asks_which_record_is_refused();
  if (alone && !entries_.empty()) [[unlikely]] {
    const std::string record = bytes_.substr(mark.begin);
    bytes_.resize(mark.begin);
    flush();
    bytes_ = record;
    add({.begin = 0,
         .key_end = mark.key_end - mark.begin,
         .key_is_null = mark.key_is_null,
         .value_is_null = mark.value_is_null},
        timestamp, headers, flow);
    return;
  }
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
  if (++counts_[partition] >= records_max_ || bytes_.size() >= kBytesMax || alone) {
    flush(entries_.size() == 1 ? &flow : nullptr);
  }
}

void SinkBuffer::flush() {
  flush(nullptr);
}

void SinkBuffer::flush(const Flow* flow) {
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
      send(p, std::span<const RecordRef>(refs_).subspan(begin, counts_[p]), flow);
      begin += counts_[p];
    }
  }
  sent_ += entries_.size();
  clear();
  keyless_partition_ = (keyless_partition_ + 1) % static_cast<std::uint32_t>(info_.partitions);
}

void SinkBuffer::send(std::uint32_t partition, std::span<const RecordRef> records,
                      const Flow* flow) {
  if (task_.failed()) {
    return;
  }
  Status sent =
      sink_.send(info_.handle, PartitionId(static_cast<std::int32_t>(partition)), records);
  if (sent.ok()) {
    return;
  }
  // A record that the log refuses for what it is would be refused again.
  const Errc code = sent.error().code();
  const bool is_record = code == Errc::kRecordTooLarge || code == Errc::kInvalidTimestamp ||
                         code == Errc::kInvalidRecord;
  const bool is_dead_letter = task_.writes_dead_letters_to(*this);
  Error error = std::move(sent).error().with_context(fmt::format(
      "{} topic '{}'",
      is_record && is_dead_letter ? "dead letter, which would be lost, to" : "output", topic_));
  if (is_record && flow != nullptr && !is_dead_letter) {
    task_.reject(ErrorStage::kProduction, std::move(error), *flow);
  } else {
    task_.fail(std::move(error), is_record ? FailureKind::kRecord : FailureKind::kInfrastructure);
  }
}

void SinkBuffer::clear() {
  entries_.clear();
  bytes_.clear();
  std::fill(counts_.begin(), counts_.end(), 0U);
}

SinkBuffer* DynamicSinks::find_or_open(const std::string& topic, const Flow& flow) {
  if (const auto found = buffers_.find(topic); found != buffers_.end()) {
    return found->second.get();
  }
  if (buffers_.size() >= kTopicsMax) {
    task_.reject(ErrorStage::kProduction,
                 Error(Errc::kInvalidTopic,
                       fmt::format("topic '{}' would be number {} that records choose; at most {} "
                                   "are kept open",
                                   topic, buffers_.size() + 1, kTopicsMax)),
                 flow);
    return nullptr;
  }
  Result<SinkTopicInfo> info = sink_.open_topic(topic);
  if (!info.ok()) {
    const Errc code = info.error().code();
    const bool is_record = code == Errc::kUnknownTopic || code == Errc::kInvalidTopic ||
                           code == Errc::kInvalidArgument;
    Error error = std::move(info).error().with_context(
        fmt::format("topic '{}', which a record chose{}", topic, is_record ? " (create it)" : ""));
    if (is_record) {
      task_.reject(ErrorStage::kProduction, std::move(error), flow);
    } else {
      task_.fail(std::move(error), FailureKind::kInfrastructure);
    }
    return nullptr;
  }
  auto buffer = std::make_unique<SinkBuffer>(sink_, topic, *info, task_, records_max_);
  return buffers_.emplace(topic, std::move(buffer)).first->second.get();
}

void DynamicSinks::flush() {
  for (auto& [topic, buffer] : buffers_) {
    buffer->flush();
  }
}

}  // namespace weir::internal
