#include "bench/jobs.h"
#include "bench/log_fixture.h"
#include "bench/plain_file.h"
#include "log/broker/log_directory.h"
#include "log/partition/notifier.h"
#include "log/record/batch_builder.h"

#include <weir/runtime/executor.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <fcntl.h>
#include <filesystem>
#include <malloc.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

// durable: records of 1 KiB, each appended by itself and acknowledged when it is on disk. Beside
// it: partitions whose files are synced one by one, and one fdatasync per append. restart: 1,000
// partitions after a kill. partitions: 10,000 of them in one process.

namespace weir::bench {
namespace {

using log::LogDirectory;
using log::Notifier;
using log::Partition;

constexpr std::size_t kValueBytes = 1000;
constexpr std::size_t kRecordBytes = 1024;

struct Load {
  std::int32_t partitions = 1;
  std::size_t in_flight = 1;
  double per_second = 0;  // 0: as fast as acknowledgements come
};

SharedBytes batch_of(std::size_t value_bytes) {
  static const std::string value(1U << 20U, 'v');
  log::BatchBuilder builder(value_bytes + 128);  // no more memory than a client would take
  const bool fits = builder.append(
      RecordRef{{}, ByteView(value).substr(0, value_bytes), system_clock().now(), {}});
  WEIR_ASSERT(fits);
  return builder.seal();
}

// Partitions of one topic, with or without a directory around them.
class Partitions {
 public:
  virtual ~Partitions() = default;
  virtual Result<std::shared_ptr<Partition>> at(std::int32_t index) = 0;
  virtual std::uint64_t durable_writes() const { return 0; }
};

class InDirectory final : public Partitions {
 public:
  static Result<std::unique_ptr<InDirectory>> open(const std::string& folder,
                                                   std::int32_t partitions,
                                                   const std::string& durability) {
    auto result = std::make_unique<InDirectory>();
    log::LogDirectoryOptions options;
    options.files = &posix_file_system();
    options.clock = &system_clock();
    options.seed = 1;
    options.checkpoint_due = [self = result.get()] {
      self->executor_->post([self] {
        self->directory_->checkpoint().ignore("a failure stops the appends, and they report it");
      });
    };
    result->executor_ = make_asio_executor(1);
    WEIR_TRY_ASSIGN(result->directory_, LogDirectory::open(join_path(folder, "data"), options));
    if (!result->directory_->describe_topic("t").ok()) {
      WEIR_TRY(
          result->directory_->create_topic({"t", partitions, {{"weir.durability", durability}}})
              .status());
    }
    return result;
  }
  ~InDirectory() override { executor_.reset(); }
  Result<std::shared_ptr<Partition>> at(std::int32_t index) override {
    return directory_->partition_for_append({"t", PartitionId(index)});
  }
  std::uint64_t durable_writes() const override { return directory_->wal_metrics().writes; }
  LogDirectory& directory() { return *directory_; }
  // As a kill: nothing is closed.
  void abandon() {
    executor_.reset();
    directory_.reset();
  }

 private:
  std::unique_ptr<LogDirectory> directory_;
  std::unique_ptr<Executor> executor_;
};

// Each partition's files are synced by themselves.
class ByFlusher final : public Partitions {
 public:
  explicit ByFlusher(std::string folder)
      : folder_(std::move(folder)), flusher_(log::make_flusher(posix_file_system())) {}
  ~ByFlusher() override { flusher_->drain(); }
  Result<std::shared_ptr<Partition>> at(std::int32_t index) override {
    Partition::OpenOptions options;
    options.name = {"t", PartitionId(index)};
    options.path = join_path(folder_, fmt::format("t-{}", index));
    return Partition::open({posix_file_system(), system_clock(), flusher_.get()},
                           std::move(options));
  }

 private:
  const std::string folder_;
  std::unique_ptr<log::Durability> flusher_;
};

// Keeps `in_flight` appends open over all partitions and notes when each is acknowledged.
class Appender {
 public:
  Appender(Partitions& partitions, const Load& load) : load_(load), partitions_(partitions) {}
  ~Appender() {
    for (const auto& lane : lanes_) {
      lane.partition->remove_waiter(waiter_);
    }
  }

  Status open() {
    for (std::int32_t i = 0; i < load_.partitions; ++i) {
      Lane& lane = lanes_.emplace_back();
      WEIR_TRY_ASSIGN(lane.partition, partitions_.at(i));
      lane.partition->add_waiter(waiter_);
      WEIR_TRY(append(lane));  // folders and files are made before the clock runs
    }
    return wait_until(0);
  }

  Status run(std::uint64_t records) {
    latencies_.clear();
    const MonotonicTime began = system_clock().monotonic();
    for (std::uint64_t i = 0; i < records; ++i) {
      if (load_.per_second > 0) {
        const auto due = began + std::chrono::nanoseconds(static_cast<std::int64_t>(
                                     static_cast<double>(i) * 1e9 / load_.per_second));
        WEIR_TRY(pace(due));
      } else {
        WEIR_TRY(wait_until(load_.in_flight - 1));
      }
      WEIR_TRY(append(lanes_[i % lanes_.size()]));
    }
    return wait_until(0);
  }

