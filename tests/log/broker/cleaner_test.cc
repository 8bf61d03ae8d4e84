#include "log/broker/log_directory.h"
#include "log/partition/await.h"
#include "tests/log/compaction/compaction_support.h"
#include "tests/runtime/observe/capture.h"
#include "tests/support/size_of_run.h"

#include <weir/log/embedded_log.h>
#include <weir/log/log_verify.h>
#include <weir/runtime/logger.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

// Retention and compaction of a data directory: what goes, what a reader gets then, what is known
// after a restart.

namespace weir::log {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::batch_of;
using testing::make_batch;
using testing::SeenLog;
using testing::SeenRecord;
using testing::Table;
using weir::testing::LogCapture;
using weir::testing::ManualClock;
using weir::testing::MemoryFileSystem;
using Operation = MemoryFileSystem::Operation;

// Between two cuts of the power; each one in a full run.
const std::uint64_t kChangesApart = weir::testing::apart<std::uint64_t>(5);

const TopicPartition kName{"t", PartitionId(0)};
constexpr const char* kFolder = "data/log/t-0";

class Directory {
 public:
  explicit Directory(std::uint64_t seed = 1) : disk(MemoryFileSystem::Options{.seed = seed}) {}
  ~Directory() { end(); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  MemoryFileSystem disk;
  ManualClock clock{testing::kStart};
  CleanerOptions cleaner;
  std::size_t tail_cache_bytes = 0;
  std::unique_ptr<LogDirectory> log;

  Status try_open(bool read_only = false) {
    WEIR_TRY_ASSIGN(log, LogDirectory::open("data", options(read_only)));
    return {};
  }
  LogDirectoryOptions options(bool read_only) {
    LogDirectoryOptions options;
    options.files = &disk;
    options.clock = &clock;
    options.seed = ++lives_;
    options.tail_cache_bytes = tail_cache_bytes;
    options.offsets_partitions = 1;
    options.read_only = read_only;
    options.wal.file_bytes_min = 16U << 10U;
    options.wal.file_bytes_max = 64U << 10U;
    options.wal.total_bytes_max = 256U << 10U;
    options.cleaner = cleaner;
    options.scrub.interval_ms = 0;
    return options;
  }
  void open() {
    const Status opened = try_open();
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  }
  void open_with(TopicConfig config) {
    open();
    config.try_emplace("segment.bytes", "500");
    const auto made = log->create_topic({kName.topic, 1, std::move(config)});
    ASSERT_TRUE(made.ok()) << made.error().to_string();
  }
  void end() {
    disk.hold_submits(false);
    while (disk.run_submitted() > 0) {
    }
    log.reset();
    while (disk.run_submitted() > 0) {
    }
  }
  void cut_power() {
    end();
    disk.power_cut();
  }
  void close() {
    const Status closed = log->close();
    EXPECT_TRUE(closed.ok()) << closed.error().to_string();
    log.reset();
  }
  Partition& partition() { return *log->partition(kName).value(); }
  void append(SharedBytes batch, AppendOrigin origin = AppendOrigin::kBuilder) {
    const std::shared_ptr<Partition> to = log->partition_for_append(kName).value();
    const auto appended = to->append(std::move(batch), origin);
    ASSERT_TRUE(appended.ok()) << appended.error().to_string();
    const Status durable = await_high_watermark(to, appended->next_offset, seconds(10));
    ASSERT_TRUE(durable.ok()) << durable.error().to_string();
  }
  void put(const std::string& key, std::optional<std::string> value) {
    append(batch_of({{key, std::move(value), clock.now()}}));
  }
  // Batches of two records with 100 bytes each, a second apart.
  void fill(int batches) {
    for (int i = 0; i < batches; ++i) {
      append(make_batch(2, 100, clock.now()));
      clock.advance(seconds(1));
    }
  }
  void clean() {
    const Status done = log->clean_now();
    ASSERT_TRUE(done.ok()) << done.error().to_string();
  }
  Offset start() { return partition().offsets().log_start; }
  SeenLog see() { return testing::see(partition()); }
  Table table() { return testing::table_of(see().committed); }
  std::size_t segments() { return partition().segments().size(); }
  std::vector<std::string> files() {
    std::vector<std::string> names;
    const auto entries = disk.list(kFolder);
    for (const DirectoryEntry& entry : *entries) {
      names.push_back(entry.name);
    }
    return names;
  }

 private:
  std::uint64_t lives_ = 0;
};

std::string text_of(LogCapture& capture) {
  std::string text;
  for (const auto& [level, line] : capture.lines()) {
    text += line + "\n";
  }
  return text;
}

const TopicConfig kCompacted{{"cleanup.policy", "compact"}, {"min.cleanable.dirty.ratio", "0"}};

// --- Retention

TEST(Retention, RemovesSegmentsThatAreTooOldAndAnswersOutOfRange) {
  Directory directory;
  directory.open_with({{"retention.ms", "5000"}});
  directory.fill(10);  // 10 s, two batches a segment
  ASSERT_GT(directory.segments(), 4U);
  directory.clean();
  const Offset start = directory.start();
  EXPECT_GT(start, Offset(0));
  EXPECT_EQ(directory.partition().segments().front()->base_offset(), start);

  const Result<FetchResult> old = directory.partition().read(start.plus(-1), 1000);
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.error().code(), Errc::kOffsetOutOfRange);
  EXPECT_NE(old.error().message().find(std::to_string(start.value())), std::string::npos);
  EXPECT_EQ(directory.see().records.front().offset, start.value());
  EXPECT_EQ(directory.log->cleaner_progress().records_expired,
            static_cast<std::uint64_t>(start.value()));

