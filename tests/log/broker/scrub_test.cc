#include "log/broker/log_directory.h"
#include "log/partition/await.h"
#include "log/segment/segment.h"
#include "log/segment/segment_names.h"
#include "tests/log/partition/log_on_disk.h"
#include "tests/runtime/observe/capture.h"
#include "tests/support/size_of_run.h"

#include <weir/log/log_verify.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/testing/manual_executor.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

// The scrub of a whole data directory: no false alarm whatever a power cut leaves, its rate, its
// memory over restarts.

namespace weir::log {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::make_batch;
using weir::testing::ManualClock;
using weir::testing::ManualExecutor;
using weir::testing::MemoryFileSystem;

LogDirectoryOptions directory_options(FileSystem& files, const Clock& clock) {
  LogDirectoryOptions options;
  options.files = &files;
  options.clock = &clock;
  options.seed = 42;
  options.tail_cache_bytes = 0;
  options.wal.file_bytes_min = 16U << 10U;
  options.wal.file_bytes_max = 32U << 10U;
  options.wal.total_bytes_max = 128U << 10U;
  options.wal.checkpoint_bytes = 48U << 10U;
  options.scrub.bytes_per_second = std::int64_t{1} << 40;
  options.scrub.interval_ms = 0;
  return options;
}

// From here to the end of a whole pass.
void scrub_all(LogDirectory& directory) {
  for (int pass = 0; pass < 2; ++pass) {  // the one that is under way, and one from its start
    const std::uint64_t before = directory.scrub_progress().passes;
    while (directory.scrub_progress().passes == before) {
      directory.scrub_step();
    }
  }
}

// --- No false alarm

class Life {
 public:
  explicit Life(std::uint64_t seed) : files_(MemoryFileSystem::Options{.seed = seed}), rng_(seed) {}

  MemoryFileSystem& files() { return files_; }

  // A life that ends with the work, a clean close, or when the power goes.
  Status live(int rounds) {
    LogDirectoryOptions options = directory_options(files_, clock_);
    options.seed = rng_.next();  // of topic ids: they are never given twice
    WEIR_TRY_ASSIGN(directory_, LogDirectory::open("data", options));
    for (const auto& [name, config] :
         {std::pair<std::string, TopicConfig>{"a", {}}, {"m", {{"weir.durability", "memory"}}}}) {
      TopicConfig all = config;
      all["segment.bytes"] = "700";
      all["index.interval.bytes"] = "200";
      const Status made = directory_->create_topic({name, 2, all}).status();
      if (!made.ok() && made.error().code() != Errc::kTopicExists) {
        return made;
      }
    }
    for (int round = 0; round < rounds; ++round) {
      WEIR_TRY(work(round));
    }
    return {};
  }
  Status close() { return directory_->close(); }

  // The power is gone: what is left must look sound, before and after more work on it.
  void end(bool cut) {
    if (cut) {
      files_.power_cut();
    } else {
      files_.process_crash();
    }
    directory_.reset();
  }
  void expect_sound(const char* when) {
    SCOPED_TRACE(when);
    scrub_all(*directory_);
    for (const QuarantinedRange& range : directory_->quarantined_ranges()) {
      ADD_FAILURE() << range.file << " at " << range.position << " to " << range.end_position
                    << ": offsets " << range.first_offset.value() << " to "
                    << range.next_offset.value() << ": " << range.what;
    }
    EXPECT_EQ(directory_->scrub_progress().damaged_ranges, 0U);
  }