  void note(Run& run) {
    std::sort(latencies_.begin(), latencies_.end());
    const auto at = [this](double share) {
      const auto index = static_cast<std::size_t>(static_cast<double>(latencies_.size()) * share);
      return latencies_[std::min(index, latencies_.size() - 1)];
    };
    run.note("ack_p50", at(0.5) / 1000, "us");
    run.note("ack_p99", at(0.99) / 1000, "us");
  }

 private:
  struct Lane {
    std::shared_ptr<Partition> partition;
    std::deque<std::pair<Offset, MonotonicTime>> open;  // end of the append, when
  };

  Status append(Lane& lane) {
    const MonotonicTime now = system_clock().monotonic();
    WEIR_TRY_ASSIGN(const Partition::Appended appended,
                    lane.partition->append(batch_of(kValueBytes), log::AppendOrigin::kBuilder));
    lane.open.emplace_back(appended.next_offset, now);
    ++open_;
    return {};
  }

  Status sweep() {
    for (Lane& lane : lanes_) {
      if (lane.open.empty()) {
        continue;
      }
      WEIR_TRY(lane.partition->health());
      const Offset durable = lane.partition->offsets().high_watermark;
      const MonotonicTime now = system_clock().monotonic();
      while (!lane.open.empty() && lane.open.front().first <= durable) {
        latencies_.push_back(
            static_cast<double>(std::chrono::nanoseconds(now - lane.open.front().second).count()));
        lane.open.pop_front();
        --open_;
      }
    }
    return {};
  }

  Status wait_until(std::size_t open_max) {
    while (open_ > open_max) {
      const std::uint64_t seen = waiter_->generation();
      WEIR_TRY(sweep());
      if (open_ > open_max) {
        waiter_->wait(seen, std::chrono::seconds(10));
      }
    }
    return {};
  }

  Status pace(MonotonicTime due) {
    while (true) {
      const std::uint64_t seen = waiter_->generation();
      WEIR_TRY(sweep());
      const MonotonicTime now = system_clock().monotonic();
      if (now >= due) {
        return {};
      }
      waiter_->wait(seen, due - now);
    }
  }

