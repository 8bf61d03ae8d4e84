#include "tests/log/partition/log_on_disk.h"
#include "tests/support/size_of_run.h"

#include <weir/runtime/logger.h>
#include <weir/runtime/rng.h>

#include <cstdio>

// Random appends, rolls, reads, restarts, crashes and power cuts against a list of batches.

namespace weir::log {
namespace {

using testing::kFolder;
using testing::kStart;
using testing::LogOnDisk;

struct ModelBatch {
  Offset base;
  Offset next;
  std::string bytes;  // as the log stamped them
  std::vector<Timestamp> times;
};

class Model {
 public:
  Model(std::uint64_t seed, DurabilityMode mode)
      : rng_(seed), disk_({seed, 512}), log_(disk_), mode_(mode) {
    log_.options.settings.segment_bytes = 600 + rng_.between(0, 4000);
    log_.options.settings.index_interval_bytes = rng_.between(0, 600);
    log_.options.settings.segment_index_bytes = rng_.chance(1, 3) ? 60 : 10 << 20;
    log_.options.settings.durability = mode;
    log_.options.leader_epoch = LeaderEpoch(0);
    log_.tail_cache_bytes = rng_.chance(1, 2) ? 0 : 12U << 10U;
    log_.open();
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      step();
    }
    if (!::testing::Test::HasFailure()) {
      end_by_power_cut();
    }
  }

 private:
  Offset end() const { return batches_.empty() ? Offset(0) : batches_.back().next; }
  LocalPartition& log() { return *log_.shared(); }

  void step() {
    const std::uint64_t dice = rng_.below(100);
    if (dice < 55) {
      append();
    } else if (dice < 70) {
      read();
    } else if (dice < 76) {
      find_time();
    } else if (dice < 84) {
      disk_.hold_submits(rng_.chance(1, 2));
      disk_.run_submitted();
    } else if (dice < 88) {
      raise_epoch();
    } else if (dice < 91) {
      checkpoint_ = log().recovery_point();
    } else if (dice < 94) {
      close();
    } else if (dice < 97) {
      crash();
    } else {
      end_by_power_cut();
    }
    seen_ = std::max(seen_, log().offsets().high_watermark);
  }

  // Appends one batch; false when the log refused it because the power went.
  bool append() {
    BatchBuilder builder(1U << 20U);
    ModelBatch batch;
    const auto count = rng_.between(1, 6);
    const Timestamp first = kStart + rng_.between(-20'000, 20'000);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string value(rng_.below(rng_.chance(1, 20) ? 3000 : 120), 'v');
      const Timestamp time = first + rng_.between(-50, 50);
      batch.times.push_back(time);
      EXPECT_TRUE(builder.append(RecordRef{ByteView("k"), ByteView(value), time, {}}));
    }
    SharedBytes bytes = builder.seal();
    batch.base = end();
    batch.next = batch.base.plus(count);
    SharedBytes stamped = SharedBytes::copy_of(bytes.view());
    stamp_offset(stamped.data(), batch.base, log().offsets().leader_epoch);
    batch.bytes = std::string(stamped.view());
    if (bytes.size() > static_cast<std::size_t>(log_.options.settings.segment_bytes)) {
      const Error refused = log().append(std::move(bytes)).error();
      EXPECT_EQ(refused.code(), disk_.power_is_off() ? Errc::kIo : Errc::kRecordTooLarge);
      return !disk_.power_is_off();
    }
    const Result<Partition::Appended> appended = log().append(std::move(bytes));
    if (!appended.ok()) {
      EXPECT_TRUE(disk_.power_is_off()) << appended.error().to_string();
      maybe_ = std::move(batch);
      return false;
    }
    EXPECT_EQ(appended->base_offset, batch.base);
    EXPECT_EQ(appended->next_offset, batch.next);
    batches_.push_back(std::move(batch));
    return true;
  }

  std::size_t index_of(Offset offset) const {
    std::size_t i = 0;
    while (batches_[i].next <= offset) {
      ++i;
    }
    return i;
  }

  void read() {
    const bool to_log_end = rng_.chance(1, 4);
    const PartitionOffsets at = log().offsets();
    const Offset limit = to_log_end ? at.log_end : at.high_watermark;
    const Offset from(rng_.between(0, at.log_end.value()));
    const Result<FetchResult> result =
        log().read(from, rng_.below(4000),
                   to_log_end ? FetchIsolation::kLogEnd : FetchIsolation::kHighWatermark);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    if (from >= limit) {
      EXPECT_TRUE(result->batches.empty());
      EXPECT_EQ(result->next_offset, from);
      return;
    }
    ASSERT_FALSE(result->batches.empty());
    std::size_t i = index_of(from);
    for (const FetchedBatch& batch : result->batches) {
      ASSERT_LT(i, batches_.size());
      EXPECT_LE(batch.header.next_offset(), limit);
      EXPECT_EQ(batch.bytes.bytes, batches_[i].bytes);
      ++i;
    }
    EXPECT_EQ(result->next_offset, batches_[i - 1].next);
  }

