#pragma once

#include <weir/runtime/backend.h>
#include <weir/runtime/lanes.h>
#include <weir/runtime/session_engine.h>
#include <weir/state/serde.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Handlers of sessions without a topology: one record of a session at a time, in order, with state,
// outputs, retries and dead letters (docs/architecture.md, session-workers 2).

namespace weir {

// The record of one attempt. Borrows everything, until the handler returns.
struct SessionRecord {
  const TopicPartition& partition;
  const RecordView& record;  // key, value, timestamp, headers, offset
  NullableBytes session;
  std::uint32_t attempt = 1;  // delivery attempt, from 1; those of a former owner count
  std::string_view event_id;  // header `event.id`, else "topic/partition/offset": never changes
  FencingToken fence;
};

// What an attempt may do. Its effects are seen by nobody until the handler returns ok, and gone
// otherwise: a failed attempt leaves the session's last good values and no output.
//
// Threading: the handler's, until it returns.
class SessionContext {
 public:
  virtual ~SessionContext() = default;

  // A value of this session, by name: what its last good attempts wrote, or this one. Null: absent.
  // Valid until the next call. Errors: kUnsupported (has_state is false), those of the store.
  virtual Result<NullableBytes> get(ByteView name) = 0;
  // Null deletes. Errors: as get(); kNoSpace at the bound of the state.
  virtual Status put(ByteView name, NullableBytes value) = 0;
  // A record for topic outputs[output], copied. The key chooses the partition (murmur2, as Kafka
  // does), without a key the session. kNoTimestamp: that of the record at hand.
  // Errors: kInvalidArgument (there is no such output).
  virtual Status emit(std::uint32_t output, const RecordRef& record) = 0;
  // The attempt's time is over (session.handler.timeout.ms) or the program closes: end soon.
  virtual bool is_stop_requested() const = 0;

  template <Serdeable T>
  Result<std::optional<T>> get_as(ByteView name) {
    WEIR_TRY_ASSIGN(const NullableBytes bytes, get(name));
    if (bytes.is_null()) {
      return std::optional<T>();
    }
    WEIR_TRY_ASSIGN(T value, Serde<T>::read(bytes.view()));
    return std::optional<T>(std::move(value));
  }
  template <Serdeable T>
  Status put_as(ByteView name, const T& value) {
    std::string bytes;
    Serde<T>::write(value, bytes);
    return put(name, ByteView(bytes));
  }
};

// Called on the workers' threads, for different sessions at once; for one session never twice at
// once. What it throws goes through SessionProcessorOptions::classify.
using SessionHandler = std::function<Outcome(const SessionRecord&, SessionContext&)>;

// Families of dead-letter headers (session-workers 2.9).
enum class DeadLetterHeaders : std::uint8_t {
  kSession = 1,  // __session.dlq.*: ours, canonical
  kDlq = 2,      // __dlq.errors.*: Kafka's share groups (KIP-1191)
  kStreams = 4,  // __streams.errors.*: Kafka Streams (KIP-1034)
  kConnect = 8,  // __connect.errors.*: Kafka Connect
  kSpring = 16,  // kafka_dlt-*: Spring, numbers in binary
};
constexpr std::uint8_t operator|(DeadLetterHeaders a, DeadLetterHeaders b) {
  return static_cast<std::uint8_t>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}

struct SessionProcessorOptions {
  std::string group;                        // group.id; names the changelogs too
  std::vector<std::string> topics;          // must exist
  std::vector<std::string> outputs;         // must exist; emit() names them by their place
  SessionOptions lanes;                     // needs SessionDispatch::kLocal while has_state
  SessionEngine::Extractor extractor = {};  // none: the key is the session
  std::string auto_offset_reset = "earliest";

  // State of sessions: one store a partition in memory with the changelog
  // "<group>-<topic>-session-changelog", which is made, and read back at each assignment.
  bool has_state = true;
  std::size_t state_bytes_max = 1ULL << 30;   // a partition's; then put() says kNoSpace
  std::string internal_durability = "fsync";  // weir.durability of topics that are made
  // A record whose effects are in the changelog already is finished without its handler: after a
  // crash no state counts a record twice (outputs may be repeated). Offsets that are set back by
  // hand then have no effect on sessions that were ahead. A topic that is made anew starts anew.
  bool skips_applied = false;

  // errors.dead.letter.queue.topic.name; empty: "<topic>.dlq" of each topic. Made when missing,
  // with as many partitions as its first topic.
  std::string dead_letter_topic;
  // dlq.headers: DeadLetterHeaders, or-ed; kSession is always written.
  std::uint8_t dead_letter_headers = DeadLetterHeaders::kSession | DeadLetterHeaders::kDlq;
  std::string app_id;       // header app.id; empty: the group
  std::string app_version;  // header app.version; empty: none

  // What a thrown exception means; none: retry.
  std::function<Outcome(const std::exception&)> classify = {};
};

struct SessionCounts {
  std::uint64_t attempts = 0;
  std::uint64_t handled = 0;          // ended ok
  std::uint64_t failures = 0;         // attempts that did not
  std::uint64_t retries = 0;          // attempts that were not a record's first
  std::uint64_t dead_letters = 0;     // acknowledged
  std::uint64_t letter_failures = 0;  // writes that are tried again
  std::uint64_t outputs = 0;          // promoted
  std::uint64_t skipped_applied = 0;
  std::uint64_t restored = 0;  // records of changelogs
};

// Runs a handler over the sessions of some topics.
//
// Guarantee: per session in order, at least once: outputs and changelog are durable before the
//            offsets are committed, so that a crash repeats at most what was not committed, and
//            skips nothing. Repeats are in order too (session-workers 2.11 P4).
// Errors:    a log that refuses outputs, changelog or offsets, or a handler's stop, ends run_once()
//            with the error; nothing behind the last commit is lost. Then close() and open anew.
// Threading: one thread at a time; counts() and wake() any.
class SessionProcessor {
 public:
  // `backend` and `clock` outlive it. Joins the group; partitions come with run_once().
  // Errors: kInvalidConfig; kUnknownTopic (an input or output); the log's.
  static Result<std::unique_ptr<SessionProcessor>> open(Backend& backend, const Clock& clock,
                                                        SessionProcessorOptions options,
                                                        SessionHandler handler);
  // Ends without a commit, as a crash does. A clean end is close().
  virtual ~SessionProcessor() = default;

  // One round; waits up to `timeout` for records. After an error: close().
  virtual Status run_once(Duration timeout) = 0;
  // Asks handlers to stop, drains, writes dead letters, commits, leaves (2.14). After an error of
  // run_once() nothing more is committed than what is durable.
  virtual Status close(SessionEngine::Close mode, Duration deadline) = 0;
  virtual void wake() = 0;

  virtual SessionCounts counts() const = 0;
  virtual SessionSignals signals() const = 0;
  virtual std::vector<StuckRecord> stuck(std::size_t count_max) const = 0;
  virtual std::vector<std::pair<TopicPartition, Offset>> positions() const = 0;
  virtual std::optional<MonotonicTime> next_due() const = 0;
};

}  // namespace weir
