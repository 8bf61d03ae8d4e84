#pragma once

#include "log/broker/log_directory.h"
#include "log/partition/await.h"
#include "tests/log/partition/log_on_disk.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// A data directory on a disk in memory, for the tests of log/broker.

namespace weir::log::testing {

using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

inline const TopicPartition kLines{"lines", PartitionId(0)};
inline constexpr const char* kFolderOfLines = "data/log/lines-0";

// A data directory on a disk in memory.
class Directory {
 public:
  explicit Directory(std::uint64_t seed = 1)
      : disk(weir::testing::MemoryFileSystem::Options{.seed = seed}) {}
  ~Directory() { end(); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  weir::testing::MemoryFileSystem disk;
  weir::testing::ManualClock clock{kStart};
  std::unique_ptr<LogDirectory> log;
  Duration metadata_timeout = std::chrono::seconds(30);
  std::uint64_t metadata_snapshot_bytes = 20U << 20U;
  WalOptions wal{
      .file_bytes_min = 16U << 10U, .file_bytes_max = 64U << 10U, .total_bytes_max = 256U << 10U};

  LogDirectoryOptions options() {
    LogDirectoryOptions options;
    options.files = &disk;
    options.clock = &clock;
    options.seed = 7;
    options.tail_cache_bytes = 0;
    options.offsets_partitions = 1;
    options.wal = wal;
    options.metadata_timeout = metadata_timeout;
    options.metadata_snapshot_bytes = metadata_snapshot_bytes;
    return options;
  }
  Status try_open() {
    WEIR_TRY_ASSIGN(log, LogDirectory::open("data", options()));
    return {};
  }
  void open() {
    const Status opened = try_open();
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  }
  // The process ends; the page cache stays.
  void kill() {
    end();
    disk.process_crash();
  }
  void cut_power() {
    end();
    disk.power_cut();
  }
  void close() {
    const Status closed = log->close();
    EXPECT_TRUE(closed.ok()) << closed.error().to_string();
    log.reset();
  }
  void create(TopicConfig config = {}) {
    const auto made = log->create_topic({kLines.topic, 1, std::move(config)});
    ASSERT_TRUE(made.ok()) << made.error().to_string();
  }
  Partition& partition() { return *log->partition_for_append(kLines).value(); }
  // One batch, not waited for.
  Result<Partition::Appended> append(int records, std::size_t value_bytes = 50, char fill = 'v') {
    WEIR_TRY_ASSIGN(const auto partition, log->partition_for_append(kLines));
    return partition->append(make_batch(records, value_bytes, clock.now(), fill));
  }
  void send(int batches, int records = 1, std::size_t value_bytes = 50, char fill = 'v') {
    for (int i = 0; i < batches; ++i) {
      const auto appended = append(records, value_bytes, fill);
      ASSERT_TRUE(appended.ok()) << appended.error().to_string();
      const Status durable = await_high_watermark(log->partition(kLines).value(),
                                                  appended->next_offset, std::chrono::seconds(10));
      ASSERT_TRUE(durable.ok()) << durable.error().to_string();
    }
  }
  Ranges ranges() {
    Partition& partition = *log->partition(kLines).value();
    const ReadBack read = read_all(partition, partition.offsets().log_start);
    EXPECT_TRUE(read.errors.empty()) << read.errors.front();
    return read.ranges;
  }
  // Bytes of the log's one segment.
  std::uint64_t recovered_end() {
    Partition& partition = *log->partition(kLines).value();
    std::uint64_t bytes = 0;
    for (const std::string& batch : read_all(partition).batches) {
      bytes += batch.size();
    }
    return bytes;
  }
  bool recovered_without_damage() const {
    const RecoveryResult result = log->recovery();
    return std::all_of(result.partitions.begin(), result.partitions.end(),
                       [](const auto& one) { return one.failure.ok() && one.damaged.empty(); });
  }

 private:
  void end() {
    disk.cut_power_at(0);
    disk.hold_submits(false);
    while (disk.run_submitted() > 0) {
    }
    log.reset();
  }
};

}  // namespace weir::log::testing
