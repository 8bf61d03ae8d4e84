#include "log/broker/log_directory.h"
#include "log/record/batch_builder.h"
#include "log/record/batch_decoder.h"
#include "tests/crash/support/log_ledger.h"
#include "tests/runtime/observe/capture.h"
#include "tests/support/size_of_run.h"

#include <weir/log/log_verify.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The log alone on a disk in memory: the power goes, or the process is killed, at every change of
// the disk of a workload, then again while it recovers and while it goes on. After each start the
// directory is compared with what was promised (support/log_ledger.h).
namespace weir::crash {
namespace {

using std::chrono::milliseconds;
using weir::testing::ManualClock;
using weir::testing::MemoryFileSystem;
using Change = LogLedger::Change;

constexpr int kShards = 4;
constexpr const char* kRoot = "data";
constexpr std::uint64_t kNever = UINT64_MAX / 4;
constexpr std::size_t kWalBytesMax = 192U << 10U;

// Errors that promise that nothing happened.
bool is_refusal(const Error& error) {
  const Errc code = error.code();
  return code != Errc::kIo && code != Errc::kTimedOut && code != Errc::kClosed;
}

class LogMachine {
 public:
  explicit LogMachine(std::uint64_t seed)
      : rng_(seed), uniform_(rng_.chance(1, 3)), files_(MemoryFileSystem::Options{.seed = seed}) {
    files_.set_fault([this](MemoryFileSystem::Operation operation, const std::string& path) {
      return fault(operation, path);
    });
  }
  ~LogMachine() { end(Ending::kPowerCut); }
  LogMachine(const LogMachine&) = delete;
  LogMachine& operator=(const LogMachine&) = delete;

  // The next life ends so at this change of the disk, counted from now.
  void plan(Ending ending, std::uint64_t operation) {
    planned_ = ending;
    end_at_ = changes() + operation;
    files_.cut_power_at(operation);
  }
  // Starts on what the last end left and compares. False when it died on the way.
  bool start();
  void work(int steps);
  // False when it died on the way.
  bool close();
  // Of the process and, when the power goes, of what was not durable.
  void end(Ending ending);

  bool is_dead() const { return files_.power_is_off(); }
  // Its work ended early, with writes held back.
  bool is_over() const { return is_over_; }
  Ending planned() const { return planned_; }
  std::uint64_t changes() const { return files_.operations(); }
  const LogLedger& ledger() const { return ledger_; }

 private:
  Status fault(MemoryFileSystem::Operation operation, const std::string& path);
  void check();
  log::LogDirectoryOptions options();
  void step();
  void produce();
  void append(log::Partition& partition);
  std::vector<std::string> draw_names();
  void consume();
  void check_read(const TopicPartition& name, const log::FetchResult& read, Offset high_watermark);
  void change_topics();
  void create(const std::string& name);
  void alter(const std::string& name);
  void delete_records();
  void commit();
  void checkpoint();
  void note_durable();
  void check_wal_size();
  // Of one change of topics.
  template <class Answer>
  void settle(const Answer& answer);
  void expect_alive_or(const Status& status, const char* what);
  std::optional<TopicPartition> draw_partition();
  std::size_t draw(std::size_t count) { return static_cast<std::size_t>(rng_.below(count)); }

