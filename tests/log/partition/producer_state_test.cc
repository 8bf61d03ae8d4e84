#include "log/partition/producer_state.h"

#include "log/partition/producers_file.h"
#include "tests/log/partition/producer_support.h"

namespace weir::log {
namespace {

using testing::From;
using testing::json_of;
using testing::kStart;

BatchHeader header_of(const From& from, int count, std::int64_t base = 0,
                      Timestamp timestamp = kStart) {
  BatchHeader header;
  header.producer_id = ProducerId(from.id);
  header.producer_epoch = ProducerEpoch(from.epoch);
  header.base_sequence = from.sequence;
  header.records_count = count;
  header.last_offset_delta = count - 1;
  header.base_offset = Offset(base);
  header.max_timestamp = timestamp;
  header.attributes = from.transactional ? 0x10 : 0;
  return header;
}

BatchHeader marker_header(std::int64_t id, std::int16_t epoch, std::int64_t at,
                          Timestamp timestamp = kStart) {
  BatchHeader header = header_of({id, epoch, -1, true}, 1, at, timestamp);
  header.attributes = 0x30;
  return header;
}

ControlRecord control(ControlType type, std::int32_t coordinator_epoch = 0) {
  return {0, type, coordinator_epoch};
}

// Checks, and adds what is to be appended, at `end`, as a partition does.
struct Verdict {
  std::optional<Errc> error;
  Offset base;
};
Verdict offer(ProducerState& state, BatchHeader header, Offset& end,
              const AppendOptions& options = AppendOrigin::kBuilder) {
  const auto known = state.check(header, options);
  if (!known.ok()) {
    return {known.error().code(), kNoOffset};
  }
  if (*known) {
    return {std::nullopt, (*known)->first_offset()};
  }
  header.base_offset = end;
  state.add(header);
  end = header.next_offset();
  return {std::nullopt, header.base_offset};
}

std::optional<Errc> expected_error(int code) {
  switch (code) {
    case 45:
      return Errc::kOutOfOrderSequence;
    case 47:
      return Errc::kInvalidProducerEpoch;
    case 48:
      return Errc::kInvalidTxnState;
    default:
      return std::nullopt;
  }
}

TEST(ProducerState, SequencesWrapPastTheLargest) {
  EXPECT_EQ(sequence_plus(2147483647, 1), 0);
  EXPECT_EQ(sequence_plus(2147483645, 4), 1);
  EXPECT_EQ(sequence_minus(1, 4), 2147483645);
  EXPECT_EQ(sequence_minus(0, 0), 0);
  EXPECT_EQ(last_sequence_of(header_of({1, 0, 2147483645}, 5)), 1);
  EXPECT_EQ(last_sequence_of(header_of({1, 0, -1}, 5)), -1);
}

// All 59 answers of a broker that Kafka's state of producers gave, over two restarts. A restart
// keeps what a .snapshot file holds, as the broker's own did.
TEST(ProducerState, GivesTheVerdictsOfABroker) {
  const auto expected = json_of("producers/idempotent-after-kill-and-third-stop/expected.json");
  constexpr Timestamp kBrokerNow = 1'796'012'186'000;
  constexpr ProducerState::Limits kLimits;
  std::map<std::string, ProducerState> logs;
  std::map<std::string, Offset> ends;
  std::size_t seen = 0;
  for (const nlohmann::json& step : expected["verdicts"]) {
    const auto number = testing::number_of(step["step"]);
    if (number == 38 || number == 53) {
      for (auto& [topic, state] : logs) {
        const auto snapshot = parse_producer_snapshot(encode_producer_snapshot(state.entries()));
        ASSERT_TRUE(snapshot.ok());
        state = ProducerState::from_entries(*snapshot, kLimits);
        state.expire(kBrokerNow);
      }
    }
    const auto topic = step["topic"].get<std::string>();
    const Timestamp timestamp = topic == "idem-old" ? kStart : kBrokerNow - 100;
    const Verdict verdict = offer(
        logs[topic], header_of(testing::from_of(step), step["count"].get<int>(), 0, timestamp),
        ends[topic]);
    EXPECT_EQ(verdict.error, expected_error(step["errorCode"].get<int>())) << step;
    EXPECT_EQ(verdict.base, testing::offset_of(step["baseOffset"])) << step;
    ++seen;
  }
  EXPECT_EQ(seen, 59U);
}

TEST(ProducerState, AnswersDuplicatesOfTheLastFiveWithTheirOffsets) {
  ProducerState state;
  Offset end;
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(offer(state, header_of({1, 0, 2 * i}, 2), end).base, Offset(2 * i));
  }
  for (int i = 2; i < 7; ++i) {
    EXPECT_EQ(offer(state, header_of({1, 0, 2 * i}, 2), end).base, Offset(2 * i)) << i;
  }
  EXPECT_EQ(offer(state, header_of({1, 0, 2}, 2), end).error, Errc::kOutOfOrderSequence);
  EXPECT_EQ(end, Offset(14));
}

TEST(ProducerState, RefusesPlainBatchesInsideATransactionAndLaterEpochsBeforeItsMarker) {
  ProducerState state;
  Offset end;
  offer(state, header_of({1, 3, 0, true}, 2), end);
  EXPECT_EQ(offer(state, header_of({1, 3, 2}, 1), end).error, Errc::kInvalidTxnState);
  EXPECT_EQ(offer(state, header_of({1, 4, 0, true}, 1), end).error, Errc::kInvalidTxnState);
  EXPECT_EQ(offer(state, header_of({1, 3, 2, true}, 1), end).error, std::nullopt);
}

TEST(ProducerState, AMarkerEndsTheTransactionAndBringsTheNextEpoch) {
  ProducerState state;
  Offset end;
  offer(state, header_of({1, 3, 0, true}, 2), end);
  offer(state, header_of({2, 0, 0, true}, 1), end);
  ASSERT_TRUE(state.check_marker(marker_header(1, 4, 3), control(ControlType::kAbort), 2).value());
  const auto ended = state.add_marker(marker_header(1, 4, 3), control(ControlType::kAbort));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->first, Offset(0));
  EXPECT_TRUE(ended->aborted);
  const AbortedTransaction entry = index_entry_of(*ended, state);
  EXPECT_EQ(entry.last_offset, Offset(3));
  EXPECT_EQ(entry.last_stable_offset, Offset(2));  // where producer 2 is open

