#include "bench/jobs.h"
#include "bench/log_fixture.h"

#include <weir/runtime/clock.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

// transactions: a record of 100 bytes to each of 1, 10 and 100 `fsync` partitions, then a commit
// that is durable; by one producer, and by 16 at once. Beside it: the same records and a flush,
// without a transaction.

namespace weir::bench {
namespace {

constexpr const char* kTopic = "lines";
constexpr std::int32_t kPartitionsMax = 100;
constexpr std::uint64_t kRecords = 100'000;

class Writer {
 public:
  static Result<std::unique_ptr<Writer>> open(Backend& log, const std::string& transactional_id) {
    auto result = std::make_unique<Writer>();
    SinkOptions options;
    options.transactional_id = transactional_id;
    WEIR_TRY_ASSIGN(result->sink_, log.make_sink(options));
    WEIR_TRY_ASSIGN(const SinkTopicInfo topic, result->sink_->open_topic(kTopic));
    result->topic_ = topic.handle;
    result->has_transactions_ = !transactional_id.empty();
    return result;
  }

  // A transaction, or what stands for it.
  Status once(std::int32_t partitions) {
    static const std::string value(100, 'v');
    const MonotonicTime began = system_clock().monotonic();
    if (has_transactions_) {
      WEIR_TRY(sink_->begin());
    }
    for (std::int32_t i = 0; i < partitions; ++i) {
      const RecordRef record{{}, ByteView(value), system_clock().now(), {}};
      WEIR_TRY(sink_->send(topic_, PartitionId(i), {&record, 1}));
    }
    if (has_transactions_) {
      WEIR_TRY_ASSIGN(const TransactionOutcome outcome, sink_->end(true));
      WEIR_TRY(
          expect(outcome == TransactionOutcome::kCommitted, "a transaction was not committed"));
    } else {
      WEIR_TRY(sink_->flush().status());
    }
    latencies_.push_back(
        static_cast<double>(std::chrono::nanoseconds(system_clock().monotonic() - began).count()));
    return {};
  }
  const std::vector<double>& latencies() const { return latencies_; }

 private:
  std::unique_ptr<RecordSink> sink_;
  SinkTopic topic_ = 0;
  bool has_transactions_ = false;
  std::vector<double> latencies_;
};

Status commit(Run& run, std::int32_t partitions, std::size_t at_once, bool transactional) {
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  WEIR_TRY(make_topic(log->admin(), kTopic, "fsync", kPartitionsMax));
  std::vector<std::unique_ptr<Writer>> writers;
  for (std::size_t i = 0; i < at_once; ++i) {
    WEIR_TRY_ASSIGN(std::unique_ptr<Writer> writer,
                    Writer::open(*log, transactional ? fmt::format("tx-{}", i) : ""));
    WEIR_TRY(writer->once(kPartitionsMax));  // folders and files are made before the clock runs
    writers.push_back(std::move(writer));
  }
  const std::uint64_t each = std::max<std::uint64_t>(run.items() / at_once, 1);
  std::vector<Status> ends(at_once);
  const auto work = [&](std::size_t index) {
    for (std::uint64_t i = 0; i < each && ends[index].ok(); ++i) {
      ends[index] = writers[index]->once(partitions);
    }
  };
  run.start();
  if (at_once == 1) {
    work(0);
  } else {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < at_once; ++i) {
      threads.emplace_back(work, i);
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  run.stop();
  std::vector<double> latencies;
  for (std::size_t i = 0; i < at_once; ++i) {
    WEIR_TRY(std::move(ends[i]));
    latencies.insert(latencies.end(), writers[i]->latencies().begin() + 1,
                     writers[i]->latencies().end());
  }
  std::ranges::sort(latencies);
  run.note("latency_p50", latencies[latencies.size() / 2] / 1000, "us");
  run.note("latency_p99", latencies[latencies.size() * 99 / 100] / 1000, "us");
  // Every record is there: those of the first round, and one in each partition for each commit.
  WEIR_TRY_ASSIGN(const PartitionOffsets last,
                  log->admin().offsets({kTopic, PartitionId(partitions - 1)}));
  const std::uint64_t appends = at_once * (each + 1) * (transactional ? 2 : 1);
  WEIR_TRY(expect_equal(static_cast<std::uint64_t>(last.last_stable.value()), appends,
                        "offsets of a partition, with markers"));
  writers.clear();
  return log->close();
}

}  // namespace

std::vector<Case> transaction_cases() {
  std::vector<Case> cases;
  // Transactions as a share of the "records" of a run.
  constexpr std::array<std::pair<std::int32_t, double>, 3> kSizes = {
      {{1, 0.04}, {10, 0.02}, {100, 0.004}}};
  for (const std::size_t at_once : {std::size_t{1}, std::size_t{16}}) {
    for (const auto& [partitions, share] : kSizes) {
      Case& one = cases.emplace_back();
      one.name = fmt::format("{}_partitions.{}_at_once", partitions, at_once);
      one.unit = "transaction";
      one.items = kRecords;
      one.rounds = 3;
      const auto with = [partitions = partitions, at_once](bool transactional) {
        return [partitions, at_once, transactional](Run& run) {
          return commit(run, partitions, at_once, transactional);
        };
      };
      const double of_run = share * (at_once == 1 ? 1 : 2);
      one.contenders = {{"weir", with(true), of_run},
                        {"flush without transaction", with(false), of_run}};
    }
  }
  return cases;
}

}  // namespace weir::bench
