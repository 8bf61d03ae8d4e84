#include <weir/runtime/result.h>

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

namespace weir {
namespace {

Status fails() {
  return Error(Errc::kIo, "disk 1 is gone");
}
Result<int> gives(int value) {
  return value;
}
Result<int> gives_error() {
  return Error(Errc::kNotFound, "no such thing");
}

TEST(Status, IsOkByDefaultAndCarriesAnErrorOtherwise) {
  const Status success;
  const Status failure = fails();

  EXPECT_TRUE(success.ok());
  ASSERT_FALSE(failure.ok());
  EXPECT_EQ(failure.error().code(), Errc::kIo);
  EXPECT_EQ(failure.error().message(), "disk 1 is gone");
}

TEST(Status, CopiesAreIndependent) {
  Status first = fails();
  Status copy = first;
  first = Status();

  EXPECT_TRUE(first.ok());
  ASSERT_FALSE(copy.ok());
  EXPECT_EQ(copy.error().message(), "disk 1 is gone");
}

TEST(Status, IsOnePointer) {
  EXPECT_EQ(sizeof(Status), sizeof(void*));
}

TEST(Result, HoldsValueOrError) {
  Result<int> value = gives(7);
  Result<int> error = gives_error();

  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, 7);
  EXPECT_TRUE(value.status().ok());
  ASSERT_FALSE(error.ok());
  EXPECT_EQ(error.error().code(), Errc::kNotFound);
  EXPECT_EQ(error.status().error().message(), "no such thing");
}

TEST(Result, MovesOutWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);

  const std::unique_ptr<int> taken = std::move(result).value();

  EXPECT_EQ(*taken, 5);
}

TEST(ResultDeathTest, AbortsWhenTheWrongHalfIsTaken) {
  EXPECT_DEATH(std::ignore = gives_error().value(), "assertion failed: ok\\(\\)");
  EXPECT_DEATH(std::ignore = Status().error(), "assertion failed");
}

Status tries(bool fail, bool& reached_end) {
  WEIR_TRY(fail ? fails() : Status());
  reached_end = true;
  return {};
}

TEST(Try, ReturnsTheErrorAndElseGoesOn) {
  bool reached_end = false;

  EXPECT_EQ(tries(true, reached_end).error().message(), "disk 1 is gone");
  EXPECT_FALSE(reached_end);
  EXPECT_TRUE(tries(false, reached_end).ok());
  EXPECT_TRUE(reached_end);
}

Result<std::string> doubles(Result<int> input) {
  WEIR_TRY_ASSIGN(const int value, std::move(input));
  WEIR_TRY_ASSIGN(const int again, gives(value));
  return std::to_string(value + again);
}

TEST(TryAssign, BindsTheValueOrReturnsTheError) {
  EXPECT_EQ(doubles(gives(21)).value(), "42");
  EXPECT_EQ(doubles(gives_error()).error().code(), Errc::kNotFound);
}

TEST(Error, PutsContextInFront) {
  const Error error = Error(Errc::kIo, "EIO").with_context("read 00.log").with_context("orders-3");

  EXPECT_EQ(error.message(), "orders-3: read 00.log: EIO");
  EXPECT_EQ(error.code(), Errc::kIo);
}

TEST(Error, PrintsKafkasNameAndTheMessage) {
  EXPECT_EQ(Error(Errc::kOffsetOutOfRange, "offset 5").to_string(),
            "OFFSET_OUT_OF_RANGE: offset 5");
  EXPECT_EQ(Error(Errc::kClosed, "").to_string(), "CLOSED");
}

// Names from org.apache.kafka.common.protocol.Errors, as result.h lists them.
TEST(Errc, HasKafkasNames) {
  EXPECT_EQ(errc_name(Errc::kInvalidArgument), "INVALID_REQUEST");
  EXPECT_EQ(errc_name(Errc::kInvalidConfig), "INVALID_CONFIG");
  EXPECT_EQ(errc_name(Errc::kInvalidTopic), "INVALID_TOPIC_EXCEPTION");
  EXPECT_EQ(errc_name(Errc::kUnknownTopic), "UNKNOWN_TOPIC_OR_PARTITION");
  EXPECT_EQ(errc_name(Errc::kTopicExists), "TOPIC_ALREADY_EXISTS");
  EXPECT_EQ(errc_name(Errc::kRecordTooLarge), "MESSAGE_TOO_LARGE");
  EXPECT_EQ(errc_name(Errc::kInvalidTimestamp), "INVALID_TIMESTAMP");
  EXPECT_EQ(errc_name(Errc::kInvalidRecord), "INVALID_RECORD");
  EXPECT_EQ(errc_name(Errc::kCorrupt), "CORRUPT_MESSAGE");
  EXPECT_EQ(errc_name(Errc::kUnsupported), "UNSUPPORTED_VERSION");
  EXPECT_EQ(errc_name(Errc::kNoSpace), "KAFKA_STORAGE_ERROR");
  EXPECT_EQ(errc_name(Errc::kIo), "KAFKA_STORAGE_ERROR");
  EXPECT_EQ(errc_name(Errc::kTimedOut), "REQUEST_TIMED_OUT");
  EXPECT_EQ(errc_name(Errc::kFenced), "PRODUCER_FENCED");
  EXPECT_EQ(errc_name(Errc::kInvalidTxnState), "INVALID_TXN_STATE");
  EXPECT_EQ(errc_name(Errc::kConcurrentTransactions), "CONCURRENT_TRANSACTIONS");
  EXPECT_EQ(errc_name(Errc::kUnstableOffset), "UNSTABLE_OFFSET_COMMIT");
  EXPECT_EQ(errc_name(Errc::kInternal), "UNKNOWN_SERVER_ERROR");
}

TEST(Errc, OnlyNoSpaceTimeOutAndUnfinishedTransactionsAreRetriable) {
  std::set<Errc> retriable;
  for (int code = 0; code <= static_cast<int>(Errc::kUnstableOffset); ++code) {
    if (is_retriable(static_cast<Errc>(code))) {
      retriable.insert(static_cast<Errc>(code));
    }
    EXPECT_FALSE(errc_name(static_cast<Errc>(code)).empty());
  }

  EXPECT_EQ(retriable, (std::set{Errc::kNoSpace, Errc::kExhausted, Errc::kTimedOut,
                                 Errc::kConcurrentTransactions, Errc::kUnstableOffset}));
}

}  // namespace
}  // namespace weir
