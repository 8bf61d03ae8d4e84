#pragma once

#include <weir/runtime/assert.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

// Errors are values (docs/adr/0001). One way in every folder: Result<T> or Status, both
// [[nodiscard]]; a code that some caller reacts to, and a message that names the object, the cause
// and the next step.

namespace weir {

// A code exists only if some caller treats it differently. Where Kafka has a name for the
// condition, errc_name() gives Kafka's (org.apache.kafka.common.protocol.Errors).
enum class Errc {
  kInvalidArgument,       // INVALID_REQUEST: the caller's mistake; repeating it does not help.
  kInvalidConfig,         // INVALID_CONFIG: unknown key, bad value, contradiction.
  kInvalidTopic,          // INVALID_TOPIC_EXCEPTION: the name is not legal.
  kUnknownTopic,          // UNKNOWN_TOPIC_OR_PARTITION.
  kTopicExists,           // TOPIC_ALREADY_EXISTS.
  kOffsetOutOfRange,      // OFFSET_OUT_OF_RANGE: outside [log start, log end].
  kRecordTooLarge,        // MESSAGE_TOO_LARGE: over max.message.bytes.
  kInvalidTimestamp,      // INVALID_TIMESTAMP.
  kInvalidRecord,         // INVALID_RECORD: a well-framed batch that would hurt readers.
  kCorrupt,               // CORRUPT_MESSAGE: bytes on disk or in a batch are damaged.
  kUnsupported,           // UNSUPPORTED_VERSION: a format or feature that we do not read.
  kNotFound,              // A file, store or key that must exist does not.
  kExists,                // A file that must not exist does.
  kLocked,                // Another process holds the data directory, another member the group.
  kReadOnly,              // A write through a handle opened for reading.
  kNoSpace,               // KAFKA_STORAGE_ERROR: the disk is full; retriable.
  kIo,                    // KAFKA_STORAGE_ERROR: the state of the bytes is unknown.
  kTimedOut,              // REQUEST_TIMED_OUT: the outcome is unknown or the deadline passed.
  kFenced,                // PRODUCER_FENCED, ILLEGAL_GENERATION: another owner took over.
  kOutOfOrderSequence,    // OUT_OF_ORDER_SEQUENCE_NUMBER: a producer's batch does not follow.
  kInvalidProducerEpoch,  // INVALID_PRODUCER_EPOCH: a later epoch of the producer has written.
  kInvalidTxnState,       // INVALID_TXN_STATE: the transaction is not open, or another one is.
  kClosed,                // The object was closed or is stopping.
  kHandlerThrew,          // A user's function threw.
  kInternal,              // UNKNOWN_SERVER_ERROR: nobody reacts to it; the message says what broke.
};

// The upper-case name, Kafka's where Kafka has one. Never empty.
std::string_view errc_name(Errc code) noexcept;

// Whether the same call can succeed later without the caller changing anything (no space,
// time-out).
bool is_retriable(Errc code) noexcept;

class [[nodiscard]] Error {
 public:
  Error(Errc code, std::string message) : code_(code), message_(std::move(message)) {}

  Errc code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }

  // Puts "context: " in front of the message. Once per folder boundary.
  Error with_context(std::string_view context) &&;

  // "OFFSET_OUT_OF_RANGE: offset 5 of orders-0 is ...", for people.
  std::string to_string() const;

 private:
  Errc code_;
  std::string message_;
};

// Success or an Error. Success is a null pointer: free to make and to test.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(Error error)  // NOLINT(google-explicit-constructor)
      : error_(std::make_unique<Error>(std::move(error))) {}
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other)
      : error_(other.error_ ? std::make_unique<Error>(*other.error_) : nullptr) {}
  Status& operator=(const Status& other) {
    if (this != &other) {
      error_ = other.error_ ? std::make_unique<Error>(*other.error_) : nullptr;
    }
    return *this;
  }
  ~Status() = default;

  bool ok() const noexcept { return error_ == nullptr; }
  // Requires: !ok().
  const Error& error() const& {
    WEIR_ASSERT(error_ != nullptr);
    return *error_;
  }
  Error&& error() && {
    WEIR_ASSERT(error_ != nullptr);
    return std::move(*error_);
  }
  // Says in the code that this failure may be ignored, and why.
  void ignore(std::string_view /*reason*/) const noexcept {}

 private:
  std::unique_ptr<Error> error_;
};

// A value or an Error; never empty.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept { return state_.index() == 0; }

  // Requires: ok().
  T& value() & {
    WEIR_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    WEIR_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    WEIR_ASSERT(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Requires: !ok().
  const Error& error() const& {
    WEIR_ASSERT(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    WEIR_ASSERT(!ok());
    return std::move(*std::get_if<1>(&state_));
  }
  Status status() const { return ok() ? Status() : Status(error()); }

 private:
  std::variant<T, Error> state_;
};

namespace internal {
template <class R>
Error&& take_error(R&& result) {
  return std::forward<R>(result).error();
}
}  // namespace internal

}  // namespace weir

#define WEIR_CONCAT_INNER(a, b) a##b
#define WEIR_CONCAT(a, b) WEIR_CONCAT_INNER(a, b)

// Returns the error of a Status or Result from the enclosing function.
#define WEIR_TRY(expression)                                               \
  do {                                                                     \
    if (auto weir_status = (expression); !weir_status.ok()) [[unlikely]] { \
      return ::weir::internal::take_error(std::move(weir_status));         \
    }                                                                      \
  } while (false)

// WEIR_TRY_ASSIGN(Segment segment, Segment::open(...));
#define WEIR_TRY_ASSIGN(declaration, expression) \
  WEIR_TRY_ASSIGN_INNER(WEIR_CONCAT(weir_result_, __LINE__), declaration, expression)
#define WEIR_TRY_ASSIGN_INNER(result, declaration, expression) \
  auto result = (expression);                                  \
  if (!result.ok()) [[unlikely]] {                             \
    return ::weir::internal::take_error(std::move(result));    \
  }                                                            \
  declaration = std::move(result).value()
