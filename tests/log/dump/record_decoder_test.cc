#include "log/dump/record_decoder.h"

#include "tests/log/dump/dump_support.h"
#include "tests/support/hex.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace weir::log {
namespace {

using testing::dump_json;
using testing::dump_text;
using testing::Json;

std::string log_data(const std::string& name) {
  return WEIR_TEST_DATA "/log/" + name;
}

std::vector<std::string> record_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("| ")) {
      lines.push_back(line);
    }
  }
  return lines;
}

// Lines that were too long are recorded by their start and their length.
void expect_line(const std::string& line, const std::string& expected) {
  const std::string cut = " ...[line cut here, it has ";
  const std::size_t at = expected.find(cut);
  if (at == std::string::npos) {
    EXPECT_EQ(line, expected);
    return;
  }
  EXPECT_EQ(line.substr(0, at), expected.substr(0, at));
  EXPECT_EQ(line.size(), std::stoul(expected.substr(at + cut.size())));
}

struct DecodedFolder {
  std::string folder;  // of both partitions
  std::string topic;
  std::size_t records = 0;
};

class DecodedAsText : public ::testing::TestWithParam<DecodedFolder> {};

TEST_P(DecodedAsText, IsLineByLineThatOfDumpLogSegments) {
  const std::string folder = log_data(GetParam().folder);
  const std::vector<std::string> expected = record_lines(testing::file_text(folder + "/dump.txt"));
  ASSERT_EQ(expected.size(), GetParam().records);

  std::string text;
  for (const char* partition : {"-0", "-1"}) {
    text += dump_text(posix_file_system(), join_path(folder, GetParam().topic + partition));
  }

  const std::vector<std::string> lines = record_lines(text);
  ASSERT_EQ(lines.size(), expected.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    expect_line(lines[i], expected[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Data, DecodedAsText,
    ::testing::Values(DecodedFolder{"offsets-topic", "__consumer_offsets", 140},
                      DecodedFolder{"transaction-state/tv2-expired", "__transaction_state", 88}));

// "words-0" for each partition that a member owns or was assigned.
std::vector<std::string> partition_names(const Json& topics) {
  std::vector<std::string> names;
  for (const Json& topic : topics) {
    for (const Json& partition : topic["partitions"]) {
      names.push_back(topic["topic"].get<std::string>() + "-" + partition.dump());
    }
  }
  return names;
}

// Kafka's converter leaves a member's two messages as Base64; ConsumerProtocol's reading of them
// stands beside it in `members`.
void expect_members(Json& members, Json& expected, const Json& read) {
  ASSERT_EQ(members.size(), expected.size());
  ASSERT_EQ(members.size(), read.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Json& subscription = members[i]["subscription"];
    EXPECT_EQ(subscription["topics"], read[i]["topics"]);
    EXPECT_EQ(subscription["generationId"], read[i]["subscriptionGeneration"]);
    EXPECT_EQ(subscription["rackId"], read[i]["rack"]);
    EXPECT_EQ(Json(partition_names(subscription["ownedPartitions"])), read[i]["ownedPartitions"]);
    EXPECT_EQ(Json(partition_names(members[i]["assignment"]["assignedPartitions"])),
              read[i]["assigned"]);
    for (const char* name : {"subscription", "assignment"}) {
      members[i].erase(name);
      expected[i].erase(name);
    }
  }
}

TEST(RecordDecoder, GivesEveryOffsetsRecordAsKafkasClassesDo) {
  Json expected = Json::parse(testing::file_text(log_data("offsets-topic/expected.json")));
  std::map<int, int> types;
  for (const std::string partition : {"__consumer_offsets-0", "__consumer_offsets-1"}) {
    Json decoded =
        dump_json(posix_file_system(), log_data("offsets-topic/" + partition))["decoded"];
    Json& records = expected["decoded " + partition];
    ASSERT_EQ(decoded.size(), records.size());
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      if (records[i].contains("members")) {
        expect_members(decoded[i]["value"]["members"], records[i]["value"]["members"],
                       records[i]["members"]);
        records[i].erase("members");
      }
      EXPECT_EQ(decoded[i].dump(), records[i].dump());
      ++types[decoded[i]["keyType"]];
    }
  }
  EXPECT_EQ(types.size(), 15U) << "1 to 8 and 10 to 16";
}

class DecodedTransactions : public ::testing::TestWithParam<std::string> {};

// Value versions 0 and 1, tombstones.
TEST_P(DecodedTransactions, AreWhatKafkasClassesSay) {
  const std::string folder = log_data("transaction-state/" + GetParam());
  Json expected = Json::parse(testing::file_text(folder + "/expected.json"));

  for (const std::string partition : {"__transaction_state-0", "__transaction_state-1"}) {
    Json decoded = dump_json(posix_file_system(), join_path(folder, partition))["decoded"];
    const Json& records = expected["decoded " + partition];
    ASSERT_EQ(decoded.size(), records.size());
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      decoded[i].erase("keyName");
      EXPECT_EQ(decoded[i].dump(), records[i].dump());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Data, DecodedTransactions, ::testing::Values("tv0", "tv2-expired"),
                         [](const auto& test) { return test.param.substr(0, 3); });

// Levels: reference of what a first start of 4.3.1 writes.
TEST(RecordDecoder, ShowsASnapshotOfTheMetadataLog) {
  const std::string path = log_data("log-directory/bootstrap.checkpoint");

  const Json json = dump_json(posix_file_system(), path);
  const std::string text = dump_text(posix_file_system(), path);

  std::map<std::string, int> levels;
  for (const Json& record : json["decoded"]) {
    EXPECT_EQ(record["type"], "FEATURE_LEVEL_RECORD");
    levels[record["data"]["name"]] = record["data"]["featureLevel"];
  }
  const std::map<std::string, int> expected = {
      {"metadata.version", 30}, {"eligible.leader.replicas.version", 1},
      {"group.version", 1},     {"share.version", 1},
      {"streams.version", 1},   {"transaction.version", 2}};
  EXPECT_EQ(levels, expected);
  EXPECT_EQ(json["control"].size(), 2U);
  EXPECT_EQ(json["damaged"], Json::array());
  EXPECT_NE(text.find("headerKeys: [] payload: {\"type\":\"FEATURE_LEVEL_RECORD\",\"version\":0,"
                      "\"data\":{\"name\":\"metadata.version\",\"featureLevel\":30}}\n"),
            std::string::npos)
      << text;
}

RecordView record_of(const NullableBytes& key, const NullableBytes& value) {
  RecordView record;
  record.offset = Offset(7);
  record.key = key;
  record.value = value;
  return record;
}

TEST(RecordDecoder, ShowsWhatItDoesNotKnowInHex) {
  const std::string key = weir::testing::from_hex("00630001");
  const std::string value = weir::testing::from_hex("0009ff");

  EXPECT_EQ(decoded_text(RecordDecoder::kOffsets, record_of(ByteView(key), ByteView(value))),
            R"( key: {"type":"99","data":{"hex":"00630001","reason":"unknown type"}} payload: )"
            R"({"version":"9","data":{"hex":"0009ff","reason":"unknown type"}})");
  EXPECT_EQ(
      decoded_json(RecordDecoder::kOffsets, record_of(ByteView(key), ByteView(value))).dump(),
      R"({"offset":7,"keyType":99,"keyName":null,"key":{"hex":"00630001","reason":"unknown type"},)"
      R"("valueVersion":9,"value":{"hex":"0009ff","reason":"unknown type"}})");
}

TEST(RecordDecoder, ShowsALaterVersionOfAKnownTypeInHex) {
  const std::string key = weir::testing::from_hex("0002000167");  // GROUP_METADATA of group g
  const std::string value = weir::testing::from_hex("000500");

  EXPECT_EQ(decoded_text(RecordDecoder::kOffsets, record_of(ByteView(key), ByteView(value))),
            R"( key: {"type":"2","data":{"group":"g"}} payload: {"version":"5","data":)"
            R"({"hex":"000500","reason":"GROUP_METADATA of version 5, known are 0 to 4"}})");
}

TEST(RecordDecoder, ShowsMetadataRecordsThatItDoesNotKnowInHex) {
  const auto text = [](const char* hex) {
    const std::string value = weir::testing::from_hex(hex);
    return decoded_text(RecordDecoder::kClusterMetadata, record_of({}, ByteView(value)));
  };

  EXPECT_EQ(
      text("01630000"),
      R"( payload: {"type":99,"version":0,"data":{"hex":"01630000","reason":"unknown type"}})");
  EXPECT_EQ(text("020c0000"), R"( payload: {"type":null,"version":0,"data":{"hex":"020c0000",)"
                              R"("reason":"frame version 2, known is 1"}})");
  EXPECT_EQ(text("01"), R"( payload: {"type":null,"version":0,"data":{"hex":"01",)"
                        R"("reason":"no frame"}})");
}

TEST(RecordDecoder, TakesRecordsWithoutKeyOrValue) {
  for (const RecordDecoder decoder :
       {RecordDecoder::kOffsets, RecordDecoder::kTransactionLog, RecordDecoder::kClusterMetadata}) {
    EXPECT_NE(decoded_text(decoder, record_of({}, {})), "");
    EXPECT_EQ(decoded_json(decoder, record_of(ByteView("\1", 1), ByteView("\1", 1)))["offset"], 7);
  }
}

// Subscriptions are the members' own bytes: what is not the consumer protocol's stays Base64.
TEST(RecordDecoder, LeavesASubscriptionThatDoesNotHoldTogetherAsItIs) {
  const std::string key = weir::testing::from_hex("0002000167");
  std::string value = weir::testing::from_hex("0000");       // version
  value += weir::testing::from_hex("0008636f6e73756d6572");  // protocolType consumer
  value += weir::testing::from_hex(
      "00000001ffffffff00000001");  // generation, protocol, leader, 1 member
  value += weir::testing::from_hex(
      "00016d0001630001680000000a");  // member, client, host, session timeout
  value += weir::testing::from_hex(
      "000000020007"
      "00000001ff");  // subscription, assignment

  const Json json =
      decoded_json(RecordDecoder::kOffsets, record_of(ByteView(key), ByteView(value)));

  EXPECT_EQ(json["value"]["members"][0]["subscription"], "AAc=");
  EXPECT_EQ(json["value"]["members"][0]["assignment"], "/w==");
}

TEST(RecordDecoder, IsChosenByTheFoldersTopic) {
  const auto by_topic = [](std::string_view folder) {
    return decoder_for(RecordDecoder::kByTopic, folder);
  };

  EXPECT_EQ(by_topic("__consumer_offsets-49"), RecordDecoder::kOffsets);
  EXPECT_EQ(by_topic("__transaction_state-0"), RecordDecoder::kTransactionLog);
  EXPECT_EQ(by_topic("__cluster_metadata-0"), RecordDecoder::kClusterMetadata);
  EXPECT_EQ(by_topic("orders-0"), RecordDecoder::kNone);
  EXPECT_EQ(by_topic("__consumer_offsets"), RecordDecoder::kOffsets);  // a copy without its number
  EXPECT_EQ(decoder_for(RecordDecoder::kNone, "__consumer_offsets-0"), RecordDecoder::kNone);
  EXPECT_EQ(decoder_for(RecordDecoder::kOffsets, "copy-of-offsets"), RecordDecoder::kOffsets);
}

}  // namespace
}  // namespace weir::log
