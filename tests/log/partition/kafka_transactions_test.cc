#include "log/partition/producer_loader.h"
#include "log/segment/segment_names.h"
#include "tests/log/partition/producer_support.h"

#include <filesystem>

// Transactions as Kafka 4.3.1 wrote and served them, for transaction.version 0, 1 and 2: appended
// here batch by batch, and opened as the broker left them.

namespace weir::log {
namespace {

using testing::batches_of;
using testing::by_id;
using testing::file_text;
using testing::json_of;
using testing::kFolder;
using testing::LogOnDisk;
using testing::StoredBatch;
using Ranges = std::vector<std::vector<std::int64_t>>;

constexpr std::int64_t kEndOfTime = std::int64_t{1} << 62;

struct Case {
  int version = 0;
  std::string folder;

  std::string path() const {
    return fmt::format("producers/transactions-tv{}/{}", version, folder);
  }
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.path();
}

// By their folders: each test process lists all of them when it starts.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (int version = 0; version <= 2; ++version) {
    const std::string root =
        testing::data_folder(fmt::format("producers/transactions-tv{}", version));
    std::vector<std::string> folders;
    for (const auto& entry : std::filesystem::directory_iterator(root)) {
      if (entry.is_directory()) {
        folders.push_back(entry.path().filename().string());
      }
    }
    std::ranges::sort(folders);
    for (const std::string& folder : folders) {
      cases.push_back({version, folder});
    }
  }
  return cases;
}

nlohmann::json expected_of(const Case& one) {
  const auto all = json_of(fmt::format("producers/transactions-tv{}/expected.json", one.version));
  for (const nlohmann::json& partition : all["partitions"]) {
    if (partition["folder"] == one.folder) {
      return partition;
    }
  }
  ADD_FAILURE() << "nothing is expected of " << one.path();
  return {};
}

AppendOptions options_of(const Case& one, const StoredBatch& batch) {
  const bool by_coordinator =
      batch.header.is_control() || one.folder.starts_with("__consumer_offsets");
  AppendOptions options = by_coordinator ? AppendOrigin::kCoordinator : AppendOrigin::kBuilder;
  options.transaction_version = static_cast<std::int16_t>(one.version);
  return options;
}

PartitionSettings settings_of(const Case& one) {
  PartitionSettings settings;
  settings.segment_ms = one.folder == "txn-open-0" ? settings.segment_ms : kEndOfTime;
  if (one.folder == "txn-segments-0") {
    settings.segment_bytes = 700;
  }
  return settings;
}

void extend(Ranges& ranges, std::int64_t first, std::int64_t last) {
  if (!ranges.empty() && ranges.back()[1] + 1 == first) {
    ranges.back()[1] = last;
  } else {
    ranges.push_back({first, last});
  }
}

// What a read_committed reader sees, reading `bytes_max` at a time.
Ranges committed_ranges(Partition& partition, std::size_t bytes_max) {
  Ranges ranges;
  Offset from = partition.offsets().log_start;
  while (from < partition.offsets().last_stable) {
    const Result<FetchResult> read = partition.read(from, bytes_max, FetchIsolation::kCommitted);
    EXPECT_TRUE(read.ok()) << read.error().to_string();
    if (!read.ok()) {
      break;
    }
    for (const FetchedBatch& batch : read->batches) {
      EXPECT_LE(batch.header.next_offset(), read->last_stable_offset);
      const bool aborted = std::any_of(read->aborted.begin(), read->aborted.end(),
                                       [&](const auto& one) { return one.covers(batch.header); });
      if (!batch.header.is_control() && !aborted) {
        extend(ranges, batch.header.base_offset.value(), batch.header.last_offset().value());
      }
    }
    EXPECT_GT(read->next_offset, from);
    from = read->next_offset;
  }
  return ranges;
}

class KafkaTransactions : public ::testing::TestWithParam<Case> {
 protected:
  const nlohmann::json expected_ = expected_of(GetParam());

  // All entries of .txnindex files, segment by segment.
  void expect_files(const nlohmann::json& expected) {
    for (const nlohmann::json& segment : expected["segments"]) {
      const std::string path = join_path(
          kFolder,
          segment_file_name(testing::offset_of(segment["baseOffset"]), kTransactionIndexSuffix));
      const std::string wanted = testing::txnindex_of(segment);
      EXPECT_EQ(path_exists(disk_, path), !wanted.empty()) << path;
      if (!wanted.empty()) {
        EXPECT_EQ(file_text(disk_, path), wanted) << path;
      }
    }
  }
  void expect_snapshot(const nlohmann::json& expected, Offset at) {
    const std::string name = segment_file_name(at, kSnapshotSuffix);
    if (!expected["producerSnapshots"].contains(name)) {
      return;
    }
    const auto entries = parse_producer_snapshot(file_text(disk_, join_path(kFolder, name)));
    ASSERT_TRUE(entries.ok()) << name;
    EXPECT_EQ(by_id(*entries), by_id(expected["producerSnapshots"][name])) << name;
  }