  // As a snapshot has it (transaction version 2): no batch of the new epoch.
  EXPECT_EQ(state.entries()[0], (ProducerEntry{ProducerId(1), ProducerEpoch(4), -1, kNoOffset, 0,
                                               kStart, 0, kNoOffset}));
  EXPECT_EQ(offer(state, header_of({1, 4, 2, true}, 1), end).error, Errc::kOutOfOrderSequence);
  EXPECT_EQ(offer(state, header_of({1, 3, 2, true}, 1), end).error, Errc::kInvalidProducerEpoch);
  EXPECT_EQ(offer(state, header_of({1, 4, 0, true}, 1), end).error, std::nullopt);
}

TEST(ProducerState, JudgesMarkersByEpochAndCoordinator) {
  ProducerState state;
  Offset end;
  const ControlRecord commit = control(ControlType::kCommit, 5);
  offer(state, header_of({1, 3, 0, true}, 2), end);
  EXPECT_EQ(state.check_marker(marker_header(1, 2, 2), commit, 0).error().code(),
            Errc::kInvalidProducerEpoch);
  // Version 2: the marker of an earlier transaction, late.
  EXPECT_EQ(state.check_marker(marker_header(1, 3, 2), commit, 2).error().code(),
            Errc::kInvalidProducerEpoch);
  EXPECT_TRUE(state.check_marker(marker_header(1, 3, 2), commit, 0).value());
  EXPECT_TRUE(state.check_marker(marker_header(1, 4, 2), commit, 2).value());
  state.add_marker(marker_header(1, 4, 2), commit);
  // A second copy of it, and one of an earlier coordinator.
  EXPECT_FALSE(state.check_marker(marker_header(1, 4, 3), commit, 2).value());
  EXPECT_EQ(state.check_marker(marker_header(1, 4, 3), control(ControlType::kCommit, 4), 2)
                .error()
                .code(),
            Errc::kFenced);
  EXPECT_TRUE(state.check_marker(marker_header(9, 0, 3), commit, 2).value());
}

