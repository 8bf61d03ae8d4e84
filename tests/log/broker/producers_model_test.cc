#include "log/broker/log_directory.h"
#include "log/partition/await.h"
#include "tests/log/partition/producer_support.h"
#include "tests/runtime/observe/capture.h"
#include "tests/support/size_of_run.h"

#include <weir/runtime/rng.h>

#include <deque>
#include <set>

// A partition's producers and transactions over restarts, kills and power cuts, against a reference
// that knows nothing but the batches of the log.

namespace weir::log {
namespace {

using testing::From;
using testing::kStart;
using weir::testing::LogCapture;
using weir::testing::ManualClock;
using weir::testing::MemoryFileSystem;

const TopicPartition kLines{"lines", PartitionId(0)};

struct Entry {
  BatchHeader header;
  std::optional<ControlRecord> marker;
};

// --- The reference: what follows from the batches, the obvious way.

struct RefBatch {
  std::int32_t first_sequence;
  std::int32_t last_sequence;
  Offset first;
  Offset last;
  bool aborted = false;
};
struct RefProducer {
  std::int16_t epoch = -1;
  std::int32_t coordinator = -1;
  std::deque<RefBatch> window;
  std::int64_t open = -1;
};
struct Reference {
  std::map<std::int64_t, RefProducer> producers;
  std::vector<AbortedTransaction> aborted;
  std::set<std::int64_t> committed;  // offsets that a read_committed reader sees below `stable`
  Offset stable;
};

Reference reference_of(const std::vector<Entry>& history, Offset end) {
  Reference ref;
  std::map<std::int64_t, std::vector<std::int64_t>> undecided;
  for (const Entry& entry : history) {
    const BatchHeader& header = entry.header;
    const std::int64_t id = header.producer_id.value();
    if (header.base_offset >= end) {
      break;
    }
    RefProducer& producer = ref.producers[id];
    if (entry.marker) {
      const bool abort = entry.marker->type == ControlType::kAbort;
      if (producer.open >= 0) {
        const std::int64_t first = std::exchange(producer.open, -1);
        std::int64_t stable = header.base_offset.value() + 1;
        for (const auto& [other, state] : ref.producers) {
          stable = state.open >= 0 ? std::min(stable, state.open) : stable;
        }
        if (abort) {
          ref.aborted.push_back(
              {0, header.producer_id, Offset(first), header.base_offset, Offset(stable)});
          for (RefBatch& batch : producer.window) {
            batch.aborted |= batch.first.value() >= first;
          }
        }
        for (const std::int64_t offset : undecided[id]) {
          if (!abort) {
            ref.committed.insert(offset);
          }
        }
        undecided[id].clear();
      }
      if (producer.epoch != header.producer_epoch.value()) {
        producer.window.clear();
      }
      producer.epoch = header.producer_epoch.value();
      producer.coordinator = entry.marker->coordinator_epoch;
      continue;
    }
    if (producer.epoch != header.producer_epoch.value()) {
      producer.window.clear();
      producer.epoch = header.producer_epoch.value();
    }
    const std::int64_t last =
        (std::int64_t{header.base_sequence} + header.last_offset_delta) & 0x7fffffff;
    producer.window.push_back({header.base_sequence, static_cast<std::int32_t>(last),
                               header.base_offset, header.last_offset()});
    if (producer.window.size() > 5) {
      producer.window.pop_front();
    }
    for (Offset at = header.base_offset; at <= header.last_offset(); at = at.next()) {
      if (header.is_transactional()) {
        undecided[id].push_back(at.value());
      } else {
        ref.committed.insert(at.value());
      }
    }
    if (header.is_transactional() && producer.open < 0) {
      producer.open = header.base_offset.value();
    }
  }
  ref.stable = end;
  for (const auto& [id, producer] : ref.producers) {
    if (producer.open >= 0) {
      ref.stable = std::min(ref.stable, Offset(producer.open));
    }
  }
  return ref;
}

class Model {
 public:
  Model(std::uint64_t seed, DurabilityMode durability)
      : rng_(seed),
        durability_(durability),
        // A memory log may lose with a power cut what its deleted records have said of producers.
        deletes_(durability == DurabilityMode::kFsync || seed % 2 == 0),
        cuts_(durability == DurabilityMode::kFsync || !deletes_),
        disk_(MemoryFileSystem::Options{.seed = seed}) {
    open();
    TopicConfig config = {{"segment.bytes", "2000"}, {"index.interval.bytes", "300"}};
    if (durability_ == DurabilityMode::kMemory) {
      config["weir.durability"] = "memory";
    }
    EXPECT_TRUE(log_->create_topic({kLines.topic, 1, config}).ok());
  }
  ~Model() { end(); }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      step();
      if (died_) {
        restart(rng_.chance(1, 2));
      }
    }
    if (!::testing::Test::HasFailure()) {
      restart(false);
    }
  }

