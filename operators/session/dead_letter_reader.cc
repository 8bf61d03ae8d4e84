#include "operators/session/dead_letter_headers.h"
#include "operators/session/redriven_letters.h"

#include <weir/operators/dead_letters.h>

#include <fmt/core.h>

#include <charconv>
#include <vector>

namespace weir {

namespace internal {

namespace {

constexpr Duration kPoll = std::chrono::milliseconds(100);

std::string_view header(const RecordView& record, std::string_view name) {
  const std::optional<NullableBytes> value =
      record.headers.last(ByteView(fmt::format("{}{}", kDeadLetterPrefix, name)));
  return value.has_value() ? value->view_or_empty() : std::string_view();
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

StoredDeadLetter parse(const TopicPartition& partition, const RecordView& record) {
  StoredDeadLetter letter{.partition = partition,
                          .record = record,
                          .source = {},
                          .source_offset = header(record, "offset"),
                          .event_id = header(record, "event.id"),
                          .session = record.key,
                          .reason = header(record, "reason"),
                          .attempts = header(record, "attempts"),
                          .error_class = header(record, "error.class"),
                          .error_message = header(record, "error.message")};
  const std::string_view topic = header(record, "topic");
  const auto source = number<std::int32_t>(header(record, "partition"));
  if (!topic.empty() && source.has_value() && *source >= 0) {
    letter.source = {std::string(topic), PartitionId(*source)};
  }
  const std::optional<NullableBytes> session = record.headers.last("__session.dlq.session");
  if (session.has_value()) {
    letter.session = *session;
  }
  letter.redrive_count = number<std::uint32_t>(header(record, "redrive.count")).value_or(0);
  letter.is_value_omitted = header(record, "value.omitted") == "true";
  return letter;
}

bool matches(const DeadLetterFilter& filter, const StoredDeadLetter& letter) {
  return (!filter.session.has_value() ||
          (!letter.session.is_null() && letter.session.view() == *filter.session)) &&
         (!filter.reason.has_value() || letter.reason == *filter.reason);
}

}  // namespace

Status read_to_end(Backend& log, const std::string& topic,
                   const std::function<Status(const TopicPartition&, const RecordView&)>& take) {
  WEIR_TRY_ASSIGN(const TopicDescription description, log.admin().describe_topic(topic));
  for (std::int32_t i = 0; i < description.partitions; ++i) {
    const TopicPartition partition{topic, PartitionId(i)};
    WEIR_TRY_ASSIGN(const PartitionOffsets at, log.admin().offsets(partition));
    WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, log.make_source({}));
    WEIR_TRY(source->assign({partition}));
    WEIR_TRY(source->seek(0, at.log_start));
    while (source->position(0) < at.high_watermark) {
      WEIR_TRY_ASSIGN(const std::vector<RecordBlock> blocks, source->poll(kPoll));
      for (const RecordBlock& block : blocks) {
        if (!block.status.ok()) {
          return Error(block.status.error()).with_context("read " + partition.to_string());
        }
        for (const RecordView& record : block.records) {
          if (record.offset < at.high_watermark) {
            WEIR_TRY(take(partition, record));
          }
        }
      }
    }
  }
  return {};
}

std::string redriven_topic_of(const std::string& topic) {
  return topic + ".redriven";
}

std::string redriven_key(const Uuid& topic_id, const TopicPartition& partition, Offset offset) {
  return fmt::format("{}/{}/{}", topic_id.to_string(), partition.partition.value(), offset.value());
}

Result<RedrivenLetters> RedrivenLetters::read(Backend& log, const std::string& topic) {
  RedrivenLetters redriven;
  WEIR_TRY_ASSIGN(const TopicDescription letters, log.admin().describe_topic(topic));
  redriven.topic_id_ = letters.id;
  Status read = read_to_end(log, redriven_topic_of(topic),
                            [&](const TopicPartition&, const RecordView& record) -> Status {
                              redriven.keys_.emplace(record.key.view_or_empty());
                              return {};
                            });
  if (!read.ok() && read.error().code() != Errc::kUnknownTopic) {
    return std::move(read).error();
  }
  return redriven;
}

bool RedrivenLetters::contains(const TopicPartition& partition, Offset offset) const {
  return keys_.contains(redriven_key(topic_id_, partition, offset));
}

}  // namespace internal

Status read_dead_letters(Backend& log, const std::string& topic, const DeadLetterFilter& filter,
                         const TakeDeadLetter& take) {
  WEIR_TRY_ASSIGN(const internal::RedrivenLetters redriven,
                  internal::RedrivenLetters::read(log, topic));
  return internal::read_to_end(
      log, topic, [&](const TopicPartition& partition, const RecordView& record) -> Status {
        StoredDeadLetter letter = internal::parse(partition, record);
        if (!internal::matches(filter, letter)) {
          return {};
        }
        letter.is_redriven = redriven.contains(partition, record.offset);
        return take(letter);
      });
}

}  // namespace weir