  weir::testing::MemoryFileSystem disk_;
  LogOnDisk log_{disk_};
};

TEST_P(KafkaTransactions, GiveTheSameOffsetsIndexesAndSnapshotsWhenTheyAreAppendedHere) {
  const Case& one = GetParam();
  log_.options.settings = settings_of(one);
  LocalPartition& partition = log_.open();
  std::map<std::int64_t, std::int64_t> stable_at;  // by high watermark
  const auto file = json_of(fmt::format("producers/transactions-tv{}/expected.json", one.version));
  for (const nlohmann::json& step : file["steps"]) {
    if (fmt::format("{}-{}", step["topic"].get<std::string>(), step["partition"].get<int>()) ==
        one.folder) {
      stable_at[testing::number_of(step["highWatermark"])] =
          testing::number_of(step["lastStableOffset"]);
    }
  }
  for (const StoredBatch& batch : batches_of(one.path())) {
    const auto appended = partition.append(testing::as_sent(batch), options_of(one, batch));
    ASSERT_TRUE(appended.ok()) << appended.error().to_string();
    EXPECT_EQ(appended->base_offset, batch.header.base_offset);
    EXPECT_FALSE(appended->duplicate);
    const PartitionOffsets at = partition.offsets();
    ASSERT_EQ(at.high_watermark, batch.header.next_offset());
    if (const auto step = stable_at.find(at.high_watermark.value()); step != stable_at.end()) {
      EXPECT_EQ(at.last_stable.value(), step->second) << "at " << step->first;
      stable_at.erase(step);
    }
  }
  stable_at.erase(0);
  EXPECT_TRUE(stable_at.empty());
  EXPECT_EQ(partition.offsets().last_stable, testing::offset_of(expected_["lastStableOffset"]));

  const auto segments = partition.segments();
  ASSERT_EQ(segments.size(), expected_["segments"].size());
  for (const std::size_t bytes_max : {1U, 300U, 1U << 20U}) {
    EXPECT_EQ(committed_ranges(partition, bytes_max), expected_["readCommitted"].get<Ranges>());
  }
  ASSERT_TRUE(partition.close().ok());
  expect_files(expected_);
  for (const auto& segment : segments) {
    expect_snapshot(expected_, segment->base_offset());
  }
  expect_snapshot(expected_, testing::offset_of(expected_["logEndOffset"]));
}

// A Fetch answer of the broker names more transactions than overlap its bytes; of those that do,
// ours names the same, in the same order.
TEST_P(KafkaTransactions, AreFetchedAsTheBrokerServedThem) {
  const Case& one = GetParam();
  const auto fetches = json_of(fmt::format("producers/transactions-tv{}/fetch.json", one.version));
  if (!fetches.contains(one.folder)) {
    GTEST_SKIP() << "the broker was not asked";
  }
  testing::copy_folder(one.path(), disk_);
  LocalPartition& partition = log_.reopen(true);
  std::size_t compared = 0;
  for (const nlohmann::json& fetch : fetches[one.folder]) {
    const bool committed = fetch[0] == "read_committed";
    const Offset from = testing::offset_of(fetch[2]);
    const auto read =
        partition.read(from, fetch[1].get<std::size_t>(),
                       committed ? FetchIsolation::kCommitted : FetchIsolation::kHighWatermark);
    ASSERT_EQ(read.ok(), fetch[3] == "NONE") << fetch;
    if (!read.ok()) {
      continue;
    }
    EXPECT_EQ(read->high_watermark, testing::offset_of(fetch[4]));
    EXPECT_EQ(read->last_stable_offset, testing::offset_of(fetch[5]));
    ASSERT_EQ(read->batches.empty(), fetch[6].empty()) << fetch;
    std::vector<std::int64_t> bases;
    for (const FetchedBatch& batch : read->batches) {
      bases.push_back(batch.header.base_offset.value());
    }
    const auto theirs = fetch[6].get<std::vector<std::int64_t>>();
    ASSERT_LE(bases.size(), theirs.size()) << fetch;  // theirs may be cut
    EXPECT_TRUE(std::equal(bases.begin(), bases.end(), theirs.begin())) << fetch;
    if (committed && !bases.empty()) {
      std::vector<std::pair<std::int64_t, std::int64_t>> wanted;
      for (const nlohmann::json& aborted : fetch[7]) {
        for (const nlohmann::json& known : expected_["abortedTransactions"]) {
          if (known["producerId"] == aborted[0] && known["firstOffset"] == aborted[1] &&
              known["firstOffset"] < read->next_offset.value() &&
              known["lastOffset"] >= bases.front()) {
            wanted.emplace_back(testing::number_of(aborted[0]), testing::number_of(aborted[1]));
          }
        }
      }
      std::vector<std::pair<std::int64_t, std::int64_t>> ours;
      for (const AbortedTransaction& aborted : read->aborted) {
        ours.emplace_back(aborted.producer_id.value(), aborted.first_offset.value());
      }
      EXPECT_EQ(ours, wanted) << fetch;
    } else {
      EXPECT_TRUE(read->aborted.empty());
    }
    ++compared;
  }
  EXPECT_GT(compared, 20U);
}

