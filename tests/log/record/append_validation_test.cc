#include "log/record/append_validation.h"

#include "log/record/batch_builder.h"
#include "tests/log/record/fixtures.h"

#include <weir/runtime/endian.h>

#include <map>
#include <optional>

namespace weir::log {
namespace {

using nlohmann::json;
using testing::from_hex;
using testing::read_json;
using testing::to_hex;

// Latest timestamp that the broker of edge.json took (its clock and one hour).
constexpr Timestamp kBrokerTimestampMax = 1796017320668;

// Where we answer otherwise than Kafka's broker, which accepts all of these.
const std::map<std::string, std::string>& stricter_than_broker() {
  static const std::map<std::string, std::string> kReasons = {
      {"producer-epoch-minus-1", "a producer without an epoch cannot be fenced"},
      {"delete-horizon-bit", "compaction would take the base timestamp for a delete horizon"},
      {"key-length-minus-2", "null for Kafka's reader, but not for every client's"},
      {"value-length-minus-2", "null for Kafka's reader, but not for every client's"},
      {"header-value-minus-2", "null for Kafka's reader, but not for every client's"},
      {"offset-deltas-falling", "a reader would skip or repeat records"},
      {"offset-deltas-equal", "two records with one offset"},
      {"offset-delta-negative", "an offset below the batch's base"},
      {"gzip-record-length-huge", "no reader can read it; Kafka's runs out of memory"},
      {"snappy-record-length-huge", "no reader can read it; Kafka's runs out of memory"},
      {"lz4-record-length-huge", "no reader can read it; Kafka's runs out of memory"},
      {"zstd-record-length-huge", "no reader can read it; Kafka's runs out of memory"},
      {"good-then-half", "whole batches only: whoever takes a request apart drops the half"},
  };
  return kReasons;
}

struct Verdict {
  std::optional<Error> refused;
  AppendFix fix;
};

Verdict judge(ByteView bytes) {
  AppendRules rules;
  rules.timestamp_max = kBrokerTimestampMax;
  Verdict verdict;
  const auto header = verify_batch(bytes);
  if (!header.ok()) {
    verdict.refused = header.error();
    return verdict;
  }
  const Status valid = validate_for_append(*header, bytes, rules, &verdict.fix);
  if (!valid.ok()) {
    verdict.refused = valid.error();
  }
  return verdict;
}

bool is_whole(ByteView bytes) {
  return verify_batch(bytes).ok();
}

// What the log then stores: the bytes of the client with offset, epoch and, if need be, the fix.
void expect_stored_as_by_broker(std::string bytes, const AppendFix& fix, const json& stored) {
  if (fix.needed) {
    stamp_create_time(bytes.data(), bytes.size(), fix.max_timestamp);
  }
  stamp_offset(bytes.data(), Offset(stored["baseOffset"].get<std::int64_t>()),
               LeaderEpoch(stored["leaderEpoch"].get<std::int32_t>()));
  EXPECT_EQ(to_hex(bytes), stored["bytes"].get<std::string>());
}

void check_against_broker(const json& batch) {
  const std::string bytes = from_hex(batch["bytes"].get<std::string>());
  const std::string name = batch["name"];
  const std::string error = batch["broker"]["error"];
  const Verdict verdict = judge(bytes);
  const bool refuses = error != "NONE" || stricter_than_broker().contains(name);
  ASSERT_EQ(verdict.refused.has_value(), refuses)
      << (verdict.refused ? verdict.refused->message() : "accepted");
  if (!verdict.refused) {
    expect_stored_as_by_broker(bytes, verdict.fix, batch["broker"]["stored"]);
  }
  if (error == "INVALID_TIMESTAMP") {
    EXPECT_EQ(verdict.refused->code(), Errc::kInvalidTimestamp);
  }
  // What verify_batch finds before is damage for us.
  if (error == "INVALID_RECORD" && is_whole(bytes)) {
    EXPECT_EQ(verdict.refused->code(), Errc::kInvalidRecord) << verdict.refused->message();
  }
}

TEST(ValidateForAppend, AgreesWithKafkasBrokerOnEveryEdgeBatchButWhereAReaderWouldBeHurt) {
  const json batches = read_json("edge-batches/edge.json")["batches"];
  ASSERT_EQ(batches.size(), 140U);
  std::size_t accepted = 0;
  for (const json& batch : batches) {
    SCOPED_TRACE(batch["name"].get<std::string>() + ": " + batch["what"].get<std::string>());
    check_against_broker(batch);
    accepted += batch["broker"]["error"] == "NONE" ? 1U : 0U;
  }
  EXPECT_GT(accepted, 20U);
}

SharedBytes batch_of(const std::vector<RecordRef>& records,
                     const BatchBuilder::Producer& producer = {}) {
  BatchBuilder builder(100000);
  for (const RecordRef& record : records) {
    EXPECT_TRUE(builder.append(record));
  }
  return builder.seal(producer);
}

RecordRef record_at(Timestamp timestamp, NullableBytes key = ByteView("key")) {
  RecordRef record;
  record.key = key;
  record.value = ByteView("value");
  record.timestamp = timestamp;
  return record;
}

Status validate(const SharedBytes& batch, const AppendRules& rules, AppendFix* fix = nullptr) {
  const auto header = verify_batch(batch.view());
  EXPECT_TRUE(header.ok());
  return validate_for_append(*header, batch.view(), rules, fix);
}

TEST(ValidateForAppend, TakesWhatOurBuilderMakesTrustedOrNot) {
  BatchBuilder::Producer producer;
  producer.id = ProducerId(5);
  producer.epoch = ProducerEpoch(0);
  producer.base_sequence = 7;
  producer.transactional = true;
  for (const bool trust : {false, true}) {
    AppendRules rules;
    rules.trust_records = trust;
    EXPECT_TRUE(validate(batch_of({record_at(3), record_at(1), record_at(2)}), rules).ok());
    EXPECT_TRUE(validate(batch_of({record_at(3)}, producer), rules).ok());
  }
}

TEST(ValidateForAppend, TakesControlBatchesOnlyWhereAllowed) {
  BatchBuilder::Producer producer;
  producer.id = ProducerId(5);
  producer.epoch = ProducerEpoch(0);
  producer.transactional = true;
  const SharedBytes marker =
      build_control_batch(from_hex("00000001"), from_hex("000000000009"), 1000, producer);
  AppendRules rules;

  EXPECT_EQ(validate(marker, rules).error().code(), Errc::kInvalidRecord);
  rules.allow_control = true;
  EXPECT_TRUE(validate(marker, rules).ok());
  rules.trust_records = true;
  EXPECT_TRUE(validate(marker, rules).ok());
}

TEST(ValidateForAppend, RefusesRecordsWithoutAKeyOnCompactedTopics) {
  AppendRules rules;
  rules.require_keys = true;

  EXPECT_TRUE(validate(batch_of({record_at(1), record_at(2, ByteView(""))}), rules).ok());
  const Status refused = validate(batch_of({record_at(1), record_at(2, NullableBytes())}), rules);
  EXPECT_EQ(refused.error().code(), Errc::kInvalidRecord);
  EXPECT_THAT(refused.error().message(), ::testing::HasSubstr("record 1 has no key"));
}

TEST(ValidateForAppend, JudgesTimestampsOfCreateTimeOnly) {
  AppendRules rules;
  rules.timestamp_min = 100;
  rules.timestamp_max = 200;
  const SharedBytes early = batch_of({record_at(150), record_at(99)});
  const SharedBytes late = batch_of({record_at(150), record_at(201)});
  const SharedBytes none = batch_of({record_at(kNoTimestamp), record_at(100), record_at(200)});

  EXPECT_EQ(validate(early, rules).error().code(), Errc::kInvalidTimestamp);
  EXPECT_EQ(validate(late, rules).error().code(), Errc::kInvalidTimestamp);
  EXPECT_TRUE(validate(none, rules).ok());
  rules.trust_records = true;
  EXPECT_EQ(validate(late, rules).error().code(), Errc::kInvalidTimestamp);
  rules.trust_records = false;
  rules.timestamp_type = TimestampType::kLogAppendTime;
  EXPECT_TRUE(validate(early, rules).ok());
  EXPECT_TRUE(validate(late, rules).ok());
}

TEST(ValidateForAppend, PutsAWrongMaxTimestampRightOrRefusesIt) {
  SharedBytes batch = batch_of({record_at(5), record_at(9), record_at(7)});
  const std::string good(batch.view());
  store_be(batch.data() + 35, std::int64_t{7});
  stamp_crc(batch.data(), batch.size());
  AppendFix fix;

  EXPECT_EQ(validate(batch, AppendRules()).error().code(), Errc::kInvalidTimestamp);
  ASSERT_TRUE(validate(batch, AppendRules(), &fix).ok());
  ASSERT_TRUE(fix.needed);
  EXPECT_EQ(fix.max_timestamp, 9);
  stamp_create_time(batch.data(), batch.size(), fix.max_timestamp);
  EXPECT_EQ(batch.view(), good);
}

TEST(ValidateForAppend, BoundsTheDecompressedSize) {
  const json batches = read_json("edge-batches/edge.json")["batches"];
  for (const json& batch : batches) {
    if (batch["name"] != "gzip-junk-behind" && batch["name"] != "lz4-junk-behind") {
      continue;
    }
    const std::string bytes = from_hex(batch["bytes"].get<std::string>());
    AppendRules rules;
    EXPECT_TRUE(validate_for_append(*verify_batch(bytes), bytes, rules, nullptr).ok());
    rules.limits.decompressed_bytes_max = 20;
    EXPECT_EQ(validate_for_append(*verify_batch(bytes), bytes, rules, nullptr).error().code(),
              Errc::kCorrupt);
  }
}

}  // namespace
}  // namespace weir::log
