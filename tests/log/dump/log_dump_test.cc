#include "tests/log/dump/dump_support.h"

#include <weir/log/log_dump.h>
#include <weir/runtime/rng.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace weir::log {
namespace {

using testing::CopiedFolder;
using testing::dump_data_folder;
using testing::dump_json;
using testing::dump_text;
using testing::Json;

const std::string kFirstLog = "00000000000000000000.log";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::int64_t> offsets_of(const Json& records) {
  std::vector<std::int64_t> offsets;
  for (const Json& record : records) {
    offsets.push_back(record["offset"]);
  }
  return offsets;
}

std::vector<std::int64_t> range(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> offsets;
  for (std::int64_t offset = first; offset <= last; ++offset) {
    offsets.push_back(offset);
  }
  return offsets;
}

std::string name_of_test(const ::testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class DumpOfKafkasFolder : public ::testing::TestWithParam<std::string> {};

// Field by field as text, so that the order of fields counts.
TEST_P(DumpOfKafkasFolder, IsWhatKafkasClassesReadInTheSameOrder) {
  const Json expected = Json::parse(testing::file_text(dump_data_folder(GetParam() + ".json")));

  const Json dumped = dump_json(posix_file_system(), dump_data_folder(GetParam()));

  std::vector<std::string> names;
  for (const char* name :
       {"folder", "nextOffsetInFiles", "files", "leaderEpochs", "partitionMetadata",
        "producerSnapshots", "segments", "batches", "control", "records", "abortedTransactions"}) {
    if (expected.contains(name)) {
      ASSERT_TRUE(dumped.contains(name)) << name;
      EXPECT_EQ(dumped[name].dump(), expected[name].dump()) << name;
    } else if (std::string_view(name) != "abortedTransactions") {
      EXPECT_FALSE(dumped.contains(name)) << name;
    }
    if (dumped.contains(name)) {
      names.emplace_back(name);
    }
  }
  if (dumped.contains("decoded")) {
    names.insert(names.end() - 1, "decoded");  // behind records
    EXPECT_EQ(dumped["decoded"].size(), dumped["records"].size());
  }
  EXPECT_EQ(dumped.contains("decoded"), GetParam() == "__consumer_offsets-0");
  names.emplace_back("damaged");
  std::vector<std::string> dumped_names;
  for (const auto& [name, value] : dumped.items()) {
    dumped_names.push_back(name);
  }
  EXPECT_EQ(dumped_names, names);
  EXPECT_EQ(dumped["damaged"], Json::array());
}

INSTANTIATE_TEST_SUITE_P(Data, DumpOfKafkasFolder,
                         ::testing::Values("codec-gzip-0", "rolls-lz4-0", "txn-segments-0",
                                           "txn-interleaved-0", "txn-multi-1",
                                           "__consumer_offsets-0", "compact-txn-0",
                                           "compact-idem-0", "epochs-deleted-0", "epochs-empty-0"),
                         name_of_test);

class DumpAsText : public ::testing::TestWithParam<std::string> {};

TEST_P(DumpAsText, IsLineByLineThatOfDumpLogSegments) {
  const std::string folder = dump_data_folder(GetParam());
  const std::vector<std::string> expected =
      lines_of(testing::file_text(dump_data_folder(GetParam() + ".dump.txt")));

  std::vector<std::string> dumped = lines_of(dump_text(posix_file_system(), folder));

  // Kafka's was not asked for empty files, does not know the small ones, and named the rest
  // relative to the folder above.
  const std::string heading = "Dumping ";
  std::erase_if(dumped, [&](const std::string& line) {
    return line.starts_with("epoch: ") || line.starts_with("version: 0 topicId: ") ||
           line.ends_with("/leader-epoch-checkpoint") || line.ends_with("/partition.metadata") ||
           (line.starts_with(heading) && testing::file_text(line.substr(heading.size())).empty());
  });
  const std::string above = folder.substr(0, folder.size() - GetParam().size());
  for (std::string& line : dumped) {
    if (line.starts_with(heading)) {
      line.erase(heading.size(), above.size());
    }
  }
  EXPECT_EQ(dumped, expected);
}

INSTANTIATE_TEST_SUITE_P(Data, DumpAsText,
                         ::testing::Values("rolls-lz4-0", "txn-segments-0", "txn-interleaved-0"),
                         name_of_test);

// Lines of DumpLogSegments for the same file.
TEST(DumpLog, ShowsControlRecordsInKafkasWords) {
  const std::string text =
      dump_text(posix_file_system(), WEIR_TEST_DATA "/log/edge-batches/edge-good-0");

  for (const char* line : {
           "\n| offset: 49 CreateTime: 1700000000000 keySize: 4 valueSize: 6 sequence: -1 "
           "headerKeys: [] endTxnMarker: ABORT coordinatorEpoch: -1\n",
           "\n| offset: 50 CreateTime: 1700000000000 keySize: 4 valueSize: 24 sequence: -1 "
           "headerKeys: [] LeaderChange: {\"version\":0,\"leaderId\":1,\"voters\":[{\"voterId\":1}"
           ",{\"voterId\":2}],\"grantingVoters\":[{\"voterId\":1}]}\n",
           "] SnapshotHeader {\"version\":0,\"lastContainedLogTimestamp\":1700000000000}\n",
           "] SnapshotFooter {\"version\":0}\n",
           "] KRaftVersion {\"version\":0,\"kRaftVersion\":1}\n",
           "] KRaftVoters {\"version\":0,\"voters\":[{\"voterId\":1,\"voterDirectoryId\":"
           "\"AAAAAAAAAAEAAAAAAAAAAg\",\"endpoints\":[{\"name\":\"CONTROLLER\",\"host\":"
           "\"localhost\",\"port\":9093}],\"kRaftVersionFeature\":{\"minSupportedVersion\":0,"
           "\"maxSupportedVersion\":0}}]}\n",
           "] controlType: UNKNOWN(99)\n",
           "deleteHorizonMs: OptionalLong[1700086400000] position: 997 ",
           "baseSequence: 2147483646 lastSequence: 0 ",
       }) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(DumpLog, WritesWhatIsNoPrintableTextAsHex) {
  std::string text;
  ASSERT_TRUE(dump_log(posix_file_system(), dump_data_folder("__consumer_offsets-0"),
                       {.json = false, .records = true, .decoder = RecordDecoder::kNone},
                       [&](std::string_view piece) { text += piece; })
                  .ok());

  // Key of group txn-group, topic txn-simple, partition 0; version 1.
  EXPECT_NE(text.find("key: \\x00\\x01\\x00\\x09txn-group\\x00\\x0atxn-simple\\x00\\x00\\x00\\x00 "
                      "payload: \\x00\\x04"),
            std::string::npos)
      << text;
}

TEST(DumpLog, LeavesRecordsOutWhenAsked) {
  const std::string folder = dump_data_folder("txn-interleaved-0");

  const std::string text = dump_text(posix_file_system(), folder, false);
  const Json json = dump_json(posix_file_system(), folder, false);

  EXPECT_EQ(text.find("\n| "), std::string::npos);
  EXPECT_NE(text.find("\nbaseOffset: 4 lastOffset: 4 count: 1 "), std::string::npos);
  EXPECT_FALSE(json.contains("records"));
  EXPECT_EQ(json["batches"].size(), 14U);
  EXPECT_EQ(json["control"].size(), 5U);
  EXPECT_EQ(json["abortedTransactions"].size(), 2U);
}

TEST(DumpLog, GoesOnBehindABatchWithAWrongCrc) {
  const std::string folder = dump_data_folder("crash-0");

  const Json json = dump_json(posix_file_system(), folder);
  const std::string text = dump_text(posix_file_system(), folder);

  ASSERT_EQ(json["damaged"].size(), 1U);
  EXPECT_EQ(json["damaged"][0].dump(),
            R"({"segment":"00000000000000000068.log","position":2923,"endPosition":3159,)"
            R"("firstOffset":106,"nextOffset":108,)"
            R"("reason":"batch at offset 106: crc is ccf33906, the header says ccf23906"})");
  std::vector<std::int64_t> intact = range(0, 105);
  const std::vector<std::int64_t> behind = range(108, 361);
  intact.insert(intact.end(), behind.begin(), behind.end());
  EXPECT_EQ(offsets_of(json["records"]), intact);
  EXPECT_EQ(json["nextOffsetInFiles"], 362);
  EXPECT_NE(text.find("crc: 3438426374 isvalid: false\nDamaged: position: 2923 endPosition: 3159 "
                      "firstOffset: 106 nextOffset: 108 reason: batch at offset 106: crc is "
                      "ccf33906, the header says ccf23906\nbaseOffset: 108 "),
            std::string::npos);
}

TEST(DumpLog, NamesOldMessageSetsAndDumpsTheRest) {
  const Json json = dump_json(posix_file_system(), dump_data_folder("old-v0-v1-gzip-v2-0"));

  ASSERT_EQ(json["damaged"].size(), 1U);
  const Json& damage = json["damaged"][0];
  EXPECT_EQ(damage["position"], 0);
  EXPECT_EQ(damage["endPosition"], 267);
  EXPECT_EQ(damage["firstOffset"], 0);
  EXPECT_EQ(damage["nextOffset"], 8);
  EXPECT_EQ(damage["reason"],
            "message sets of magic 0 and 1 (from before Kafka 0.11) are not supported; copy the "
            "topic through a newer Kafka producer to get magic 2");
  EXPECT_EQ(offsets_of(json["records"]), range(8, 11));
}

TEST(DumpLog, ShowsASingleSegmentAlone) {
  const std::string path = dump_data_folder("txn-interleaved-0/" + kFirstLog);

  const Json json = dump_json(posix_file_system(), path);
  const std::string text = dump_text(posix_file_system(), path);

  EXPECT_EQ(json["folder"], "txn-interleaved-0");
  EXPECT_EQ(json["files"].size(), 1U);
  ASSERT_EQ(json["segments"].size(), 1U);
  EXPECT_FALSE(json["segments"][0].contains("offsetIndex"));
  EXPECT_FALSE(json.contains("producerSnapshots"));
  EXPECT_EQ(json["nextOffsetInFiles"], 16);
  EXPECT_EQ(json["records"].size(), 11U);
  EXPECT_TRUE(text.starts_with("Dumping " + path + "\nLog starting offset: 0\nbaseOffset: 0 "));
}

TEST(DumpLog, ShowsASingleIndexOrSnapshotAlone) {
  const auto dump = [](const std::string& file) {
    return dump_json(posix_file_system(), dump_data_folder(file)).dump();
  };

  const Json whole = Json::parse(testing::file_text(dump_data_folder("epochs-deleted-0.json")));
  EXPECT_EQ(dump("epochs-deleted-0/00000000000000000036.timeindex"),
            R"({"folder":"epochs-deleted-0","files":{"00000000000000000036.timeindex":24},)"
            R"("segments":[{"file":"00000000000000000036.timeindex","baseOffset":36,"size":24,)"
            R"("timeIndex":)" +
                whole["segments"].back()["timeIndex"].dump() + R"(}],"damaged":[]})");
  EXPECT_EQ(dump("txn-interleaved-0/00000000000000000000.txnindex"),
            R"({"folder":"txn-interleaved-0","files":{"00000000000000000000.txnindex":68},)"
            R"("segments":[{"file":"00000000000000000000.txnindex","baseOffset":0,"size":68,)"
            R"("txnIndex":[{"version":0,"producerId":2,"firstOffset":4,"lastOffset":9,)"
            R"("lastStableOffset":0},{"version":0,"producerId":1,"firstOffset":0,)"
            R"("lastOffset":11,"lastStableOffset":10}]}],"damaged":[]})");
  EXPECT_EQ(
      dump_text(posix_file_system(), dump_data_folder("rolls-lz4-0/00000000000000000036.index"))
          .find("\noffset: "),
      dump_data_folder("Dumping rolls-lz4-0/00000000000000000036.index").size());
}

TEST(DumpLog, WritesNothing) {
  CopiedFolder folder("crash-0");
  const std::uint64_t before = folder.files.operations();

  folder.json();
  folder.text();

  EXPECT_EQ(folder.files.operations(), before);
}

TEST(DumpLog, SaysWhyThereIsNothingToDump) {
  weir::testing::MemoryFileSystem files;
  ASSERT_TRUE(files.create_directories("/other/program").ok());
  testing::put_file(files, "/other/program/notes.txt", "hello");
  const auto error_of = [&](const std::string& path) {
    return dump_log(files, path, {}, [](std::string_view) { FAIL() << "no output"; }).error();
  };

  EXPECT_EQ(error_of("/nowhere").code(), Errc::kNotFound);
  EXPECT_NE(error_of("/nowhere").message().find("/nowhere"), std::string::npos);
  EXPECT_EQ(error_of("/other/program").code(), Errc::kInvalidArgument);
  EXPECT_NE(error_of("/other/program").message().find("/other/program is no partition folder"),
            std::string::npos);
  EXPECT_EQ(error_of("/other/program/notes.txt").code(), Errc::kInvalidArgument);
}

TEST(DumpLog, FailsWhenASegmentCannotBeRead) {
  CopiedFolder folder("rolls-lz4-0");
  folder.files.set_fault([](auto operation, const std::string& path) {
    const bool hit = operation == weir::testing::MemoryFileSystem::Operation::kRead &&
                     path.ends_with("00000000000000000036.log");
    return hit ? Status(Error(Errc::kIo, "read " + path + ": errno 5")) : Status();
  });

  std::string written;
  const Status status = dump_log(folder.files, folder.path(), {.json = true, .records = true},
                                 [&](std::string_view piece) { written += piece; });

  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::kIo);
  EXPECT_EQ(written, "") << "half an object is of no use";
}

TEST(DumpLog, ListsOtherFilesThatCannotBeReadAndGoesOn) {
  CopiedFolder folder("crash-0");
  std::string snapshot = folder.read("00000000000000000068.snapshot");
  snapshot.back() = static_cast<char>(snapshot.back() ^ 1);
  folder.write("00000000000000000068.snapshot", snapshot);
  folder.write("leader-epoch-checkpoint", "garbage");
  folder.write("partition.metadata", "version: 1\ntopic_id: AAAAAAAAAAEAAAAAAAAAAg");
  folder.write("00000000000000000140.index", folder.read("00000000000000000140.index") + "abc");
  folder.write("notes.txt", "not Kafka's");

  const Json json = folder.json();
  const std::string text = folder.text();

  EXPECT_FALSE(json.contains("leaderEpochs"));
  EXPECT_FALSE(json.contains("partitionMetadata"));
  EXPECT_FALSE(json["producerSnapshots"].contains("00000000000000000068.snapshot"));
  EXPECT_TRUE(json["producerSnapshots"].contains("00000000000000000140.snapshot"));
  EXPECT_EQ(json["files"]["notes.txt"], 11);
  EXPECT_EQ(json["segments"][2]["offsetIndex"].size(), 9U);
  ASSERT_EQ(json["damagedFiles"].size(), 4U);
  EXPECT_EQ(json["damagedFiles"][0].dump(),
            R"({"file":"leader-epoch-checkpoint","reason":"its first line is no version"})");
  EXPECT_EQ(json["damagedFiles"][1]["reason"], "its version is 1, known is 0");
  EXPECT_EQ(json["damagedFiles"][2]["file"], "00000000000000000068.snapshot");
  EXPECT_EQ(json["damagedFiles"][3].dump(),
            R"({"file":"00000000000000000140.index","reason":)"
            R"("75 bytes are no multiple of 8: the last 3 are left out"})");
  EXPECT_NE(text.find("140.snapshot\nproducerId: "), std::string::npos);
  EXPECT_NE(text.find("68.snapshot\nDamaged: reason: its crc is "), std::string::npos);
  EXPECT_NE(text.find("Damaged: reason: 75 bytes are no multiple of 8"), std::string::npos);
}

TEST(DumpLog, SkipsTheZeroesOfAPreallocatedIndex) {
  CopiedFolder folder("epochs-deleted-0");
  const Json expected = folder.json()["segments"];
  const std::string zeroes(1200, '\0');
  const std::string index = "00000000000000000036";
  folder.write(index + ".index", folder.read(index + ".index") + zeroes);
  folder.write(index + ".timeindex", folder.read(index + ".timeindex") + zeroes);

  const Json json = folder.json();

  EXPECT_EQ(json["segments"], expected);
  EXPECT_EQ(json["files"][index + ".timeindex"], 1224);
  EXPECT_FALSE(json.contains("damagedFiles"));
}

// cases.json says what was done to them.
TEST(DumpLog, ShowsWhereTheLogContradictsAnIndex) {
  const std::string root = WEIR_TEST_DATA "/log/crash-small/";

  const Json json = dump_json(posix_file_system(), root + "index-lying");
  const std::string text = dump_text(posix_file_system(), root + "index-lying");

  const std::string reason = "entry 2 (offset 92, position 1911): no batch begins there";
  EXPECT_EQ(json["damagedFiles"].dump(),
            R"([{"file":"00000000000000000068.index","reason":")" + reason + R"("}])");
  EXPECT_NE(text.find("\nDamaged: reason: " + reason + "\nDumping "), std::string::npos);
  EXPECT_EQ(text.find("Damaged: "), text.rfind("Damaged: "));
  EXPECT_FALSE(dump_json(posix_file_system(), root + "index-truncated").contains("damagedFiles"));
}

TEST(DumpLog, ChecksASingleIndexAgainstTheLogBesideIt) {
  const std::string path =
      WEIR_TEST_DATA "/log/crash-small/timeindex-lying-clean-marker/00000000000000000068.timeindex";

  EXPECT_EQ(dump_json(posix_file_system(), path)["damagedFiles"].size(), 1U);
  EXPECT_NE(dump_text(posix_file_system(), path).find("\nDamaged: reason: entry 1 "),
            std::string::npos);
}

TEST(DumpLog, ShowsEpochsAndTheTopicsIdAsText) {
  const Json expected = Json::parse(testing::file_text(dump_data_folder("epochs-deleted-0.json")));
  std::string epochs;
  for (const Json& epoch : expected["leaderEpochs"]) {
    epochs +=
        "epoch: " + epoch["epoch"].dump() + " startOffset: " + epoch["startOffset"].dump() + "\n";
  }
  const std::string folder = dump_data_folder("epochs-deleted-0");

  const std::string text = dump_text(posix_file_system(), folder);

  EXPECT_NE(text.find("Dumping " + folder + "/leader-epoch-checkpoint\n" + epochs + "Dumping " +
                      folder + "/partition.metadata\nversion: 0 topicId: " +
                      expected["partitionMetadata"]["topicId"].get<std::string>() + "\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(dump_text(posix_file_system(), folder + "/leader-epoch-checkpoint"),
            "Dumping " + folder + "/leader-epoch-checkpoint\n" + epochs);
}

// The offsets are those that OffsetCheckpointFile read.
TEST(DumpLog, ShowsTheCheckpointsOfALogDirectory) {
  const std::string folder = WEIR_TEST_DATA "/log/log-directory";

  const Json json = dump_json(posix_file_system(), folder);
  const std::string text = dump_text(posix_file_system(), folder + "/log-start-offset-checkpoint");

  const std::string all =
      R"({"dots.and_under-scores-0":1,"epochs-0":12,"epochs-deleted-0":42,"epochs-empty-0":0,)"
      R"("name-with-3-0":0,"name-with-3-1":4,"name-with-3-2":2})";
  EXPECT_EQ(json["checkpoints"].dump(),
            R"({"cleaner-offset-checkpoint":{},"log-start-offset-checkpoint":)"
            R"({"epochs-deleted-0":42},"recovery-point-offset-checkpoint":)" +
                all + R"(,"replication-offset-checkpoint":)" + all + "}");
  EXPECT_EQ(text, "Dumping " + folder +
                      "/log-start-offset-checkpoint\ntopic: epochs-deleted partition: 0 offset: "
                      "42\n");
  EXPECT_FALSE(json.contains("records"));
}

TEST(DumpLog, NamesSnapshotsOfTheMetadataLogByOffsetAndEpoch) {
  weir::testing::MemoryFileSystem files;
  ASSERT_TRUE(files.create_directories("__cluster_metadata-0").ok());
  const std::string name = "00000000000000000008-0000000003.checkpoint";
  testing::put_file(files, "__cluster_metadata-0/" + name,
                    testing::file_text(WEIR_TEST_DATA "/log/log-directory/bootstrap.checkpoint"));

  EXPECT_TRUE(dump_text(files, "__cluster_metadata-0")
                  .starts_with("Dumping __cluster_metadata-0/" + name +
                               "\nSnapshot end offset: 8, epoch: 3\nbaseOffset: 0 "));
  EXPECT_EQ(dump_json(files, "__cluster_metadata-0")["metadataSnapshots"].dump(),
            R"([{"file":")" + name + R"(","endOffset":8,"epoch":3}])");
}

TEST(DumpLog, NamesSmallFilesThatCannotBeRead) {
  weir::testing::MemoryFileSystem files;
  const std::string checkpoint = "recovery-point-offset-checkpoint";
  for (const std::string text : {"garbage", "1\n0\n", "0\n2\nt 0 1\n", "0\n1\nt 0\n"}) {
    testing::put_file(files, checkpoint, text);
    const Json json = dump_json(files, checkpoint);
    ASSERT_EQ(json["damagedFiles"].size(), 1U) << text;
    EXPECT_EQ(json["damagedFiles"][0]["file"], checkpoint);
    EXPECT_NE(dump_text(files, checkpoint).find("\nDamaged: reason: "), std::string::npos) << text;
  }
  testing::put_file(files, "bootstrap.checkpoint", "garbage");
  EXPECT_EQ(dump_json(files, "bootstrap.checkpoint")["damaged"].size(), 1U);
}

TEST(DumpLog, TakesAnyBytesInAnyFile) {
  const std::uint64_t seed = entropy_seed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Rng rng(seed);
  for (const char* name : {"txn-interleaved-0", "__consumer_offsets-0"}) {
    CopiedFolder folder(name);
    const std::vector<DirectoryEntry> entries = folder.files.list(folder.path()).value();
    for (int round = 0; round < 100; ++round) {
      const std::string& file = entries[rng.below(entries.size())].name;
      const std::string whole = folder.read(file);
      std::string bytes =
          whole.substr(0, rng.below(3) == 0 ? rng.below(whole.size() + 1) : whole.npos);
      for (int i = 0; i < 4 && !bytes.empty(); ++i) {
        bytes[rng.below(bytes.size())] = static_cast<char>(rng.below(256));
      }
      folder.write(file, bytes);
      EXPECT_TRUE(folder.json().contains("files")) << file;
      EXPECT_NE(folder.text(), "") << file;
      folder.write(file, whole);
    }
  }
}

}  // namespace
}  // namespace weir::log
