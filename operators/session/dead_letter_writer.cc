#include "operators/session/dead_letter_writer.h"

#include <weir/runtime/logger.h>
#include <weir/runtime/session_hash.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace weir::internal {

std::string dead_letter_topic_of(const SessionProcessorOptions& options, const std::string& topic) {
  return options.dead_letter_topic.empty() ? topic + ".dlq" : options.dead_letter_topic;
}

DeadLetterWriter::DeadLetterWriter(std::unique_ptr<RecordSink> sink,
                                   const SessionProcessorOptions& options,
                                   const SessionPartitions& partitions, const Clock& clock)
    : sink_(std::move(sink)), options_(options), partitions_(partitions), clock_(clock) {}

Result<SinkTopicInfo> DeadLetterWriter::topic_of(const std::string& source) {
  const auto known = topics_.find(source);
  if (known != topics_.end()) {
    return known->second;
  }
  WEIR_TRY_ASSIGN(const SinkTopicInfo topic,
                  sink_->open_topic(dead_letter_topic_of(options_, source)));
  topics_.emplace(source, topic);
  return topic;
}

Timestamp DeadLetterWriter::wall_time(MonotonicTime time) const {
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.monotonic() - time);
  return clock_.now() - age.count();
}

std::string_view DeadLetterWriter::quarantine_head(const DeadLetter& letter,
                                                   const std::string& event_id) {
  if (options_.lanes.retry.on_exhausted != OnExhausted::kQuarantine || letter.session.is_null()) {
    return {};
  }
  const std::string session(letter.session.view());
  const auto known = quarantine_heads_.find(session);
  if (letter.reason == DeadLetterReason::kQuarantined) {
    return known == quarantine_heads_.end() ? std::string_view() : known->second;
  }
  if (known != quarantine_heads_.end() ||
      quarantine_heads_.size() < options_.lanes.quarantine_sessions_max) {
    return quarantine_heads_[session] = event_id;
  }
  return {};
}

Status DeadLetterWriter::send(const DeadLetter& letter) {
  const std::shared_ptr<SessionPartition> partition = partitions_.get(letter.partition);
  WEIR_ASSERT(partition != nullptr);
  WEIR_TRY_ASSIGN(const SinkTopicInfo topic, topic_of(partition->source.topic));
  const RecordView& source = *letter.record;
  const std::string event_id = event_id_of(partition->source, source);
  Headers headers = dead_letter_headers(
      letter,
      {.source = partition->source,
       .group = options_.group,
       .app_id = options_.app_id.empty() ? options_.group : options_.app_id,
       .app_version = options_.app_version,
       .quarantine_head = quarantine_head(letter, event_id),
       .first_failure = letter.attempts == 0 ? kNoTimestamp : wall_time(letter.first_failure),
       .last_failure = letter.attempts == 0 ? kNoTimestamp : wall_time(letter.last_failure),
       .families = options_.dead_letter_headers});
  const std::uint64_t hash = letter.session.is_null()
                                 ? static_cast<std::uint64_t>(partition->source.partition.value())
                                 : session_hash(letter.session.view());
  const PartitionId target(
      static_cast<std::int32_t>(hash % static_cast<std::uint64_t>(topic.partitions)));
  RecordRef record{.key = source.key,
                   .value = source.value,
                   .timestamp = source.timestamp,
                   .headers = headers.view()};
  Status sent = sink_->send(topic.handle, target, {&record, 1});
  if (!sent.ok() && sent.error().code() == Errc::kRecordTooLarge) {
    headers.add(ByteView(fmt::format("{}value.omitted", kDeadLetterPrefix)), ByteView("true"));
    record.value = {};
    record.headers = headers.view();
    sent = sink_->send(topic.handle, target, {&record, 1});
  }
  if (!sent.ok() && sent.error().code() == Errc::kRecordTooLarge) {
    // Its key or its own headers, then: where it was is what is left.
    Headers ours;
    for (const HeaderView& header : headers.view()) {
      if (header.name.starts_with(kDeadLetterPrefix)) {
        ours.add(header.name, header.value);
      }
    }
    ours.add(ByteView(fmt::format("{}key.omitted", kDeadLetterPrefix)), ByteView("true"));
    ours.add(ByteView(fmt::format("{}headers.omitted", kDeadLetterPrefix)), ByteView("true"));
    record.key = {};
    record.headers = ours.view();
    return sink_->send(topic.handle, target, {&record, 1});
  }
  return sent;
}

std::size_t DeadLetterWriter::write(std::span<const DeadLetter> letters, const Answer& answer) {
  Status status;
  std::vector<bool> is_sent(letters.size());
  for (std::size_t i = 0; i < letters.size(); ++i) {
    Status sent = send(letters[i]);
    is_sent[i] = sent.ok();
    if (sent.ok()) {
      continue;
    }
    const Errc code = sent.error().code();
    if (code == Errc::kRecordTooLarge || code == Errc::kInvalidRecord) {
      WEIR_ERROR(
          "a dead letter is refused and its session waits topic={} error=\"{}\"",
          dead_letter_topic_of(options_, partitions_.get(letters[i].partition)->source.topic),
          sent.error().to_string());  // nothing of it was appended
    } else if (status.ok()) {
      status = std::move(sent);
    }
  }
  const Result<std::vector<FlushedPartition>> flushed = sink_->flush();
  // A failed send may tell of an append before it: then no letter of this round counts.
  const bool is_durable = flushed.ok() && status.ok();
  if (!is_durable) {
    const Error& error = flushed.ok() ? status.error() : flushed.error();
    WEIR_WARN("dead letters were not written and are tried again letters={} error=\"{}\"",
              letters.size(), error.to_string());
    topics_.clear();  // one may have been deleted: opened again
  }
  for (std::size_t i = 0; i < letters.size(); ++i) {
    answer(letters[i].id, is_durable && is_sent[i]);
  }
  return is_durable ? static_cast<std::size_t>(std::count(is_sent.begin(), is_sent.end(), true))
                    : 0;
}

}  // namespace weir::internal