 private:
  Status work(int round) {
    const TopicPartition name{rng_.chance(2, 3) ? "a" : "m",
                              PartitionId(rng_.chance(1, 2) ? 1 : 0)};
    WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> partition,
                    directory_->partition_for_append(name));
    // The same bytes again and again, as a producer that tries again after a crash: only base
    // offset and leader epoch differ.
    const int size = static_cast<int>(rng_.below(3));
    WEIR_TRY(partition->append(make_batch(2, static_cast<std::size_t>(40 + 60 * size))).status());
    if (rng_.chance(1, 2)) {
      WEIR_TRY(await_high_watermark(partition, partition->offsets().log_end, seconds(1)));
    }
    if (rng_.chance(1, 6)) {
      WEIR_TRY(directory_->checkpoint());
    }
    if (rng_.chance(1, 12)) {
      const PartitionOffsets at = partition->offsets();
      const std::int64_t middle = (at.log_start.value() + at.high_watermark.value()) / 2;
      WEIR_TRY(directory_->delete_records(name, Offset(middle)));
    }
    if (rng_.chance(1, 8)) {
      directory_->scrub_step();
    }
    if (rng_.chance(1, 40)) {
      WEIR_TRY(directory_->delete_topic(name.topic));
      return directory_->create_topic({name.topic, 2, {{"segment.bytes", "700"}}}).status();
    }
    clock_.advance(seconds(round % 3));
    return {};
  }

  ManualClock clock_;
  MemoryFileSystem files_;
  Rng rng_;
  std::unique_ptr<LogDirectory> directory_;
};

class ScrubPowerCut : public ::testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kOff); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }
};

constexpr int kRounds = 60;

// Two lives that end at any operation, by a power cut or by kill -9, and a third that goes on.
void expect_no_false_alarm(std::uint64_t seed, std::uint64_t operation) {
  SCOPED_TRACE(fmt::format("WEIR_TEST_SEED={} cut at operation {}", seed, operation));
  Life life(seed);
  Rng rng(seed ^ operation);
  life.files().cut_power_at(operation);
  (void)life.live(kRounds);
  life.end(true);
  life.files().cut_power_at(rng.below(400));
  if (life.live(kRounds / 3).ok() && rng.chance(1, 3)) {
    life.expect_sound("in the second life");
  }
  life.end(life.files().power_is_off() || rng.chance(1, 2));
  life.files().cut_power_at(UINT64_MAX / 2);
  Status lived = life.live(0);
  ASSERT_TRUE(lived.ok()) << lived.error().to_string();
  life.expect_sound("after the start");
  life.end(false);
  lived = life.live(kRounds / 3);
  ASSERT_TRUE(lived.ok()) << lived.error().to_string();
  life.expect_sound("after more work");
  ASSERT_TRUE(life.close().ok());
  life.end(false);
  ASSERT_TRUE(life.live(0).ok());
  life.expect_sound("after a clean close");
}

TEST_F(ScrubPowerCut, NeverMakesASoundLogLookDamaged) {
  const std::uint64_t seed = weir::testing::seed_of_run();
  std::uint64_t operations = 0;
  {
    Life life(seed);
    const Status lived = life.live(kRounds);
    ASSERT_TRUE(lived.ok()) << lived.error().to_string();
    life.expect_sound("without a cut");
    operations = life.files().operations();
  }
  const std::uint64_t step = weir::testing::apart(std::max<std::uint64_t>(operations / 60, 1));
  for (std::uint64_t at = seed % step; at < operations && !HasFailure(); at += step) {
    expect_no_false_alarm(seed, at);
  }
  for (int i = 0; i < weir::testing::rounds(10, 200) && !HasFailure(); ++i) {
    expect_no_false_alarm(seed + 1 + static_cast<std::uint64_t>(i), (seed * 7 + 31) % operations);
  }
}

// --- One directory with damage

