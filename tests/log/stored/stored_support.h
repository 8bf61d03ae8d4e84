#pragma once

#include "log/record/batch_json.h"

#include <weir/log/stored_log.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

// Folders of tests/data/log read through StoredLog.

namespace weir::log::testing {

using Json = nlohmann::json;
using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;  // inclusive

inline std::string stored_data(const std::string& name) {
  return std::string(WEIR_TEST_DATA "/log/") + name;
}

inline Json stored_json(const std::string& name) {
  const Result<std::string> text = read_file(posix_file_system(), stored_data(name));
  EXPECT_TRUE(text.ok()) << name;
  return text.ok() ? Json::parse(*text) : Json();
}

inline std::unique_ptr<StoredLog> open_stored(
    const std::string& path, IsolationLevel isolation = IsolationLevel::kReadCommitted,
    FileSystem* files = nullptr) {
  Result<std::unique_ptr<StoredLog>> opened = StoredLog::open(path, {files, isolation});
  EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().to_string());
  return opened.ok() ? std::move(*opened) : nullptr;
}

// As in the recordings, without the sequence.
inline Json stored_record(const RecordView& record) {
  Json json = Json::parse(record_json(BatchHeader{}, record).dump());
  json.erase("sequence");
  return json;
}

struct ReadStored {
  std::vector<Json> records;
  Ranges ranges;  // of their offsets
  Status status;
};

// Everything from `from` to where the high watermark says that it ends.
inline ReadStored read_stored(Backend& log, const TopicPartition& partition,
                              std::int64_t from = -1) {
  ReadStored out;
  const Result<PartitionOffsets> at = log.admin().offsets(partition);
  if (!at.ok()) {
    out.status = at.status();
    return out;
  }
  SourceOptions options;
  options.partition_bytes_max = 900;  // several reads
  auto source = log.make_source(options).value();
  EXPECT_TRUE(source->assign({partition}).ok());
  EXPECT_TRUE(source->seek(0, from < 0 ? at->log_start : Offset(from)).ok());
  while (source->position(0) < at->high_watermark) {
    const auto blocks = source->poll(Duration::zero());
    EXPECT_TRUE(blocks.ok());
    if (blocks->empty()) {
      ADD_FAILURE() << partition.to_string() << " stands still at " << source->position(0).value();
      return out;
    }
    for (const RecordBlock& block : *blocks) {
      if (!block.status.ok()) {
        out.status = block.status;
        return out;
      }
      for (const RecordView& record : block.records) {
        const std::int64_t offset = record.offset.value();
        out.records.push_back(stored_record(record));
        if (!out.ranges.empty() && out.ranges.back().second + 1 == offset) {
          out.ranges.back().second = offset;
        } else {
          out.ranges.emplace_back(offset, offset);
        }
      }
    }
  }
  EXPECT_EQ(source->position(0), at->high_watermark);
  return out;
}

inline bool holds(const Ranges& ranges, std::int64_t offset) {
  for (const auto& [first, last] : ranges) {
    if (offset >= first && offset <= last) {
      return true;
    }
  }
  return false;
}

// Copies a folder of the machine's disk, with what is in it, into `files`.
inline void copy_tree(const std::string& from, FileSystem& files, const std::string& to) {
  ASSERT_TRUE(files.create_directories(to).ok());
  const auto entries = posix_file_system().list(from);
  ASSERT_TRUE(entries.ok()) << from;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.kind == FileKind::kDirectory) {
      copy_tree(join_path(from, entry.name), files, join_path(to, entry.name));
      continue;
    }
    const Result<std::string> bytes = read_file(posix_file_system(), join_path(from, entry.name));
    ASSERT_TRUE(bytes.ok());
    const auto file = files.open(join_path(to, entry.name), OpenMode::kCreateTruncate);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->write_at(0, *bytes).ok());
  }
}

}  // namespace weir::log::testing
