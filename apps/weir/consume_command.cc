#include "apps/cli/data_directory.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/json_text.h"
#include "apps/weir/commands.h"
#include "apps/weir/serde_text.h"

#include <weir/log/consumer.h>
#include <weir/runtime/executor.h>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>

namespace weir::cli {
namespace {

std::string text_of(const NullableBytes& bytes, const std::string& serde) {
  return bytes.is_null() ? "null" : value_text(serde, bytes.view());
}

std::string headers_text(const HeadersView& headers) {
  std::string text;
  for (const HeaderView& header : headers) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", header.name,
                        header.value.is_null() ? ByteView("null") : header.value.view());
  }
  return text.empty() ? "NO_HEADERS" : text;
}

void print(Output& out, const CommonOptions& common, const ConsumeOptions& options,
           const TopicPartition& partition, const RecordView& record) {
  if (common.format == Format::kJson) {
    out.line(json_record(partition, record));
    return;
  }
  if (options.print_timestamp) {
    out.write(fmt::format("CreateTime:{}{}", record.timestamp, options.separator));
  }
  if (options.print_offset) {
    out.write(fmt::format("Partition:{}{}Offset:{}{}", partition.partition.value(),
                          options.separator, record.offset.value(), options.separator));
  }
  if (options.print_headers) {
    out.write(headers_text(record.headers) + options.separator);
  }
  if (options.print_key) {
    out.write(text_of(record.key, options.key_format) + options.separator);
  }
  out.line(text_of(record.value, options.value_format));
}

struct Range {
  TopicPartition partition;
  Offset end;  // as of the start
};

// What to read, checked: partitions of the topic, positions inside the log.
Result<std::vector<Range>> plan_ranges(Admin& admin, const ConsumeOptions& options) {
  WEIR_TRY_ASSIGN(const TopicDescription topic, admin.describe_topic(options.topic));
  if (options.partition && (*options.partition < 0 || *options.partition >= topic.partitions)) {
    return Error(Errc::kUnknownTopic,
                 fmt::format("topic {} has partitions 0 to {}, not {}", topic.name,
                             topic.partitions - 1, *options.partition));
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
  std::vector<Range> ranges;
  for (std::int32_t i = 0; i < topic.partitions; ++i) {
    if (options.partition && *options.partition != i) {
      continue;
    }
    const TopicPartition partition{topic.name, PartitionId(i)};
    WEIR_TRY_ASSIGN(const PartitionOffsets at, admin.offsets(partition));
    if (options.offset &&
        (*options.offset < at.log_start.value() || *options.offset > at.high_watermark.value())) {
      return Error(
          Errc::kOffsetOutOfRange,
          fmt::format("offset {} is outside {}, which holds {} to {}", *options.offset,
                      partition.to_string(), at.log_start.value(), at.high_watermark.value()));
    }
    ranges.push_back({partition, at.high_watermark});
  }
  return ranges;
}

class Run {
 public:
  Run(const CommonOptions& common, const ConsumeOptions& options)
      : common_(common), options_(options) {}

  Status execute(Backend& log) {
    WEIR_TRY_ASSIGN(ranges_, plan_ranges(log.admin(), options_));
    log::ConsumerOptions consumer_options;
    consumer_options.auto_offset_reset = "earliest";
    WEIR_TRY_ASSIGN(consumer_, log::Consumer::open(log, consumer_options));
    std::vector<TopicPartition> partitions;
    partitions.reserve(ranges_.size());
    for (const Range& range : ranges_) {
      partitions.push_back(range.partition);
    }
    WEIR_TRY(consumer_->assign(partitions));
    if (options_.offset) {
      WEIR_TRY(consumer_->seek(partitions.front(), Offset(*options_.offset)));
    }
    const auto signals = watch_termination_signals([this](int) {
      if (stop_.exchange(true)) {
        std::_Exit(kInterrupted);
      }
      consumer_->wakeup();
    });
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
        return {};
      }
    }
  }

 private:
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
      print(out_, common_, options_, *batch.partition, record);
      ++printed_;
    }
  }

  const CommonOptions& common_;
  const ConsumeOptions& options_;
  std::vector<Range> ranges_;
  std::unique_ptr<log::Consumer> consumer_;
  Output out_;
  std::uint64_t printed_ = 0;
  std::atomic<bool> stop_{false};
};

}  // namespace

int consume(const CommonOptions& common, const ConsumeOptions& options) {
  auto log = open_for_reading(common.data);
  if (!log.ok()) {
    return report(kProgram, log.error());
  }
  Run run(common, options);
  const Status done = run.execute(**log);
  if (!done.ok()) {
    return report(kProgram, done.error());
  }
  return kOk;
}

}  // namespace weir::cli