  directory.cut_power();
  directory.open();
  EXPECT_EQ(directory.start(), start);
}

TEST(Retention, RollsTheActiveSegmentWhenAllOfItIsTooOld) {
  Directory directory;
  directory.open_with({{"retention.ms", "5000"}});
  directory.fill(5);
  directory.clock.advance(seconds(60));
  directory.clean();
  EXPECT_EQ(directory.start(), Offset(10));
  EXPECT_EQ(directory.partition().offsets().log_end, Offset(10));
  EXPECT_EQ(directory.segments(), 1U);
  directory.clean();  // and is content with it
  EXPECT_EQ(directory.segments(), 1U);
  directory.append(make_batch(1, 10, directory.clock.now()));
  EXPECT_EQ(directory.see().records.front().offset, 10);
  for (const bool clean : {true, false}) {
    if (clean) {
      directory.close();
    } else {
      directory.cut_power();
    }
    directory.open();
    EXPECT_EQ(directory.start(), Offset(10));
    EXPECT_EQ(directory.see().records.size(), 1U);
  }
}

TEST(Retention, KeepsAnEmptyLogsEndOverARestart) {
  Directory directory;
  directory.open_with({{"retention.ms", "1"}});
  directory.fill(5);
  directory.clock.advance(seconds(60));
  directory.clean();
  for (const bool clean : {true, false}) {
    if (clean) {
      directory.close();
    } else {
      directory.cut_power();
    }
    directory.open();
    EXPECT_EQ(directory.partition().offsets().log_end, Offset(10));
    EXPECT_EQ(directory.start(), Offset(10));
  }
}

TEST(Retention, KeepsAtLeastTheBytesThatAreAskedFor) {
  Directory directory;
  directory.open_with({{"retention.ms", "-1"}, {"retention.bytes", "1200"}});
  directory.fill(10);
  directory.clean();
  std::uint64_t bytes = 0;
  for (const auto& segment : directory.partition().segments()) {
    bytes += segment->size_bytes();
  }
  EXPECT_GE(bytes, 1200U);
  EXPECT_LT(bytes, 1700U);
}

TEST(Retention, LeavesACompactedTopicAloneAndTakesBothPoliciesOfOneThatHasBoth) {
  for (const bool both : {false, true}) {
    Directory directory;
    directory.open_with({{"cleanup.policy", both ? "compact,delete" : "compact"},
                         {"min.cleanable.dirty.ratio", "0"},
                         {"retention.ms", "5000"}});
    directory.fill(10);
    directory.clean();
    EXPECT_EQ(directory.start() > Offset(0), both);
    EXPECT_EQ(directory.table().size(), 1U);
  }
}

TEST(Retention, ComesIntoForceWithTheSetting) {
  Directory directory;
  directory.open_with({{"retention.ms", "-1"}});
  directory.fill(10);
  directory.clean();
  EXPECT_EQ(directory.start(), Offset(0));
  ASSERT_TRUE(directory.log->alter_topic("t", {{"retention.ms", "1000"}}, {}).ok());
  directory.clean();
  EXPECT_GT(directory.start(), Offset(0));
}

// N25: a producer that stamps in seconds.
TEST(Retention, SaysWhichTimeMadeItRemoveRecords) {
  LogCapture capture;
  Directory directory;
  directory.open_with({{"retention.ms", "604800000"}});
  directory.append(make_batch(2, 100, testing::kStart / 1000));
  directory.clean();
  EXPECT_EQ(directory.start(), Offset(2));
  const std::string text = text_of(capture);
  EXPECT_NE(text.find("setting=retention.ms"), std::string::npos) << text;
  EXPECT_NE(text.find(fmt::format("newest_timestamp={}", testing::kStart / 1000 + 1)),
            std::string::npos)
      << text;
}

// KAFKA-5634
TEST(LogBugs, RetentionNeverPassesAStalledHighWatermark) {
  Directory directory;
  directory.open_with({{"retention.ms", "0"}, {"retention.bytes", "0"}});
  directory.fill(4);
  const Offset durable = directory.partition().offsets().high_watermark;
  directory.disk.hold_submits(true);
  const std::shared_ptr<Partition> partition = directory.log->partition_for_append(kName).value();
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(partition->append(make_batch(2, 100, directory.clock.now())).ok());
  }
  directory.clock.advance(seconds(60));
  // Not clean_now(): its checkpoint would wait for the disk.
  while (directory.log->cleaner_step() == Duration::zero()) {
  }
  EXPECT_LE(directory.start(), durable);
  EXPECT_GT(directory.start(), Offset(0));
  EXPECT_EQ(partition->offsets().high_watermark, durable);
  directory.disk.hold_submits(false);
  while (directory.disk.run_submitted() > 0) {
  }
}

