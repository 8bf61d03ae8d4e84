// Group records and what consumers say through the coordinator, against the bytes that Apache Kafka
// 4.3.1 wrote (tests/data/log/offsets-topic).
#include "log/coordinator/group_codec.h"

#include "log/coordinator/consumer_protocol.h"
#include "log/partition/partition.h"
#include "log/partition/replay.h"
#include "tests/support/hex.h"
#include "tests/support/json_text.h"

#include <weir/runtime/clock.h>
#include <weir/runtime/file_system.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace weir::log {
namespace {

using Json = nlohmann::json;
using testing::from_hex;
using testing::to_hex;

std::shared_ptr<Partition> recorded(std::int32_t index) {
  Partition::OpenOptions options;
  options.name = {"__consumer_offsets", PartitionId(index)};
  options.path = std::string(WEIR_TEST_DATA) + "/log/offsets-topic/" + options.name.to_string();
  options.read_only = true;
  const Partition::Environment environment{posix_file_system(), system_clock()};
  std::shared_ptr<Partition> log = Partition::open(environment, std::move(options)).value();
  const PartitionOffsets at = log->offsets();
  EXPECT_TRUE(log->refresh(at.log_start, at.log_end).ok());
  return log;
}

std::optional<std::string> text_or_null(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<std::string>());
}

std::vector<std::string> names(const std::vector<TopicPartition>& partitions) {
  std::vector<std::string> result;
  for (const TopicPartition& partition : partitions) {
    result.push_back(partition.to_string());
  }
  return result;
}

void check_member(const GroupMemberValue& member, const Json& fields, const Json& said) {
  EXPECT_EQ(member.member_id, fields["memberId"]);
  EXPECT_EQ(member.instance_id, text_or_null(fields["groupInstanceId"]));
  EXPECT_EQ(member.client_id, fields["clientId"]);
  EXPECT_EQ(member.client_host, fields["clientHost"]);
  EXPECT_EQ(member.rebalance_timeout_ms, fields["rebalanceTimeout"]);
  EXPECT_EQ(member.session_timeout_ms, fields["sessionTimeout"]);

  const ConsumerSubscription subscription = decode_subscription(member.subscription).value();
  EXPECT_EQ(subscription.topics, said["topics"].get<std::vector<std::string>>());
  EXPECT_EQ(subscription.generation, said["subscriptionGeneration"]);
  EXPECT_EQ(subscription.rack, text_or_null(said["rack"]));
  EXPECT_EQ(names(subscription.owned), said["ownedPartitions"].get<std::vector<std::string>>());
  const auto user_data = text_or_null(said["userData"]);
  EXPECT_EQ(subscription.user_data.has_value(), user_data.has_value());
  if (user_data) {
    EXPECT_EQ(to_hex(*subscription.user_data), *user_data);
  }
  EXPECT_EQ(encode_subscription(subscription, said["subscriptionVersion"]), member.subscription);

  const ConsumerAssignment assignment = decode_assignment(member.assignment).value();
  EXPECT_EQ(names(assignment.partitions), said["assigned"].get<std::vector<std::string>>());
  EXPECT_EQ(encode_assignment(assignment), member.assignment);
}

