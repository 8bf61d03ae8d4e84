#pragma once

#include <cstdint>
#include <string>

namespace weir {

// What happens to a record that cannot be read, processed or written (KIP-161, KIP-210, KIP-1033).
enum class ErrorResponse : std::uint8_t {
  kFail,      // the application stops before it; nothing of its commit interval is committed
  kContinue,  // it is skipped from the failing operator on, counted and, the first time, logged
};

// What a record with a negative timestamp is to an application (default.timestamp.extractor;
// streams-features TIME-2).
enum class InvalidTimestamp : std::uint8_t {
  kFail,              // FailOnInvalidTimestamp: the application stops before it
  kSkip,              // LogAndSkipOnInvalidTimestamp: it is dropped and counted
  kUsePartitionTime,  // the highest timestamp of its partition so far; none: as kFail
};

// Kafka's defaults: everything fails, no dead letters.
struct ErrorPolicies {
  // Bytes that are no key or value of the topic's type.
  ErrorResponse deserialization = ErrorResponse::kFail;
  // A function that throws, in a punctuator too.
  ErrorResponse processing = ErrorResponse::kFail;
  // A serde that throws, or a record that the log refuses for what it is (too large).
  ErrorResponse production = ErrorResponse::kFail;
  // default.timestamp.extractor, for the topics that others write.
  InvalidTimestamp invalid_timestamp = InvalidTimestamp::kFail;
  // errors.dead.letter.queue.topic.name: with either response the record is written there as it was
  // read, with its timestamp, its headers and behind them (KIP-1034)
  //   __streams.errors.exception   what was thrown, or our error code
  //   __streams.errors.message
  //   __streams.errors.stacktrace  exception and message; C++ exceptions carry no trace
  //   __streams.errors.topic, .partition, .offset of the record, as text
  // Empty: no dead letters. In a punctuator, and where a result leaves the record cache, there is
  // no record: key and value are null.
  std::string dead_letter_topic;
};

}  // namespace weir