 private:
  void open() {
    LogDirectoryOptions options;
    options.files = &disk_;
    options.clock = &clock_;
    options.seed = 7;
    options.tail_cache_bytes = rng_.chance(1, 2) ? 0 : 4096;
    options.offsets_partitions = 1;
    options.wal = {
        .file_bytes_min = 16U << 10U, .file_bytes_max = 64U << 10U, .total_bytes_max = 256U << 10U};
    Result<std::unique_ptr<LogDirectory>> opened = LogDirectory::open("data", options);
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    log_ = *std::move(opened);
  }
  void end() {
    disk_.cut_power_at(std::uint64_t{1} << 60U);
    log_.reset();
  }
  std::shared_ptr<Partition> partition() {
    if (log_ == nullptr) {
      return nullptr;  // it failed to open, and the test with it
    }
    Result<std::shared_ptr<Partition>> opened = log_->partition_for_append(kLines);
    if (!opened.ok()) {
      died_ = true;
      return nullptr;
    }
    return *opened;
  }

  // --- Steps

  void step() {
    if (disk_.power_is_off()) {
      died_ = true;
      return;
    }
    clock_.advance(std::chrono::milliseconds(rng_.below(50)));
    const std::uint64_t dice = rng_.below(100);
    if (dice < 55) {
      send();
    } else if (dice < 70) {
      send_again();
    } else if (dice < 82) {
      end_transaction();
    } else if (dice < 86) {
      died_ |= !log_->checkpoint().ok();
    } else if (dice < 89 && deletes_) {
      delete_records();
    } else if (dice < 92) {
      close_cleanly();
    } else if (dice < 95) {
      disk_.cut_power_at(rng_.below(40));
    } else if (dice < 98) {
      restart(rng_.chance(1, 2));
    } else {
      check(false);
    }
  }

  const RefProducer& known(std::int64_t id) {
    now_ = reference_of(history_, end_);
    return now_.producers[id];
  }

  std::optional<Partition::Appended> append(SharedBytes batch, const AppendOptions& options,
                                            std::optional<Errc> wanted = std::nullopt) {
    const std::shared_ptr<Partition> log = partition();
    if (log == nullptr) {
      return std::nullopt;
    }
    const std::string bytes(batch.view());
    Result<Partition::Appended> appended = log->append(std::move(batch), options);
    if (!appended.ok()) {
      if (appended.error().code() == Errc::kIo) {
        died_ = true;
      } else {
        EXPECT_EQ(appended.error().code(), wanted) << appended.error().to_string();
      }
      return std::nullopt;
    }
    EXPECT_FALSE(wanted.has_value());
    if (!appended->duplicate) {
      EXPECT_EQ(appended->base_offset, end_);
      note(bytes, appended->base_offset);
    }
    if (durability_ == DurabilityMode::kFsync &&
        !await_high_watermark(log, appended->next_offset, std::chrono::seconds(10)).ok()) {
      died_ = true;
    } else if (durability_ == DurabilityMode::kFsync) {
      promised_ = std::max(promised_, appended->next_offset);
    }
    return *appended;
  }

  void note(ByteView bytes, Offset base) {
    Entry entry;
    entry.header = read_batch_header(bytes).value();
    entry.header.base_offset = base;
    entry.marker = read_end_transaction_marker(entry.header, bytes).value();
    end_ = entry.header.next_offset();
    history_.push_back(std::move(entry));
  }

  void send() {
    const auto id = static_cast<std::int64_t>(rng_.below(5));
    const RefProducer& producer = known(id);
    From from{id, std::max<std::int16_t>(producer.epoch, 0), 0, producer.open >= 0};
    if (!producer.window.empty()) {
      from.sequence = sequence_plus(producer.window.back().last_sequence, 1);
    } else if (producer.epoch < 0) {
      from.sequence = rng_.chance(1, 3) ? 2147483640 : 0;
    }
    from.transactional |= rng_.chance(1, 2);
    const int count = 1 + static_cast<int>(rng_.below(4));
    const bool is_known = producer.epoch >= 0;
    std::optional<Errc> wanted;
    if (is_known && rng_.chance(1, 8)) {
      from.sequence = sequence_plus(from.sequence, 1 + static_cast<std::int32_t>(rng_.below(9)));
      wanted = Errc::kOutOfOrderSequence;
    } else if (is_known && from.epoch > 0 && rng_.chance(1, 10)) {
      --from.epoch;
      wanted = Errc::kInvalidProducerEpoch;
    } else if (is_known && producer.open < 0 && rng_.chance(1, 12)) {
      ++from.epoch;
      from.sequence = 0;
    } else if (producer.open >= 0 && rng_.chance(1, 12)) {
      from.transactional = false;
      wanted = Errc::kInvalidTxnState;
    }
    append(testing::producer_batch(from, count, clock_.now()), AppendOrigin::kBuilder, wanted);
  }

