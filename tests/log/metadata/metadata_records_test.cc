#include "log/metadata/metadata_records.h"

#include "tests/support/hex.h"
#include "tests/support/json_text.h"

#include <weir/runtime/varint.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <map>

namespace weir::log {
namespace {

using testing::from_hex;
using testing::to_hex;
using Json = nlohmann::json;

struct Example {
  std::string message;
  std::uint32_t type = 0;
  std::uint32_t version = 0;
  std::string body;
  Json fields;

  std::string framed() const {
    char frame[15];
    char* end = write_uvarint(frame, 1);
    end = write_uvarint(end, type);
    end = write_uvarint(end, version);
    return std::string(frame, end) + body;
  }
};

std::vector<Example> examples(const std::string& message) {
  std::ifstream file(std::string(WEIR_TEST_DATA) + "/messages/metadata-records.jsonl");
  std::vector<Example> found;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line);
    if (json["message"] == message) {
      found.push_back({message, json["apiKey"], json["version"],
                       from_hex(json["hex"].get<std::string>()), json["json"]});
    }
  }
  EXPECT_FALSE(found.empty()) << message;
  return found;
}

template <class T>
T decode_as(const Example& example) {
  const Result<MetadataRecord> record = decode_metadata_record(example.framed());
  EXPECT_TRUE(record.ok()) << example.message << (record.ok() ? "" : record.error().message());
  const T* typed = record.ok() ? std::get_if<T>(&*record) : nullptr;
  EXPECT_NE(typed, nullptr) << example.message;
  return typed == nullptr ? T{} : *typed;
}

TEST(MetadataRecords, ReadsAndWritesTopicsAsKafkaDoes) {
  for (const Example& example : examples("TopicRecord")) {
    const auto record = decode_as<TopicMetadataRecord>(example);
    EXPECT_EQ(record.name, example.fields["name"]);
    EXPECT_EQ(record.topic_id.to_string(), example.fields["topicId"]);
    EXPECT_EQ(to_hex(encode_metadata_record(record)), to_hex(example.framed()));
  }
}

TEST(MetadataRecords, ReadsAndWritesSettingsAsKafkaDoes) {
  for (const Example& example : examples("ConfigRecord")) {
    const auto record = decode_as<ConfigMetadataRecord>(example);
    EXPECT_EQ(record.resource_type, example.fields["resourceType"]);
    EXPECT_EQ(record.resource_name, example.fields["resourceName"]);
    EXPECT_EQ(record.name, example.fields["name"]);
    EXPECT_EQ(record.value ? Json(*record.value) : Json(nullptr), example.fields["value"]);
    EXPECT_EQ(to_hex(encode_metadata_record(record)), to_hex(example.framed()));
  }
}

TEST(MetadataRecords, ReadsAndWritesRemovedTopicsAsKafkaDoes) {
  for (const Example& example : examples("RemoveTopicRecord")) {
    const auto record = decode_as<RemoveTopicMetadataRecord>(example);
    EXPECT_EQ(record.topic_id.to_string(), example.fields["topicId"]);
    EXPECT_EQ(to_hex(encode_metadata_record(record)), to_hex(example.framed()));
  }
}

TEST(MetadataRecords, ReadsAndWritesFeatureLevelsAsKafkaDoes) {
  for (const Example& example : examples("FeatureLevelRecord")) {
    const auto record = decode_as<FeatureLevelMetadataRecord>(example);
    EXPECT_EQ(record.name, example.fields["name"]);
    EXPECT_EQ(record.level, example.fields["featureLevel"]);
    EXPECT_EQ(to_hex(encode_metadata_record(record)), to_hex(example.framed()));
  }
}

TEST(MetadataRecords, ReadsRegistrationsOfEveryVersion) {
  for (const Example& example : examples("RegisterBrokerRecord")) {
    const auto record = decode_as<RegisterBrokerMetadataRecord>(example);
    EXPECT_EQ(record.broker_id, example.fields["brokerId"]);
    EXPECT_EQ(record.incarnation_id.to_string(), example.fields["incarnationId"]);
    EXPECT_EQ(record.broker_epoch, example.fields["brokerEpoch"]);
    EXPECT_EQ(record.fenced, example.fields["fenced"]);
    const bool has_directory =
        example.fields.contains("logDirs") && !example.fields["logDirs"].empty();
    EXPECT_EQ(record.directory.to_string(),
              has_directory ? example.fields["logDirs"][0].get<std::string>() : Uuid{}.to_string());
  }
}

