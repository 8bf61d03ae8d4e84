#include "log/dump/message_schema.h"

#include "log/dump/message_schemas.h"
#include "tests/support/hex.h"

#include <weir/runtime/rng.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace weir::log {
namespace {

using Json = nlohmann::ordered_json;

struct RecordedMessage {
  std::string name;
  std::int32_t version = 0;
  std::string body;
  Json json;  // Kafka's reading of it
  const MessageSchema* schema = nullptr;
};

const MessageSchema* control_schema(const std::string& name) {
  const std::vector<std::pair<std::string, int>> types = {{"LeaderChangeMessage", 2},
                                                          {"SnapshotHeaderRecord", 3},
                                                          {"SnapshotFooterRecord", 4},
                                                          {"KRaftVersionRecord", 5},
                                                          {"VotersRecord", 6}};
  for (const auto& [known, type] : types) {
    if (known == name) {
      return find_schema(control_schemas(), type);
    }
  }
  return nullptr;
}

const MessageSchema* schema_of(const Json& line) {
  const std::string name = line["message"];
  const int key = line["apiKey"];
  if (line["kind"] == "metadata") {
    return find_schema(metadata_schemas(), key);
  }
  if (key < 0) {
    return name == "ConsumerProtocolSubscription" ? &consumer_subscription_schema()
           : name == "ConsumerProtocolAssignment" ? &consumer_assignment_schema()
                                                  : control_schema(name);
  }
  const bool is_key = name.ends_with("Key");
  if (name.starts_with("TransactionLog")) {
    return find_schema(is_key ? transaction_key_schemas() : transaction_value_schemas(), key);
  }
  return find_schema(is_key ? offsets_key_schemas() : offsets_value_schemas(), key);
}

std::vector<RecordedMessage> recorded_messages() {
  std::vector<RecordedMessage> messages;
  for (const char* file : {"/messages/metadata-records.jsonl", "/messages/data-records.jsonl"}) {
    std::ifstream in(std::string(WEIR_TEST_DATA) + file);
    for (std::string text; std::getline(in, text);) {
      const Json line = Json::parse(text);
      RecordedMessage message;
      message.name = line["message"];
      message.version = line["version"];
      message.body = weir::testing::from_hex(line["hex"].get<std::string>());
      message.json = line["json"];
      message.schema = schema_of(line);
      messages.push_back(std::move(message));
    }
  }
  return messages;
}

TEST(MessageSchema, ReadsEveryRecordedMessageAsKafkasClassesDo) {
  const std::vector<RecordedMessage> messages = recorded_messages();
  ASSERT_EQ(messages.size(), 111U + 123U);

  for (const RecordedMessage& message : messages) {
    ASSERT_NE(message.schema, nullptr) << message.name;
    const Result<Json> decoded = decode_message(*message.schema, message.version, message.body);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message();
    EXPECT_EQ(decoded->dump(), message.json.dump()) << message.name << " v" << message.version;
  }
}

TEST(MessageSchema, RefusesEveryMessageThatIsCutShort) {
  for (const RecordedMessage& message : recorded_messages()) {
    for (std::size_t size = 0; size < message.body.size(); ++size) {
      const Result<Json> decoded =
          decode_message(*message.schema, message.version, ByteView(message.body).substr(0, size));
      ASSERT_FALSE(decoded.ok()) << message.name << " v" << message.version << " of " << size;
      EXPECT_EQ(decoded.error().code(), Errc::kCorrupt);
    }
  }
}

TEST(MessageSchema, RefusesBytesBehindTheEnd) {
  for (const RecordedMessage& message : recorded_messages()) {
    const Result<Json> decoded =
        decode_message(*message.schema, message.version, message.body + '\0');
    ASSERT_FALSE(decoded.ok()) << message.name;
    EXPECT_EQ(decoded.error().code(), Errc::kCorrupt);
  }
}

TEST(MessageSchema, TakesAnyBytesWithoutHarm) {
  const std::uint64_t seed = entropy_seed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Rng rng(seed);
  for (const RecordedMessage& message : recorded_messages()) {
    for (int i = 0; i < 200; ++i) {
      std::string body = message.body;
      for (int flips = 0; flips < 3 && !body.empty(); ++flips) {
        body[rng.below(body.size())] = static_cast<char>(rng.below(256));
      }
      const Result<Json> decoded = decode_message(*message.schema, message.version, body);
      if (decoded.ok()) {
        // An element has at least a byte, and its names are bounded by the tables.
        EXPECT_LE(decoded->dump(-1, ' ', false, Json::error_handler_t::replace).size(),
                  500 * (body.size() + 1));
      }
    }
  }
}

TEST(MessageSchema, NamesAVersionThatItDoesNotKnow) {
  const MessageSchema& topic = *find_schema(metadata_schemas(), 2);

  const Result<Json> decoded = decode_message(topic, 1, "");

  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code(), Errc::kUnsupported);
  EXPECT_EQ(decoded.error().message(), "TOPIC_RECORD of version 1, known are 0 to 0");
}

// A count of 2^31 - 1 elements in 6 bytes.
TEST(MessageSchema, DoesNotBelieveACountPastTheEnd) {
  const MessageSchema& assignment = consumer_assignment_schema();

  const Result<Json> decoded =
      decode_message(assignment, 0, weir::testing::from_hex("7fffffff0000"));

  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code(), Errc::kCorrupt);
}

TEST(MessageSchema, DoesNotDecodeAMessageAboveItsBound) {
  const Result<Json> decoded = decode_message(*find_schema(metadata_schemas(), 12), 0,
                                              std::string(kMessageBytesMax + 1, '\1'));

  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code(), Errc::kUnsupported);
}

// RFC 4648, section 10.
TEST(Base64, IsThatOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace weir::log