TEST_P(KafkaTransactions, AreFoundInTheFilesThatTheBrokerLeft) {
  const Case& one = GetParam();
  testing::copy_folder(one.path(), disk_);
  LocalPartition& partition = log_.reopen(true);
  EXPECT_EQ(partition.offsets().last_stable, testing::offset_of(expected_["lastStableOffset"]));
  EXPECT_EQ(committed_ranges(partition, 200), expected_["readCommitted"].get<Ranges>());
  const std::string newest =
      segment_file_name(testing::offset_of(expected_["logEndOffset"]), kSnapshotSuffix);
  if (expected_["producerSnapshots"].contains(newest)) {
    EXPECT_EQ(by_id(partition.producers().entries()),
              by_id(expected_["producerSnapshots"][newest]));
  }
  expect_files(expected_);
}

// Without the side files everything is found in the batches; the files are then made anew.
TEST_P(KafkaTransactions, AreFoundInTheBatchesAlone) {
  const Case& one = GetParam();
  testing::copy_folder(one.path(), disk_);
  const std::vector<DirectoryEntry> entries = disk_.list(std::string(kFolder)).value();
  for (const DirectoryEntry& entry : entries) {
    if (!entry.name.ends_with(".log")) {
      ASSERT_TRUE(disk_.remove_file(join_path(kFolder, entry.name)).ok());
    }
  }
  LocalPartition& partition = log_.reopen(false);
  EXPECT_EQ(partition.offsets().last_stable, testing::offset_of(expected_["lastStableOffset"]));
  EXPECT_EQ(committed_ranges(partition, 200), expected_["readCommitted"].get<Ranges>());
  expect_files(expected_);
  expect_snapshot(expected_, testing::offset_of(expected_["logEndOffset"]));
  EXPECT_FALSE(partition.producers().empty());
}

// A damaged index is made anew from an older snapshot on, damaged snapshots are passed over.
TEST_P(KafkaTransactions, AreFoundAlthoughSideFilesAreDamaged) {
  const Case& one = GetParam();
  testing::copy_folder(one.path(), disk_);
  const std::vector<DirectoryEntry> entries = disk_.list(std::string(kFolder)).value();
  for (const DirectoryEntry& entry : entries) {
    if (entry.name.ends_with(".log")) {
      continue;
    }
    const std::string path = join_path(kFolder, entry.name);
    std::string text = file_text(disk_, path);
    text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 0x55);
    testing::write_text(disk_, path, entry.name.ends_with(".txnindex") ? text + "x" : text);
  }
  LocalPartition& partition = log_.reopen(true);
  EXPECT_EQ(partition.offsets().last_stable, testing::offset_of(expected_["lastStableOffset"]));
  EXPECT_EQ(committed_ranges(partition, 200), expected_["readCommitted"].get<Ranges>());
  expect_files(expected_);
}

INSTANTIATE_TEST_SUITE_P(All, KafkaTransactions, ::testing::ValuesIn(all_cases()),
                         [](const auto& one) {
                           std::string name =
                               fmt::format("tv{}_{}", one.param.version, one.param.folder);
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return c == '-'; }, '_');
                           return name;
                         });

