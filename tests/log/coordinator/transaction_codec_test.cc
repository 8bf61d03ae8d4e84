#include "log/coordinator/transaction_codec.h"

#include "log/record/batch_decoder.h"
#include "tests/support/hex.h"
#include "tests/support/json_text.h"

#include <weir/runtime/bytes.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <functional>
#include <iterator>

namespace weir::log {
namespace {

using Json = nlohmann::json;
using testing::from_hex;

Json read_fixture(const std::string& version) {
  std::ifstream file(std::string(WEIR_TEST_DATA) + "/log/transaction-state/" + version +
                     "/expected.json");
  return Json::parse(file);
}

std::string read_log(const std::string& version, const std::string& partition) {
  std::ifstream file(std::string(WEIR_TEST_DATA) + "/log/transaction-state/" + version + "/" +
                         partition + "/00000000000000000000.log",
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void for_each_record(ByteView log, const std::function<void(const RecordView&)>& visit) {
  while (!log.empty()) {
    const Result<BatchHeader> header = read_batch_header(log);
    ASSERT_TRUE(header.ok());
    RecordViews records;
    SharedBytes decompressed;
    ASSERT_TRUE(decode_records(*header, log.substr(0, header->size_bytes()), DecodeLimits{},
                               records, decompressed)
                    .ok());
    for (const RecordView& record : records) {
      visit(record);
    }
    log.remove_prefix(header->size_bytes());
  }
}

void expect_same(const TransactionValue& value, const Json& expected) {
  EXPECT_EQ(value.producer_id.value(), expected["producerId"]);
  EXPECT_EQ(value.previous_producer_id.value(), expected.value("previousProducerId", -1));
  EXPECT_EQ(value.next_producer_id.value(), expected.value("nextProducerId", -1));
  EXPECT_EQ(value.producer_epoch.value(), expected["producerEpoch"]);
  EXPECT_EQ(value.timeout_ms, expected["transactionTimeoutMs"]);
  EXPECT_EQ(static_cast<int>(value.status), expected["transactionStatus"]);
  EXPECT_EQ(value.last_update, expected["transactionLastUpdateTimestampMs"]);
  EXPECT_EQ(value.start, expected["transactionStartTimestampMs"]);
  EXPECT_EQ(value.client_version, expected.value("clientTransactionVersion", 0));
  const Json& topics = expected["transactionPartitions"];
  ASSERT_EQ(value.partitions.has_value(), !topics.is_null());
  if (value.partitions) {
    ASSERT_EQ(value.partitions->size(), topics.size());
    for (std::size_t i = 0; i < topics.size(); ++i) {
      EXPECT_EQ((*value.partitions)[i].first, topics[i]["topic"]);
      Json ids = Json::array();
      for (const PartitionId id : (*value.partitions)[i].second) {
        ids.push_back(id.value());
      }
      EXPECT_EQ(ids, topics[i]["partitionIds"]);
    }
  }
}

class KafkasRecords : public ::testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(KafkasRecords, AreReadAndWrittenByteForByte) {
  const auto [version, value_version] = GetParam();
  const Json fixture = read_fixture(version);
  std::size_t records = 0;
  for (const char* partition : {"__transaction_state-0", "__transaction_state-1"}) {
    const Json& decoded = fixture[fmt::format("decoded {}", partition)];
    const std::string file = read_log(version, partition);
    std::size_t i = 0;
    for_each_record(file, [&, value_version = value_version](const RecordView& record) {
      const Json& expected = decoded.at(i++);
      ++records;
      const ByteView key = record.key.view();
      const Result<std::optional<std::string>> id = decode_transaction_key(key);
      ASSERT_TRUE(id.ok() && id->has_value());
      EXPECT_EQ(**id, expected["key"]["transactionalId"]);
      EXPECT_EQ(encode_transaction_key(**id), key);
      if (record.value.is_null()) {
        EXPECT_TRUE(expected["value"].is_null());
        return;
      }
      const Result<TransactionValue> value = decode_transaction_value(record.value.view());
      ASSERT_TRUE(value.ok()) << value.error().message();
      expect_same(*value, expected["value"]);
      EXPECT_EQ(encode_transaction_value(*value, static_cast<std::int16_t>(value_version)),
                record.value.view());
    });
    EXPECT_EQ(i, decoded.size());
  }
  EXPECT_GE(records, 83U);
}

INSTANTIATE_TEST_SUITE_P(Versions, KafkasRecords,
                         ::testing::Values(std::pair("tv0", 0), std::pair("tv1", 1),
                                           std::pair("tv2-expired", 1)),
                         [](const auto& version) {
                           std::string name = version.param.first;
                           std::erase(name, '-');
                           return name;
                         });

// Reference K 3.7.
TEST(TransactionCodec, WritesTheKnownVectors) {
  TransactionValue value;
  value.producer_id = ProducerId(4242);
  value.producer_epoch = ProducerEpoch(7);
  value.timeout_ms = 60'000;
  value.status = TransactionStatus::kOngoing;
  value.partitions.emplace();
  value.partitions->emplace_back("t", std::vector{PartitionId(0), PartitionId(1)});
  value.last_update = 1'700'000'000'000;
  value.start = 1'700'000'000'000;

  EXPECT_EQ(encode_transaction_key("t"), from_hex("0000000174"));
  EXPECT_EQ(encode_transaction_value(value, 0),
            from_hex("0000000000000000109200070000ea60010000000100017400000002000000000000000100000"
                     "18bcfe568000000018bcfe56800"));
  EXPECT_EQ(encode_transaction_value(value, 1),
            from_hex("0001000000000000109200070000ea6001020274030000000000000001000000018bcfe568000"
                     "000018bcfe5680000"));
}

TEST(TransactionCodec, KeepsEveryTaggedField) {
  TransactionValue value;
  value.producer_id = ProducerId(1);
  value.previous_producer_id = ProducerId(2);
  value.next_producer_id = ProducerId(3);
  value.producer_epoch = ProducerEpoch(32'767);
  value.next_producer_epoch = ProducerEpoch(4);
  value.status = TransactionStatus::kPrepareCommit;
  value.client_version = 2;

  const Result<TransactionValue> back =
      decode_transaction_value(encode_transaction_value(value, 1));

  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, value);
}

TEST(TransactionCodec, RefusesWhatItCannotRead) {
  const TransactionValue value;
  for (const std::int16_t version : {std::int16_t{0}, std::int16_t{1}}) {
    const std::string bytes = encode_transaction_value(value, version);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_EQ(decode_transaction_value(ByteView(bytes).substr(0, size)).status().error().code(),
                Errc::kCorrupt);
    }
  }
  std::string later = encode_transaction_value(value, 1);
  later[1] = 2;
  EXPECT_EQ(decode_transaction_value(later).error().code(), Errc::kUnsupported);
  std::string odd = encode_transaction_value(value, 1);
  odd[16] = 8;  // the status
  EXPECT_EQ(decode_transaction_value(odd).error().code(), Errc::kCorrupt);
  EXPECT_EQ(decode_transaction_key(ByteView("\0", 1)).error().code(), Errc::kCorrupt);
  const Result<std::optional<std::string>> other = decode_transaction_key(ByteView("\0\1", 2));
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(other->has_value());
}

// A count that is larger than the record must not cause an allocation of its size.
TEST(TransactionCodec, SurvivesHostileCounts) {
  std::string bytes(16, '\0');  // version 0, id, epoch, timeout
  bytes += '\1';
  bytes += std::string("\x7f\xff\xff\xff", 4);
  EXPECT_EQ(decode_transaction_value(bytes).error().code(), Errc::kCorrupt);
}

}  // namespace
}  // namespace weir::log