  void send_again() {
    const auto id = static_cast<std::int64_t>(rng_.below(5));
    const RefProducer& producer = known(id);
    if (producer.window.empty()) {
      return;
    }
    const RefBatch batch = producer.window[rng_.below(producer.window.size())];
    const From from{id, producer.epoch, batch.first_sequence, true};
    const auto count = static_cast<int>(batch.last.value() - batch.first.value()) + 1;
    const auto answer =
        append(testing::producer_batch(from, count, clock_.now()), AppendOrigin::kBuilder,
               batch.aborted ? std::optional(Errc::kOutOfOrderSequence) : std::nullopt);
    if (answer) {
      EXPECT_TRUE(answer->duplicate);
      EXPECT_EQ(answer->base_offset, batch.first);
      EXPECT_EQ(answer->next_offset, batch.last.next());
    }
  }

  void end_transaction() {
    const auto id = static_cast<std::int64_t>(rng_.below(5));
    const RefProducer& producer = known(id);
    if (producer.epoch < 0) {
      return;
    }
    AppendOptions options = AppendOrigin::kCoordinator;
    options.transaction_version = rng_.chance(1, 2) ? 2 : 0;
    std::int16_t epoch = producer.epoch;
    if (options.transaction_version == 2 && producer.open >= 0) {
      ++epoch;
    }
    const bool again = options.transaction_version == 2 && producer.open < 0;
    const auto type = rng_.chance(1, 2) ? ControlType::kAbort : ControlType::kCommit;
    const auto answer = append(
        testing::marker(type, id, epoch, std::max(producer.coordinator, 0), clock_.now()), options);
    EXPECT_TRUE(!answer || answer->duplicate == again);
  }

  void delete_records() {
    const std::shared_ptr<Partition> log = partition();
    if (log == nullptr) {
      return;
    }
    const auto high = static_cast<std::uint64_t>(log->offsets().high_watermark.value());
    const Status deleted =
        log_->delete_records(kLines, Offset(static_cast<std::int64_t>(rng_.below(high + 1))));
    died_ |= !deleted.ok();
  }

  void close_cleanly() {
    if (!log_->close().ok()) {
      died_ = true;
      return;
    }
    log_.reset();
    const bool is_off = disk_.power_is_off();
    disk_.cut_power_at(std::uint64_t{1} << 60U);
    if (is_off || rng_.chance(1, 2)) {
      disk_.power_cut();  // a clean close has synced all
    }
    open();
    check(true);
  }

  void restart(bool power_cut) {
    end();
    if (power_cut && cuts_) {
      disk_.power_cut();
    } else {
      disk_.process_crash();
    }
    const LogCapture quiet;
    died_ = false;
    open();
    check(true);
  }

  // --- Checks

  void check(bool restarted) {
    const std::shared_ptr<Partition> log = partition();
    if (log == nullptr) {
      ASSERT_FALSE(restarted);
      return;
    }
    const PartitionOffsets at = log->offsets();
    if (restarted) {
      catch_up(*log);
    }
    ASSERT_EQ(at.log_end, end_);
    const Reference ref = reference_of(history_, end_);
    compare(log->producers(), ref);
    if (at.high_watermark == at.log_end) {
      EXPECT_EQ(at.last_stable, std::max(ref.stable, at.log_start));
      compare_reading(*log, ref);
    }
  }

  // The log may have lost what was not promised, or have what was not confirmed.
  void catch_up(Partition& log) {
    const Offset end = log.offsets().log_end;
    ASSERT_GE(end, promised_);
    while (!history_.empty() && history_.back().header.base_offset >= end) {
      history_.pop_back();
    }
    end_ = history_.empty() ? Offset(0) : history_.back().header.next_offset();
    ASSERT_LE(end_, end);
    while (end_ < end) {
      const auto read = log.read(end_, 1, FetchIsolation::kLogEnd);
      ASSERT_TRUE(read.ok()) << read.error().to_string();
      note(read->batches.front().bytes.bytes, read->batches.front().header.base_offset);
    }
  }

