#include "operators/session/dead_letter_headers.h"

#include <weir/operators/session.h>
#include <weir/runtime/endian.h>

#include <fmt/core.h>

#include <array>
#include <optional>
#include <utility>

namespace weir::internal {

namespace {

constexpr std::size_t kMessageMax = 512;  // five families of them, and all stays below 8 KiB
constexpr std::size_t kSessionMax = 1024;
constexpr std::size_t kClassMax = 64;
constexpr std::size_t kNameMax = 249;  // as topics: of group and application
constexpr std::size_t kEventIdMax = 512;

bool has(std::uint8_t families, DeadLetterHeaders family) {
  return (families & static_cast<std::uint8_t>(family)) != 0;
}

// "TIMED_OUT: no answer" in two.
struct Cause {
  std::string_view error_class;
  std::string_view message;
};
Cause split_cause(std::string_view cause) {
  const std::size_t colon = cause.find(": ");
  if (colon == std::string_view::npos) {
    return {{}, cause.substr(0, kMessageMax)};
  }
  return {cause.substr(0, std::min(colon, kClassMax)), cause.substr(colon + 2, kMessageMax)};
}

class Writer {
 public:
  Writer(const DeadLetter& letter, const DeadLetterFacts& facts)
      : letter_(letter), facts_(facts), cause_(split_cause(letter.cause)) {}

  Headers write() {
    copy_own();
    session();
    if (has(facts_.families, DeadLetterHeaders::kDlq)) {
      dlq();
    }
    if (has(facts_.families, DeadLetterHeaders::kStreams)) {
      streams();
    }
    if (has(facts_.families, DeadLetterHeaders::kConnect)) {
      connect();
    }
    if (has(facts_.families, DeadLetterHeaders::kSpring)) {
      spring();
    }
    return std::move(out_);
  }

 private:
  void copy_own() {
    const HeadersView own = letter_.record->headers;
    is_redriven_ = own.last(kRedriveCount).has_value();
    if (!is_redriven_) {
      out_ = Headers(own);
      return;
    }
    for (const HeaderView& header : own) {
      if (header.name == kRedriveCount || !is_of_a_letter(header.name)) {
        out_.add(header.name, header.value);
      }
    }
  }
  static bool is_of_a_letter(ByteView name) {
    constexpr std::array<std::string_view, 5> kPrefixes{
        kDeadLetterPrefix, "__dlq.errors.", "__streams.errors.", "__connect.errors.", "kafka_dlt-"};
    for (const std::string_view prefix : kPrefixes) {
      if (name.starts_with(prefix)) {
        return true;
      }
    }
    return false;
  }

  void add(std::string_view family, std::string_view name, ByteView value) {
    out_.add(ByteView(fmt::format("{}{}", family, name)), value);
  }
  // An unknown time or class is left out.
  void add_known(std::string_view family, std::string_view name, ByteView value) {
    if (!value.empty()) {
      add(family, name, value);
    }
  }
  void add_time(std::string_view name, Timestamp time) {
    if (time != kNoTimestamp) {
      add(kDeadLetterPrefix, name, std::to_string(time));
    }
  }
  void coordinate(std::string_view name, const std::string& value) {
    if (is_redriven_) {
      const std::string full = fmt::format("{}{}", kDeadLetterPrefix, name);
      const std::optional<NullableBytes> first = letter_.record->headers.last(full);
      if (first.has_value()) {
        out_.add(full, *first);
        return;
      }
    }
    add(kDeadLetterPrefix, name, value);
  }

