#include "log/partition/checkpoint_file.h"
#include "log/record/batch_builder.h"
#include "log/verify/partition_check.h"
#include "tests/log/dump/dump_support.h"
#include "tests/support/log_fixture.h"

#include <weir/log/log_verify.h>
#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>
#include <weir/runtime/rng.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace weir::log {
namespace {

using testing::CopiedFolder;
using testing::dump_data_folder;
using testing::get_file;
using testing::Json;
using testing::put_file;

constexpr std::string_view kSecondLog = "00000000000000000068.log";
constexpr std::string_view kLastLog = "00000000000000000276.log";

// "damage 00000000000000000068.log 2923-3159 106-108"; "-" where a place is not known.
std::string short_text(const VerifyFinding& finding) {
  const auto place = [](const auto& from, const auto& to, const auto& number) {
    return from ? fmt::format(" {}-{}", number(*from), to ? fmt::to_string(number(*to)) : "")
                : std::string();
  };
  return fmt::format(
      "{} {}{}{}", finding.severity == VerifySeverity::kDamage ? "damage" : "note",
      finding.file.substr(finding.file.rfind('/') + 1),
      place(finding.position, finding.end_position, [](std::uint64_t at) { return at; }),
      place(finding.first_offset, finding.next_offset, [](Offset at) { return at.value(); }));
}

std::vector<std::string> short_texts(const std::vector<VerifyFinding>& findings) {
  std::vector<std::string> texts;
  for (const VerifyFinding& finding : findings) {
    texts.push_back(short_text(finding));
  }
  return texts;
}

PartitionCheck check(FileSystem& files, const std::string& path,
                     const PartitionCheckOptions& options = {}) {
  Result<PartitionCheck> checked = check_partition(files, path, options);
  EXPECT_TRUE(checked.ok()) << (checked.ok() ? "" : checked.error().to_string());
  return checked.ok() ? *std::move(checked) : PartitionCheck();
}

// --- What Kafka left behind, and what was damaged by hand

struct DamagedCase {
  std::string name;
  std::vector<std::string> findings;
};

// Worked by hand from cases.json (what was done) and its intact ranges: the damaged batch is 106 to
// 107 of the second segment, at 2923 to 3159.
std::vector<DamagedCase> damaged_cases() {
  const std::string batch = fmt::format("damage {} 2923-3159 106-108", kSecondLog);
  return {
      {"as-killed", {}},
      {"cleaned-and-deleted-left",
       {"note 00000000000000000000.log.deleted", "note 00000000000000000068.log.cleaned"}},
      {"flip-base-offset-2-40", {batch}},
      {"flip-base-offset-256", {batch}},
      {"flip-base-offset-low", {batch}},
      {"flip-crc", {batch}},
      {"flip-leader-epoch", {batch}},
      {"flip-magic", {batch}},
      {"flip-old-body", {batch}},
      {"flip-old-body-below-recovery-point", {batch}},
      {"flip-old-body-clean-marker", {batch}},
      {"garbage-appended", {fmt::format("note {} 4713-5713 362-", kLastLog)}},
      // A start after a crash makes it anew; after a clean close nobody would.
      {"index-lying", {"note 00000000000000000068.index 16- 92-"}},
      {"index-lying-clean-marker", {"damage 00000000000000000068.index 16- 92-"}},
      // Kafka's reader has made an empty file of it: nothing in it is wrong.
      {"index-missing", {}},
      {"index-missing-clean-marker", {}},
      {"index-odd-size-clean-marker", {}},  // and cut the odd bytes off
      // The fourth no longer rises above the third.
      {"index-position-past-end-clean-marker", {"damage 00000000000000000068.index 24- 101-"}},
      {"index-truncated", {}},  // fewer entries make a longer walk, not a wrong one
      {"index-truncated-clean-marker", {}},
      // The batch at 282 was whole up to the zeroes.
      {"last-4k-zeroed", {fmt::format("note {} 407-4713 282-", kLastLog)}},
      {"last-batch-twice", {fmt::format("damage {} 4713-4792 362-", kLastLog)}},
      {"leader-epoch-garbled", {"damage leader-epoch-checkpoint"}},
      {"leader-epoch-missing-clean-marker", {"note leader-epoch-checkpoint"}},
      {"length-negative", {batch}},
      {"length-too-big", {batch}},
      {"middle-segment-missing", {"damage 00000000000000000140.log 68-140"}},
      {"only-logs",
       {"note 00000000000000000000.index", "note 00000000000000000000.timeindex",
        "note 00000000000000000068.index", "note 00000000000000000068.timeindex",
        "note 00000000000000000140.index", "note 00000000000000000140.timeindex",
        "note 00000000000000000207.index", "note 00000000000000000207.timeindex",
        "note leader-epoch-checkpoint", "note partition.metadata"}},
      {"partition-metadata-missing-clean-marker", {"note partition.metadata"}},
      {"snapshot-damaged-clean-marker", {}},   // the copies have no snapshots; see below
      {"snapshots-missing-clean-marker", {}},  // made anew by a scan
      {"swap-left", {"note 00000000000000000068.log.swap"}},
      {"tail-cut-in-body", {fmt::format("note {} 4634-4708 361-", kLastLog)}},
      // 361 was durable: the marker and the recovery point say so.
      {"tail-cut-in-body-clean-marker", {fmt::format("damage {} 4634-4708 361-", kLastLog)}},
      {"tail-cut-in-header", {fmt::format("note {} 4634-4664 361-", kLastLog)}},
      {"tail-cut-in-length", {fmt::format("note {} 4634-4644 361-", kLastLog)}},
      {"timeindex-lying-clean-marker", {"damage 00000000000000000068.timeindex 12- 84-"}},
      {"timeindex-missing", {"note 00000000000000000068.timeindex"}},
      {"timeindex-missing-clean-marker", {"note 00000000000000000068.timeindex"}},
      {"zeros-appended", {fmt::format("note {} 4713-12905 362-", kLastLog)}},
  };
}

TEST(PartitionCheck, TellsDamageFromWhatIsNormalInEveryImage) {
  const std::string root = WEIR_TEST_DATA "/log/crash-small";
  const Json cases = Json::parse(testing::file_text(root + "/cases.json"))["cases"];
  const std::vector<DamagedCase> expected = damaged_cases();
  ASSERT_EQ(cases.size(), expected.size());
  for (const Json& one : cases) {
    const std::string name = one["name"];
    SCOPED_TRACE(name);
    const auto wanted = std::find_if(expected.begin(), expected.end(),
                                     [&](const DamagedCase& it) { return it.name == name; });
    ASSERT_NE(wanted, expected.end());
    PartitionCheckOptions options;
    options.clean = one["clean"];
    options.recovery_point = Offset(one["recoveryPoint"].get<std::int64_t>());

    const PartitionCheck result = check(posix_file_system(), join_path(root, name), options);

    EXPECT_EQ(short_texts(result.findings), wanted->findings);
    const bool has_damage =
        std::any_of(wanted->findings.begin(), wanted->findings.end(),
                    [](const std::string& finding) { return finding.starts_with("damage"); });
    EXPECT_EQ(result.totals.sound(), !has_damage);
    std::uint64_t intact = 0;
    for (const Json& range : one["intact"]) {
      intact += range[1].get<std::uint64_t>() - range[0].get<std::uint64_t>() + 1;
    }
    // The batch whose leader epoch is wrong has its records.
    EXPECT_EQ(result.totals.records, name == "flip-leader-epoch" ? 362U : intact);
  }
}

// The offsets behind it up to the next segment are its, not those of a lost file.
TEST(PartitionCheck, FindsDamageAtTheEndOfASealedSegmentOnce) {
  CopiedFolder folder("crash-0");
  const std::string name = "00000000000000000000.log";
  const Json dumped = folder.json();
  Json last;
  for (const Json& batch : dumped["batches"]) {
    last = batch["segment"] == name ? batch : last;
  }
  std::string bytes = folder.read(name);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  folder.write(name, bytes);

  const std::vector<std::string> findings =
      short_texts(check(folder.files, folder.path()).findings);

  ASSERT_EQ(findings.size(), 2U) << "with the one that the folder had";
  EXPECT_EQ(findings[0], fmt::format("damage {} {}-{} {}-68", name, last["position"].dump(),
                                     bytes.size(), last["baseOffset"].dump()));
}

// Written by Kafka and not damaged: nothing is wrong, whatever is special about them.
TEST(PartitionCheck, FindsNoDamageInWhatKafkaWrote) {
  const std::vector<std::string> folders = {
      "dump/codec-gzip-0",          "dump/rolls-lz4-0",
      "dump/txn-segments-0",        "dump/txn-interleaved-0",
      "dump/txn-multi-1",           "dump/__consumer_offsets-0",
      "dump/compact-txn-0",         "dump/compact-idem-0",
      "dump/epochs-deleted-0",      "dump/epochs-empty-0",
      "codecs/zstd/codec-zstd-0",   "codecs/snappy/codec-snappy-0",
      "codecs/mixed/codec-mixed-0", "offsets-topic/__consumer_offsets-1"};
  for (const std::string& folder : folders) {
    SCOPED_TRACE(folder);
    PartitionCheckOptions options;
    options.clean = true;

    const PartitionCheck result =
        check(posix_file_system(), std::string(WEIR_TEST_DATA "/log/") + folder, options);

    EXPECT_TRUE(result.totals.sound()) << ::testing::PrintToString(short_texts(result.findings));
    EXPECT_GT(result.totals.segments, 0U);
  }
}

TEST(PartitionCheck, ReportsGapsOfCompactionAsNotes) {
  const PartitionCheck result =
      check(posix_file_system(), dump_data_folder("compact-txn-0"), {.clean = true});

  const auto holes = std::count_if(
      result.findings.begin(), result.findings.end(),
      [](const VerifyFinding& finding) { return finding.what.find("hole") != std::string::npos; });
  EXPECT_GT(holes, 0);
  EXPECT_TRUE(result.totals.sound());
}

TEST(PartitionCheck, CountsWhatItSaw) {
  const Json expected = Json::parse(testing::file_text(dump_data_folder("rolls-lz4-0.json")));

  const PartitionCheck result = check(posix_file_system(), dump_data_folder("rolls-lz4-0"));

  EXPECT_EQ(result.totals.segments, expected["segments"].size());
  EXPECT_EQ(result.totals.batches, expected["batches"].size());
  EXPECT_EQ(result.totals.records, expected["records"].size());
  EXPECT_EQ(result.log_end.value(), expected["nextOffsetInFiles"]);
  EXPECT_EQ(result.totals.partitions, 1U);
}

TEST(PartitionCheck, ReportsOldMessageSetsAsNotes) {
  const PartitionCheck result = check(posix_file_system(), dump_data_folder("old-v0-v1-gzip-v2-0"));

  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(short_text(result.findings[0]), "note 00000000000000000000.log 0-267 0-8");
  EXPECT_TRUE(result.totals.sound());
}

// --- Files beside the segments

TEST(PartitionCheck, FindsASnapshotWithAWrongCrc) {
  CopiedFolder folder("txn-interleaved-0");
  const std::string name = "00000000000000000016.snapshot";
  std::string bytes = folder.read(name);
  bytes[20] = static_cast<char>(bytes[20] ^ 1);
  folder.write(name, bytes);

  const PartitionCheck result = check(folder.files, folder.path(), {.clean = true});

  EXPECT_EQ(short_texts(result.findings), std::vector<std::string>{"damage " + name});
}

// What hangs on offsets from the recovery point up was not synced when it crashed.
TEST(PartitionCheck, CallsIndexesAndSnapshotsThatACrashMayHaveTornNotes) {
  CopiedFolder folder("rolls-lz4-0");
  const std::string index = "00000000000000000036.index";
  const std::string snapshot = "00000000000000000036.snapshot";
  folder.write(index, "abc");
  folder.write(snapshot, "abc");
  const auto findings = [&](const PartitionCheckOptions& options) {
    return short_texts(check(folder.files, folder.path(), options).findings);
  };
  const std::vector<std::string> notes = {"note " + snapshot, "note " + index};
  const std::vector<std::string> damage = {"damage " + snapshot, "damage " + index};

  EXPECT_EQ(findings({}), notes);
  EXPECT_EQ(findings({.recovery_point = Offset(30)}), notes);
  EXPECT_EQ(findings({.recovery_point = Offset(206)}), damage);
  EXPECT_EQ(findings({.clean = true}), damage);
}

TEST(PartitionCheck, FindsAMetadataFileThatIsNone) {
  CopiedFolder folder("txn-interleaved-0");
  folder.write("partition.metadata", "topic_id: x");

  EXPECT_EQ(short_texts(check(folder.files, folder.path(), {.clean = true}).findings),
            std::vector<std::string>{"damage partition.metadata"});
}

TEST(PartitionCheck, FindsATransactionIndexThatNamesNoMarker) {
  CopiedFolder folder("txn-interleaved-0");
  const std::string name = "00000000000000000000.txnindex";
  std::string bytes = folder.read(name);  // producer 2: 4 to 9; producer 1: 0 to 11
  bytes[18 + 7] = 8;                      // the first one's marker
  folder.write(name, bytes);

  const PartitionCheck result = check(folder.files, folder.path(), {.clean = true});

  ASSERT_EQ(result.findings.size(), 1U);
  EXPECT_EQ(short_text(result.findings[0]), "damage " + name + " 9-");
  EXPECT_EQ(result.findings[0].what,
            "the transaction of producer 2 that was aborted at 9 is not "
            "in it");
}

TEST(PartitionCheck, FindsATransactionIndexOfAnotherProducer) {
  CopiedFolder folder("txn-interleaved-0");
  const std::string name = "00000000000000000000.txnindex";
  std::string bytes = folder.read(name);
  bytes[2 + 7] = 7;  // producer 2
  folder.write(name, bytes);

  const PartitionCheck result = check(folder.files, folder.path(), {.clean = true});

  ASSERT_EQ(result.findings.size(), 1U);
  EXPECT_EQ(result.findings[0].what, "the marker at 9 is of producer 2, the entry says 7");
}

TEST(PartitionCheck, FindsATransactionIndexThatLacksOne) {
  CopiedFolder folder("txn-interleaved-0");
  const std::string name = "00000000000000000000.txnindex";
  folder.write(name, folder.read(name).substr(0, 34));

  const PartitionCheck result = check(folder.files, folder.path(), {.clean = true});

  EXPECT_EQ(short_texts(result.findings), std::vector<std::string>{"damage " + name + " 11-"});
}

TEST(PartitionCheck, FindsATimeIndexThatIsTooLowWithoutFalling) {
  CopiedFolder folder("rolls-lz4-0");
  const std::string name = "00000000000000000000.timeindex";
  std::string bytes = folder.read(name);
  store_be(bytes.data() + bytes.size() - 12,
           load_be<std::int64_t>(bytes.data() + bytes.size() - 12) - 1);
  folder.write(name, bytes);

  const PartitionCheck result = check(folder.files, folder.path(), {.clean = true});

  ASSERT_EQ(result.findings.size(), 1U);
  EXPECT_EQ(result.findings[0].severity, VerifySeverity::kDamage);
  EXPECT_TRUE(result.findings[0].file.ends_with(name));
  EXPECT_EQ(result.findings[0].position, bytes.size() - 12);
}

TEST(PartitionCheck, FindsAnIndexOfAnOddSize) {
  CopiedFolder folder("rolls-lz4-0");
  const std::string name = "00000000000000000000.index";
  folder.write(name, folder.read(name) + "abc");

  const PartitionCheck result = check(folder.files, folder.path(), {.clean = true});

  EXPECT_EQ(short_texts(result.findings), std::vector<std::string>{"damage " + name});
}

// A live broker's: the rest of the file is zeroes.
TEST(PartitionCheck, TakesAPreallocatedIndexForWhatItIs) {
  CopiedFolder folder("rolls-lz4-0");
  const std::string name = "00000000000000000000.index";
  folder.write(name, folder.read(name) + std::string(800, '\0'));

  EXPECT_TRUE(check(folder.files, folder.path()).findings.empty());
}

TEST(PartitionCheck, FindsASnapshotOfTheMetadataLogThatIsCutShort) {
  weir::testing::MemoryFileSystem files;
  ASSERT_TRUE(files.create_directories("__cluster_metadata-0").ok());
  const std::string path = "__cluster_metadata-0/00000000000000000008-0000000003.checkpoint";
  const std::string bytes =
      testing::file_text(WEIR_TEST_DATA "/log/log-directory/bootstrap.checkpoint");
  const auto findings = [&](const std::string& snapshot) {
    put_file(files, path, snapshot);
    return short_texts(check(files, "__cluster_metadata-0").findings);
  };
  const std::string name = "damage 00000000000000000008-0000000003.checkpoint";

  EXPECT_TRUE(findings(bytes).empty());
  EXPECT_EQ(findings(bytes.substr(0, 336)), std::vector<std::string>{name});  // no footer
  EXPECT_EQ(findings(bytes.substr(0, 400)), std::vector<std::string>{name + " 336-400 7-"});
  EXPECT_EQ(findings(""), std::vector<std::string>{name});
}

// --- Batches made by hand

std::string batch_at(std::int64_t base, int records, std::int32_t epoch, std::int64_t time = 1000) {
  BatchBuilder builder(1U << 20U);
  for (int i = 0; i < records; ++i) {
    EXPECT_TRUE(builder.append(RecordRef{{}, ByteView("value"), time, {}}));
  }
  const SharedBytes sealed = builder.seal();
  std::string bytes(sealed.view());
  store_be(bytes.data(), base);
  store_be(bytes.data() + 12, epoch);
  return bytes;
}

class HandMadePartition {
 public:
  HandMadePartition() { EXPECT_TRUE(files.create_directories("t-0").ok()); }