TEST(ProducerState, AClientsFirstBatchOfATransactionMustBeVerified) {
  ProducerState state;
  Offset end;
  const auto by_client = [](std::uint64_t verification) {
    AppendOptions options;
    options.verification = verification;
    return options;
  };
  const BatchHeader first = header_of({1, 0, 5, true}, 1);
  EXPECT_EQ(offer(state, first, end, by_client(0)).error, Errc::kInvalidTxnState);
  const auto start = [&](std::int32_t sequence) {
    return state.start_verification(ProducerId(1), ProducerEpoch(0), sequence, kStart).value();
  };
  const std::uint64_t number = *start(5);
  EXPECT_EQ(offer(state, first, end, by_client(number + 1)).error, Errc::kInvalidTxnState);
  // A batch that came before it is being verified, too.
  EXPECT_EQ(start(4), number);
  EXPECT_EQ(offer(state, first, end, by_client(number)).error, Errc::kOutOfOrderSequence);
  EXPECT_EQ(offer(state, header_of({1, 0, 4, true}, 1), end, by_client(number)).error,
            std::nullopt);
  // Open now.
  EXPECT_EQ(start(5), std::nullopt);
  EXPECT_EQ(offer(state, first, end, by_client(0)).error, std::nullopt);
  EXPECT_TRUE(state.has_open_transaction(ProducerId(1), ProducerEpoch(0)));
  EXPECT_FALSE(state.has_open_transaction(ProducerId(1), ProducerEpoch(1)));
}

TEST(ProducerState, ForgetsTheIdleButNeverAnOpenTransaction) {
  ProducerState state({1000, 100});
  Offset end;
  offer(state, header_of({1, 0, 0}, 1, 0, kStart), end);
  offer(state, header_of({2, 0, 0, true}, 1, 0, kStart), end);
  offer(state, header_of({3, 0, 0}, 1, 0, kStart + 1), end);
  state.expire(kStart + 1000);
  EXPECT_EQ(state.find(ProducerId(1)), nullptr);
  EXPECT_NE(state.find(ProducerId(2)), nullptr);
  EXPECT_NE(state.find(ProducerId(3)), nullptr);
}

TEST(ProducerState, HasABoundAndForgetsTheOldestThere) {
  ProducerState state({1'000'000, 32});
  Offset end;
  for (int i = 0; i < 32; ++i) {
    offer(state, header_of({i, 0, 0, i < 4}, 1, 0, kStart + i), end);
  }
  EXPECT_EQ(state.size(), 32U);
  offer(state, header_of({100, 0, 0}, 1, 0, kStart + 100), end);
  EXPECT_EQ(state.size(), 30U);                   // three gone, one new
  EXPECT_NE(state.find(ProducerId(3)), nullptr);  // open
  EXPECT_EQ(state.find(ProducerId(4)), nullptr);
  EXPECT_EQ(state.find(ProducerId(6)), nullptr);
  EXPECT_NE(state.find(ProducerId(7)), nullptr);

  ProducerState full({1'000'000, 4});
  for (int i = 0; i < 4; ++i) {
    offer(full, header_of({i, 0, 0, true}, 1), end);
  }
  EXPECT_EQ(offer(full, header_of({9, 0, 0}, 1), end).error, Errc::kNoSpace);
  EXPECT_EQ(offer(full, header_of({2, 0, 1, true}, 1), end).error, std::nullopt);
}

TEST(ProducerState, KeepsAllItsBatchesInTheFileBesideTheWriteAheadLog) {
  ProducerState state;
  Offset end;
  for (int i = 0; i < 9; ++i) {
    offer(state, header_of({1, 0, i}, 1), end);
    offer(state, header_of({i + 10, 2, 7, true}, 3), end);
  }
  state.add_marker(marker_header(12, 2, end.value()), control(ControlType::kAbort, 3));
  ProducersOfPartitions all;
  const Uuid topic = Uuid::parse("5KRAvX5fRIaBl3L-ANf0Jg").value();
  all[{topic, PartitionId(3)}] = {end, state.encode()};
  const std::string file = encode_producers_file(all);
  const auto read = parse_producers_file(file);
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(*read, all);
  const auto again = ProducerState::decode(read->begin()->second.bytes, {});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, state);
  EXPECT_EQ(again->open_transactions(), state.open_transactions());
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string broken = file;
    broken[i] = static_cast<char>(broken[i] ^ 0x10);
    EXPECT_FALSE(parse_producers_file(broken).ok()) << i;
    EXPECT_FALSE(parse_producers_file(ByteView(file).substr(0, i)).ok()) << i;
  }
}

