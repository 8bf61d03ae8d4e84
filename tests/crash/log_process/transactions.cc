// The process that is killed while it uses transactions, a group, a compacted table and a window
// with retention.
//   crash_transactions DIRECTORY SEED FIRST_TRANSACTION [POINT NTH MOMENT]
// Reports on stdout what it is about to do and what it was answered, for transaction_kill_test.cc:
//   transaction N              sending N PARTITION          offset N GROUP
//   ending N COMMIT            ended N OUTCOME              plain / plain-ack
//   put KEY VALUE (0: none)    put-ack                      window N / window-ack
//   committing PARTITION OFFSET / committed PARTITION       saw NAME
//   kill POINT                 closed CHANGES
#include "tests/crash/pipeline/kill_switch.h"
#include "tests/crash/pipeline/killed_program.h"
#include "tests/crash/pipeline/killer_files.h"
#include "tests/crash/support/transaction_ledger.h"
#include "tests/crash/support/transaction_workload.h"

#include <weir/log/consumer.h>
#include <weir/log/embedded_log.h>
#include <weir/runtime/rng.h>

#include <fmt/core.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::crash {
namespace {

constexpr int kStepsBeforeClose = 1000;

class Worker {
 public:
  explicit Worker(const KilledArguments& arguments)
      : directory_(arguments.directory),
        rng_(arguments.seed),
        kill_(arguments.plan),
        files_(posix_file_system(), kill_),
        next_transaction_(static_cast<int>(arguments.number)),
        closes_(arguments.plan.point == Point::kClose) {}

  Status run() {
    WEIR_TRY(open());
    for (int steps = 0; !closes_ || !kill_.is_armed() || steps < kStepsBeforeClose; ++steps) {
      WEIR_TRY(step());
    }
    for (Writer& writer : writers_) {
      if (writer.transaction) {
        WEIR_TRY(end(writer));
      }
    }
    kill_.begin_close();
    writers_ = {};
    members_ = {};
    plain_.reset();
    WEIR_TRY(log_->close());
    report(fmt::format("closed {}", kill_.operations_of_close()));
    return {};
  }

 private:
  // A transactional id.
  struct Writer {
    std::unique_ptr<RecordSink> sink;
    std::optional<int> transaction;
    std::string group;           // of its offset
    std::map<int, int> records;  // by partition
  };

  Status open() {
    log::EmbeddedLogOptions options = workload_options();
    options.files = &files_;
    WEIR_TRY_ASSIGN(log_, log::EmbeddedLog::open(directory_, options));
    for (const TopicSpec& topic : workload_topics()) {
      if (!log_->admin().describe_topic(topic.name).ok()) {
        WEIR_TRY(log_->admin().create_topic(topic).status());
      }
    }
    WEIR_TRY_ASSIGN(plain_, log_->make_sink({}));
    for (std::unique_ptr<log::Consumer>& member : members_) {
      log::ConsumerOptions reader;
      reader.group_id = kReaders;
      reader.auto_offset_reset = "earliest";
      reader.isolation_level = log::IsolationLevel::kReadCommitted;
      reader.auto_commit = false;
      WEIR_TRY_ASSIGN(member, log::Consumer::open(*log_, reader));
      WEIR_TRY(member->subscribe({kLines}));
    }
    WEIR_TRY_ASSIGN(const PartitionOffsets table, log_->admin().offsets({kTable, PartitionId(0)}));
    next_value_ = table.log_end.value() + 1;
    WEIR_TRY_ASSIGN(const PartitionOffsets window,
                    log_->admin().offsets({kWindow, PartitionId(0)}));
    next_in_window_ = window.log_end.value();
    return {};
  }

  Status step() {
    Writer& writer = writers_[rng_.below(writers_.size())];
    if (writer.sink == nullptr || rng_.chance(1, 40)) {
      return renew(writer);  // the newer fences the older
    }
    switch (rng_.below(10)) {
      case 0:
        report("plain");
        WEIR_TRY(send(*plain_, kLines, 0, {}, ByteView("plain")));
        report("plain-ack");
        return {};
      case 1:
      case 2:
        return put();
      case 3:
        return add_to_window();
      case 4:
        return consume(*members_[rng_.below(members_.size())]);
      default:
        return go_on(writer);
    }
  }

  Status renew(Writer& writer) {
    SinkOptions options;
    options.transactional_id = transactional_id(static_cast<int>(&writer - writers_.data()));
    writer = {};
    WEIR_TRY_ASSIGN(writer.sink, log_->make_sink(options));
    return {};
  }

  Status go_on(Writer& writer) {
    if (!writer.transaction) {
      WEIR_TRY(writer.sink->begin());
      writer.transaction = next_transaction_++;
      writer.group.clear();
      writer.records.clear();
      report(fmt::format("transaction {}", *writer.transaction));
      return {};
    }
    switch (rng_.below(8)) {
      case 0:
        return end(writer);
      case 1:
        return send_offset(writer);
      case 2:  // so that what is aborted stands in the log
        return writer.sink->flush().status();
      default:
        return send_record(writer);
    }
  }

