#pragma once

#include <weir/runtime/backend.h>
#include <weir/runtime/result.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

// Reading the dead letters of sessions, and sending them again (session-workers 2.9).

namespace weir {

// What a dead letter says of itself, by its headers. Borrows the record.
struct StoredDeadLetter {
  const TopicPartition& partition;  // of the letter
  const RecordView& record;
  std::optional<TopicPartition> source;  // nullopt: it is not of a session processor
  std::string_view source_offset;
  std::string_view event_id;
  NullableBytes session;  // the key where it is not told
  std::string_view reason;
  std::string_view attempts;
  std::string_view error_class;
  std::string_view error_message;
  std::uint32_t redrive_count = 0;  // how often it had been redriven before it came here
  bool is_value_omitted = false;
  bool is_redriven = false;  // from here
};

struct DeadLetterFilter {
  std::optional<std::string> session;
  std::optional<std::string> reason;
};

// Gives the letters of `topic` up to its end as of now to `take`, by partition and offset: one
// session in order. Errors: kUnknownTopic, those of `take` and of the log.
using TakeDeadLetter = std::function<Status(const StoredDeadLetter&)>;
Status read_dead_letters(Backend& log, const std::string& topic, const DeadLetterFilter& filter,
                         const TakeDeadLetter& take);

struct RedriveOptions {
  std::string topic;  // of the dead letters
  DeadLetterFilter filter;
  std::uint32_t redrives_max = 3;  // a letter that came back so often is held
  bool executes = false;           // false: only say what would be done
};

struct RedriveResult {
  std::uint64_t redriven = 0;  // or would be
  std::uint64_t already = 0;   // by an earlier call
  std::uint64_t held = 0;      // cannot go, or stand behind one of their session that cannot
};

// What became of a letter; `held` says why it stays, empty: it goes (or went).
using OnRedrive = std::function<void(const StoredDeadLetter&, std::string_view held)>;

// Sends letters again to the partition that they came from, one session in order, with event id,
// first coordinates and `redrive.count`. A letter that must stay holds back the later ones of its
// session. What was sent is kept in the compacted topic "<topic>.redriven", so that no later call
// sends it again; a crash in between may send up to 1,000 letters twice, with the same event ids.
// A redriven record comes behind records of its session that were handled meanwhile, unless the
// session was in quarantine: then behind those that are letters too.
// Errors: kUnknownTopic (the letters', or a source that was deleted), the log's.
Result<RedriveResult> redrive_dead_letters(Backend& log, const RedriveOptions& options,
                                           const OnRedrive& on_redrive);

}  // namespace weir
