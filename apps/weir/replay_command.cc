#include "apps/cli/data_directory.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/iso_time.h"
#include "apps/cli/json_text.h"
#include "apps/cli/stored_report.h"
#include "apps/weir/commands.h"

#include <weir/log/stored_log.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/executor.h>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>

namespace weir::cli {
namespace {

// Of a topic that is made: history must neither be deleted for its age nor be cut into a segment a
// week.
const TopicConfig kReplayedConfig{{"retention.ms", "-1"}, {"segment.ms", "3155760000000000"}};
constexpr std::size_t kBatchBytes = 256U << 10U;

// Where records go.
class Target {
 public:
  virtual ~Target() = default;
  virtual Status take(const TopicPartition& from, const RecordView& record) = 0;
  // After each poll. False: nobody wants more.
  virtual bool wants_more() { return true; }
  virtual Status finish() { return {}; }
};

class Printer final : public Target {
 public:
  Printer(const CommonOptions& common, const RecordFormat& text) : common_(common), text_(text) {}
  Status take(const TopicPartition& from, const RecordView& record) override {
    print_record(out_, common_.format, text_, from, record);
    return {};
  }
  bool wants_more() override { return out_.flush(); }

 private:
  const CommonOptions& common_;
  const RecordFormat& text_;
  Output out_;
};

// Appends to the partition of the same number.
class Copier final : public Target {
 public:
  // Makes the topic if it is absent. Errors: kInvalidArgument (it has fewer partitions).
  static Result<std::unique_ptr<Target>> open(log::EmbeddedLog& log, const std::string& topic,
                                              std::int32_t partitions) {
    Result<TopicDescription> there = log.admin().describe_topic(topic);
    if (!there.ok() && there.error().code() == Errc::kUnknownTopic) {
      there = log.admin().create_topic({topic, partitions, kReplayedConfig});
    }
    WEIR_TRY(there.status());
    if (there->partitions < partitions) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("topic {} has {} partitions, {} are needed: weir topic alter {} "
                               "--partitions {}, or choose another --to",
                               topic, there->partitions, partitions, topic, partitions));
    }
    std::unique_ptr<Copier> copier(new Copier());
    WEIR_TRY_ASSIGN(copier->sink_,
                    log.make_sink({.client_id = kProgram, .batch_bytes = kBatchBytes}));
    WEIR_TRY_ASSIGN(const SinkTopicInfo info, copier->sink_->open_topic(topic));
    copier->topic_ = info.handle;
    return std::unique_ptr<Target>(std::move(copier));
  }
  Status take(const TopicPartition& from, const RecordView& record) override {
    const RecordRef copy{record.key, record.value, record.timestamp, record.headers};
    Status sent = sink_->send(topic_, from.partition, {&copy, 1});
    return sent.ok() ? Status()
                     : std::move(sent).error().with_context(
                           fmt::format("{} offset {}", from.to_string(), record.offset.value()));
  }
  Status finish() override { return sink_->flush().status(); }

 private:
  Copier() = default;
  std::unique_ptr<RecordSink> sink_;
  SinkTopic topic_ = 0;
};

class Replay {
 public:
  Replay(const CommonOptions& common, const ReplayOptions& options)
      : common_(common), options_(options) {}

  // Opens the folder and checks what is asked of it.
  Status open() {
    if (options_.from_time) {
      WEIR_TRY_ASSIGN(time_, parse_time(*options_.from_time));
    }
    WEIR_TRY_ASSIGN(stored_,
                    log::StoredLog::open(
                        options_.from_dir,
                        {.files = nullptr,
                         .isolation = options_.uncommitted ? log::IsolationLevel::kReadUncommitted
                                                           : log::IsolationLevel::kReadCommitted}));
    WEIR_TRY(choose_topic());
    WEIR_TRY(choose_partitions());
    WEIR_TRY_ASSIGN(losses_, report_stored(kProgram, *stored_, partitions_, common_.quiet));
    return {};
  }

  Status run(Target& target) {
    const auto signals = watch_termination_signals([this](int) {
      if (stop_.exchange(true)) {
        std::_Exit(kInterrupted);
      }
    });
    WEIR_TRY(start());
    Status copied = copy(target);
    Status finished = target.finish();
    WEIR_TRY(copied);
    return finished;
  }

  std::int32_t partition_count() const { return topic_.partitions; }