  Status send_record(Writer& writer) {
    const int partition = static_cast<int>(rng_.below(kLinesPartitions));
    report(fmt::format("sending {} {}", *writer.transaction, partition));
    const std::string value =
        fmt::format("{}/{}/{}/", *writer.transaction, partition, writer.records[partition]++) +
        std::string(rng_.below(300), 'x');
    WEIR_TRY_ASSIGN(const SinkTopicInfo topic, writer.sink->open_topic(kLines));
    const RecordRef record{{}, ByteView(value), system_clock().now(), {}};
    return writer.sink->send(topic.handle, PartitionId(partition), {&record, 1});
  }

  Status send_offset(Writer& writer) {
    if (writer.group.empty()) {
      writer.group = fmt::format("group-{}", rng_.below(2));
    }
    report(fmt::format("offset {} {}", *writer.transaction, writer.group));
    const PartitionOffset one{TransactionLedger::kInput,
                              {Offset(*writer.transaction), LeaderEpoch(0), ""}};
    return writer.sink->send_offsets({&one, 1}, {writer.group, -1, ""});
  }

  Status end(Writer& writer) {
    const bool commit = rng_.chance(3, 4);
    report(fmt::format("ending {} {}", *writer.transaction, commit ? 1 : 0));
    WEIR_TRY_ASSIGN(const TransactionOutcome outcome, writer.sink->end(commit));
    report(fmt::format("ended {} {}", *writer.transaction, static_cast<int>(outcome)));
    writer.transaction.reset();
    kill_.saw_acknowledgement();
    kill_.saw_commit();
    return {};
  }

  // Durable when ok.
  Status send(RecordSink& sink, const std::string& topic, int partition, NullableBytes key,
              NullableBytes value) {
    WEIR_TRY_ASSIGN(const SinkTopicInfo info, sink.open_topic(topic));
    const RecordRef record{key, value, system_clock().now(), {}};
    WEIR_TRY(sink.send(info.handle, PartitionId(partition), {&record, 1}));
    return sink.flush().status();
  }

  Status put() {
    const std::string key = fmt::format("key-{}", rng_.below(12));
    const std::int64_t number = rng_.chance(1, 5) ? 0 : next_value_++;
    const std::string value = std::to_string(number) + std::string(1 + rng_.below(60), ' ');
    report(fmt::format("put {} {}", key, number));
    WEIR_TRY(send(*plain_, kTable, 0, ByteView(key),
                  number == 0 ? NullableBytes() : NullableBytes(ByteView(value))));
    report("put-ack");
    return {};
  }

  Status add_to_window() {
    report(fmt::format("window {}", next_in_window_));
    const std::string value = std::to_string(next_in_window_++) + std::string(200, ' ');
    WEIR_TRY(send(*plain_, kWindow, 0, {}, ByteView(value)));
    report("window-ack");
    return {};
  }

  Status consume(log::Consumer& member) {
    WEIR_TRY_ASSIGN(const log::ConsumerRecords records, member.poll(Duration::zero()));
    for (const auto& [partition, record] : records) {
      const std::string value(record.value.view_or_empty());
      if (value != "plain") {
        report("saw " + value.substr(0, value.rfind('/')));
      }
    }
    for (const log::ConsumerBatch& batch : records.batches()) {
      report(fmt::format("committing {} {}", batch.partition->partition.value(),
                         batch.next_offset.value()));
      const Status committed =
          member.commit({{*batch.partition, {batch.next_offset, batch.leader_epoch, ""}}});
      if (committed.ok()) {
        report(fmt::format("committed {}", batch.partition->partition.value()));
      } else if (committed.error().code() != Errc::kTimedOut) {
        return committed;  // not only that its group rebalances
      }
    }
    if (rng_.chance(1, 30)) {
      WEIR_TRY(member.unsubscribe());
      return member.subscribe({kLines});
    }
    return {};
  }

  const std::string directory_;
  Rng rng_;
  KillSwitch kill_;
  KillerFiles files_;
  int next_transaction_;
  const bool closes_;
  std::int64_t next_value_ = 1;
  std::int64_t next_in_window_ = 0;
  std::unique_ptr<log::EmbeddedLog> log_;
  std::unique_ptr<RecordSink> plain_;
  std::array<Writer, kTransactionalIds> writers_;
  std::array<std::unique_ptr<log::Consumer>, 2> members_;
};

}  // namespace
}  // namespace weir::crash

int main(int argc, char** argv) {
  return weir::crash::run_killed(
      argc, argv, "crash_transactions", "FIRST",
      [](const auto& arguments) { return weir::crash::Worker(arguments).run(); });
}