class DirectoryScrub : public ::testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::kOff); }
  void TearDown() override {
    directory_.reset();
    set_log_level(LogLevel::kInfo);
  }

  void open(std::int64_t rate = std::int64_t{1} << 40, std::int64_t interval_ms = 0) {
    LogDirectoryOptions options = directory_options(files_, clock_);
    options.scrub = {rate, interval_ms};
    auto opened = LogDirectory::open("data", options);
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    directory_ = *std::move(opened);
  }
  void fill(const std::string& topic, int partitions, int batches, std::size_t bytes = 100) {
    ASSERT_TRUE(directory_->create_topic({topic, partitions, {{"segment.bytes", "4000"}}}).ok());
    for (int i = 0; i < batches * partitions; ++i) {
      const auto partition =
          directory_->partition_for_append({topic, PartitionId(i % partitions)}).value();
      ASSERT_TRUE(partition->append(make_batch(2, bytes)).ok());
    }
    ASSERT_TRUE(directory_->checkpoint().ok());
  }
  // Flips a bit of the leader epoch of the first batch of the second segment: only a side-car sees.
  std::string flip(const TopicPartition& name) {
    const auto partition = directory_->partition(name).value();
    const std::string file = partition->segments().at(1)->path(kLogSuffix);
    files_.flip_bit(file, 15, 4);
    return file;
  }

  MemoryFileSystem files_;
  ManualClock clock_;
  std::unique_ptr<LogDirectory> directory_;
};

TEST_F(DirectoryScrub, ListsWhatItFoundAndRemembersItOverACrashAndAClose) {
  open();
  fill("t", 3, 40);
  const std::string file = flip({"t", PartitionId(1)});
  scrub_all(*directory_);
  std::vector<QuarantinedRange> ranges = directory_->quarantined_ranges();
  ASSERT_EQ(ranges.size(), 1U);
  const QuarantinedRange found = ranges[0];
  EXPECT_EQ(found.name, (TopicPartition{"t", PartitionId(1)}));
  EXPECT_EQ(found.file, file);
  EXPECT_EQ(found.position, 0U);
  EXPECT_EQ(found.next_offset.value(), found.first_offset.value() + 2);
  EXPECT_EQ(directory_->scrub_progress().damaged_ranges, 1U);

  for (const bool clean : {false, true, true}) {
    SCOPED_TRACE(clean);
    if (clean) {
      ASSERT_TRUE(directory_->close().ok());
    }
    files_.power_cut();
    directory_.reset();
    open();
    ranges = directory_->quarantined_ranges();
    ASSERT_EQ(ranges.size(), 1U);
    EXPECT_EQ(ranges[0].file, file);
    EXPECT_EQ(ranges[0].first_offset, found.first_offset);
    const auto partition = directory_->partition(found.name).value();
    EXPECT_EQ(partition->read(found.first_offset, 1).error().code(), Errc::kCorrupt);
    EXPECT_TRUE(partition->read(found.next_offset, 1).ok());
    scrub_all(*directory_);
    EXPECT_EQ(directory_->scrub_progress().damaged_ranges, 0U) << "told already";
  }
  files_.flip_bit(file, 15, 4);  // a copy was put in its place
  scrub_all(*directory_);
  EXPECT_TRUE(directory_->quarantined_ranges().empty());
}

// Both verify_log() of the data directory and of the folder alone; the flip keeps offsets and CRC.
TEST_F(DirectoryScrub, VerifyUsesTheSideCarsToo) {
  open();
  fill("t", 2, 40);
  const auto damage = [&](const std::string& path) {
    std::vector<VerifyFinding> found;
    const Result<VerifyTotals> totals = verify_log(files_, path, [&](const VerifyFinding& finding) {
      if (finding.severity == VerifySeverity::kDamage) {
        found.push_back(finding);
      }
    });
    EXPECT_TRUE(totals.ok());
    return found;
  };
  EXPECT_TRUE(damage("data").empty());
  const auto partition = directory_->partition({"t", PartitionId(1)}).value();
  const std::string file = partition->segments().at(1)->path(kLogSuffix);
  const std::string text = read_file(files_, file).value();
  const std::uint64_t second = read_batch_header(text).value().size_bytes();
  for (const bool clean : {false, true}) {
    SCOPED_TRACE(clean);
    if (clean) {
      ASSERT_TRUE(directory_->close().ok());
    }
    // Of a batch in the middle: base offset and leader epoch.
    for (const std::uint64_t byte : {6U, 7U, 12U, 15U}) {
      SCOPED_TRACE(byte);
      files_.flip_bit(file, second + byte, 2);
      for (const std::string path : {"data", "data/log/t-1"}) {
        const std::vector<VerifyFinding> found = damage(path);
        ASSERT_EQ(found.size(), 1U) << path;
        EXPECT_EQ(found[0].file, file);
        EXPECT_EQ(found[0].position, second);
        EXPECT_EQ(found[0].end_position, 2 * second);
        EXPECT_NE(found[0].what.find("is not what was written"), std::string::npos)
            << found[0].what;
      }
      files_.flip_bit(file, second + byte, 2);
    }
  }
  EXPECT_TRUE(damage("data").empty());
}