TEST(Retention, APowerCutAtAnyChangeOfTheDiskLosesNoMoreThanThePolicySays) {
  set_log_level(LogLevel::kOff);
  bool reached = true;
  for (std::uint64_t at = 0; reached; at += kChangesApart) {
    SCOPED_TRACE(at);
    Directory directory(at);
    directory.open_with({{"retention.ms", "5000"}});
    directory.fill(8);
    ASSERT_TRUE(directory.log->checkpoint().ok());
    directory.disk.cut_power_at(at);
    reached = !directory.log->clean_now().ok();
    directory.disk.cut_power_at(UINT64_MAX / 4);
    directory.cut_power();
    directory.open();
    const PartitionOffsets offsets = directory.partition().offsets();
    EXPECT_EQ(offsets.log_end, Offset(16));
    EXPECT_LE(offsets.log_start, Offset(6));
    const SeenLog seen = directory.see();
    ASSERT_FALSE(seen.records.empty());
    EXPECT_EQ(seen.records.front().offset, offsets.log_start.value());
    EXPECT_EQ(static_cast<std::int64_t>(seen.records.size()), 16 - offsets.log_start.value());
    EXPECT_TRUE(directory.log->recovery().partitions.back().damaged.empty());
    directory.clean();
    EXPECT_EQ(directory.start(), Offset(6));
    if (::testing::Test::HasFailure()) {
      break;
    }
  }
  set_log_level(LogLevel::kInfo);
}

// --- Compaction

