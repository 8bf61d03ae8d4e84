#pragma once

#include "log/compaction/batch_records.h"
#include "log/compaction/cleaned_transactions.h"
#include "log/compaction/offset_map.h"

#include <map>
#include <optional>
#include <vector>

namespace weir::log {

// The last batch of a producer that may go on (Kafka's LastRecord).
struct LastOfProducer {
  ProducerEpoch epoch;
  Offset last_data_offset = kNoOffset;  // kNoOffset: its last batch is a marker
};
using LastOfProducers = std::map<ProducerId, LastOfProducer>;

// What a pass removed and kept.
struct CompactionCounts {
  std::uint64_t bytes_read = 0;  // of batches
  std::uint64_t bytes_written = 0;
  std::uint64_t records_read = 0;
  std::uint64_t records_kept = 0;
  std::uint64_t records_without_key = 0;  // they could never be replaced: gone
  std::uint64_t tombstones_removed = 0;   // not replaced, their time was over
};

// Decides what is left of the batches of a log in a pass from its start on, in offset order, and
// encodes it (Kafka's Cleaner.cleanInto and MemoryRecords.filterTo). Pure.
//
//   - Of records below the map's end the last one of a key stays. A tombstone stays until the
//   delete
//     horizon of its batch, which is set by the first pass that leaves a tombstone in it: bit 6 of
//     the attributes, baseTimestamp is the horizon then.
//   - Records of aborted transactions go. A marker goes when a former pass found nothing left of
//   its
//     transaction, and the horizon that it set has passed.
//   - Records keep their offsets, a batch keeps base and last offset, leader epoch, producer and
//     sequence, and its codec. A batch without records goes, but for the last one of a producer:
//     its header stays.
//
// Threading: confined to its owner. Ownership: borrows map and producers. Bounds: one batch, plain
// and encoded.
class BatchCleaner {
 public:
  struct Rules {
    Offset map_end;  // records from it on are not in the map: they stay
    Timestamp now = 0;
    std::int64_t delete_retention_ms = 0;
    std::size_t decompressed_bytes_max = 256U << 20U;
  };
  BatchCleaner(const OffsetMap& map, const LastOfProducers& producers, AbortedTransactions aborted,
               const Rules& rules)
      : map_(map), producers_(producers), transactions_(std::move(aborted)), rules_(rules) {}

  struct Outcome {
    bool is_unchanged = false;  // the batch stays as it is
    SharedBytes bytes;          // what is left; null: nothing
  };
  // The next batch, whose CRC was found right. `keeps_end`: no other batch marks the end of the
  // offsets that it has; if nothing of it is left a header without records and producer does.
  // Errors: kCorrupt, kUnsupported: what is no record, or no codec.
  Result<Outcome> clean(const BatchHeader& header, ByteView batch, bool keeps_end);

  const CompactionCounts& counts() const { return counts_; }
  // Behind the last tombstone that went because its time was over; 0 when none did.
  Offset tombstone_end() const { return tombstone_end_; }
  AbortedTransactions take_transaction_index() { return transactions_.take_index(); }

 private:
  struct Verdict {
    bool drops_records = false;   // aborted, or a marker whose time is over
    bool is_done_marker = false;  // nothing is left of its transaction
    bool is_last_of_producer = false;
  };
  struct Kept {
    std::vector<BatchRecords::One> records;
    bool has_all = true;
    bool has_tombstone = false;
  };
  Result<Verdict> judge(const BatchHeader& header, ByteView batch);
  bool is_last_of_producer(const BatchHeader& header) const;
  bool horizon_passed(const BatchHeader& header) const;
  bool keeps(const BatchHeader& header, const BatchRecords::One& record);
  Outcome without_records(const BatchHeader& header, ByteView batch, bool keeps_producer,
                          bool keeps_end);

  const OffsetMap& map_;
  const LastOfProducers& producers_;
  CleanedTransactions transactions_;
  const Rules rules_;
  CompactionCounts counts_;
  Offset tombstone_end_;
};

// The map's side of a pass: notes the keys of a batch that is no control batch and not aborted,
// from offset `from` on. Returns where the map ends now: behind the batch, or, when it is full, at
// the first record that it has no room for. Errors: as BatchCleaner::clean().
Result<Offset> add_to_map(OffsetMap& map, Offset from, const BatchHeader& header, ByteView batch,
                          std::size_t decompressed_bytes_max);

// The type of a marker; nullopt when its record was cleaned away. Errors: kCorrupt.
Result<std::optional<ControlType>> marker_type(const BatchHeader& header, ByteView batch);

}  // namespace weir::log
