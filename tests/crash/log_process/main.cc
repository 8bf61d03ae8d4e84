// The process that is killed while it uses the log alone: producers, a consumer, an administrator.
//   crash_log DIRECTORY SEED FIRST_NUMBER [POINT NTH MOMENT]
// Reports on stdout what it is about to do and what it was answered, for support/log_ledger.h:
//   try TOPIC PARTITION NAME            ack TOPIC PARTITION OFFSET NAME    saw (as ack)
//   refused TOPIC PARTITION NAME        begin KIND TOPIC PARTITIONS FSYNC PARTITION BEFORE
//   done ID                             committing GROUP TOPIC PARTITION OFFSET
//   committed GROUP TOPIC PARTITION     kill POINT                         closed CHANGES
#include "tests/crash/pipeline/kill_switch.h"
#include "tests/crash/pipeline/killed_program.h"
#include "tests/crash/pipeline/killer_files.h"
#include "tests/crash/support/log_ledger.h"

#include <weir/log/embedded_log.h>
#include <weir/log/producer.h>
#include <weir/runtime/rng.h>

#include <fmt/core.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::crash {
namespace {

using Kind = LogLedger::Change::Kind;

constexpr int kStepsBeforeClose = 150;

class LogUser {
 public:
  explicit LogUser(const KilledArguments& arguments)
      : arguments_(arguments),
        rng_(arguments.seed),
        kill_(arguments.plan),
        files_(posix_file_system(), kill_),
        next_number_(arguments.number) {}

  Status run() {
    log::EmbeddedLogOptions options;
    options.files = &files_;
    options.offsets_partitions = 2;
    options.metadata_snapshot_bytes = 4000;
    // Small, so that checkpoints come and files are used again within a run.
    options.wal_file_bytes_min = 16U << 10U;
    options.wal_file_bytes_max = 128U << 10U;
    options.wal_bytes_max = 512U << 10U;
    WEIR_TRY_ASSIGN(log_, log::EmbeddedLog::open(arguments_.directory, options));
    log::ProducerOptions producing;
    producing.linger_ms = 0;
    producing.batch_size = 1500;
    for (auto& producer : producers_) {
      WEIR_TRY_ASSIGN(producer, log::Producer::open(*log_, producing));
    }
    WEIR_TRY_ASSIGN(group_, log_->make_group("g0"));
    const bool closes = arguments_.plan.point == Point::kClose;
    for (int steps = 0; !closes || !kill_.is_armed() || steps < kStepsBeforeClose; ++steps) {
      WEIR_TRY(step());
    }
    WEIR_TRY(flush());
    kill_.begin_close();
    for (auto& producer : producers_) {
      producer.reset();
    }
    group_.reset();
    WEIR_TRY(log_->close());
    report(fmt::format("closed {}", kill_.operations_of_close()));
    return {};
  }

 private:
  Status step() {
    switch (rng_.below(40)) {
      case 0:
      case 1:
        return change_topics();
      case 2:
        return delete_records();
      case 3:
      case 4:
        return commit();
      case 5:
      case 6:
        return consume();
      default:
        return send();
    }
  }

  Result<std::optional<TopicPartition>> draw_partition() {
    WEIR_TRY_ASSIGN(std::vector<TopicDescription> topics, log_->admin().list_topics());
    std::erase_if(topics, [](const TopicDescription& topic) { return topic.internal; });
    if (topics.empty()) {
      return std::optional<TopicPartition>();
    }
    const TopicDescription& topic = topics[rng_.below(topics.size())];
    return std::optional<TopicPartition>(
        {topic.name, PartitionId(static_cast<std::int32_t>(
                         rng_.below(static_cast<std::uint64_t>(topic.partitions))))});
  }

  Status send() {
    WEIR_TRY_ASSIGN(const std::optional<TopicPartition> to, draw_partition());
    if (!to) {
      return {};
    }
    constexpr std::array<std::size_t, 6> kSizes = {0, 20, 100, 100, 700, 3000};
    const std::size_t producer = rng_.below(producers_.size());
    const std::string name =
        record_name(kSizes[rng_.below(kSizes.size())], static_cast<int>(producer), next_number_++);
    const std::string value = value_of(name);
    const std::string place = fmt::format("{} {}", to->topic, to->partition.value());
    report(fmt::format("try {} {}", place, name));
    log::ProducerRecord record;
    record.topic = to->topic;
    record.partition = to->partition;
    record.value = ByteView(value);
    const Status sent = producers_[producer]->send(
        record, [this, place, name](const Result<log::RecordMetadata>& answer) {
          if (answer.ok()) {
            report(fmt::format("ack {} {} {}", place, answer->offset.value(), name));
            kill_.saw_acknowledgement();
          } else {
            note_lost(place, name, answer.error());
          }
        });
    if (!sent.ok()) {
      note_lost(place, name, sent.error());
    }
    return {};
  }

  static void note_lost(const std::string& place, const std::string& name, const Error& error) {
    if (error.code() == Errc::kRecordTooLarge) {
      report(fmt::format("refused {} {}", place, name));
    } else {
      fmt::print(stderr, "{} was lost: {}\n", name, error.to_string());
    }
  }