TEST(Compaction, KeepsTheLastValueOfEveryKeyAndItsOffset) {
  Directory directory;
  directory.open_with(kCompacted);
  for (int i = 0; i < 40; ++i) {
    directory.put(fmt::format("key-{}", i % 4),
                  fmt::format("value {} {}", i, std::string(40, 'x')));
  }
  const Table before = directory.table();
  directory.clean();
  EXPECT_EQ(directory.table(), before);
  const SeenLog seen = directory.see();
  EXPECT_LT(seen.records.size(), 20U);
  EXPECT_EQ(directory.partition().offsets().log_end, Offset(40));
  EXPECT_EQ(directory.start(), Offset(0));
  EXPECT_EQ(directory.log->cleaner_progress().passes, 1U);
  // Nothing is due any more.
  directory.clean();
  EXPECT_EQ(directory.log->cleaner_progress().passes, 1U);

  for (const bool clean : {true, false}) {
    if (clean) {
      directory.close();
    } else {
      directory.cut_power();
    }
    directory.open();
    EXPECT_EQ(directory.table(), before);
    EXPECT_EQ(directory.partition().offsets().log_end, Offset(40));
    directory.clean();
    EXPECT_EQ(directory.log->cleaner_progress().passes, 0U);  // the checkpoint says so
  }
  EXPECT_EQ(testing::file_text(directory.disk, "data/log/cleaner-offset-checkpoint").substr(0, 6),
            "0\n1\nt ");
}

TEST(Compaction, RecordsTheHorizonBeforeTombstonesGo) {
  Directory directory;
  TopicConfig config = kCompacted;
  config["delete.retention.ms"] = "1000";
  directory.open_with(config);
  const auto horizon = [&] { return directory.log->tombstone_horizon(directory.partition()); };
  directory.put("gone", "value");
  directory.put("gone", std::nullopt);
  for (int i = 0; i < 20; ++i) {
    directory.put("other", std::string(60, 'x'));
  }
  directory.clean();
  EXPECT_EQ(horizon(), Offset(0));
  EXPECT_EQ(directory.see().records.front().offset, 1);  // the tombstone
  directory.clock.advance(seconds(2));
  for (int i = 0; i < 20; ++i) {
    directory.put("other", std::string(60, 'y'));
  }
  directory.clean();
  EXPECT_EQ(horizon(), Offset(2));
  EXPECT_GT(directory.see().records.front().offset, 1);
  directory.cut_power();
  directory.open();
  EXPECT_EQ(horizon(), Offset(2));
  // A file that cannot be read: everything durable may be gone.
  directory.close();
  testing::write_text(directory.disk, "data/wal/tombstone-horizons", "garbage");
  directory.open();
  EXPECT_EQ(horizon(), directory.partition().offsets().log_end);
}

TEST(Compaction, ThePowerGoesAtAnyChangeAndNoTombstoneIsGoneWithoutAHorizon) {
  set_log_level(LogLevel::kOff);
  bool reached = true;
  for (std::uint64_t at = 0; reached; at += kChangesApart) {
    SCOPED_TRACE(at);
    Directory directory(at);
    TopicConfig config = kCompacted;
    config["delete.retention.ms"] = "1000";
    directory.open_with(config);
    directory.put("gone", "value");
    directory.put("gone", std::nullopt);
    for (int i = 0; i < 8; ++i) {
      directory.put(fmt::format("k{}", i % 2), std::string(100, 'x'));
    }
    directory.clean();
    directory.clock.advance(seconds(2));
    for (int i = 0; i < 8; ++i) {
      directory.put(fmt::format("k{}", i % 2), std::string(100, 'y'));
    }
    const Table before = directory.table();
    ASSERT_TRUE(directory.log->checkpoint().ok());
    directory.disk.cut_power_at(at);
    reached = !directory.log->clean_now().ok();
    directory.disk.cut_power_at(UINT64_MAX / 4);
    directory.cut_power();
    directory.open();
    EXPECT_EQ(directory.table(), before);
    EXPECT_EQ(directory.partition().offsets().log_end, Offset(18));
    EXPECT_TRUE(directory.log->recovery().partitions.back().damaged.empty());
    const bool is_there = directory.see().records.front().offset == 1;
    if (!is_there) {
      EXPECT_EQ(directory.log->tombstone_horizon(directory.partition()), Offset(2));
    }
    directory.clean();
    EXPECT_EQ(directory.table(), before);
    if (::testing::Test::HasFailure()) {
      break;
    }
  }
  set_log_level(LogLevel::kInfo);
}