  void session() {
    coordinate("event.id", event_id_of(facts_.source, *letter_.record).substr(0, kEventIdMax));
    if (letter_.session.is_null()) {
      out_.add("__session.dlq.session", {});
    } else if (letter_.session.size() <= kSessionMax) {
      add(kDeadLetterPrefix, "session", letter_.session.view());
    } else {
      add(kDeadLetterPrefix, "session.omitted", "true");
    }
    coordinate("topic", facts_.source.topic);
    coordinate("partition", partition_text());
    coordinate("offset", offset_text());
    coordinate("timestamp", std::to_string(letter_.record->timestamp));
    add(kDeadLetterPrefix, "group", facts_.group.substr(0, kNameMax));
    add(kDeadLetterPrefix, "attempts", std::to_string(letter_.attempts));
    add_time("first.failure.ts", facts_.first_failure);
    add_time("last.failure.ts", facts_.last_failure);
    add(kDeadLetterPrefix, "reason", dead_letter_reason_name(letter_.reason));
    add_known(kDeadLetterPrefix, "error.class", cause_.error_class);
    add_known(kDeadLetterPrefix, "error.message", cause_.message);
    add(kDeadLetterPrefix, "app.id", facts_.app_id.substr(0, kNameMax));
    add_known(kDeadLetterPrefix, "app.version", facts_.app_version.substr(0, kNameMax));
    add_known(kDeadLetterPrefix, "quarantine.head", facts_.quarantine_head.substr(0, kEventIdMax));
  }
  void place(std::string_view family) {
    add(family, "topic", facts_.source.topic);
    add(family, "partition", partition_text());
    add(family, "offset", offset_text());
  }
  void dlq() {
    constexpr std::string_view kFamily = "__dlq.errors.";
    place(kFamily);
    add(kFamily, "group", facts_.group.substr(0, kNameMax));
    add(kFamily, "delivery.count", std::to_string(letter_.attempts));
    add(kFamily, "message", cause_.message);
  }
  void streams() {
    constexpr std::string_view kFamily = "__streams.errors.";
    add(kFamily, "exception", cause_.error_class);
    add(kFamily, "message", cause_.message);
    place(kFamily);
  }
  void connect() {
    constexpr std::string_view kFamily = "__connect.errors.";
    place(kFamily);
    add(kFamily, "connector.name", facts_.app_id.substr(0, kNameMax));
    add(kFamily, "stage", "TASK_PUT");
    add(kFamily, "exception.class.name", cause_.error_class);
    add(kFamily, "exception.message", cause_.message);
  }
  template <class T>
  void add_binary(std::string_view name, T value) {
    char bytes[sizeof(T)];
    store_be(bytes, value);
    out_.add(name, ByteView(bytes, sizeof(bytes)));
  }
  // spring-kafka DeadLetterPublishingRecoverer: numbers as ByteBuffer writes them.
  void spring() {
    constexpr std::string_view kFamily = "kafka_dlt-";
    add(kFamily, "original-topic", facts_.source.topic);
    add_binary("kafka_dlt-original-partition", facts_.source.partition.value());
    add_binary("kafka_dlt-original-offset", letter_.record->offset.value());
    add_binary("kafka_dlt-original-timestamp", letter_.record->timestamp);
    add(kFamily, "original-timestamp-type", "CREATE_TIME");
    add(kFamily, "original-consumer-group", facts_.group.substr(0, kNameMax));
    add(kFamily, "exception-fqcn", cause_.error_class);
    add(kFamily, "exception-message", cause_.message);
    add_binary("kafka_deliveryAttempt", static_cast<std::int32_t>(letter_.attempts));
  }

  std::string partition_text() const { return std::to_string(facts_.source.partition.value()); }
  std::string offset_text() const { return std::to_string(letter_.record->offset.value()); }

  const DeadLetter& letter_;
  const DeadLetterFacts& facts_;
  Cause cause_;
  bool is_redriven_ = false;
  Headers out_;
};

}  // namespace

std::string event_id_of(const TopicPartition& source, const RecordView& record) {
  const std::optional<NullableBytes> given = record.headers.last(kEventId);
  if (given.has_value() && !given->is_null()) {
    return std::string(given->view());
  }
  return fmt::format("{}/{}/{}", source.topic, source.partition.value(), record.offset.value());
}

Headers dead_letter_headers(const DeadLetter& letter, const DeadLetterFacts& facts) {
  return Writer(letter, facts).write();
}

}  // namespace weir::internal