  Rng rng_;
  const bool uniform_;  // batches of one size, so that one fits where another stood
  ManualClock clock_;
  MemoryFileSystem files_;
  std::uint64_t end_at_ = kNever;
  std::atomic<bool> disk_full_{false};
  Ending planned_ = Ending::kPowerCut;
  bool is_closed_ = true;           // the last life that got through its start went that far
  Ending worst_ = Ending::kClosed;  // of the ends since then
  LogLedger ledger_;
  std::unique_ptr<log::LogDirectory> log_;
  std::map<TopicPartition, Offset> high_watermarks_;  // of this life
  std::int64_t next_number_ = 1;
  bool is_over_ = false;
};

Status LogMachine::fault(MemoryFileSystem::Operation operation, const std::string& path) {
  const bool grows = operation == MemoryFileSystem::Operation::kWrite ||
                     operation == MemoryFileSystem::Operation::kCreate;
  if (disk_full_ && grows && path.starts_with("data/log/t")) {
    return Error(Errc::kNoSpace, "disk full");
  }
  return {};
}

log::LogDirectoryOptions LogMachine::options() {
  log::LogDirectoryOptions options;
  options.files = &files_;
  options.clock = &clock_;
  options.seed = rng_.next();
  options.offsets_partitions = 2;
  options.metadata_snapshot_bytes = rng_.chance(1, 2) ? 400 : 20U << 20U;
  options.tail_cache_bytes = rng_.chance(1, 2) ? 0 : 4096;
  options.wal.file_bytes_min = 16U << 10U;
  options.wal.file_bytes_max = 64U << 10U;
  options.wal.total_bytes_max = kWalBytesMax;
  options.wal.checkpoint_bytes = kWalBytesMax / 4;
  options.wal.flush_by_file_max = rng_.chance(1, 2) ? 0 : 64;
  return options;
}

bool LogMachine::start() {
  auto opened = log::LogDirectory::open(kRoot, options());
  if (!opened.ok()) {
    EXPECT_TRUE(is_dead()) << opened.error().to_string();
    return false;
  }
  log_ = *std::move(opened);
  if (is_dead()) {
    return false;
  }
  // What looks at it is not cut short.
  const std::uint64_t left = end_at_ - changes();
  files_.cut_power_at(kNever);
  check();
  plan(planned_, left);
  return true;
}

void LogMachine::check() {
  high_watermarks_.clear();
  const log::RecoveryResult recovery = log_->recovery();
  EXPECT_TRUE(recovery.was_clean ? is_closed_ : worst_ != Ending::kClosed)
      << "clean " << recovery.was_clean << " closed " << is_closed_;
  for (const log::PartitionRecovery& one : recovery.partitions) {
    EXPECT_TRUE(one.failure.ok()) << one.failure.error().to_string();
    EXPECT_TRUE(one.damaged.empty()) << one.damaged.front();
  }
  ledger_.check(*log_, files_, worst_);
  check_wal_size();
  is_closed_ = false;
  worst_ = Ending::kClosed;
}

void LogMachine::end(Ending ending) {
  if (!is_dead()) {
    files_.cut_power_at(0);
  }
  files_.hold_submits(false);
  while (files_.run_submitted() > 0) {
  }
  log_.reset();
  if (ending == Ending::kKilled) {
    files_.process_crash();
  } else {
    files_.power_cut();
  }
  plan(Ending::kPowerCut, kNever);
  disk_full_ = false;
  is_over_ = false;
  worst_ = std::min(worst_, ending);
}

// True when it came to its end; what comes then takes nothing away.
bool LogMachine::close() {
  is_closed_ = true;  // also when it ends behind the writing of the marker
  const Status closed = log_->close();
  if (is_dead()) {
    return false;
  }
  EXPECT_TRUE(closed.ok()) << closed.error().to_string();
  ledger_.closed();
  std::string findings;
  const Result<log::VerifyTotals> verified =
      log::verify_log(files_, kRoot, [&findings](const log::VerifyFinding& finding) {
        // Save a folder that got no record yet, and a log with all its records deleted.
        if (finding.what != "no file of a log is in it" &&
            !finding.what.ends_with("all before it are deleted")) {
          findings += finding.file + ": " + finding.what + "\n";
        }
      });
  EXPECT_TRUE(verified.ok() && findings.empty()) << findings;
  end(Ending::kPowerCut);
  worst_ = Ending::kClosed;
  return true;
}

// --- A life

void LogMachine::work(int steps) {
  for (int i = 0; i < steps && !is_dead() && !is_over_ && !::testing::Test::HasFailure(); ++i) {
    step();
    note_durable();
    clock_.advance(milliseconds(7));
  }
}

void LogMachine::step() {
  switch (draw(20)) {
    case 0:
    case 1:
    case 2:
      return change_topics();
    case 3:
      return delete_records();
    case 4:
      return commit();
    case 5:
      return checkpoint();
    case 6:
    case 7:
      return consume();
    default:
      return produce();
  }
}

std::optional<TopicPartition> LogMachine::draw_partition() {
  const auto& topics = ledger_.topics();
  if (topics.empty()) {
    return std::nullopt;
  }
  const auto topic = std::next(topics.begin(), static_cast<std::ptrdiff_t>(draw(topics.size())));
  return TopicPartition{
      topic->first, PartitionId(static_cast<std::int32_t>(draw(topic->second.partitions.size())))};
}

// Fails the test when a living disk gave an error.
void LogMachine::expect_alive_or(const Status& status, const char* what) {
  EXPECT_TRUE(status.ok() || is_dead()) << what << ": " << status.error().to_string();
}

// Some batches of several producers; with the device slow, so that they share its next write.
void LogMachine::produce() {
  std::vector<std::shared_ptr<log::Partition>> partitions;
  for (std::size_t i = draw(6) + 1; i > 0; --i) {
    const std::optional<TopicPartition> name = draw_partition();
    if (!name) {
      return;
    }
    const auto partition = log_->partition_for_append(*name);
    expect_alive_or(partition.status(), "open for append");
    if (!partition.ok()) {
      return;
    }
    partitions.push_back(*partition);
  }
  files_.hold_submits(rng_.chance(1, 2));
  disk_full_ = rng_.chance(1, 10);
  for (const auto& partition : partitions) {
    append(*partition);
    if (rng_.chance(1, 40)) {
      checkpoint();
    }
  }
  disk_full_ = false;
  if (rng_.chance(1, 60)) {
    is_over_ = true;  // with writes on their way
    return;
  }
  files_.hold_submits(false);
  while (files_.run_submitted() > 0) {
  }
}

std::vector<std::string> LogMachine::draw_names() {
  constexpr std::array<std::size_t, 8> kSizes = {0, 10, 10, 40, 40, 300, 900, 3000};
  std::vector<std::string> names;
  const int producer = static_cast<int>(draw(3));
  for (std::size_t i = uniform_ ? 1 : draw(3) + 1; i > 0; --i) {
    names.push_back(
        record_name(uniform_ ? 900 : kSizes[draw(kSizes.size())], producer, next_number_++));
  }
  return names;
}

void LogMachine::append(log::Partition& partition) {
  const TopicPartition& name = partition.options().name;
  const std::vector<std::string> names = draw_names();
  log::BatchBuilder builder(1U << 20U);
  for (const std::string& record : names) {
    const std::string value = value_of(record);
    ASSERT_TRUE(builder.append(RecordRef{{}, ByteView(value), clock_.now(), {}}));
  }
  ledger_.trying(name, names);
  const auto appended = partition.append(builder.seal());
  if (appended.ok()) {
    ledger_.appended(name, appended->base_offset, appended->leader_epoch, names);
  } else if (is_refusal(appended.error())) {
    ledger_.refused(name, names);
  } else {
    expect_alive_or(appended.status(), "append");
  }
}

// P6: the high watermark never falls and never leads the log end. What is below it is promised.
void LogMachine::note_durable() {
  for (const auto& [topic, known] : ledger_.topics()) {
    for (std::size_t i = 0; i < known.partitions.size(); ++i) {
      const TopicPartition name{topic, PartitionId(static_cast<std::int32_t>(i))};
      const auto partition = log_->partition(name);
      if (!partition.ok()) {
        expect_alive_or(partition.status(), "open");
        return;
      }
      const PartitionOffsets at = (*partition)->offsets();
      EXPECT_LE(at.high_watermark, at.log_end);
      EXPECT_LE(at.log_start, at.high_watermark);
      Offset& before = high_watermarks_[name];
      EXPECT_GE(at.high_watermark, before);
      before = at.high_watermark;
      ledger_.durable(name, at.high_watermark);
    }
  }
}

void LogMachine::consume() {
  const std::optional<TopicPartition> name = draw_partition();
  if (!name) {
    return;
  }
  const auto partition = log_->partition(*name);
  if (!partition.ok()) {
    return expect_alive_or(partition.status(), "open");
  }
  const PartitionOffsets at = (*partition)->offsets();
  if (at.log_start == at.high_watermark) {
    return;
  }
  const Offset from =
      at.log_start.plus(rng_.between(0, at.high_watermark.value() - at.log_start.value() - 1));
  const auto read = (*partition)->read(from, draw(4000));
  if (!read.ok()) {
    return expect_alive_or(read.status(), "read");
  }
  check_read(*name, *read, (*partition)->offsets().high_watermark);
}

// P5: nothing at or above the high watermark, and what was appended.
void LogMachine::check_read(const TopicPartition& name, const log::FetchResult& read,
                            Offset high_watermark) {
  EXPECT_FALSE(read.batches.empty());
  for (const log::FetchedBatch& batch : read.batches) {
    EXPECT_LE(batch.header.next_offset(), high_watermark);
    RecordViews records;
    SharedBytes decompressed;
    const Status decoded =
        log::decode_records(batch.header, batch.bytes.bytes, {}, records, decompressed);
    ASSERT_TRUE(decoded.ok());
    for (const RecordView& record : records) {
      const std::string_view value = record.value.view_or_empty();
      if (record.offset.value() >= ledger_.find(name)->start) {
        ledger_.saw(name, record.offset, std::string(value.substr(0, value.find(':'))));
      }
    }
    ledger_.durable(name, batch.header.next_offset());
  }
}

template <class Answer>
void LogMachine::settle(const Answer& answer) {
  if (answer.ok()) {
    if constexpr (requires { answer->id; }) {
      ledger_.done(answer->id);
    } else {
      ledger_.done();
    }
  } else if (is_refusal(answer.error())) {
    ADD_FAILURE() << answer.error().to_string();
    ledger_.refused();
  } else {
    EXPECT_TRUE(is_dead()) << answer.error().to_string();
  }
}

void LogMachine::change_topics() {
  constexpr std::size_t kTopics = 4;
  const std::string name = fmt::format("t{}", draw(kTopics));
  const auto found = ledger_.topics().find(name);
  if (found == ledger_.topics().end()) {
    return create(name);
  }
  const auto partitions = static_cast<std::int32_t>(found->second.partitions.size());
  switch (draw(6)) {
    case 0:
    case 1:
      ledger_.begin({Change::Kind::kDelete, name});
      settle(log_->delete_topic(name));
      for (std::int32_t i = 0; i < partitions; ++i) {
        high_watermarks_.erase({name, PartitionId(i)});
      }
      if (!is_dead() && rng_.chance(1, 2)) {
        create(name);
      }
      return;
    case 2:
      if (partitions < 4) {
        ledger_.begin({Change::Kind::kGrow, name, partitions + 1});
        settle(log_->grow_topic(name, partitions + 1, OrderedGrowth::kRefuse));
      }
      return;
    default:
      return alter(name);
  }
}

void LogMachine::create(const std::string& name) {
  constexpr std::array<const char*, 3> kSegmentBytes = {"1200", "2500", "20000"};
  const bool fsync = rng_.chance(3, 4);
  TopicSpec spec;
  spec.name = name;
  spec.partitions = static_cast<std::int32_t>(draw(2)) + 1;
  spec.config = {{"segment.bytes", kSegmentBytes[draw(kSegmentBytes.size())]},
                 {"index.interval.bytes", "200"},
                 {"weir.durability", fsync ? "fsync" : "memory"}};
  ledger_.begin({Change::Kind::kCreate, name, spec.partitions, fsync});
  settle(log_->create_topic(spec));
}

void LogMachine::alter(const std::string& name) {
  const bool fsync = rng_.chance(1, 2);
  ledger_.begin({.kind = Change::Kind::kAlter, .topic = name, .fsync = fsync});
  settle(log_->alter_topic(name,
                           {{"weir.durability", fsync ? "fsync" : "memory"},
                            {"segment.bytes", rng_.chance(1, 2) ? "1500" : "8000"}},
                           {}));
}

void LogMachine::delete_records() {
  const std::optional<TopicPartition> name = draw_partition();
  if (!name) {
    return;
  }
  const auto partition = log_->partition(*name);
  if (!partition.ok()) {
    return expect_alive_or(partition.status(), "open");
  }
  const PartitionOffsets at = (*partition)->offsets();
  const Offset before(rng_.between(at.log_start.value(), at.high_watermark.value()));
  ledger_.begin({.kind = Change::Kind::kDeleteRecords, .partition = *name, .before = before});
  settle(log_->delete_records(*name, before));
}

void LogMachine::commit() {
  const std::optional<TopicPartition> name = draw_partition();
  if (!name) {
    return;
  }
  const LogLedger::Commit commit{rng_.chance(1, 2) ? "g0" : "g1", *name};
  const Offset offset(rng_.between(0, 1000));
  const std::pair<TopicPartition, CommittedOffset> one{*name, {offset, LeaderEpoch(0), ""}};
  ledger_.committing(commit, offset);
  const Status done = log_->offsets().commit(commit.first, {&one, 1});
  expect_alive_or(done, "commit");
  if (done.ok()) {
    ledger_.committed(commit);
  }
}

void LogMachine::checkpoint() {
  const Status done = log_->checkpoint();
  if (done.ok() || !disk_full_ || done.error().code() != Errc::kNoSpace) {
    expect_alive_or(done, "checkpoint");
  }
}

// S6
void LogMachine::check_wal_size() {
  const auto entries = files_.list("data/wal");
  ASSERT_TRUE(entries.ok());
  std::uint64_t bytes = 0;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.name.ends_with(".wal")) {
      constexpr std::uint64_t kBlock = 4096;  // less of one is what is left of a file in the making
      bytes += files_.info("data/wal/" + entry.name)->size / kBlock * kBlock;
    }
  }
  EXPECT_LE(bytes, kWalBytesMax);
}