// KAFKA-13194
TEST(LogBugs, CompactionReplacesNothingByWhatIsAboveAStalledHighWatermark) {
  Directory directory;
  directory.open_with(kCompacted);
  directory.put("key", "durable");
  directory.put("fill", std::string(300, 'x'));
  ASSERT_TRUE(directory.log->checkpoint().ok());
  directory.disk.hold_submits(true);
  const std::shared_ptr<Partition> partition = directory.log->partition_for_append(kName).value();
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(
        partition->append(batch_of({{"key", std::string(100, 'y')}}), AppendOrigin::kBuilder).ok());
  }
  for (int i = 0; i < 100; ++i) {
    directory.log->cleaner_step();
  }
  EXPECT_EQ(directory.table().at("key"), "durable");
  directory.disk.hold_submits(false);
  while (directory.disk.run_submitted() > 0) {
  }
}

TEST(Compaction, ReadersGoOnWhileTheirSegmentsAreReplaced) {
  for (const std::size_t cache : {std::size_t{0}, std::size_t{4000}}) {
    Directory directory;
    directory.tail_cache_bytes = cache;
    directory.open_with(kCompacted);
    for (int i = 0; i < 60; ++i) {
      directory.put(fmt::format("key-{}", i % 5),
                    fmt::format("value {} {}", i, std::string(30, 'x')));
    }
    const Table expected = directory.table();
    // A reader in the middle, with hints and open files of the old segments; one that starts over.
    Table reading;
    Offset from(0);
    bool cleaned = false;
    while (from < Offset(60)) {
      const Result<FetchResult> read = directory.partition().read(from, 200);
      ASSERT_TRUE(read.ok()) << read.error().to_string();
      ASSERT_FALSE(read->batches.empty());
      for (const FetchedBatch& batch : read->batches) {
        for (const SeenRecord& record : testing::records_of(batch.header, batch.bytes.bytes)) {
          testing::apply(reading, record);
        }
      }
      from = read->next_offset;
      if (from >= Offset(20) && !cleaned) {
        cleaned = true;
        directory.clean();
      }
    }
    EXPECT_EQ(reading, expected);
    EXPECT_EQ(directory.table(), expected);
  }
}

TEST(Compaction, AReadOnlyProcessBesideTheHolderSeesWhatIsThere) {
  Directory directory;
  directory.open_with(kCompacted);
  for (int i = 0; i < 40; ++i) {
    directory.put(fmt::format("key-{}", i % 4),
                  fmt::format("value {} {}", i, std::string(40, 'x')));
  }
  const Table expected = directory.table();
  const auto reader = LogDirectory::open("data", directory.options(true));
  ASSERT_TRUE(reader.ok()) << reader.error().to_string();
  const auto see_beside = [&] {
    EXPECT_TRUE((*reader)->refresh().ok());
    const std::shared_ptr<Partition> partition = (*reader)->partition(kName).value();
    EXPECT_TRUE((*reader)->refresh_partition(*partition).ok());
    return testing::see(*partition);
  };
  EXPECT_EQ(testing::table_of(see_beside().committed), expected);
  directory.clean();
  const SeenLog after = see_beside();
  EXPECT_EQ(testing::table_of(after.committed), expected);
  EXPECT_LT(after.records.size(), 40U);
  EXPECT_EQ((*reader)->tombstone_horizon(*(*reader)->partition(kName).value()), Offset(0));
}

TEST(Compaction, AFullDiskStopsAPassAndNothingElse) {
  LogCapture capture;
  Directory directory;
  directory.open_with(kCompacted);
  for (int i = 0; i < 40; ++i) {
    directory.put(fmt::format("key-{}", i % 4), std::string(60, 'x'));
  }
  const Table before = directory.table();
  bool full = true;
  directory.disk.set_fault([&full](Operation operation, const std::string& path) {
    const bool grows = operation == Operation::kWrite || operation == Operation::kCreate;
    return full && grows && path.ends_with(".cleaned") ? Status(Error(Errc::kNoSpace, "disk full"))
                                                       : Status();
  });
  const Status refused = directory.log->clean_now();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kNoSpace);
  EXPECT_EQ(directory.table(), before);
  directory.put("key-1", "more");
  for (int i = 0; i < 5; ++i) {
    directory.clock.advance(seconds(20));
    while (directory.log->cleaner_step() == Duration::zero()) {
    }
  }
  const std::string told = text_of(capture);
  EXPECT_NE(told.find("compaction waits for room"), std::string::npos);
  EXPECT_EQ(told.find("compaction waits for room"), told.rfind("compaction waits for room"));
  full = false;
  directory.clean();
  EXPECT_EQ(directory.log->cleaner_progress().passes, 1U);
  EXPECT_EQ(directory.log->cleaner_progress().partitions_failed, 0U);
}

