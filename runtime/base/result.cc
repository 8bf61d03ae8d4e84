#include <weir/runtime/result.h>

#include <cstdio>
#include <cstdlib>

namespace weir {

namespace internal {

void assertion_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "assertion failed: %s at %s:%d\n", condition, file, line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace internal

std::string_view errc_name(Errc code) noexcept {
  switch (code) {
    case Errc::kInvalidArgument:
      return "INVALID_REQUEST";
    case Errc::kInvalidConfig:
      return "INVALID_CONFIG";
    case Errc::kInvalidTopic:
      return "INVALID_TOPIC_EXCEPTION";
    case Errc::kUnknownTopic:
      return "UNKNOWN_TOPIC_OR_PARTITION";
    case Errc::kTopicExists:
      return "TOPIC_ALREADY_EXISTS";
    case Errc::kOffsetOutOfRange:
      return "OFFSET_OUT_OF_RANGE";
    case Errc::kRecordTooLarge:
      return "MESSAGE_TOO_LARGE";
    case Errc::kInvalidTimestamp:
      return "INVALID_TIMESTAMP";
    case Errc::kInvalidRecord:
      return "INVALID_RECORD";
    case Errc::kCorrupt:
      return "CORRUPT_MESSAGE";
    case Errc::kUnsupported:
      return "UNSUPPORTED_VERSION";
    case Errc::kNotFound:
      return "NOT_FOUND";
    case Errc::kExists:
      return "ALREADY_EXISTS";
    case Errc::kLocked:
      return "LOCKED";
    case Errc::kReadOnly:
      return "READ_ONLY";
    case Errc::kNoSpace:
    case Errc::kIo:
      return "KAFKA_STORAGE_ERROR";
    case Errc::kTimedOut:
      return "REQUEST_TIMED_OUT";
    case Errc::kFenced:
      return "PRODUCER_FENCED";
    case Errc::kOutOfOrderSequence:
      return "OUT_OF_ORDER_SEQUENCE_NUMBER";
    case Errc::kInvalidProducerEpoch:
      return "INVALID_PRODUCER_EPOCH";
    case Errc::kInvalidTxnState:
      return "INVALID_TXN_STATE";
    case Errc::kClosed:
      return "CLOSED";
    case Errc::kHandlerThrew:
      return "HANDLER_THREW";
    case Errc::kInternal:
      break;
  }
  return "UNKNOWN_SERVER_ERROR";
}

bool is_retriable(Errc code) noexcept {
  return code == Errc::kNoSpace || code == Errc::kTimedOut;
}

Error Error::with_context(std::string_view context) && {
  std::string message;
  message.reserve(context.size() + 2 + message_.size());
  message.append(context).append(": ").append(message_);
  return {code_, std::move(message)};
}

std::string Error::to_string() const {
  std::string text(errc_name(code_));
  if (!message_.empty()) {
    text.append(": ").append(message_);
  }
  return text;
}

}  // namespace weir
