#include "apps/cli/exit_codes.h"
#include "apps/cli/iso_time.h"
#include "apps/weir/commands.h"
#include "apps/weir/group_offsets.h"

#include <weir/log/consumer.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/executor.h>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>

namespace weir::cli {
namespace {

constexpr auto kCommitInterval = std::chrono::seconds(5);

struct Range {
  TopicPartition partition;
  Offset end;  // as of the start
};

Status check_start(const TopicDescription& topic, const ConsumeOptions& options) {
  const int starts = (options.offset ? 1 : 0) + (options.time ? 1 : 0) + (options.latest ? 1 : 0);
  if (starts > 1) {
    return Error(Errc::kInvalidArgument,
                 "more than one start is given; choose one of --offset, --time and --latest");
  }
  if (options.offset && *options.offset < 0) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("--offset {} is negative; offsets count from 0", *options.offset));
  }
  if (options.offset && !options.partition && topic.partitions > 1) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("--offset needs --partition: topic {} has {} partitions", topic.name,
                             topic.partitions));
  }
  return {};
}

bool reads_committed(const ConsumeOptions& options) {
  return options.isolation_level == "read_committed";
}

// What to read, checked: partitions of the topic, positions inside the log.
Result<std::vector<Range>> plan_ranges(Admin& admin, const ConsumeOptions& options) {
  WEIR_TRY_ASSIGN(const TopicDescription topic, admin.describe_topic(options.topic));
  WEIR_TRY(check_start(topic, options));
  std::vector<std::int32_t> only;
  if (options.partition) {
    only.push_back(*options.partition);
  }
  WEIR_TRY_ASSIGN(const std::vector<TopicPartition> partitions,
                  partitions_of(admin, topic.name, only));
  std::vector<Range> ranges;
  for (const TopicPartition& partition : partitions) {
    WEIR_TRY_ASSIGN(const PartitionOffsets at, admin.offsets(partition));
    if (options.offset &&
        (*options.offset < at.log_start.value() || *options.offset > at.high_watermark.value())) {
      return Error(
          Errc::kOffsetOutOfRange,
          fmt::format("offset {} is outside {}, which holds {} to {}", *options.offset,
                      partition.to_string(), at.log_start.value(), at.high_watermark.value()));
    }
    ranges.push_back({partition, reads_committed(options) ? at.last_stable : at.high_watermark});
  }
  return ranges;
}

class Run {
 public:
  Run(const CommonOptions& common, const ConsumeOptions& options)
      : common_(common), options_(options) {}

  Status execute(log::EmbeddedLog& log) {
    WEIR_TRY_ASSIGN(ranges_, plan_ranges(log.admin(), options_));
    if (!options_.group.empty()) {
      WEIR_TRY(check_group_may_move(log, options_.group));
    }
    log::ConsumerOptions consumer_options;
    consumer_options.auto_offset_reset = "earliest";
    consumer_options.group_id = options_.group;
    if (reads_committed(options_)) {
      consumer_options.isolation_level = log::IsolationLevel::kReadCommitted;
    }
    consumer_options.auto_commit = false;  // committed is what was printed
    WEIR_TRY_ASSIGN(consumer_, log::Consumer::open(log, consumer_options));
    WEIR_TRY(start());
    const auto signals = watch_termination_signals([this](int) {
      if (stop_.exchange(true)) {
        std::_Exit(kInterrupted);
      }
      consumer_->wakeup();
    });
    Status read = read_all();
    Status committed = commit();
    return read.ok() ? committed : read;
  }

 private:
  Status start() {
    std::vector<TopicPartition> partitions;
    partitions.reserve(ranges_.size());
    for (const Range& range : ranges_) {
      partitions.push_back(range.partition);
    }
    WEIR_TRY(consumer_->assign(partitions));
    if (options_.offset) {
      return consumer_->seek(partitions.front(), Offset(*options_.offset));
    }
    if (options_.latest) {
      return consumer_->seek_to_end();
    }
    if (options_.time) {
      WEIR_TRY_ASSIGN(const Timestamp time, parse_time(*options_.time));
      for (const TopicPartition& partition : partitions) {
        WEIR_TRY(consumer_->seek_to_time(partition, time));
      }
    }
    return {};
  }

  Status read_all() {
    for (;;) {
      WEIR_TRY_ASSIGN(const bool done, finished());
      if (done) {
        return {};
      }
      WEIR_TRY_ASSIGN(const log::ConsumerRecords records, consumer_->poll(std::chrono::seconds(1)));
      for (const log::ConsumerBatch& batch : records.batches()) {
        print_batch(batch);
      }
      if (!out_.flush()) {
        printed_offsets_.clear();  // what the reader has seen of them is unknown
        return {};
      }
      if (system_clock().monotonic() >= next_commit_) {
        WEIR_TRY(commit());
      }
    }
  }

  // Only of what has gone to stdout.
  Status commit() {
    next_commit_ = system_clock().monotonic() + kCommitInterval;
    if (options_.group.empty() || printed_offsets_.empty()) {
      return {};
    }
    WEIR_TRY(consumer_->commit(printed_offsets_));
    printed_offsets_.clear();
    return {};
  }

  Result<bool> finished() {
    if (stop_ || (options_.max_messages && printed_ >= *options_.max_messages)) {
      return true;
    }
    if (options_.follow) {
      return false;
    }
    for (const Range& range : ranges_) {
      WEIR_TRY_ASSIGN(const Offset position, consumer_->position(range.partition));
      if (position < range.end) {
        return false;
      }
    }
    return true;
  }

  void print_batch(const log::ConsumerBatch& batch) {
    Offset end(INT64_MAX);
    for (const Range& range : ranges_) {
      if (!options_.follow && range.partition == *batch.partition) {
        end = range.end;
      }
    }
    for (const RecordView& record : batch.records) {
      if (record.offset >= end || (options_.max_messages && printed_ >= *options_.max_messages)) {
        return;
      }
      print_record(out_, common_.format, options_.format, *batch.partition, record);
      ++printed_;
      printed_offsets_[*batch.partition] = {record.offset.next(), batch.leader_epoch, {}};
    }
  }

  const CommonOptions& common_;
  const ConsumeOptions& options_;
  std::vector<Range> ranges_;
  std::unique_ptr<log::Consumer> consumer_;
  Output out_;
  std::uint64_t printed_ = 0;
  log::ConsumerOffsets printed_offsets_;  // behind what was printed since the last commit
  MonotonicTime next_commit_ = system_clock().monotonic() + kCommitInterval;
  std::atomic<bool> stop_{false};
};

}  // namespace

int consume(const CommonOptions& common, const ConsumeOptions& options) {
  return with_log(common, options.group.empty() ? Access::kRead : Access::kWrite,
                  [&](log::EmbeddedLog& log) { return Run(common, options).execute(log); });
}

}  // namespace weir::cli