// --- Many lives

constexpr int kSteps = 40;

struct Tally {
  std::uint64_t images = 0;  // ends of a machine or a process that a start had to recover from
  std::uint64_t power_cuts = 0;
  std::uint64_t while_starting = 0;
  std::uint64_t closes = 0;
  std::uint64_t records = 0;
};

class Case {
 public:
  Case(std::uint64_t seed, std::uint64_t operation, Tally& tally)
      : machine_(seed),
        plans_(seed * 1'000'003 + operation),
        operation_(operation),
        tally_(tally) {}

  void run() {
    machine_.plan(draw_ending(), operation_);
    live();
    for (std::uint64_t lives = plans_.below(3); lives > 0 && !failed(); --lives) {
      machine_.plan(draw_ending(), plans_.below(150));
      live();
    }
    while (!failed() && !close()) {
    }
    EXPECT_TRUE(failed() || machine_.start());
    tally_.records += machine_.ledger().records_checked();
  }

 private:
  static bool failed() { return ::testing::Test::HasFailure(); }
  Ending draw_ending() { return plans_.chance(1, 4) ? Ending::kKilled : Ending::kPowerCut; }

  // Up to the planned end, or to one behind its work.
  void live() {
    if (!start()) {
      return;
    }
    machine_.work(kSteps);
    // With writes held back there is nobody to complete them: a close would wait for ever.
    if (machine_.is_dead() || machine_.is_over() || plans_.chance(2, 3) || !machine_.close()) {
      end();
    } else {
      ++tally_.closes;
    }
  }
  // Starts and closes; now and then the end comes on the way.
  bool close() {
    if (plans_.chance(1, 4)) {
      machine_.plan(draw_ending(), plans_.below(60));
    }
    if (!start()) {
      return false;
    }
    if (!machine_.close()) {
      end();
      return false;
    }
    ++tally_.closes;
    return true;
  }
  bool start() {
    const bool started = machine_.start();
    if (!started) {
      ++tally_.while_starting;
      end();
    }
    return started;
  }
  void end() {
    const Ending ending = machine_.planned();
    machine_.end(ending);
    ++tally_.images;
    tally_.power_cuts += ending == Ending::kPowerCut ? 1 : 0;
  }

