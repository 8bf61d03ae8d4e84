#pragma once

#include "log/compaction/compaction_pass.h"
#include "log/compaction/log_survey.h"
#include "log/record/wire.h"
#include "log/stored/transaction_ends.h"
#include "tests/log/partition/log_on_disk.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

// What the tests of compaction share: batches of producers and markers, passes, and what a reader
// makes of a log.
namespace weir::log::testing {

struct TestRecord {
  std::optional<std::string> key;
  std::optional<std::string> value;
  Timestamp timestamp = kStart;
};

inline SharedBytes batch_of(const std::vector<TestRecord>& records,
                            const BatchBuilder::Producer& producer = {},
                            Codec codec = Codec::kNone) {
  BatchBuilder builder(1U << 20U, Compression{codec, {}});
  for (const TestRecord& record : records) {
    RecordRef ref;
    ref.key = record.key ? NullableBytes(*record.key) : NullableBytes();
    ref.value = record.value ? NullableBytes(*record.value) : NullableBytes();
    ref.timestamp = record.timestamp;
    EXPECT_TRUE(builder.append(ref));
  }
  return builder.seal(producer);
}

inline SharedBytes marker_of(ControlType type, ProducerId id, ProducerEpoch epoch, Timestamp now) {
  WireWriter key;
  key.integer(std::int16_t{0});
  key.integer(static_cast<std::int16_t>(type));
  WireWriter value;
  value.integer(std::int16_t{0});
  value.integer(std::int32_t{0});
  return build_control_batch(key.bytes(), value.bytes(), now, {id, epoch, -1, true});
}

// Header and bytes at some offset, as if they stood in a log.
struct MadeBatch {
  std::string bytes;
  BatchHeader header;
};
inline MadeBatch stored(SharedBytes batch, std::int64_t base, std::int32_t epoch = 0) {
  stamp_offset(batch.data(), Offset(base), LeaderEpoch(epoch));
  MadeBatch result{std::string(batch.view()), {}};
  result.header = verify_batch(result.bytes).value();
  return result;
}

// One record as a reader sees it.
struct SeenRecord {
  std::int64_t offset = 0;
  Timestamp timestamp = 0;
  std::optional<std::string> key;
  std::optional<std::string> value;
  friend bool operator==(const SeenRecord&, const SeenRecord&) = default;
};

struct SeenLog {
  std::vector<BatchHeader> batches;
  std::vector<SeenRecord> records;    // without control records
  std::vector<SeenRecord> committed;  // without aborted ones, up to the last stable offset
  std::vector<std::int64_t> markers;  // offsets
  Offset last_stable;
};

inline std::vector<SeenRecord> records_of(const BatchHeader& header, ByteView bytes) {
  RecordViews views;
  SharedBytes decompressed;
  const Status decoded = decode_records(header, bytes, DecodeLimits{}, views, decompressed);
  EXPECT_TRUE(decoded.ok()) << decoded.error().to_string();
  std::vector<SeenRecord> records;
  for (const RecordView& view : views) {
    records.push_back(
        {view.offset.value(), view.timestamp, view.key.to_owned(), view.value.to_owned()});
  }
  return records;
}

// Reads everything from `from` on. Aborted transactions are told by the log's own markers.
inline SeenLog see(Partition& partition, Offset from = Offset(0), std::size_t bytes_max = 900) {
  SeenLog seen;
  TransactionEnds ends;
  std::vector<std::pair<BatchHeader, std::vector<SeenRecord>>> data;
  const Offset end = partition.offsets().high_watermark;
  from = std::max(from, partition.offsets().log_start);
  while (from < end) {
    const Result<FetchResult> read = partition.read(from, bytes_max);
    if (!read.ok()) {
      ADD_FAILURE() << read.error().to_string();
      return seen;
    }
    EXPECT_FALSE(read->batches.empty()) << "at " << from.value() << " of " << end.value();
    if (read->batches.empty()) {
      return seen;
    }
    for (const FetchedBatch& batch : read->batches) {
      EXPECT_TRUE(batch.verified || verify_batch(batch.bytes.bytes).ok());
      EXPECT_TRUE(seen.batches.empty() ||
                  seen.batches.back().next_offset() <= batch.header.base_offset);
      seen.batches.push_back(batch.header);
      std::vector<SeenRecord> records = records_of(batch.header, batch.bytes.bytes);
      if (!batch.header.is_control()) {
        if (batch.header.is_transactional() && !records.empty()) {
          ends.add_data(batch.header);
        }
        seen.records.insert(seen.records.end(), records.begin(), records.end());
        data.emplace_back(batch.header, std::move(records));
      } else if (!records.empty()) {
        const Result<std::optional<ControlType>> type =
            marker_type(batch.header, batch.bytes.bytes);
        EXPECT_TRUE(type.ok());
        seen.markers.push_back(batch.header.base_offset.value());
        ends.add_marker(batch.header.producer_id, batch.header.last_offset(),
                        type->value() == ControlType::kCommit);
      }
    }
    EXPECT_GT(read->next_offset, from);
    from = read->next_offset;
  }
  ends.finish();
  seen.last_stable = ends.last_stable(end);
  for (const auto& [header, records] : data) {
    if (header.base_offset < seen.last_stable && !ends.is_aborted(header)) {
      seen.committed.insert(seen.committed.end(), records.begin(), records.end());
    }
  }
  return seen;
}

// What a read_committed consumer gets: the log's own list of what was aborted.
inline std::vector<SeenRecord> see_committed(Partition& partition, std::size_t bytes_max = 900) {
  std::vector<SeenRecord> seen;
  Offset from = partition.offsets().log_start;
  while (true) {
    const Result<FetchResult> read = partition.read(from, bytes_max, FetchIsolation::kCommitted);
    if (!read.ok()) {
      ADD_FAILURE() << read.error().to_string();
      return seen;
    }
    if (read->batches.empty()) {
      EXPECT_EQ(from, read->last_stable_offset);
      return seen;
    }
    for (const FetchedBatch& batch : read->batches) {
      const bool is_aborted =
          std::any_of(read->aborted.begin(), read->aborted.end(),
                      [&](const AbortedTransaction& one) { return one.covers(batch.header); });
      if (!is_aborted && !batch.header.is_control()) {
        const std::vector<SeenRecord> records = records_of(batch.header, batch.bytes.bytes);
        seen.insert(seen.end(), records.begin(), records.end());
      }
    }
    from = read->next_offset;
  }
}

// A table as its changelog makes it.
using Table = std::map<std::string, std::string>;
inline void apply(Table& table, const SeenRecord& record) {
  if (!record.key) {
    return;
  }
  if (record.value) {
    table[*record.key] = *record.value;
  } else {
    table.erase(*record.key);
  }
}
inline Table table_of(const std::vector<SeenRecord>& records) {
  Table table;
  for (const SeenRecord& record : records) {
    apply(table, record);
  }
  return table;
}

// The range of all sealed segments that are durable and below `limit`.
inline CleanableRange range_of(Partition& partition, std::optional<Offset> clean_end,
                               Offset limit = kOffsetMax) {
  const std::vector<std::shared_ptr<Segment>> all = partition.segments();
  std::vector<SegmentFacts> facts;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    facts.push_back({all[i]->base_offset(), all[i + 1]->base_offset(), all[i]->size_bytes()});
  }
  const PartitionOffsets at = partition.offsets();
  return cleanable_range(facts, partition.settings().cleanup,
                         std::min({limit, at.high_watermark, partition.recovery_point()}),
                         clean_end, kStart);
}