TEST(GroupCodec, ReadsAndWritesEveryRecordOfKafkasOffsetsTopic) {
  std::ifstream file(std::string(WEIR_TEST_DATA) + "/log/offsets-topic/expected.json");
  const Json expected = Json::parse(file);
  std::size_t records = 0;
  std::size_t members = 0;
  std::size_t tombstones = 0;
  for (const std::int32_t index : {0, 1}) {
    std::map<std::int64_t, Json> by_offset;
    for (const Json& record : expected["decoded __consumer_offsets-" + std::to_string(index)]) {
      by_offset[record["offset"]] = record;
    }
    const auto log = recorded(index);
    const auto read = replay_records(*log, Offset(0), [&](const RecordView& record) -> Status {
      WEIR_TRY_ASSIGN(const auto group, decode_group_key(record.key.view()));
      const Json& is = by_offset[record.offset.value()];
      EXPECT_EQ(group.has_value(), is["keyType"] == 2) << record.offset.value();
      if (!group) {
        return {};
      }
      SCOPED_TRACE(is.dump());
      EXPECT_EQ(*group, is["key"]["group"]);
      EXPECT_EQ(encode_group_key(*group), record.key.view());
      ++records;
      if (record.value.is_null()) {
        EXPECT_TRUE(is["value"].is_null());
        ++tombstones;
        return {};
      }
      WEIR_TRY_ASSIGN(const GroupValue value, decode_group_value(record.value.view()));
      EXPECT_EQ(value.protocol_type, is["value"]["protocolType"]);
      EXPECT_EQ(value.generation, is["value"]["generation"]);
      EXPECT_EQ(value.protocol, text_or_null(is["value"]["protocol"]));
      EXPECT_EQ(value.leader, text_or_null(is["value"]["leader"]));
      EXPECT_EQ(value.state_timestamp, is["value"]["currentStateTimestamp"]);
      EXPECT_EQ(value.members.size(), is["value"]["members"].size());
      for (std::size_t i = 0; i < value.members.size(); ++i) {
        check_member(value.members[i], is["value"]["members"][i], is["members"][i]);
        ++members;
      }
      EXPECT_EQ(encode_group_value(value), record.value.view());
      return {};
    });
    ASSERT_TRUE(read.ok()) << read.error().to_string();
  }
  EXPECT_EQ(records, 17U);
  EXPECT_EQ(members, 9U);
  EXPECT_EQ(tombstones, 2U);
}

// The reference's example (K 3.7).
TEST(GroupCodec, ReadsAndWritesTheReferencesExample) {
  const std::string bytes = from_hex(
      "00030008636f6e73756d657200000007000572616e676500026d310000018bcfe568000000000100026d31ffff00"
      "016300022f68000493e00000afc800000001010000000102");
  GroupValue value;
  value.protocol_type = "consumer";
  value.generation = 7;
  value.protocol = "range";
  value.leader = "m1";
  value.state_timestamp = 1700000000000;
  value.members = {{"m1", std::nullopt, "c", "/h", 300'000, 45'000, "\x01", "\x02"}};

  EXPECT_EQ(to_hex(encode_group_value(value)), to_hex(bytes));
  EXPECT_EQ(decode_group_value(bytes).value(), value);
  EXPECT_EQ(to_hex(encode_group_key("g")), "0002000167");
}

// Hand-worked from Kafka's message definitions: version 1 brought the rebalance timeout, 2 the
// time of the state, 3 the instance id.
TEST(GroupCodec, ReadsOldVersions) {
  const std::string tail0 =
      "00000001"
      "00016d"
      "000163"
      "000168"
      "00000005"
      "0000000173"
      "0000000161";
  const std::string head =
      "0001"
      "74"
      "00000002"
      "000170"
      "00016d";
  const GroupValue zero = decode_group_value(from_hex("0000" + head + tail0)).value();
  EXPECT_EQ(zero.protocol_type, "t");
  EXPECT_EQ(zero.generation, 2);
  EXPECT_EQ(zero.protocol, "p");
  EXPECT_EQ(zero.state_timestamp, kNoTimestamp);
  ASSERT_EQ(zero.members.size(), 1U);
  EXPECT_EQ(zero.members[0], (GroupMemberValue{"m", std::nullopt, "c", "h", 5, 5, "s", "a"}));
  EXPECT_EQ(to_hex(encode_group_value(zero, 0)), "0000" + head + tail0);

  const std::string tail1 =
      "00000001"
      "00016d"
      "000163"
      "000168"
      "00000009"
      "00000005"
      "0000000173"
      "0000000161";
  const GroupValue one = decode_group_value(from_hex("0001" + head + tail1)).value();
  EXPECT_EQ(one.members[0].rebalance_timeout_ms, 9);
  EXPECT_EQ(one.members[0].session_timeout_ms, 5);
  EXPECT_EQ(to_hex(encode_group_value(one, 1)), "0001" + head + tail1);

  const GroupValue two =
      decode_group_value(from_hex("0002" + head + "0000000000000007" + tail1)).value();
  EXPECT_EQ(two.state_timestamp, 7);
  EXPECT_EQ(to_hex(encode_group_value(two, 2)), "0002" + head + "0000000000000007" + tail1);
}

