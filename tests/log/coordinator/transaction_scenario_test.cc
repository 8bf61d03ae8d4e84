// The client steps of tests/data/log/transaction-state, which an Apache Kafka 4.3.1 broker was
// given, lead to the same records here.
#include "tests/log/coordinator/immediate_transactions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <map>

namespace weir::log {
namespace {

using Json = nlohmann::json;

// What a record says, save times and the order of partitions (Kafka's is that of a hash table).
std::string text_of(const TransactionValue& value) {
  std::string partitions = "null";
  if (value.partitions) {
    std::set<TopicPartition> sorted;
    for (const auto& [topic, ids] : *value.partitions) {
      for (const PartitionId id : ids) {
        sorted.insert({topic, id});
      }
    }
    partitions = "[";
    for (const TopicPartition& partition : sorted) {
      partitions += partition.to_string() + " ";
    }
    partitions += "]";
  }
  return fmt::format(
      "{} producer {} (before {}, next {}) epoch {} timeout {} client {} started {} {}",
      transaction_status_name(value.status), value.producer_id.value(),
      value.previous_producer_id.value(), value.next_producer_id.value(),
      value.producer_epoch.value(), value.timeout_ms, value.client_version,
      value.start != kNoTimestamp, partitions);
}

TransactionValue from_json(const Json& json) {
  TransactionValue value;
  value.producer_id = ProducerId(json["producerId"]);
  value.previous_producer_id = ProducerId(json.value("previousProducerId", std::int64_t{-1}));
  value.next_producer_id = ProducerId(json.value("nextProducerId", std::int64_t{-1}));
  value.producer_epoch = ProducerEpoch(json["producerEpoch"]);
  value.timeout_ms = json["transactionTimeoutMs"];
  value.status = TransactionStatus(json["transactionStatus"].get<std::int8_t>());
  value.start = json["transactionStartTimestampMs"];
  value.client_version = json.value("clientTransactionVersion", std::int16_t{0});
  if (!json["transactionPartitions"].is_null()) {
    value.partitions.emplace();
    for (const Json& topic : json["transactionPartitions"]) {
      std::vector<PartitionId> ids;
      for (const Json& id : topic["partitionIds"]) {
        ids.emplace_back(id.get<std::int32_t>());
      }
      value.partitions->emplace_back(topic["topic"], std::move(ids));
    }
  }
  return value;
}

using Histories = std::map<std::string, std::vector<std::string>>;

Histories recorded(const std::string& version) {
  std::ifstream file(std::string(WEIR_TEST_DATA) + "/log/transaction-state/" + version +
                     "/expected.json");
  const Json fixture = Json::parse(file);
  Histories histories;
  for (const char* partition : {"0", "1"}) {
    for (const Json& record : fixture[fmt::format("decoded __transaction_state-{}", partition)]) {
      histories[record["key"]["transactionalId"]].push_back(
          record["value"].is_null() ? "tombstone" : text_of(from_json(record["value"])));
    }
  }
  return histories;
}

// A producer of the recorded program.
class Client {
 public:
  Client(ImmediateTransactions& world, std::string id, std::int32_t timeout_ms = 60'000)
      : world_(world), id_(std::move(id)), timeout_ms_(timeout_ms) {}

  void init() {
    TransactionAnswer answer = world_.init(id_, timeout_ms_);
    if (answer.code == TransactionCode::kConcurrentTransactions) {  // an open one is aborted first
      answer = world_.init(id_, timeout_ms_);
    }
    ASSERT_EQ(answer.code, TransactionCode::kNone) << answer.message;
    producer_ = answer.producer;
  }
  void write(const std::string& topic, std::int32_t partition) {
    const TransactionAnswer answer = world_.add(id_, producer_, {{topic, PartitionId(partition)}});
    ASSERT_EQ(answer.code, TransactionCode::kNone) << answer.message;
  }
  void end(bool commit) {
    world_.now += 10;
    const TransactionAnswer answer = world_.end(id_, producer_, commit);
    ASSERT_EQ(answer.code, TransactionCode::kNone) << answer.message;
    producer_ = answer.producer;
  }
  void once(const std::string& topic, std::int32_t partition, bool commit) {
    write(topic, partition);
    end(commit);
  }
  ProducerIdAndEpoch producer() const { return producer_; }

 private:
  ImmediateTransactions& world_;
  std::string id_;
  std::int32_t timeout_ms_;
  ProducerIdAndEpoch producer_;
};

class RecordedScenario : public testing::TestWithParam<int> {};

TEST_P(RecordedScenario, LeadsToKafkasRecords) {
  const int version = GetParam();
  TransactionCoordinatorOptions options;
  options.transaction_version = static_cast<std::int16_t>(version);
  options.id_expiration_ms = 100'000'000;
  ImmediateTransactions world(options);
  world.client_version = static_cast<std::int16_t>(version);

  Client a(world, "tx-a");
  Client b(world, "tx-b");
  Client c(world, "tx-c");
  a.init();
  b.init();
  c.init();
  for (const bool commit : {true, false, true, false, true}) {
    a.once("txn-simple", 0, commit);
  }
  b.write("txn-interleaved", 0);
  a.write("txn-interleaved", 0);
  c.write("txn-interleaved", 0);
  a.end(true);
  c.end(false);
  c.write("txn-interleaved", 0);
  b.end(false);
  b.write("txn-interleaved", 0);
  c.end(true);
  b.end(true);
  for (const int partition : {0, 1, 2}) {
    a.write("txn-multi", partition);
    a.write("txn-multi", partition);  // a second batch adds nothing
  }
  a.write("__consumer_offsets", 0);
  a.end(true);
  b.write("txn-multi", 0);
  b.write("txn-multi", 2);
  b.write("__consumer_offsets", 0);
  b.end(false);
  c.once("__consumer_offsets", 1, true);
  b.write("txn-segments", 0);
  for (const bool commit : {true, false, true, false}) {
    a.once("txn-segments", 0, commit);
  }
  b.end(false);
  a.once("txn-segments", 0, true);
  a.once("txn-segments", 0, false);

  Client first(world, "tx-f");
  first.init();
  first.write("txn-fenced", 0);
  Client second(world, "tx-f");
  second.init();
  EXPECT_EQ(world.add("tx-f", first.producer(), {{"txn-fenced", PartitionId(0)}}).code,
            TransactionCode::kProducerFenced);
  EXPECT_EQ(world.end("tx-f", first.producer(), true).code, TransactionCode::kProducerFenced);
  second.once("txn-fenced", 0, true);

  Client open(world, "tx-open", 25'000);
  open.init();
  open.once("txn-open", 0, true);
  open.write("txn-open", 0);
  world.now += 25'000;
  world.tick();  // not yet: the timeout is over after it
  EXPECT_EQ(world.status("tx-open"), TransactionStatus::kOngoing);
  world.restart();
  world.now += 1;
  world.tick();
  EXPECT_EQ(world.status("tx-open"), TransactionStatus::kCompleteAbort);
  if (version == 2) {
    world.now += options.id_expiration_ms + 1;
    world.tick();
    EXPECT_EQ(world.core().size(), 0U);
  }

  Histories histories;
  for (const ImmediateTransactions::Written& record : world.log) {
    histories[record.id].push_back(record.value ? text_of(*record.value) : "tombstone");
  }
  EXPECT_EQ(histories, recorded(version == 0 ? "tv0" : version == 1 ? "tv1" : "tv2-expired"));
}

INSTANTIATE_TEST_SUITE_P(Versions, RecordedScenario, testing::Values(0, 1, 2));

}  // namespace
}  // namespace weir::log