  static void compare(const ProducerState& state, const Reference& ref) {
    EXPECT_EQ(state.size(), ref.producers.size());
    for (const auto& [id, producer] : ref.producers) {
      const ProducerState::Producer* is = state.find(ProducerId(id));
      ASSERT_NE(is, nullptr) << id;
      EXPECT_EQ(is->epoch.value(), producer.epoch);
      EXPECT_EQ(is->coordinator_epoch, producer.coordinator);
      EXPECT_EQ(is->transaction_first.value(), producer.open);
      ASSERT_EQ(is->batch_count, producer.window.size()) << "producer " << id;
      for (std::size_t i = 0; i < producer.window.size(); ++i) {
        EXPECT_EQ(is->batches[i].first_sequence(), producer.window[i].first_sequence);
        EXPECT_EQ(is->batches[i].last_sequence, producer.window[i].last_sequence);
        EXPECT_EQ(is->batches[i].first_offset(), producer.window[i].first);
        EXPECT_EQ(is->batches[i].last_offset, producer.window[i].last);
        EXPECT_EQ(is->batches[i].aborted, producer.window[i].aborted);
      }
    }
  }

  void compare_reading(Partition& log, const Reference& ref) {
    AbortedTransactions entries;
    const auto segments = log.segments();
    for (const auto& segment : segments) {
      const auto some = segment->aborted_transactions();
      ASSERT_TRUE(some.ok()) << some.error().to_string();
      entries.insert(entries.end(), some->begin(), some->end());
    }
    AbortedTransactions wanted = ref.aborted;
    const Offset first = segments.empty() ? log.offsets().log_end : segments[0]->base_offset();
    // Of one that began in records that are deleted the index may say less: what readers see is
    // compared below.
    const Offset start = std::max(first, log.offsets().log_start);
    const auto is_partly_gone = [&](const auto& one) { return one.first_offset < start; };
    std::erase_if(wanted, is_partly_gone);
    std::erase_if(entries, is_partly_gone);
    EXPECT_EQ(entries.size(), wanted.size());
    EXPECT_TRUE(entries == wanted);

    std::set<std::int64_t> seen;
    Offset from = log.offsets().log_start;
    const Offset stable = log.offsets().last_stable;
    while (from < stable) {
      const auto read = log.read(from, rng_.below(500), FetchIsolation::kCommitted);
      ASSERT_TRUE(read.ok()) << read.error().to_string();
      for (const FetchedBatch& batch : read->batches) {
        const bool aborted = std::any_of(read->aborted.begin(), read->aborted.end(),
                                         [&](const auto& one) { return one.covers(batch.header); });
        for (Offset at = batch.header.base_offset;
             !aborted && !batch.header.is_control() && at <= batch.header.last_offset();
             at = at.next()) {
          if (at >= log.offsets().log_start) {
            seen.insert(at.value());
          }
        }
      }
      ASSERT_GT(read->next_offset, from);
      from = read->next_offset;
    }
    std::set<std::int64_t> visible;
    for (const std::int64_t offset : ref.committed) {
      if (offset >= log.offsets().log_start.value() && offset < stable.value()) {
        visible.insert(offset);
      }
    }
    EXPECT_TRUE(seen == visible);
  }

  Rng rng_;
  const DurabilityMode durability_;
  const bool deletes_;
  const bool cuts_;
  MemoryFileSystem disk_;
  ManualClock clock_{kStart};
  std::unique_ptr<LogDirectory> log_;
  std::vector<Entry> history_;
  Reference now_;
  Offset end_;
  Offset promised_;
  bool died_ = false;
};

class ProducersModel : public ::testing::TestWithParam<DurabilityMode> {};

TEST_P(ProducersModel, KnowsItsProducersThroughEveryEnd) {
  const int runs = weir::testing::rounds(12, 2000);
  for (int i = 0; i < runs && !HasFailure(); ++i) {
    const std::uint64_t seed =
        weir::testing::given_seed().value_or(1 + static_cast<std::uint64_t>(i));
    SCOPED_TRACE(fmt::format("WEIR_TEST_SEED={}", seed));
    Model(seed, GetParam()).run(300);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProducersModel,
                         ::testing::Values(DurabilityMode::kFsync, DurabilityMode::kMemory),
                         [](const auto& one) {
                           return one.param == DurabilityMode::kFsync ? "fsync" : "memory";
                         });

}  // namespace
}  // namespace weir::log
