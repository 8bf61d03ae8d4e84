#pragma once

#include "log/record/control_record.h"
#include "log/segment/segment_names.h"
#include "tests/log/partition/log_on_disk.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

// Batches of producers, and batches of folders that Kafka wrote, for tests of producer state.

namespace weir::log::testing {

inline std::int64_t number_of(const nlohmann::json& json) {
  return json.get<std::int64_t>();
}
inline Offset offset_of(const nlohmann::json& json) {
  return Offset(number_of(json));
}

struct From {
  std::int64_t id = 1;
  std::int16_t epoch = 0;
  std::int32_t sequence = 0;
  bool transactional = false;
};

// Of a step of `verdicts`.
inline From from_of(const nlohmann::json& step) {
  From from;
  from.id = number_of(step["producerId"]);
  from.epoch = step["producerEpoch"].get<std::int16_t>();
  from.sequence = step["baseSequence"].get<std::int32_t>();
  return from;
}

inline SharedBytes producer_batch(const From& from, int count, Timestamp first = kStart) {
  BatchBuilder builder(1U << 20U);
  for (int i = 0; i < count; ++i) {
    EXPECT_TRUE(builder.append(RecordRef{ByteView("k"), ByteView("value"), first + i, {}}));
  }
  return builder.seal(
      {ProducerId(from.id), ProducerEpoch(from.epoch), from.sequence, from.transactional});
}

inline SharedBytes marker(ControlType type, std::int64_t id, std::int16_t epoch,
                          std::int32_t coordinator_epoch = 0, Timestamp now = kStart) {
  return build_end_transaction_marker(type, ProducerId(id), ProducerEpoch(epoch), coordinator_epoch,
                                      now);
}

struct StoredBatch {
  Offset segment;
  std::string bytes;
  BatchHeader header;
};

// All batches of the .log files of a folder of tests/data/log, in offset order.
inline std::vector<StoredBatch> batches_of(const std::string& folder) {
  std::vector<StoredBatch> batches;
  const auto entries = posix_file_system().list(data_folder(folder));
  EXPECT_TRUE(entries.ok()) << folder;
  for (const DirectoryEntry& entry : *entries) {
    const auto base = parse_log_file_name(entry.name);
    if (!base) {
      continue;
    }
    const std::string bytes =
        file_text(posix_file_system(), join_path(data_folder(folder), entry.name));
    std::size_t at = 0;
    while (at + kBatchHeaderBytes <= bytes.size()) {
      const Result<BatchHeader> header = read_batch_header(ByteView(bytes).substr(at));
      if (!header.ok()) {
        break;  // the rest is preallocated
      }
      batches.push_back({*base, bytes.substr(at, header->size_bytes()), *header});
      at += header->size_bytes();
    }
  }
  return batches;
}

// As the batch was before the log gave it offset and epoch.
inline SharedBytes as_sent(const StoredBatch& batch) {
  SharedBytes copy = SharedBytes::copy_of(batch.bytes);
  stamp_offset(copy.data(), Offset(0), kNoLeaderEpoch);
  return copy;
}

inline nlohmann::json entry_json(const ProducerEntry& entry) {
  return {{"producerId", entry.id.value()},
          {"producerEpoch", entry.epoch.value()},
          {"lastSequence", entry.last_sequence},
          {"lastOffset", entry.last_offset.value()},
          {"offsetDelta", entry.offset_delta},
          {"timestamp", entry.timestamp},
          {"coordinatorEpoch", entry.coordinator_epoch},
          {"currentTxnFirstOffset", entry.transaction_first_offset.value()}};
}

// In the order of the ids: Kafka's is that of a hash map.
inline std::map<std::int64_t, nlohmann::json> by_id(const nlohmann::json& entries) {
  std::map<std::int64_t, nlohmann::json> sorted;
  for (const nlohmann::json& entry : entries) {
    sorted[number_of(entry["producerId"])] = entry;
  }
  return sorted;
}

inline std::map<std::int64_t, nlohmann::json> by_id(const std::vector<ProducerEntry>& entries) {
  nlohmann::json all = nlohmann::json::array();
  for (const ProducerEntry& entry : entries) {
    all.push_back(entry_json(entry));
  }
  return by_id(all);
}

inline AbortedTransactions aborted_of(const nlohmann::json& entries) {
  AbortedTransactions all;
  for (const nlohmann::json& entry : entries) {
    all.push_back({0, ProducerId(number_of(entry["producerId"])), offset_of(entry["firstOffset"]),
                   offset_of(entry["lastOffset"]), offset_of(entry["lastStableOffset"])});
  }
  return all;
}

inline std::string txnindex_of(const nlohmann::json& segment) {
  return encode_transaction_index(aborted_of(segment["txnIndex"]));
}

}  // namespace weir::log::testing