  LogMachine machine_;
  Rng plans_;
  const std::uint64_t operation_;
  Tally& tally_;
};

// Changes of the disk in the first life of a workload.
std::uint64_t rehearse(std::uint64_t seed) {
  testing::LogCapture quiet;
  LogMachine machine(seed);
  EXPECT_TRUE(machine.start());
  machine.work(kSteps);
  return machine.changes();
}

class LogPowerCut : public ::testing::TestWithParam<int> {
 protected:
  // Prints how to run it again when it fails.
  void run(std::uint64_t seed, std::uint64_t operation, Tally& tally) {
    testing::LogCapture diagnostics;
    Case(seed, operation, tally).run();
    for (const auto& [level, line] : diagnostics.lines()) {
      EXPECT_EQ(line.find("durable bytes damaged"), std::string::npos) << line;
    }
    if (HasFailure()) {
      fmt::print("WEIR_TEST_CASE={}:{}\n", seed, operation);
      for (const auto& [level, line] : diagnostics.lines()) {
        fmt::print("  {}\n", line);
      }
    }
  }
};

TEST_P(LogPowerCut, LosesNothingPromisedWhereverItComes) {
  Tally tally;
  if (const char* given = std::getenv("WEIR_TEST_CASE"); given != nullptr) {
    const std::string text = given;
    run(std::stoull(text), std::stoull(text.substr(text.find(':') + 1)), tally);
    return;
  }
  const std::uint64_t images = weir::testing::rounds<std::uint64_t>(600, 12'000) / kShards;
  const std::uint64_t seed = weir::testing::seed_of_run();
  fmt::print("seed={}\n", seed);
  SCOPED_TRACE(fmt::format("WEIR_TEST_SEED={}", seed));
  Rng rng(seed + static_cast<std::uint64_t>(GetParam()));
  std::uint64_t workloads = 0;
  while (tally.images < images) {
    const std::uint64_t workload = rng.next() % 1'000'000'000;
    ++workloads;
    const std::uint64_t changes = rehearse(workload);
    const std::uint64_t stride = weir::testing::apart(changes / 8 + 1);
    for (std::uint64_t at = rng.below(stride); at < changes; at += stride) {
      run(workload, at, tally);
      ASSERT_FALSE(HasFailure());
    }
  }
  fmt::print("images={} power_cuts={} while_starting={} workloads={} closes={} records={}\n",
             tally.images, tally.power_cuts, tally.while_starting, workloads, tally.closes,
             tally.records);
}

INSTANTIATE_TEST_SUITE_P(Shard, LogPowerCut, ::testing::Range(0, kShards));

}  // namespace
}  // namespace weir::crash