  const Load load_;
  Partitions& partitions_;
  const std::shared_ptr<Notifier> waiter_ = std::make_shared<Notifier>();
  std::vector<Lane> lanes_;
  std::size_t open_ = 0;
  std::vector<double> latencies_;
};

Status append_durably(Run& run, Partitions& partitions, const Load& load) {
  Appender appender(partitions, load);
  WEIR_TRY(appender.open());
  const std::uint64_t before = partitions.durable_writes();
  run.start();
  WEIR_TRY(appender.run(run.items()));
  run.stop();
  run.note("rate", static_cast<double>(run.items()) * 1e9 / run.wall_ns(), "records/s");
  appender.note(run);
  if (const std::uint64_t writes = partitions.durable_writes() - before; writes > 0) {
    run.note("records_per_sync", static_cast<double>(run.items()) / static_cast<double>(writes),
             "records");
  }
  return {};
}

Status with_write_ahead_log(Run& run, const Load& load) {
  WEIR_TRY_ASSIGN(const auto partitions, InDirectory::open(run.folder(), load.partitions, "fsync"));
  WEIR_TRY(append_durably(run, *partitions, load));
  return partitions->directory().close();
}

Status with_flusher(Run& run, const Load& load) {
  ByFlusher partitions(run.folder());
  return append_durably(run, partitions, load);
}

// What a program does that syncs what it wrote, record by record.
Status with_fdatasync(Run& run, const Load& load) {
  std::vector<int> files;
  for (std::int32_t i = 0; i < load.partitions; ++i) {
    const std::string path = join_path(run.folder(), fmt::format("{}", i));
    files.push_back(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    WEIR_TRY(expect(files.back() >= 0, "open " + path));
  }
  const std::string record(kRecordBytes, 'v');
  bool sound = true;
  run.start();
  for (std::uint64_t i = 0; i < run.items(); ++i) {
    const int file = files[i % files.size()];
    const auto at = static_cast<off_t>(i / files.size() * record.size());
    sound &=
        ::pwrite(file, record.data(), record.size(), at) == static_cast<ssize_t>(record.size()) &&
        ::fdatasync(file) == 0;
  }
  run.stop();
  for (const int file : files) {
    ::close(file);
  }
  run.note("rate", static_cast<double>(run.items()) * 1e9 / run.wall_ns(), "records/s");
  return expect(sound, "write and sync");
}

// --- Restart

constexpr std::int32_t kRestartPartitions = 1000;

Status fill(Partitions& partitions, std::int32_t count, std::uint64_t bytes) {
  Load load;
  load.partitions = count;
  load.in_flight = 512;
  Appender appender(partitions, load);
  WEIR_TRY(appender.open());
  return appender.run(bytes / kRecordBytes);
}

// From the start of the process until every partition took an append, and the first read.
Status restart(Run& run, const std::string& durability) {
  {
    WEIR_TRY_ASSIGN(const auto partitions,
                    InDirectory::open(run.folder(), kRestartPartitions, durability));
    WEIR_TRY(fill(*partitions, kRestartPartitions, run.items() * kRecordBytes));
    partitions->abandon();
  }
  const MonotonicTime began = system_clock().monotonic();
  run.start();
  WEIR_TRY_ASSIGN(const auto partitions,
                  InDirectory::open(run.folder(), kRestartPartitions, durability));
  WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> first, partitions->at(0));
  WEIR_TRY(first->read(Offset(0), 1).status());
  const MonotonicTime read = system_clock().monotonic();
  for (std::int32_t i = 0; i < kRestartPartitions; ++i) {
    WEIR_TRY_ASSIGN(const std::shared_ptr<Partition> partition, partitions->at(i));
    WEIR_TRY(partition->append(batch_of(10), log::AppendOrigin::kBuilder).status());
  }
  run.stop();
  const auto ms = [began](MonotonicTime at) {
    return static_cast<double>(std::chrono::nanoseconds(at - began).count()) / 1e6;
  };
  run.note("until_first_read", ms(read), "ms");
  run.note("until_all_append", ms(system_clock().monotonic()), "ms");
  return partitions->directory().close();
}

// --- Many partitions

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

std::uint64_t allocated_bytes() {
  const struct mallinfo2 info = ::mallinfo2();  // all arenas
  return info.uordblks + info.hblkhd;
}

// Made, one record each, then idle.
Status many_partitions(Run& run) {
  const auto count = static_cast<std::int32_t>(run.items());
  WEIR_TRY_ASSIGN(const auto partitions, InDirectory::open(run.folder(), 1, "fsync"));
  const std::uint64_t before = allocated_bytes();
  run.start();
  WEIR_TRY(partitions->directory().create_topic({"many", count, {}}).status());
  std::shared_ptr<Partition> last;
  for (std::int32_t i = 0; i < count; ++i) {
    WEIR_TRY_ASSIGN(last, partitions->directory().partition_for_append({"many", PartitionId(i)}));
    WEIR_TRY(last->append(batch_of(10), log::AppendOrigin::kBuilder).status());
  }
  run.stop();
  WEIR_TRY(partitions->directory().checkpoint());
  WEIR_TRY(partitions->directory().checkpoint());  // nothing came since the one before
  run.note("memory", static_cast<double>(allocated_bytes() - before) / count, "bytes/partition");
  run.note("descriptors", static_cast<double>(open_descriptors()), "files");
  return partitions->directory().close();
}

}  // namespace

std::vector<Case> durable_cases() {
  struct Shape {
    const char* name;
    Load load;
    std::uint64_t items;
  };
  const Shape shapes[] = {
      {"1p.1", {1, 1, 0}, 3000},         {"1p.64", {1, 64, 0}, 60'000},
      {"1p.512", {1, 512, 0}, 200'000},  {"256p.1", {256, 1, 0}, 3000},
      {"256p.64", {256, 64, 0}, 60'000}, {"256p.512", {256, 512, 0}, 200'000},
      {"1k_per_s", {16, 1, 1000}, 3000}, {"20k_per_s", {16, 1, 20'000}, 60'000}};
  std::vector<Case> cases;
  for (const Shape& shape : shapes) {
    Case& one = cases.emplace_back();
    one.name = shape.name;
    one.unit = "record";
    one.items = shape.items;
    one.rounds = 2;
    const Load load = shape.load;
    one.contenders = {{"weir", [load](Run& run) { return with_write_ahead_log(run, load); }, 1},
                      {"flusher", [load](Run& run) { return with_flusher(run, load); }, 0.2},
                      {"fdatasync", [load](Run& run) { return with_fdatasync(run, load); }, 0.02}};
  }
  return cases;
}

std::vector<Case> restart_cases() {
  std::vector<Case> cases;
  for (const auto& [name, items] :
       {std::pair("fsync", std::uint64_t{60'000}), std::pair("memory", std::uint64_t{1'000'000})}) {
    Case& one = cases.emplace_back();
    one.name = name;
    one.unit = "record";
    one.items = items;
    one.rounds = 3;
    one.many_files = true;
    const std::string durability = name;
    one.contenders = {
        {"weir", [durability](Run& run) { return restart(run, durability); }, 1},
        {"plain_read", [](Run& run) { return read_plain_file(run, kRecordBytes); }, 1}};
  }
  return cases;
}

std::vector<Case> partitions_cases() {
  Case one;
  one.name = "10k";
  one.unit = "partition";
  one.items = 10'000;
  one.rounds = 1;
  one.many_files = true;
  one.contenders = {{"weir", many_partitions, 1}};
  return {one};
}

}  // namespace weir::bench
