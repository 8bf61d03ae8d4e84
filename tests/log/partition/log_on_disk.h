#pragma once

#include "log/partition/local_partition.h"
#include "log/record/batch_builder.h"
#include "log/record/batch_decoder.h"

#include <weir/runtime/endian.h>
#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

// One partition on a disk in memory, for the tests of log/partition and log/segment.

namespace weir::log::testing {

inline constexpr std::string_view kFolder = "data/log/t-0";

inline std::string data_folder(const std::string& name) {
  return std::string(WEIR_TEST_DATA "/log/") + name;
}

inline std::string file_text(FileSystem& files, const std::string& path) {
  Result<std::string> text = read_file(files, path);
  EXPECT_TRUE(text.ok()) << path;
  return text.ok() ? *text : std::string();
}

inline nlohmann::json json_of(const std::string& name) {
  return nlohmann::json::parse(file_text(posix_file_system(), data_folder(name)));
}

inline void write_text(FileSystem& files, const std::string& path, ByteView text) {
  Result<std::shared_ptr<File>> file = files.open(path, OpenMode::kCreateTruncate);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->write_at(0, text).ok());
  ASSERT_TRUE((*file)->sync().ok());
}

// Copies the files of a folder of tests/data/log into `files`.
inline void copy_folder(const std::string& name, FileSystem& files,
                        const std::string& to = std::string(kFolder)) {
  ASSERT_TRUE(files.create_directories(to).ok());
  const Result<std::vector<DirectoryEntry>> entries = posix_file_system().list(data_folder(name));
  ASSERT_TRUE(entries.ok()) << name;
  for (const DirectoryEntry& entry : *entries) {
    write_text(files, join_path(to, entry.name),
               file_text(posix_file_system(), join_path(data_folder(name), entry.name)));
  }
  ASSERT_TRUE(files.sync_directory(to).ok());
}

inline constexpr Timestamp kStart = 1'700'000'000'000;

// A batch of `count` records, each with a value of `value_bytes`; timestamps rise by 1 ms.
inline SharedBytes make_batch(int count, std::size_t value_bytes, Timestamp first = kStart,
                              char fill = 'v') {
  BatchBuilder builder(1U << 20U);
  const std::string value(value_bytes, fill);
  for (int i = 0; i < count; ++i) {
    EXPECT_TRUE(builder.append(RecordRef{ByteView("k"), ByteView(value), first + i, {}}));
  }
  return builder.seal();
}

// Opens, closes and crashes one partition.
class LogOnDisk {
 public:
  explicit LogOnDisk(weir::testing::MemoryFileSystem& disk) : disk_(disk) { remake_flusher(); }
  ~LogOnDisk() { close_all(); }

  Partition::OpenOptions options;
  weir::testing::ManualClock clock{kStart};

  Result<std::shared_ptr<LocalPartition>> try_open() {
    close_all();
    remake_flusher();
    options.path = kFolder;
    options.name = {"t", PartitionId(0)};
    const Partition::Environment environment{disk_, clock, flusher_.get(), tail_cache_bytes};
    Result<std::shared_ptr<Partition>> opened = Partition::open(environment, options);
    if (!opened.ok()) {
      return std::move(opened).error();
    }
    partition_ = std::static_pointer_cast<LocalPartition>(*opened);
    return partition_;
  }
  LocalPartition& open() {
    Result<std::shared_ptr<LocalPartition>> opened = try_open();
    if (!opened.ok()) {
      ADD_FAILURE() << opened.error().to_string();
      std::abort();
    }
    return **opened;
  }
  LocalPartition& reopen(bool clean) {
    options.clean = clean;
    return open();
  }
  // Lets the partition go as a dying process does.
  void close_all() {
    partition_.reset();
    if (flusher_) {
      // A sync that ends may start the next one, which is held again.
      while (disk_.run_submitted() > 0) {
      }
      flusher_->drain();
    }
    flusher_.reset();
  }
  Durability& flusher() { return *flusher_; }
  std::shared_ptr<LocalPartition> shared() { return partition_; }

  std::size_t tail_cache_bytes = 4U << 20U;

 private:
  void remake_flusher() { flusher_ = make_flusher(disk_); }

  weir::testing::MemoryFileSystem& disk_;
  std::unique_ptr<Durability> flusher_;
  std::shared_ptr<LocalPartition> partition_;
};

struct ReadBack {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // inclusive offsets
  std::vector<std::string> batches;                           // their bytes
  std::vector<std::string> errors;
};

// Reads from `from` on as a client does: checks CRCs, and goes on behind what is damaged.
inline ReadBack read_all(Partition& partition, Offset from = Offset(0),
                         std::size_t bytes_max = 700) {
  ReadBack out;
  const Offset end = partition.offsets().high_watermark;
  while (from < end) {
    const Result<FetchResult> read = partition.read(from, bytes_max);
    if (!read.ok()) {
      out.errors.push_back(read.error().to_string());
      from = from.next();
      continue;
    }
    EXPECT_FALSE(read->batches.empty());
    for (const FetchedBatch& batch : read->batches) {
      EXPECT_LE(batch.header.next_offset(), end);
      if (!batch.verified && !verify_batch(batch.bytes.bytes).ok()) {
        out.errors.push_back("crc");
        continue;
      }
      const std::int64_t first = batch.header.base_offset.value();
      if (!out.ranges.empty() && out.ranges.back().second + 1 == first) {
        out.ranges.back().second = batch.header.last_offset().value();
      } else {
        out.ranges.emplace_back(first, batch.header.last_offset().value());
      }
      out.batches.emplace_back(batch.bytes.bytes);
    }
    EXPECT_GT(read->next_offset, from);
    from = read->next_offset;
  }
  return out;
}

inline void wait_for(Partition& partition, Offset end) {
  const auto waiter = std::make_shared<Notifier>();
  partition.add_waiter(waiter);
  while (true) {
    const std::uint64_t seen = waiter->generation();
    if (partition.offsets().high_watermark >= end || !partition.health().ok()) {
      break;
    }
    waiter->wait(seen, std::chrono::seconds(10));
  }
  partition.remove_waiter(waiter);
}

}  // namespace weir::log::testing