TEST(GroupCodec, RefusesWhatItCannotRead) {
  EXPECT_EQ(decode_group_value(from_hex("0004")).error().code(), Errc::kUnsupported);
  EXPECT_EQ(decode_group_key("").error().code(), Errc::kCorrupt);
  GroupValue value;
  value.protocol_type = "consumer";
  value.members = {{"m1", "i", "c", "/h", 1, 2, "sub", "ass"}};
  const std::string whole = encode_group_value(value);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_group_value(ByteView(whole).substr(0, size)).ok()) << size;
  }
  // A count that promises more than there is costs no memory.
  EXPECT_EQ(decode_group_value(from_hex("0003000000000000ffffffff00000000000000007fffffff"))
                .error()
                .code(),
            Errc::kCorrupt);
}

TEST(ConsumerProtocol, EveryVersionKeepsWhatItHas) {
  ConsumerSubscription full;
  full.topics = {"b", "a"};
  full.user_data = "u";
  full.owned = {{"b", PartitionId(2)}, {"b", PartitionId(0)}, {"a", PartitionId(1)}};
  full.generation = 9;
  full.rack = "r";
  EXPECT_EQ(decode_subscription(encode_subscription(full)).value(), full);
  ConsumerSubscription two = full;
  two.rack.reset();
  EXPECT_EQ(decode_subscription(encode_subscription(full, 2)).value(), two);
  ConsumerSubscription one = two;
  one.generation = -1;
  EXPECT_EQ(decode_subscription(encode_subscription(full, 1)).value(), one);
  ConsumerSubscription zero = one;
  zero.owned.clear();
  EXPECT_EQ(decode_subscription(encode_subscription(full, 0)).value(), zero);

  // Hand-worked: topics b and a, user data "u", owned b [2, 0] and a [1], generation 9, rack "r".
  EXPECT_EQ(to_hex(encode_subscription(full)),
            "0003"
            "00000002"
            "000162"
            "000161"
            "00000001"
            "75"
            "00000002"
            "000162"
            "00000002"
            "00000002"
            "00000000"
            "000161"
            "00000001"
            "00000001"
            "00000009"
            "000172");
}

TEST(ConsumerProtocol, PassesOverWhatALaterVersionAdds) {
  ConsumerSubscription said;
  said.topics = {"t"};
  std::string later = encode_subscription(said) + "more";
  later[1] = 9;
  EXPECT_EQ(decode_subscription(later).value(), said);
  std::string assignment = encode_assignment({{{"t", PartitionId(1)}}, "u"}) + "more";
  assignment[1] = 9;
  EXPECT_EQ(decode_assignment(assignment).value(),
            (ConsumerAssignment{{{"t", PartitionId(1)}}, "u"}));
}

TEST(ConsumerProtocol, NoBytesAreNoPartitionsAndTornOnesAreRefused) {
  EXPECT_EQ(decode_assignment("").value(), ConsumerAssignment());
  const std::string whole = encode_assignment({{{"t", PartitionId(1)}}, "u"});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_EQ(decode_assignment(ByteView(whole).substr(0, size)).error().code(), Errc::kCorrupt);
  }
  const std::string subscription = encode_subscription({{"t"}, "u", {}, 1, "r"});
  for (std::size_t size = 0; size < subscription.size(); ++size) {
    EXPECT_EQ(decode_subscription(ByteView(subscription).substr(0, size)).error().code(),
              Errc::kCorrupt);
  }
}

}  // namespace
}  // namespace weir::log