// The vector of the reference, made by Kafka's classes.
TEST(ProducerSnapshot, HasKafkasBytes) {
  const std::vector<ProducerEntry> entries = {
      {ProducerId(4242), ProducerEpoch(7), 102, Offset(2), 2, 1'700'000'000'005, -1, kNoOffset}};
  std::string hex;
  for (const char byte : encode_producer_snapshot(entries)) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  EXPECT_EQ(
      hex,
      "00016906b8ea0000000100000000000010920007000000660000000000000002000000020000018bcfe56805"
      "ffffffffffffffffffffffff");
}

TEST(ProducerSnapshot, IsReadAsWrittenAndRefusedWhenDamaged) {
  const auto file = testing::file_text(
      posix_file_system(), testing::data_folder("producers/idempotent-after-first-stop/idem-raw-0/"
                                                "00000000000000000030.snapshot"));
  const auto entries = parse_producer_snapshot(file);
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(entries->size(), 6U);
  EXPECT_EQ(encode_producer_snapshot(*entries), file);
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string broken = file;
    broken[i] = static_cast<char>(broken[i] ^ 1);
    EXPECT_FALSE(parse_producer_snapshot(broken).ok()) << i;
  }
}

// --- Bugs of other logs

// KAFKA-9144: a producer whose transaction stayed open long is kept as long as its marker is young.
TEST(ProducerStateBugs, ExpiryCountsTheTimeOfTheMarker) {
  ProducerState state({1000, 100});
  Offset end;
  offer(state, header_of({1, 0, 0, true}, 1, 0, kStart), end);
  state.expire(kStart + 5000);
  state.add_marker(marker_header(1, 0, 1, kStart + 5000), control(ControlType::kCommit, 7));
  state.expire(kStart + 5500);
  ASSERT_NE(state.find(ProducerId(1)), nullptr);
  EXPECT_EQ(
      state.check_marker(marker_header(1, 0, 2), control(ControlType::kAbort, 6), 0).error().code(),
      Errc::kFenced);
}

// KAFKA-14884: what was verified before an abort must not begin the next transaction.
TEST(ProducerStateBugs, AnAbortTakesAVerificationBack) {
  ProducerState state;
  Offset end;
  const std::uint64_t number =
      *state.start_verification(ProducerId(1), ProducerEpoch(0), 0, kStart).value();
  state.add_marker(marker_header(1, 0, 0), control(ControlType::kAbort));
  AppendOptions options;
  options.verification = number;
  EXPECT_EQ(offer(state, header_of({1, 0, 0, true}, 1), end, options).error,
            Errc::kInvalidTxnState);
}

// redpanda PR#5026: a sequence of an aborted transaction that is used again is no duplicate of it.
TEST(ProducerStateBugs, ASequenceOfAnAbortedTransactionAnswersNothing) {
  ProducerState state;
  Offset end;
  offer(state, header_of({1, 0, 0}, 1), end);
  offer(state, header_of({1, 0, 1, true}, 1), end);
  state.add_marker(marker_header(1, 0, end.value()), control(ControlType::kAbort));
  EXPECT_EQ(offer(state, header_of({1, 0, 1, true}, 1), end).error, Errc::kOutOfOrderSequence);
  EXPECT_EQ(offer(state, header_of({1, 0, 0}, 1), end).base, Offset(0));
  EXPECT_EQ(offer(state, header_of({1, 0, 2, true}, 1), end).error, std::nullopt);
}

// redpanda PR#3232: a marker ends the transaction of its epoch and no later one.
TEST(ProducerStateBugs, ALateMarkerDoesNotEndTheNextTransaction) {
  ProducerState state;
  Offset end;
  offer(state, header_of({1, 0, 0, true}, 1), end);
  state.add_marker(marker_header(1, 1, end.value()), control(ControlType::kCommit));
  end = end.next();
  offer(state, header_of({1, 1, 0, true}, 1), end);
  EXPECT_EQ(state.check_marker(marker_header(1, 1, end.value()), control(ControlType::kAbort), 2)
                .error()
                .code(),
            Errc::kInvalidProducerEpoch);
  EXPECT_EQ(state.check_marker(marker_header(1, 0, end.value()), control(ControlType::kAbort), 0)
                .error()
                .code(),
            Errc::kInvalidProducerEpoch);
}

}  // namespace
}  // namespace weir::log
