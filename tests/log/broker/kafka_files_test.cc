#include "log/broker/kafka_files.h"

#include "log/record/batch_header.h"
#include "tests/support/hex.h"

#include <weir/runtime/testing/memory_file_system.h>

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace weir::log {
namespace {

using testing::MemoryFileSystem;
using testing::to_hex;

std::string kafkas_bootstrap() {
  std::ifstream file(WEIR_TEST_DATA "/log/kafka-files/bootstrap.checkpoint", std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Times and CRCs differ from run to run in Kafka too: every batch gets the same ones.
std::string with_one_time(std::string batches) {
  for (std::size_t at = 0; at < batches.size();) {
    const auto header = read_batch_header(ByteView(batches).substr(at));
    if (!header.ok()) {
      ADD_FAILURE() << header.error().message() << " at " << at;
      break;
    }
    for (std::size_t i = at + 27; i < at + 43; ++i) {  // baseTimestamp, maxTimestamp
      batches[i] = 0;
    }
    stamp_crc(batches.data() + at, header->size_bytes());
    at += header->size_bytes();
  }
  return batches;
}

TEST(KafkaFiles, HaveTheBootstrapCheckpointThatKafkaFormatsADirectoryWith) {
  ASSERT_EQ(kafkas_bootstrap().size(), 411U);
  EXPECT_EQ(to_hex(with_one_time(bootstrap_checkpoint(1796013872200))),
            to_hex(with_one_time(kafkas_bootstrap())));
}

// What a Kafka 4.3.1 broker of node 1 left behind after its first election.
TEST(KafkaFiles, HaveTheQuorumStateOfAOneNodeCluster) {
  EXPECT_EQ(quorum_state(1, LeaderEpoch(2)),
            R"({"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,)"
            R"("currentVoters":[{"voterId":1}],"data_version":0})");
}

// As in a directory that a Kafka 4.3.1 broker of epoch 13 left.
TEST(KafkaFiles, HaveTheEpochOfTheBrokerInTheMarkerOfACleanEnd) {
  EXPECT_EQ(clean_shutdown_marker(13), R"({"version":0,"brokerEpoch":13})");
}

TEST(KafkaFiles, GiveTheNodeTheOffsetOfItsRegistrationAsEpoch) {
  const std::vector<MetadataRecord> records = first_metadata_records({}, Offset(1));
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (const auto* node = std::get_if<RegisterBrokerMetadataRecord>(&records[i])) {
      EXPECT_EQ(node->broker_epoch, static_cast<std::int64_t>(1 + i));
      return;
    }
  }
  FAIL() << "no registration";
}

TEST(KafkaFiles, NameTheLastEpochOfTheMetadataLog) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.create_directories("log/__cluster_metadata-0").ok());
  const auto write = [&files](const std::string& epochs) {
    ASSERT_TRUE(
        replace_file(files, "log/__cluster_metadata-0/leader-epoch-checkpoint", epochs).ok());
    ASSERT_TRUE(write_kafka_files(files, "log", 1, 1000).ok());
  };
  write("0\n1\n1 0\n");
  EXPECT_EQ(read_file(files, "log/__cluster_metadata-0/quorum-state").value(),
            quorum_state(1, LeaderEpoch(1)));
  const std::string bootstrap = read_file(files, "log/bootstrap.checkpoint").value();

  write("0\n2\n1 0\n7 12\n");

  EXPECT_EQ(read_file(files, "log/__cluster_metadata-0/quorum-state").value(),
            quorum_state(1, LeaderEpoch(7)));
  EXPECT_EQ(read_file(files, "log/bootstrap.checkpoint").value(), bootstrap);
}

}  // namespace
}  // namespace weir::log