TEST(MetadataRecords, WritesARegistrationWithoutEndPointsAsKafkaDoes) {
  int written = 0;
  for (const Example& example : examples("RegisterBrokerRecord")) {
    const Json& fields = example.fields;
    if (example.version == 4 && fields["endPoints"].empty() && fields["features"].empty() &&
        fields["rack"].is_null()) {
      const auto record = decode_as<RegisterBrokerMetadataRecord>(example);
      EXPECT_EQ(to_hex(encode_metadata_record(record)), to_hex(example.framed()));
      ++written;
    }
  }
  EXPECT_GT(written, 0);
}

TEST(MetadataRecords, ReadsPartitionsOfEveryVersion) {
  for (const Example& example : examples("PartitionRecord")) {
    const auto record = decode_as<PartitionMetadataRecord>(example);
    EXPECT_EQ(record.partition_id.value(), example.fields["partitionId"]);
    EXPECT_EQ(record.topic_id.to_string(), example.fields["topicId"]);
    EXPECT_EQ(record.leader, example.fields["leader"]);
    EXPECT_EQ(record.leader_epoch.value(), example.fields["leaderEpoch"]);
    EXPECT_EQ(record.partition_epoch, example.fields["partitionEpoch"]);
  }
}

TEST(MetadataRecords, WritesAPartitionThatItReadsBack) {
  PartitionMetadataRecord record;
  record.partition_id = PartitionId(7);
  record.topic_id = Uuid::parse("IUVDymDuRwH9dx_urQODhw").value();
  record.leader = 1;
  record.leader_epoch = LeaderEpoch(3);
  record.partition_epoch = 2;
  record.directory = Uuid::parse("hJZwPTKN2uyTMK3BWN2_OQ").value();

  const Result<MetadataRecord> back = decode_metadata_record(encode_metadata_record(record));

  ASSERT_TRUE(back.ok());
  const auto& read = std::get<PartitionMetadataRecord>(*back);
  EXPECT_EQ(read.partition_id, record.partition_id);
  EXPECT_EQ(read.topic_id, record.topic_id);
  EXPECT_EQ(read.leader, 1);
  EXPECT_EQ(read.leader_epoch, record.leader_epoch);
  EXPECT_EQ(read.directory, record.directory);
}

TEST(MetadataRecords, ReadsTheLeaderOfAPartitionChange) {
  for (const Example& example : examples("PartitionChangeRecord")) {
    const auto record = decode_as<PartitionChangeMetadataRecord>(example);
    EXPECT_EQ(record.partition_id.value(), example.fields["partitionId"]);
    EXPECT_EQ(record.topic_id.to_string(), example.fields["topicId"]);
    EXPECT_EQ(record.leader ? Json(*record.leader) : Json(nullptr),
              example.fields.contains("leader") ? example.fields["leader"] : Json(nullptr));
  }
}

TEST(MetadataRecords, KeepsRecordsOfOtherTypesApart) {
  for (const Example& example : examples("NoOpRecord")) {
    EXPECT_EQ(decode_as<OtherMetadataRecord>(example).type, 20U);
  }
}

TEST(MetadataRecords, RefusesEveryCutOfEveryRecord) {
  for (const char* message : {"RegisterBrokerRecord", "TopicRecord", "ConfigRecord",
                              "RemoveTopicRecord", "PartitionRecord"}) {
    for (const Example& example : examples(message)) {
      const std::string whole = example.framed();
      for (std::size_t size = 0; size < whole.size(); ++size) {
        const Result<MetadataRecord> record =
            decode_metadata_record(ByteView(whole).substr(0, size));
        ASSERT_FALSE(record.ok()) << message << " cut to " << size;
        EXPECT_EQ(record.error().code(), Errc::kCorrupt);
      }
    }
  }
}

}  // namespace
}  // namespace weir::log
