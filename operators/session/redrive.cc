#include "operators/session/dead_letter_headers.h"
#include "operators/session/redriven_letters.h"

#include <weir/operators/dead_letters.h>

#include <fmt/core.h>

#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace weir {

namespace internal {

namespace {

constexpr std::size_t kUnmarkedMax = 1'000;

class Redrive {
 public:
  Redrive(Backend& log, const RedriveOptions& options, const OnRedrive& on_redrive)
      : log_(log), options_(options), on_redrive_(on_redrive) {}

  Result<RedriveResult> run() {
    WEIR_TRY_ASSIGN(const RedrivenLetters redriven, RedrivenLetters::read(log_, options_.topic));
    topic_id_ = redriven.topic_id();
    if (options_.executes) {
      WEIR_TRY(open_sink());
    }
    // Unfiltered by reason: a letter that is left out holds back those behind it.
    const Status read =
        read_dead_letters(log_, options_.topic, {.session = options_.filter.session, .reason = {}},
                          [this](const StoredDeadLetter& letter) { return take(letter); });
    // Also behind an error: what was sent is not to be sent again.
    const Status marked = mark_sent();
    WEIR_TRY(Status(read));
    WEIR_TRY(Status(marked));
    return result_;
  }

 private:
  Status open_sink() {
    const std::string name = redriven_topic_of(options_.topic);
    const auto made = log_.admin().create_topic({name, 1, {{"cleanup.policy", "compact"}}});
    if (!made.ok() && made.error().code() != Errc::kTopicExists) {
      return made.status();
    }
    WEIR_TRY_ASSIGN(sink_, log_.make_sink({.client_id = "weir-redrive", .transactional_id = {}}));
    WEIR_TRY_ASSIGN(marks_, sink_->open_topic(name));
    return {};
  }

  Status take(const StoredDeadLetter& letter) {
    if (letter.is_redriven) {
      ++result_.already;
      return {};
    }
    const bool is_wanted =
        !options_.filter.reason.has_value() || letter.reason == *options_.filter.reason;
    WEIR_TRY_ASSIGN(std::string why, why_held(letter));
    if (!is_wanted && why.empty()) {
      why = fmt::format("its reason is {}", letter.reason);
    }
    if (!why.empty()) {
      hold(letter);
      if (is_wanted) {
        ++result_.held;
        on_redrive_(letter, why);
      }
      return {};
    }
    if (options_.executes) {
      Status sent = send(letter);
      if (!sent.ok() && (sent.error().code() == Errc::kRecordTooLarge ||
                         sent.error().code() == Errc::kInvalidRecord)) {
        hold(letter);
        ++result_.held;
        on_redrive_(letter,
                    fmt::format("{} refuses it: {}", letter.source->topic, sent.error().message()));
        return {};
      }
      WEIR_TRY(std::move(sent));
    }
    ++result_.redriven;
    on_redrive_(letter, {});
    return {};
  }

  // The session's name; letters of no session are one by partition.
  static std::string session_of(const StoredDeadLetter& letter) {
    return letter.session.is_null() ? fmt::format("-{}", letter.partition.partition.value())
                                    : fmt::format("+{}", letter.session.view());
  }
  void hold(const StoredDeadLetter& letter) { held_sessions_.insert(session_of(letter)); }

  Result<std::string> why_held(const StoredDeadLetter& letter) {
    if (!letter.source.has_value()) {
      return std::string("it has no __session.dlq.topic and .partition to go back to");
    }
    if (letter.is_value_omitted) {
      return std::string("its value was too large for the dead-letter topic and is not in it");
    }
    if (letter.redrive_count >= options_.redrives_max) {
      return fmt::format("it came back {} times already", letter.redrive_count);
    }
    WEIR_TRY_ASSIGN(const std::int32_t partitions, partitions_of(letter.source->topic));
    if (letter.source->partition.value() >= partitions) {
      return fmt::format("{} does not exist", letter.source->to_string());
    }
    return held_sessions_.contains(session_of(letter))
               ? std::string("an earlier letter of its session is held")
               : std::string();
  }

  Result<std::int32_t> partitions_of(const std::string& topic) {
    const auto known = partitions_.find(topic);
    if (known != partitions_.end()) {
      return known->second;
    }
    WEIR_TRY_ASSIGN(const TopicDescription description, log_.admin().describe_topic(topic));
    partitions_.emplace(topic, description.partitions);
    return description.partitions;
  }

  Status send(const StoredDeadLetter& letter) {
    const auto known = targets_.find(letter.source->topic);
    if (known == targets_.end()) {
      WEIR_TRY_ASSIGN(const SinkTopicInfo target, sink_->open_topic(letter.source->topic));
      targets_.emplace(letter.source->topic, target);
    }
    Headers headers(letter.record.headers);
    headers.remove(kRedriveCount);
    headers.add(kRedriveCount, ByteView(std::to_string(letter.redrive_count + 1)));
    if (!letter.record.headers.last(kEventId).has_value()) {
      headers.add(kEventId, letter.event_id);
    }
    const RecordRef record{.key = letter.record.key,
                           .value = letter.record.value,
                           .timestamp = letter.record.timestamp,
                           .headers = headers.view()};
    WEIR_TRY(sink_->send(targets_.at(letter.source->topic).handle, letter.source->partition,
                         {&record, 1}));
    unmarked_.push_back(redriven_key(topic_id_, letter.partition, letter.record.offset));
    return unmarked_.size() >= kUnmarkedMax ? mark_sent() : Status();
  }

  // Behind what was sent: a mark without its record would lose it.
  Status mark_sent() {
    if (unmarked_.empty()) {
      return {};
    }
    WEIR_TRY(sink_->flush().status());
    for (const std::string& key : unmarked_) {
      const RecordRef mark{.key = ByteView(key), .value = ByteView("sent"), .headers = {}};
      WEIR_TRY(sink_->send(marks_.handle, PartitionId(0), {&mark, 1}));
    }
    unmarked_.clear();
    return sink_->flush().status();
  }

  Backend& log_;
  const RedriveOptions& options_;
  const OnRedrive& on_redrive_;
  Uuid topic_id_;
  std::unique_ptr<RecordSink> sink_;
  SinkTopicInfo marks_;
  std::map<std::string, SinkTopicInfo> targets_;
  std::map<std::string, std::int32_t> partitions_;
  std::unordered_set<std::string> held_sessions_;
  std::vector<std::string> unmarked_;  // sent, not yet marked
  RedriveResult result_;
};

}  // namespace
}  // namespace internal

Result<RedriveResult> redrive_dead_letters(Backend& log, const RedriveOptions& options,
                                           const OnRedrive& on_redrive) {
  return internal::Redrive(log, options, on_redrive).run();
}

}  // namespace weir