// A transaction that a stopped or a copied broker left open holds the last stable offset.
TEST(KafkaTransactionsLeftOpen, HoldTheLastStableOffset) {
  for (int version = 0; version <= 2; ++version) {
    for (const std::string state : {"open-live", "open-stopped"}) {
      const std::string folder = fmt::format("producers/transactions-tv{}-{}", version, state);
      const nlohmann::json expected = json_of(folder + "/expected.json")["partitions"][0];
      for (const bool clean : {true, false}) {
        weir::testing::MemoryFileSystem disk;
        LogOnDisk log(disk);
        testing::copy_folder(folder + "/txn-open-0", disk);
        LocalPartition& partition = log.reopen(clean);
        EXPECT_EQ(partition.offsets().log_end, Offset(6)) << folder;
        EXPECT_EQ(partition.offsets().last_stable, Offset(3)) << folder;
        EXPECT_EQ(committed_ranges(partition, 100), (Ranges{{0, 1}})) << folder;
        // It can be ended here.
        const std::int16_t epoch = partition.producers().find(ProducerId(4))->epoch.next().value();
        AppendOptions options = AppendOrigin::kCoordinator;
        options.transaction_version = static_cast<std::int16_t>(version);
        ASSERT_TRUE(
            partition.append(testing::marker(ControlType::kCommit, 4, epoch, 9), options).ok());
        EXPECT_EQ(partition.offsets().last_stable, Offset(7));
        EXPECT_EQ(committed_ranges(partition, 100), (Ranges{{0, 1}, {3, 5}})) << folder;
      }
    }
  }
}

// --- Idempotent producers

// The answers of the broker, by a partition; the first two images are what it stood on. What
// differs: after a crash our window is still five (steps 54 to 56), and it is after a restart of
// our own.
TEST(KafkaIdempotence, GivesTheVerdictsOfTheBrokerOnItsOwnFolders) {
  struct Life {
    std::string image;
    int first_step;
    int end_step;
  };
  constexpr Timestamp kBrokerNow = 1'796'012'186'000;
  const auto expected = json_of("producers/idempotent-after-kill-and-third-stop/expected.json");
  for (const Life& life : {Life{"", 0, 38}, Life{"idempotent-after-first-stop", 38, 53},
                           Life{"idempotent-after-second-stop", 47, 53}}) {
    for (const std::string topic : {"idem-raw", "idem-old"}) {
      weir::testing::MemoryFileSystem disk;
      LogOnDisk log(disk);
      log.options.settings.timestamp_after_max_ms = kEndOfTime;
      log.clock.set_now(kBrokerNow);
      if (!life.image.empty()) {
        testing::copy_folder("producers/" + life.image + "/" + topic + "-0", disk);
      }
      LocalPartition& partition = log.reopen(!life.image.empty());
      for (const nlohmann::json& step : expected["verdicts"]) {
        const auto number = testing::number_of(step["step"]);
        if (number < life.first_step || number >= life.end_step || step["topic"] != topic) {
          continue;
        }
        const testing::From from = testing::from_of(step);
        const auto appended = partition.append(testing::producer_batch(
            from, step["count"].get<int>(), topic == "idem-old" ? testing::kStart : kBrokerNow));
        const auto code = testing::number_of(step["errorCode"]);
        ASSERT_EQ(appended.ok(), code == 0) << step;
        if (appended.ok()) {
          EXPECT_EQ(appended->base_offset, testing::offset_of(step["baseOffset"])) << step;
        } else {
          EXPECT_EQ(appended.error().code(),
                    code == 45 ? Errc::kOutOfOrderSequence : Errc::kInvalidProducerEpoch)
              << step;
        }
      }
    }
  }
}

TEST(KafkaIdempotence, LeavesTheSnapshotsOfTheBroker) {
  for (const std::string image : {"idempotent-after-first-stop", "idempotent-after-second-stop",
                                  "idempotent-after-kill-and-third-stop"}) {
    const auto expected = json_of("producers/" + image + "/expected.json");
    for (const nlohmann::json& one : expected["partitions"]) {
      const auto folder = one["folder"].get<std::string>();
      weir::testing::MemoryFileSystem disk;
      LogOnDisk log(disk);
      log.options.settings.segment_bytes = folder == "idem-client-0" ? 1000 : 1 << 20;
      LocalPartition& partition = log.open();
      for (const StoredBatch& batch : batches_of("producers/" + image + "/" + folder)) {
        // With old timestamps the broker had forgotten the producer and took a batch again.
        const auto appended = partition.append(testing::as_sent(batch), AppendOrigin::kCoordinator);
        ASSERT_TRUE(appended.ok()) << appended.error().to_string();
      }
      ASSERT_TRUE(partition.close().ok());
      std::size_t compared = 0;
      for (const auto& [name, entries] : one["producerSnapshots"].items()) {
        const std::string path = join_path(kFolder, name);
        if (path_exists(disk, path)) {
          const auto ours = parse_producer_snapshot(file_text(disk, path));
          ASSERT_TRUE(ours.ok());
          EXPECT_EQ(by_id(*ours), by_id(entries)) << image << folder << name;
          ++compared;
        }
      }
      EXPECT_GE(compared, 1U) << image << folder;
    }
  }
}

}  // namespace
}  // namespace weir::log