TEST_F(DirectoryScrub, ForgetsTheDamageOfADeletedTopic) {
  open();
  fill("t", 1, 40);
  flip({"t", PartitionId(0)});
  scrub_all(*directory_);
  ASSERT_EQ(directory_->quarantined_ranges().size(), 1U);
  const Uuid id = directory_->describe_topic("t")->id;
  const std::string folder = directory_->layout().checksum_folder(id, PartitionId(0));
  EXPECT_TRUE(path_exists(files_, folder));
  ASSERT_TRUE(directory_->delete_topic("t").ok());
  EXPECT_FALSE(path_exists(files_, folder));
  fill("t", 1, 40);
  EXPECT_TRUE(directory_->quarantined_ranges().empty());
  scrub_all(*directory_);
  EXPECT_TRUE(directory_->quarantined_ranges().empty());
}

TEST_F(DirectoryScrub, RemovesSideCarsThatBelongToNoTopicAtAStart) {
  open();
  const std::string orphan = join_path(directory_->layout().checksums, "AAAAAAAAAAAAAAAAAAAAAg-0");
  ASSERT_TRUE(files_.create_directories(orphan).ok());
  ASSERT_TRUE(directory_->close().ok());
  directory_.reset();
  open();
  EXPECT_FALSE(path_exists(files_, orphan));
}

TEST_F(DirectoryScrub, KeepsToItsRateAndItsInterval) {
  constexpr std::int64_t kRate = 100'000;
  constexpr std::int64_t kIntervalMs = 3'600'000;
  open(kRate, kIntervalMs);
  fill("t", 4, 200, 500);
  const MonotonicTime began = clock_.monotonic();
  std::uint64_t passes = 0;
  while (passes == 0) {
    const Duration wait = directory_->scrub_step();
    clock_.advance(wait);
    const auto seconds_gone = std::chrono::duration<double>(clock_.monotonic() - began).count();
    const auto bytes = static_cast<double>(directory_->scrub_progress().bytes);
    EXPECT_LE(bytes, seconds_gone * kRate + 1);
    passes = directory_->scrub_progress().passes;
  }
  const std::uint64_t read = directory_->scrub_progress().bytes;
  EXPECT_GT(read, 800U * 1000U);
  EXPECT_LT(clock_.monotonic() - began, seconds(60));

  while (clock_.monotonic() - began < milliseconds(kIntervalMs - 1000)) {
    clock_.advance(std::min<Duration>(directory_->scrub_step(), hours(1)));
    if (clock_.monotonic() - began < milliseconds(kIntervalMs)) {
      EXPECT_EQ(directory_->scrub_progress().bytes, read) << "before its time";
    }
  }
  directory_->scrub_step();
  EXPECT_GT(directory_->scrub_progress().bytes, read);
}

TEST_F(DirectoryScrub, GoesOnWhereItWasAfterARestart) {
  constexpr std::int64_t kRate = 262'144;
  open(kRate, 0);
  fill("t", 8, 60, 500);
  while (directory_->scrub_progress().passes == 0) {
    directory_->scrub_step();
  }
  const std::uint64_t whole = directory_->scrub_progress().bytes;
  while (directory_->scrub_progress().bytes < whole + whole / 2) {
    directory_->scrub_step();
    clock_.advance(std::chrono::minutes(2));
  }
  ASSERT_EQ(directory_->scrub_progress().passes, 1U);
  const std::uint64_t before = directory_->scrub_progress().bytes - whole;
  ASSERT_TRUE(directory_->close().ok());
  directory_.reset();
  open(kRate, 0);
  while (directory_->scrub_progress().passes == 0) {
    directory_->scrub_step();
  }
  // The rest of the pass, with the partition where it stopped once more.
  const std::uint64_t rest = directory_->scrub_progress().bytes;
  EXPECT_GE(before + rest, whole);
  EXPECT_LE(before + rest, whole + whole / 4);
}