  void put(const std::string& name, const std::string& bytes) {
    put_file(files, join_path("t-0", name), bytes);
  }
  std::vector<std::string> findings(const PartitionCheckOptions& options = {}) {
    put("partition.metadata", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ");
    return short_texts(check(files, "t-0", options).findings);
  }

  weir::testing::MemoryFileSystem files;
};

TEST(PartitionCheck, FindsAnEpochThatFallsBackWithoutACheckpoint) {
  HandMadePartition partition;
  const std::string first = batch_at(0, 2, 3);
  const std::string second = batch_at(2, 1, 2);
  partition.put("00000000000000000000.log", first + second);

  EXPECT_EQ(partition.findings(),
            (std::vector<std::string>{fmt::format("damage 00000000000000000000.log {}-{} 2-3",
                                                  first.size(), first.size() + second.size()),
                                      "note leader-epoch-checkpoint"}));
}

// A crash may have kept the newest entry out of the file; a clean close may not.
TEST(PartitionCheck, AllowsTheNewestEpochToBeMissingAfterACrash) {
  HandMadePartition partition;
  const std::string first = batch_at(0, 2, 0);
  const std::string second = batch_at(2, 1, 2);
  partition.put("00000000000000000000.log", first + second);
  partition.put("leader-epoch-checkpoint", "0\n1\n0 0\n");
  const std::string place =
      fmt::format("00000000000000000000.log {}-{} 2-3", first.size(), first.size() + second.size());

  EXPECT_EQ(partition.findings(), std::vector<std::string>{"note " + place});
  const std::vector<std::string> clean = partition.findings({.clean = true});
  EXPECT_NE(std::find(clean.begin(), clean.end(), "damage " + place), clean.end());
}

TEST(PartitionCheck, MergesNeighboursWithTheSameWrongEpoch) {
  HandMadePartition partition;
  partition.put("00000000000000000000.log",
                batch_at(0, 1, 0) + batch_at(1, 1, 5) + batch_at(2, 1, 5) + batch_at(3, 1, 0));
  partition.put("leader-epoch-checkpoint", "0\n1\n0 0\n");
  const std::size_t size = batch_at(0, 1, 0).size();

  EXPECT_EQ(partition.findings(),
            std::vector<std::string>{
                fmt::format("damage 00000000000000000000.log {}-{} 1-3", size, 3 * size)});
}

TEST(PartitionCheck, FindsDurableOffsetsThatAreNotThere) {
  HandMadePartition partition;
  partition.put("00000000000000000000.log", batch_at(0, 2, 0));
  partition.put("leader-epoch-checkpoint", "0\n1\n0 0\n");

  EXPECT_EQ(partition.findings({.recovery_point = Offset(5)}),
            std::vector<std::string>{"damage t-0 2-5"});
  EXPECT_TRUE(partition.findings({.recovery_point = Offset(2)}).empty());
  // DeleteRecords up to there.
  EXPECT_TRUE(partition.findings({.recovery_point = Offset(5), .log_start = Offset(5)}).empty());
}

// A hole between two files that no compaction made.
TEST(PartitionCheck, CallsAHoleDamageUnlessThePartitionIsCompacted) {
  HandMadePartition partition;
  partition.put("00000000000000000000.log", batch_at(0, 2, 0));
  partition.put("00000000000000000009.log", batch_at(9, 1, 0));
  partition.put("leader-epoch-checkpoint", "0\n1\n0 0\n");
  partition.put("00000000000000000000.index", "");
  partition.put("00000000000000000000.timeindex", "");

  EXPECT_EQ(partition.findings(), std::vector<std::string>{"damage 00000000000000000009.log 2-9"});
  EXPECT_EQ(partition.findings({.compacted = true}),
            std::vector<std::string>{"note 00000000000000000009.log 2-9"});
}

TEST(PartitionCheck, FindsABatchOfWhichTheRecordsCannotBeDecoded) {
  HandMadePartition partition;
  std::string bad = batch_at(0, 2, 0);
  bad[61 + 3] = 40;  // the first record's offset delta, far behind the batch's last
  store_be(bad.data() + 17, crc32c(ByteView(bad).substr(21)));
  partition.put("00000000000000000000.log", bad + batch_at(2, 1, 0));
  partition.put("leader-epoch-checkpoint", "0\n1\n0 0\n");

  EXPECT_EQ(partition.findings(), std::vector<std::string>{fmt::format(
                                      "damage 00000000000000000000.log 0-{} 0-2", bad.size())});
}

TEST(PartitionCheck, KeepsFindingsBoundedAndCountsTheRest) {
  HandMadePartition partition;
  std::string log;
  for (int i = 0; i < 50; ++i) {
    log += batch_at(2 * i, 1, 0);      // good
    log += batch_at(2 * i + 1, 1, 0);  // bad
    log[log.size() - 1] = static_cast<char>(log.back() ^ 1);
  }
  log += batch_at(100, 1, 0);
  partition.put("00000000000000000000.log", log);

  const PartitionCheck result = check(partition.files, "t-0", {.findings_max = 10});

  EXPECT_EQ(result.findings.size(), 11U);
  EXPECT_EQ(result.totals.damage, 50U);
  EXPECT_EQ(result.findings.back().what, "40 more of damage and 2 more notes are left out");
}

TEST(PartitionCheck, TakesAnyBytesWithoutHarm) {
  const std::uint64_t seed = entropy_seed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Rng rng(seed);
  CopiedFolder folder("txn-interleaved-0");
  const std::vector<DirectoryEntry> entries = folder.files.list(folder.path()).value();
  for (int round = 0; round < 300; ++round) {
    const std::string& name = entries[rng.below(entries.size())].name;
    const std::string whole = folder.read(name);
    std::string bytes = whole;
    if (rng.below(3) == 0) {
      bytes.resize(rng.below(bytes.size() + 1));
    }
    for (int i = 0; i < 4 && !bytes.empty(); ++i) {
      bytes[rng.below(bytes.size())] = static_cast<char>(rng.below(256));
    }
    folder.write(name, bytes);
    const Result<PartitionCheck> result = check_partition(folder.files, folder.path(), {});
    EXPECT_TRUE(result.ok() || result.error().code() == Errc::kIo) << name;
    folder.write(name, whole);
  }
}

// --- Directories

struct Verified {
  std::vector<std::string> findings;
  VerifyTotals totals;
};

Verified verify(FileSystem& files, const std::string& path) {
  Verified verified;
  const Result<VerifyTotals> totals = verify_log(files, path, [&](const VerifyFinding& finding) {
    verified.findings.push_back(short_text(finding));
  });
  EXPECT_TRUE(totals.ok()) << (totals.ok() ? "" : totals.error().to_string());
  verified.totals = totals.ok() ? *totals : VerifyTotals();
  return verified;
}

using weir::testing::LogFixture;

void fill(LogFixture& fixture) {
  fixture.open();
  fixture.create("lines", 2);
  fixture.send("lines", {"a", "b", "c"}, 0);
  fixture.send("lines", {"d"}, 1);
}

// Batches that the power cut may tear.
void send_unacknowledged(LogFixture& fixture, Rng& rng) {
  auto sink = fixture.log->make_sink({}).value();
  const SinkTopicInfo info = sink->open_topic("lines").value();
  for (int i = 0; i < 5; ++i) {
    const std::string value(rng.below(300), 'u');
    const RecordRef record{{}, ByteView(value), fixture.clock.now(), {}};
    EXPECT_TRUE(sink->send(info.handle, PartitionId(0), {&record, 1}).ok());
  }
}

TEST(VerifyLog, FindsAClosedDirectorySound) {
  LogFixture fixture;
  fill(fixture);
  fixture.close();

  for (const char* path : {"data", "data/", "data/log"}) {
    const Verified verified = verify(*fixture.files, path);
    EXPECT_TRUE(verified.findings.empty()) << ::testing::PrintToString(verified.findings);
    EXPECT_EQ(verified.totals.partitions, 3U);  // with the metadata log
    EXPECT_GE(verified.totals.records, 4U);
  }
}

// Written by Kafka, after a recovery and a clean stop; the sums are those of Kafka's own reading.
TEST(VerifyLog, FindsALogDirectoryOfKafkaSound) {
  const std::string path = WEIR_TEST_DATA "/log/log-directory";

  const Verified verified = verify(posix_file_system(), path);

  EXPECT_TRUE(verified.findings.empty()) << ::testing::PrintToString(verified.findings);
  EXPECT_EQ(verified.totals.partitions, 7U);
  EXPECT_EQ(verified.totals.segments, 7U);
  EXPECT_EQ(verified.totals.batches, 13U);
  EXPECT_EQ(verified.totals.records, 25U);
  EXPECT_EQ(verify(posix_file_system(), path + "/name-with-3-1").totals.partitions, 1U);
}

TEST(VerifyLog, FindsACrashedDirectorySound) {
  LogFixture fixture;
  fill(fixture);
  fixture.crash();

  EXPECT_TRUE(verify(*fixture.files, "data").totals.sound());
}

TEST(VerifyLog, ReadsBesideTheHolder) {
  LogFixture fixture;
  fill(fixture);

  EXPECT_TRUE(verify(*fixture.files, "data").totals.sound());
  fixture.close();
}

// What a power cut leaves of topics that sync is normal, before a start and behind it; and a clean
// close leaves nothing to say.
TEST(VerifyLog, FindsNoDamageAfterPowerCuts) {
  const std::uint64_t seed = entropy_seed() % 1'000'000;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (std::uint64_t i = 0; i < 20; ++i) {
    SCOPED_TRACE(seed + i);
    Rng rng(seed + i);
    LogFixture fixture(seed + i);
    fixture.open();
    fixture.create("lines", 2, {{"segment.bytes", "2000"}, {"index.interval.bytes", "100"}});
    for (int life = 0; life < 3; ++life) {
      for (std::uint64_t sends = rng.below(30); sends > 0; --sends) {
        const std::string value(rng.below(300), 'v');
        fixture.send("lines", {value, value}, static_cast<std::int32_t>(rng.below(2)));
      }
      send_unacknowledged(fixture, rng);
      fixture.cut_power();
      const Verified cut = verify(*fixture.files, "data");
      EXPECT_TRUE(cut.totals.sound()) << ::testing::PrintToString(cut.findings);
      fixture.open();
      EXPECT_TRUE(verify(*fixture.files, "data").totals.sound());
    }
    fixture.close();
    const Verified closed = verify(*fixture.files, "data");
    EXPECT_TRUE(closed.findings.empty()) << ::testing::PrintToString(closed.findings);
  }
}

// The partition folder alone: its directory says that it was closed cleanly.
TEST(VerifyLog, TakesWhatWasDurableFromTheDirectoryAround) {
  LogFixture fixture;
  fill(fixture);
  fixture.close();
  const std::string log = "data/log/lines-0/00000000000000000000.log";
  const std::string bytes = get_file(*fixture.files, log);
  put_file(*fixture.files, log, bytes.substr(0, bytes.size() - 3));

  const Verified verified = verify(*fixture.files, "data/log/lines-0");

  ASSERT_FALSE(verified.findings.empty());
  EXPECT_TRUE(verified.findings[0].starts_with("damage 00000000000000000000.log 0-"))
      << verified.findings[0];
  EXPECT_EQ(verified.totals.partitions, 1U);
}

TEST(VerifyLog, FindsACheckpointThatCannotBeRead) {
  LogFixture fixture;
  fill(fixture);
  fixture.close();
  put_file(*fixture.files, "data/log/recovery-point-offset-checkpoint", "garbage");

  EXPECT_EQ(verify(*fixture.files, "data").findings,
            std::vector<std::string>{"damage recovery-point-offset-checkpoint"});
}

TEST(VerifyLog, FindsAHighWatermarkBehindTheEndOfTheLog) {
  LogFixture fixture;
  fill(fixture);
  fixture.close();
  const std::string path = "data/log/replication-offset-checkpoint";
  OffsetCheckpoint offsets = read_offset_checkpoint(*fixture.files, path).value();
  offsets[{"lines", PartitionId(0)}] = Offset(9);
  ASSERT_TRUE(write_offset_checkpoint(*fixture.files, path, offsets).ok());

  EXPECT_EQ(verify(*fixture.files, "data").findings,
            std::vector<std::string>{"damage replication-offset-checkpoint 3-9"});
}

TEST(VerifyLog, FindsAFolderThatIsGone) {
  LogFixture fixture;
  fill(fixture);
  fixture.close();
  ASSERT_TRUE(remove_tree(*fixture.files, "data/log/lines-0").ok());

  EXPECT_EQ(verify(*fixture.files, "data").findings,
            std::vector<std::string>{"damage lines-0 0-3"});
}

TEST(VerifyLog, NotesFoldersOnTheirWay) {
  LogFixture fixture;
  fill(fixture);
  fixture.close();
  ASSERT_TRUE(fixture.files->rename("data/log/lines-1", "data/log/lines-1.0123456789-delete").ok());

  ASSERT_TRUE(fixture.files->remove_file("data/log/.kafka_cleanshutdown").ok());

  const Verified verified = verify(*fixture.files, "data");

  // A topic was deleted, then it crashed.
  EXPECT_EQ(verified.findings,
            (std::vector<std::string>{"note lines-1.0123456789-delete", "note lines-1 0-1"}));
  EXPECT_EQ(verified.totals.partitions, 2U);
}

TEST(VerifyLog, ChecksASegmentAlone) {
  CopiedFolder folder("crash-0");

  const Verified verified = verify(folder.files, folder.path_of(std::string(kSecondLog)));

  EXPECT_EQ(verified.findings,
            std::vector<std::string>{fmt::format("damage {} 2923-3159 106-108", kSecondLog)});
  EXPECT_EQ(verified.totals.segments, 1U);
}

TEST(VerifyLog, RefusesWhatIsNoLog) {
  weir::testing::MemoryFileSystem files;
  ASSERT_TRUE(files.create_directories("program").ok());
  put_file(files, "program/notes.txt", "words");
  const auto code = [&](const std::string& path) {
    const Result<VerifyTotals> totals = verify_log(files, path, [](const VerifyFinding&) {});
    return totals.ok() ? std::optional<Errc>() : std::optional(totals.error().code());
  };

  EXPECT_EQ(code("nothing"), Errc::kNotFound);
  EXPECT_EQ(code("program"), Errc::kInvalidArgument);
  EXPECT_EQ(code("program/notes.txt"), Errc::kInvalidArgument);
  put_file(files, "00000000000000000000.index", "");
  EXPECT_EQ(code("00000000000000000000.index"), Errc::kInvalidArgument);
}

TEST(VerifyLog, TakesAnEmptySegment) {
  weir::testing::MemoryFileSystem files;
  put_file(files, "00000000000000000000.log", "");

  const Verified verified = verify(files, "00000000000000000000.log");

  EXPECT_TRUE(verified.findings.empty());
  EXPECT_EQ(verified.totals.segments, 1U);
}

}  // namespace
}  // namespace weir::log