struct PassResult {
  Status status;
  Offset clean_end;
  Offset horizon;
  CompactionCounts counts;
  int steps = 0;
};

// A pass to its end, in steps of `bytes`.
inline PassResult run_pass(FileSystem& files, const std::shared_ptr<Partition>& partition,
                           const CleanableRange& range, Timestamp now,
                           std::size_t map_bytes = 1U << 16U, std::uint64_t bytes = 4096) {
  PassResult result;
  Result<LogSurvey> survey = survey_log(*partition, now);
  if (!survey.ok()) {
    result.status = survey.status();
    return result;
  }
  CompactionPlan plan;
  plan.range = range;
  plan.now = now;
  plan.map_bytes_max = map_bytes;
  plan.aborted = std::move(survey->aborted);
  plan.producers = std::move(survey->producers);
  CompactionPass pass(files, partition, std::move(plan), [&result](Offset horizon) {
    result.horizon = std::max(result.horizon, horizon);
    return Status();
  });
  while (true) {
    const Result<std::uint64_t> done = pass.step(bytes);
    ++result.steps;
    if (!done.ok() || *done == 0) {
      result.status = done.status();
      break;
    }
  }
  result.clean_end = pass.clean_end();
  result.counts = pass.counts();
  return result;
}

}  // namespace weir::log::testing