TEST_F(DirectoryScrub, RunsBesideAppendsReadsAndCheckpoints) {
  open();
  ASSERT_TRUE(directory_->create_topic({"t", 2, {{"segment.bytes", "3000"}}}).ok());
  std::atomic<bool> done{false};
  std::thread appender([&] {
    for (int i = 0; i < 600; ++i) {
      const auto partition = directory_->partition_for_append({"t", PartitionId(i % 2)}).value();
      ASSERT_TRUE(partition->append(make_batch(2, static_cast<std::size_t>(50 + i % 90))).ok());
      if (i % 37 == 0) {
        ASSERT_TRUE(directory_->checkpoint().ok());
      }
      if (i % 150 == 149) {
        const Offset middle(partition->offsets().high_watermark.value() / 2);
        ASSERT_TRUE(directory_->delete_records({"t", PartitionId(i % 2)}, middle).ok());
      }
    }
    done = true;
  });
  while (!done) {
    directory_->scrub_step();
  }
  appender.join();
  scrub_all(*directory_);
  EXPECT_TRUE(directory_->quarantined_ranges().empty());
  EXPECT_EQ(directory_->scrub_progress().damaged_ranges, 0U);
}

// --- The embedded log runs it

TEST(EmbeddedLogScrub, RunsOnTheExecutorAndShowsWhatItFound) {
  set_log_level(LogLevel::kOff);
  MemoryFileSystem files;
  ManualClock clock;
  ManualExecutor executor(clock);
  EmbeddedLogOptions options;
  options.files = &files;
  options.clock = &clock;
  options.executor = &executor;
  options.seed = 42;
  ASSERT_TRUE(
      options
          .set({{"weir.scrub.bytes.per.second", "1000000"}, {"weir.scrub.interval.ms", "3600000"}})
          .ok());
  EXPECT_EQ(options.set({{"weir.scrub.bytes", "1"}}).error().code(), Errc::kInvalidConfig);
  auto log = EmbeddedLog::open("data", options).value();
  ASSERT_TRUE(log->admin().create_topic({"t", 1, {{"segment.bytes", "500"}}}).ok());
  {
    auto sink = log->make_sink({}).value();
    const SinkTopicInfo info = sink->open_topic("t").value();
    const std::string value(100, 'v');
    for (int i = 0; i < 30; ++i) {
      const RecordRef record{{}, ByteView(value), clock.now(), {}};
      ASSERT_TRUE(sink->send(info.handle, PartitionId(0), {&record, 1}).ok());
      ASSERT_TRUE(sink->flush().ok());
    }
  }
  const auto run = [&](Duration time) {
    for (const MonotonicTime end = clock.monotonic() + time; clock.monotonic() < end;) {
      clock.advance(seconds(1));
      executor.run_ready();
    }
  };
  run(seconds(60));
  EXPECT_EQ(log->scrub_progress().passes, 1U);
  EXPECT_TRUE(log->quarantined_ranges().empty());

  files.flip_bit("data/log/t-0/00000000000000000000.log", 15, 6);
  run(hours(1));
  EXPECT_EQ(log->scrub_progress().passes, 2U);
  ASSERT_EQ(log->quarantined_ranges().size(), 1U);
  EXPECT_EQ(log->quarantined_ranges()[0].first_offset, Offset(0));
  EXPECT_TRUE(log->close().ok());
  set_log_level(LogLevel::kInfo);
}

}  // namespace
}  // namespace weir::log
