#pragma once

#include <weir/runtime/clock.h>
#include <weir/runtime/record.h>
#include <weir/runtime/result.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

// What a handler of sessions and the engine behind it say to each other (docs/architecture.md,
// session-workers 2.7). The lanes themselves are internal.

namespace weir {

// What became of an attempt. A moved value.
struct Outcome {
  enum class Kind : std::uint8_t {
    kOk,     // finished; the next record of the session may run
    kRetry,  // to be tried again; the session's later records wait
    kDead,   // trying again does not help: dead-letter topic at once
    kStop,   // the program must not go on; the record is not finished
  };

  Kind kind = Kind::kOk;
  Duration min_delay{};    // kRetry: at least, besides the policy's back-off
  Status cause;            // not ok unless kind is kOk
  bool is_counted = true;  // kRetry: false when the attempt failed through no fault of its own

  static Outcome ok() { return {}; }
  static Outcome retry(Error cause, Duration min_delay = {}) {
    return {Kind::kRetry, min_delay, std::move(cause)};
  }
  static Outcome dead(Error cause) { return {Kind::kDead, {}, std::move(cause)}; }
  static Outcome stop(Error cause) { return {Kind::kStop, {}, std::move(cause)}; }
};

// Rises with every hand-over, so that an outside store can refuse a write that comes too late
// (session-workers 2.6): compare generation, then epoch.
struct FencingToken {
  std::int32_t generation = -1;  // the group's
  std::uint32_t epoch = 0;       // of the partition in this process
  friend auto operator<=>(const FencingToken&, const FencingToken&) = default;
};

// Names one attempt until it is finished. Never used twice for two attempts that are open at once.
struct RunId {
  std::uint32_t lane = 0;
  std::uint32_t number = 0;
  friend auto operator<=>(const RunId&, const RunId&) = default;
};

// One attempt at one record. Borrows record and session, which live until it is finished.
struct Attempt {
  RunId run;
  std::uint32_t partition = 0;  // index in the engine's assignment
  std::uint32_t number = 1;     // delivery attempt, from 1; earlier ones of a former owner count
  const RecordView* record = nullptr;
  NullableBytes session;
  FencingToken fence;
};

enum class DeadLetterReason : std::uint8_t {
  kPermanent,    // the handler said kDead
  kExhausted,    // attempts or time used up
  kGapTimeout,   // skipped because it was stuck (2.8)
  kQuarantined,  // its session is in quarantine
};
// "permanent", "exhausted", "gap_timeout", "quarantined": the header __session.dlq.reason.
std::string_view dead_letter_reason_name(DeadLetterReason reason);

// A record that must be in the dead-letter topic before its partition's commit may pass it.
// Borrows record and session until LaneWorker::write() returns: the handler may end after all, or
// the partition may go, before the letter is answered.
struct DeadLetter {
  RunId id;
  std::uint32_t partition = 0;
  const RecordView* record = nullptr;
  NullableBytes session;
  DeadLetterReason reason = DeadLetterReason::kPermanent;
  std::uint32_t attempts = 0;
  MonotonicTime first_failure{};
  MonotonicTime last_failure{};
  std::string cause;  // code and message of the last failure
};

// Port: the effects of attempts (state, outputs) in whatever keeps them: stores and a sink, a
// transaction, memory. One scope an attempt: what it wrote is seen by nobody else until it is
// promoted, and gone when it is discarded. Scopes of one session are promoted in the session's
// order. A record counts as finished once its scope is promoted; a commit makes durable, before it
// writes offsets, whatever was promoted before it began.
//
// Threading: one port a worker, confined to it.
template <class E>
concept EffectScope =
    requires(E effects, typename E::Scope& scope, const Attempt& attempt, ByteView key,
             NullableBytes value, std::uint32_t output, const RecordRef& record) {
      { effects.begin_attempt(attempt) } -> std::same_as<typename E::Scope>;
      // The session's own writes before it, promoted or of this scope. Null: absent.
      { scope.get(key) } -> std::same_as<Result<NullableBytes>>;
      { scope.put(key, value) } -> std::same_as<Status>;
      { scope.emit(output, record) } -> std::same_as<Status>;
      { effects.promote(std::move(scope)) } -> std::same_as<Status>;
      { effects.discard(std::move(scope)) };
    };

}  // namespace weir