  int say_totals() const {
    const auto with_records = std::count_if(counts_.begin(), counts_.end(),
                                            [](std::uint64_t count) { return count > 0; });
    std::uint64_t records = 0;
    for (const std::uint64_t count : counts_) {
      records += count;
    }
    if (!options_.to.empty() && common_.format == Format::kJson) {
      Output out;
      out.line(fmt::format(R"({{"topic":{},"to":{},"records":{},"partitions":{},)"
                           R"("damagedRanges":{},"lostOffsets":{},"complete":{}}})",
                           json_string(topic_.name), json_string(options_.to), records,
                           with_records, losses_.ranges, losses_.offsets, !stop_));
    } else if (!common_.quiet) {
      fmt::print(
          stderr, "{} records of {} partitions of {} {}{}; {} damaged ranges, {} offsets lost{}\n",
          records, with_records, topic_.name, options_.to.empty() ? "printed" : "appended to ",
          options_.to, losses_.ranges, losses_.offsets, stop_ ? "; stopped before the end" : "");
    }
    if (stop_ && !options_.to.empty()) {
      return kRuntimeFailure;
    }
    return losses_.ranges > 0 ? kDamage : kOk;
  }

 private:
  Status choose_topic() {
    std::vector<std::string> names;
    WEIR_TRY_ASSIGN(const std::vector<TopicDescription> topics, stored_->admin().list_topics());
    for (const TopicDescription& topic : topics) {
      if (!topic.internal) {
        names.push_back(topic.name);
      }
    }
    if (options_.topic.empty() && names.size() != 1) {
      std::string list;
      for (const std::string& name : names) {
        list += (list.empty() ? "" : ", ") + name;
      }
      return Error(Errc::kInvalidArgument,
                   fmt::format("{} holds {}; choose one with --topic", options_.from_dir,
                               list.empty() ? "only internal topics" : "the topics " + list));
    }
    WEIR_TRY_ASSIGN(topic_, stored_->admin().describe_topic(
                                options_.topic.empty() ? names.front() : options_.topic));
    return {};
  }

  Status choose_partitions() {
    if (options_.partition &&
        (*options_.partition < 0 || *options_.partition >= topic_.partitions)) {
      return Error(Errc::kUnknownTopic,
                   fmt::format("topic {} of {} has partitions 0 to {}, not {}", topic_.name,
                               options_.from_dir, topic_.partitions - 1, *options_.partition));
    }
    for (std::int32_t i = 0; i < topic_.partitions; ++i) {
      if (!options_.partition || *options_.partition == i) {
        partitions_.push_back({topic_.name, PartitionId(i)});
      }
    }
    counts_.resize(partitions_.size());
    return {};
  }

  Status start() {
    Admin& admin = stored_->admin();
    WEIR_TRY_ASSIGN(source_, stored_->make_source({}));
    WEIR_TRY(source_->assign(partitions_));
    for (std::uint32_t i = 0; i < partitions_.size(); ++i) {
      WEIR_TRY_ASSIGN(const PartitionOffsets at, admin.offsets(partitions_[i]));
      Offset from = at.log_start;
      if (time_) {
        WEIR_TRY_ASSIGN(const std::optional<Offset> found,
                        admin.offset_for_time(partitions_[i], *time_));
        from = found.value_or(at.high_watermark);
      }
      WEIR_TRY(source_->seek(i, from));
      ends_.push_back(at.high_watermark);
    }
    return {};
  }

  bool at_end() const {
    for (std::uint32_t i = 0; i < ends_.size(); ++i) {
      if (source_->position(i) < ends_[i]) {
        return false;
      }
    }
    return true;
  }

  Status copy(Target& target) {
    while (!stop_ && !at_end()) {
      WEIR_TRY_ASSIGN(const std::vector<RecordBlock> blocks, source_->poll(Duration::zero()));
      for (const RecordBlock& block : blocks) {
        WEIR_TRY(block.status);
        for (const RecordView& record : block.records) {
          WEIR_TRY(target.take(partitions_[block.assignment], record));
        }
        counts_[block.assignment] += block.records.size();
      }
      if (!target.wants_more()) {
        return {};
      }
    }
    return {};
  }

  const CommonOptions& common_;
  const ReplayOptions& options_;
  std::unique_ptr<log::StoredLog> stored_;
  std::unique_ptr<RecordSource> source_;
  TopicDescription topic_;
  std::vector<TopicPartition> partitions_;
  std::optional<Timestamp> time_;  // to start at
  std::vector<Offset> ends_;
  std::vector<std::uint64_t> counts_;  // records by partition
  StoredLosses losses_;
  std::atomic<bool> stop_{false};
};

}  // namespace

int replay(const CommonOptions& common, const ReplayOptions& options) {
  Replay replay(common, options);
  if (const Status opened = replay.open(); !opened.ok()) {
    return report(kProgram, opened.error());
  }
  if (options.to.empty()) {
    Printer printer(common, options.format);
    if (const Status printed = replay.run(printer); !printed.ok()) {
      return report(kProgram, printed.error());
    }
    return replay.say_totals();
  }
  const int code = with_log(common, Access::kCreate, [&](log::EmbeddedLog& log) -> Status {
    WEIR_TRY_ASSIGN(const std::unique_ptr<Target> target,
                    Copier::open(log, options.to, replay.partition_count()));
    return replay.run(*target);
  });
  return code == kOk ? replay.say_totals() : code;
}

}  // namespace weir::cli