  void find_time() {
    const Timestamp time = kStart + rng_.between(-21'000, 21'000);
    const Offset limit = log().offsets().high_watermark;
    std::optional<Offset> expected;
    for (const ModelBatch& batch : batches_) {
      for (std::size_t i = 0; i < batch.times.size() && !expected; ++i) {
        const Offset offset = batch.base.plus(static_cast<std::int64_t>(i));
        if (batch.times[i] >= time && offset < limit) {
          expected = offset;
        }
      }
    }
    const auto found = log().offset_for_time(time);
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    EXPECT_EQ(*found, expected);
  }

  void raise_epoch() {
    const LeaderEpoch next(log().offsets().leader_epoch.value() +
                           static_cast<std::int32_t>(rng_.between(1, 3)));
    ASSERT_TRUE(log().set_leader_epoch(next).ok());
    log_.options.leader_epoch = next;
  }

  void close() {
    ASSERT_TRUE(log().close().ok());
    EXPECT_EQ(log().recovery_point(), end());
    checkpoint_ = log().recovery_point();
    if (rng_.chance(1, 2)) {
      log_.close_all();
      disk_.power_cut();
    }
    log_.options.recovery_point = checkpoint_;
    log_.reopen(true);
    EXPECT_FALSE(log().recovery().scanned);
    expect_all();
  }

  // The process dies, the disk's cache does not.
  void crash() {
    seen_ = std::max(seen_, log().offsets().high_watermark);
    log_.close_all();
    disk_.process_crash();
    reopen_unclean();
    ASSERT_EQ(log().offsets().log_end, end());
    expect_all();
  }

  void end_by_power_cut() {
    disk_.cut_power_at(rng_.below(40));
    for (int i = 0; i < 200 && !disk_.power_is_off(); ++i) {
      disk_.hold_submits(rng_.chance(1, 3));
      disk_.run_submitted();
      if (!append()) {
        break;
      }
      seen_ = std::max(seen_, log().offsets().high_watermark);
    }
    disk_.run_submitted();
    seen_ = std::max(seen_, log().offsets().high_watermark);
    log_.close_all();
    disk_.power_cut();
    disk_.hold_submits(false);
    if (rng_.chance(1, 3)) {
      cut_power_in_recovery();
    }
    reopen_unclean();
    expect_prefix();
    expect_all();
  }

  void cut_power_in_recovery() {
    log_.options.clean = false;
    log_.options.recovery_point = checkpoint_;
    disk_.cut_power_at(rng_.below(8));
    if (log_.try_open().ok()) {
      log_.close_all();
    }
    disk_.power_cut();
  }

  void reopen_unclean() {
    log_.options.recovery_point = checkpoint_;
    log_.reopen(false);
    EXPECT_EQ(log().recovery().scanned, !log().segments().empty());
    EXPECT_TRUE(log().recovery().damaged.empty())
        << ::testing::PrintToString(log().recovery().damaged);
  }

  // What the log has now is where the model goes on.
  void expect_prefix() {
    const Offset found = log().offsets().log_end;
    if (mode_ == DurabilityMode::kFsync) {
      ASSERT_GE(found, seen_) << "a record that was shown is gone";
    }
    ASSERT_GE(found, checkpoint_);
    if (maybe_ && maybe_->next == found) {
      batches_.push_back(*maybe_);
    }
    maybe_.reset();
    while (end() > found) {
      batches_.pop_back();
    }
    ASSERT_EQ(end(), found) << "the log ends inside a batch";
    seen_ = found;
  }

  void expect_all() {
    ASSERT_EQ(log().offsets().high_watermark, end());
    const testing::ReadBack read = testing::read_all(log(), Offset(0), 1 + rng_.below(5000));
    ASSERT_TRUE(read.errors.empty()) << read.errors[0];
    ASSERT_EQ(read.batches.size(), batches_.size());
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      ASSERT_EQ(read.batches[i], batches_[i].bytes) << i;
    }
  }

  Rng rng_;
  weir::testing::MemoryFileSystem disk_;
  LogOnDisk log_;
  const DurabilityMode mode_;
  std::vector<ModelBatch> batches_;
  std::optional<ModelBatch> maybe_;  // refused while the power went: it may be there or not
  Offset seen_;                      // largest high watermark that anybody saw
  Offset checkpoint_;                // recovery point as a checkpoint file has it
};

void run_models(DurabilityMode mode) {
  const std::uint64_t seed = weir::testing::seed_of_run();
  const std::uint64_t runs = weir::testing::rounds<std::uint64_t>(60, 600);
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(seed + runs - 1));
  const LogLevel before = log_level();
  set_log_level(LogLevel::kOff);
  for (std::uint64_t i = 0; i < runs && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(seed + i);
    Model(seed + i, mode).run(150);
  }
  set_log_level(before);
}

TEST(PartitionModel, LosesNothingThatWasShownOfAnFsyncLog) {
  run_models(DurabilityMode::kFsync);
}

TEST(PartitionModel, KeepsAPrefixOfAMemoryLog) {
  run_models(DurabilityMode::kMemory);
}

}  // namespace
}  // namespace weir::log