TEST(Compaction, LeavesADamagedPartitionAloneAndSaysSoOnce) {
  LogCapture capture;
  Directory directory;
  directory.open_with(kCompacted);
  for (int i = 0; i < 20; ++i) {
    directory.put("key", std::string(60, 'x'));
  }
  const std::size_t records = directory.see().records.size();
  directory.disk.flip_bit(std::string(kFolder) + "/00000000000000000000.log", 150, 3);
  const Status failed = directory.log->clean_now();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code(), Errc::kCorrupt);
  EXPECT_NE(failed.error().message().find("00000000000000000000.log"), std::string::npos);
  EXPECT_TRUE(directory.log->clean_now().ok());
  EXPECT_EQ(directory.log->cleaner_progress().partitions_failed, 1U);
  const std::string told = text_of(capture);
  EXPECT_EQ(told.find("is not compacted until"), told.rfind("is not compacted until"));
  EXPECT_NE(told.find("is not compacted until"), std::string::npos);
  // Appends and the rest of the reads go on.
  directory.put("key", "more");
  EXPECT_EQ(
      directory.partition().read(Offset(static_cast<std::int64_t>(records)), 1)->batches.size(),
      1U);
}

TEST(Compaction, WorksInStepsAtItsRateAndWaitsWhenNothingIsDue) {
  Directory directory;
  directory.cleaner.io_bytes_per_second = 128U << 10U;
  directory.cleaner.retention_check_interval_ms = 60'000;
  directory.open_with(kCompacted);
  for (int i = 0; i < 400; ++i) {
    directory.put(fmt::format("key-{}", i % 7), std::string(400, 'x'));
  }
  ASSERT_TRUE(directory.log->checkpoint().ok());
  Duration waited{};
  while (directory.log->cleaner_progress().passes == 0) {
    waited += directory.log->cleaner_step();
  }
  // Some 190 KB of the map, the same once more for the copies.
  EXPECT_GT(waited, seconds(2));
  EXPECT_LT(waited, seconds(5));
  Duration idle{};
  do {
    idle = directory.log->cleaner_step();
  } while (idle == Duration::zero());
  EXPECT_EQ(idle, milliseconds(15'000));
  directory.clock.advance(idle);
  EXPECT_EQ(directory.log->cleaner_step(), milliseconds(15'000));
}

TEST(Compaction, ADeletedTopicIsLetGoInTheMiddleOfAPass) {
  Directory directory;
  directory.cleaner.io_bytes_per_second = 64U << 10U;
  directory.open_with(kCompacted);
  for (int i = 0; i < 400; ++i) {
    directory.put(fmt::format("key-{}", i % 7), std::string(400, 'x'));
  }
  ASSERT_TRUE(directory.log->checkpoint().ok());
  for (int i = 0; i < 5; ++i) {
    directory.log->cleaner_step();
  }
  ASSERT_TRUE(directory.log->delete_topic("t").ok());
  EXPECT_FALSE(path_exists(directory.disk, kFolder));
  for (int i = 0; i < 5; ++i) {
    directory.log->cleaner_step();
  }
  EXPECT_EQ(directory.log->cleaner_progress().passes, 0U);
}

// A topic made again under a name must not begin where its namesake was compacted to: a tombstone
// could go before what it deletes.
TEST(LogBugs, ATopicMadeAgainIsNotTakenForCompacted) {
  Directory directory;
  directory.open_with(kCompacted);
  for (int i = 0; i < 40; ++i) {
    directory.put("key", std::string(60, 'x'));
  }
  directory.clean();
  ASSERT_TRUE(directory.log->delete_topic("t").ok());
  TopicConfig config = kCompacted;
  config["segment.bytes"] = "500";
  ASSERT_TRUE(directory.log->create_topic({"t", 1, config}).ok());
  EXPECT_EQ(testing::file_text(directory.disk, "data/log/cleaner-offset-checkpoint"), "0\n0\n");
  for (int i = 0; i < 40; ++i) {
    directory.put("key", std::string(60, 'x'));
  }
  directory.cut_power();
  directory.open();
  directory.clean();
  EXPECT_EQ(directory.log->cleaner_progress().passes, 1U);
}

TEST(Compaction, CompactsATopicOnRequestAndRefusesOneThatIsNotCompacted) {
  Directory directory;
  TopicConfig config = kCompacted;
  config["min.cleanable.dirty.ratio"] = "1";
  directory.open_with(config);
  for (int i = 0; i < 40; ++i) {
    directory.put("key", std::string(60, 'x'));
  }
  directory.clean();
  EXPECT_EQ(directory.log->cleaner_progress().passes, 0U);
  ASSERT_TRUE(directory.log->compact_topic("t").ok());
  EXPECT_EQ(directory.log->cleaner_progress().passes, 1U);
  EXPECT_LT(directory.see().records.size(), 10U);
  ASSERT_TRUE(directory.log->create_topic({"d", 1, {}}).ok());
  const Status refused = directory.log->compact_topic("d");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kInvalidConfig);
}

TEST(Compaction, LeavesWhatVerifyAndTheScrubFindSound) {
  Directory directory;
  directory.open_with(kCompacted);
  for (int i = 0; i < 60; ++i) {
    directory.put(fmt::format("key-{}", i % 5), std::string(60, 'x'));
    if (i == 30) {
      directory.log->scrub_step();
    }
  }
  directory.clean();
  directory.put("key-0", "more");
  const std::uint64_t before = directory.log->scrub_progress().passes;
  while (directory.log->scrub_progress().passes == before) {
    directory.log->scrub_step();
  }
  EXPECT_EQ(directory.log->scrub_progress().damaged_ranges, 0U);
  EXPECT_TRUE(directory.log->quarantined_ranges().empty());
  directory.close();
  for (const std::string& name : directory.files()) {
    EXPECT_FALSE(name.ends_with(".cleaned") || name.ends_with(".swap")) << name;
  }
}

TEST(Compaction, RefusesARecordWithoutAKey) {
  Directory directory;
  directory.open_with(kCompacted);
  const auto appended = directory.log->partition_for_append(kName).value()->append(
      batch_of({{std::nullopt, "value"}}), AppendOrigin::kClient);
  ASSERT_FALSE(appended.ok());
  EXPECT_EQ(appended.error().code(), Errc::kInvalidRecord);
}

TEST(Compaction, CommittedOffsetsSurviveAPassOverTheirTopic) {
  MemoryFileSystem disk;
  ManualClock clock{testing::kStart};
  EmbeddedLogOptions options;
  options.files = &disk;
  options.clock = &clock;
  options.background = false;
  options.seed = 5;
  options.offsets_partitions = 1;
  const TopicPartition orders{"orders", PartitionId(0)};
  {
    const auto log = EmbeddedLog::open("data", options).value();
    ASSERT_TRUE(log->admin().create_topic({"orders", 1, {}}).ok());
    const auto group = log->make_group("group").value();
    const auto commit = [&](int times) {
      for (int i = 0; i < times; ++i) {
        CommittedOffset committed;
        committed.offset = Offset(i);
        committed.metadata = std::string(50, 'm');
        const Status done = group->commit(std::vector<PartitionOffset>{{orders, committed}});
        ASSERT_TRUE(done.ok()) << done.error().to_string();
      }
    };
    commit(1);
    ASSERT_TRUE(
        log->admin().alter_topic("__consumer_offsets", {{"segment.bytes", "500"}}, {}).ok());
    commit(30);
    const Status compacted = log->compact_topic("__consumer_offsets");
    ASSERT_TRUE(compacted.ok()) << compacted.error().to_string();
    EXPECT_EQ(log->cleaner_progress().passes, 1U);
    EXPECT_GT(log->cleaner_progress().records_compacted, 20U);
  }
  disk.power_cut();
  options.seed = 6;
  const auto log = EmbeddedLog::open("data", options).value();
  const auto offsets = log->admin().group_offsets("group").value();
  ASSERT_EQ(offsets.size(), 1U);
  EXPECT_EQ(offsets[0].second.offset, Offset(29));
}

}  // namespace
}  // namespace weir::log