  Status flush() {
    for (auto& producer : producers_) {
      const Status flushed = producer->flush();
      if (!flushed.ok() && flushed.error().code() != Errc::kRecordTooLarge) {
        return flushed;
      }
    }
    return {};
  }

  void begin(const LogLedger::Change& change) {
    report(fmt::format("begin {} {} {} {} {} {}", static_cast<int>(change.kind), change.topic,
                       change.partitions, change.fsync ? 1 : 0, change.partition.partition.value(),
                       change.before.value()));
  }
  static Status settle(const Status& answer, const Uuid& id = {}) {
    if (answer.ok()) {
      report("done " + id.to_string());
    }
    return answer;
  }

  Status change_topics() {
    constexpr std::uint64_t kTopics = 4;
    const std::string name = fmt::format("t{}", rng_.below(kTopics));
    const auto found = log_->admin().describe_topic(name);
    if (!found.ok()) {
      return create(name);
    }
    const bool fsync = rng_.chance(1, 2);
    switch (rng_.below(5)) {
      case 0:
        WEIR_TRY(flush());  // no answer for the former topic once there is a new one
        begin({Kind::kDelete, name});
        WEIR_TRY(settle(log_->admin().delete_topic(name)));
        return rng_.chance(1, 2) ? create(name) : Status();
      case 1:
        if (found->partitions < 4) {
          begin({Kind::kGrow, name, found->partitions + 1});
          return settle(
              log_->admin().grow_topic(name, found->partitions + 1, OrderedGrowth::kRefuse));
        }
        return {};
      default:
        begin({.kind = Kind::kAlter, .topic = name, .fsync = fsync});
        return settle(
            log_->admin().alter_topic(name,
                                      {{"weir.durability", fsync ? "fsync" : "memory"},
                                       {"segment.bytes", rng_.chance(1, 2) ? "2000" : "20000"}},
                                      {}));
    }
  }

  Status create(const std::string& name) {
    const bool fsync = rng_.chance(3, 4);
    TopicSpec spec;
    spec.name = name;
    spec.partitions = static_cast<std::int32_t>(rng_.below(2)) + 1;
    spec.config = {{"segment.bytes", "4000"},
                   {"index.interval.bytes", "500"},
                   {"weir.durability", fsync ? "fsync" : "memory"}};
    begin({Kind::kCreate, name, spec.partitions, fsync});
    const auto made = log_->admin().create_topic(spec);
    return settle(made.status(), made.ok() ? made->id : Uuid{});
  }

  Status delete_records() {
    WEIR_TRY_ASSIGN(const std::optional<TopicPartition> name, draw_partition());
    if (!name) {
      return {};
    }
    WEIR_TRY_ASSIGN(const PartitionOffsets at, log_->admin().offsets(*name));
    const Offset before(rng_.between(at.log_start.value(), at.high_watermark.value()));
    begin(
        {.kind = Kind::kDeleteRecords, .topic = name->topic, .partition = *name, .before = before});
    return settle(log_->admin().delete_records(*name, before));
  }

  Status commit() {
    WEIR_TRY_ASSIGN(const std::optional<TopicPartition> name, draw_partition());
    if (!name) {
      return {};
    }
    const std::string place = fmt::format("g0 {} {}", name->topic, name->partition.value());
    const Offset offset(rng_.between(0, 100'000));
    report(fmt::format("committing {} {}", place, offset.value()));
    const PartitionOffset one{*name, {offset, LeaderEpoch(0), ""}};
    WEIR_TRY(group_->commit({&one, 1}));
    report("committed " + place);
    kill_.saw_commit();
    return {};
  }

  Status consume() {
    WEIR_TRY_ASSIGN(const std::optional<TopicPartition> name, draw_partition());
    if (!name) {
      return {};
    }
    WEIR_TRY_ASSIGN(const PartitionOffsets at, log_->admin().offsets(*name));
    if (at.log_start == at.high_watermark) {
      return {};
    }
    WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, log_->make_source({}));
    WEIR_TRY(source->assign({*name}));
    WEIR_TRY(
        source->seek(0, Offset(rng_.between(at.log_start.value(), at.high_watermark.value() - 1))));
    WEIR_TRY_ASSIGN(const std::vector<RecordBlock> blocks, source->poll(Duration::zero()));
    for (const RecordBlock& block : blocks) {
      WEIR_TRY(block.status);
      for (const RecordView& record : block.records) {
        const std::string_view value = record.value.view_or_empty();
        report(fmt::format("saw {} {} {} {}", name->topic, name->partition.value(),
                           record.offset.value(), value.substr(0, value.find(':'))));
      }
    }
    return {};
  }

  const KilledArguments arguments_;
  Rng rng_;
  KillSwitch kill_;
  KillerFiles files_;
  std::int64_t next_number_;
  std::unique_ptr<log::EmbeddedLog> log_;
  std::unique_ptr<Group> group_;
  std::array<std::unique_ptr<log::Producer>, 3> producers_;
};

}  // namespace
}  // namespace weir::crash

int main(int argc, char** argv) {
  return weir::crash::run_killed(
      argc, argv, "crash_log", "FIRST_NUMBER",
      [](const auto& arguments) { return weir::crash::LogUser(arguments).run(); });
}
