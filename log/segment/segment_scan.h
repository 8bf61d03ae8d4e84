#pragma once

#include "log/record/batch_header.h"
#include "log/segment/segment_indexes.h"

#include <weir/runtime/file_system.h>

#include <memory>
#include <string>
#include <vector>

namespace weir::log {

inline constexpr Offset kOffsetMax{INT64_MAX};

// End of the offsets that a segment can hold: the base of the next one, and never more than an
// index entry reaches.
Offset segment_offset_end(Offset base, Offset next_base);

// Bytes that are no whole batch, with whole batches behind them.
struct Damage {
  std::uint64_t position = 0;
  std::uint64_t end_position = 0;
  Offset from;  // offsets [from, to) are not readable
  Offset to;
  std::string what;
  friend bool operator==(const Damage&, const Damage&) = default;
};

// Which part of a segment file to walk, and what to make of damage.
struct ScanRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;           // file size
  Offset expected;                 // first offset that may stand at `begin`
  Offset offset_end = kOffsetMax;  // base of the next segment: no batch reaches it
  // Batches that end at or above it are checked by CRC; below it only their headers are read.
  Offset verify_from = kOffsetMax;
  // Below it bytes were durable: damage is stepped over, and kept. At or above it the first bad
  // batch ends the walk: it is a torn tail.
  Offset durable_to;
  Offset stop_at = kOffsetMax;       // the walk ends when this offset was reached
  Offset collect_from = kOffsetMax;  // ScanResult::batches has those that end at or above it
  std::int64_t index_interval_bytes = 4096;
  // Stepped over, and reported; rising. Null: none is known.
  std::shared_ptr<const std::vector<Damage>> known_damage;
};

struct EpochStart {
  LeaderEpoch epoch;
  Offset start;
  friend bool operator==(const EpochStart&, const EpochStart&) = default;
};

struct ScannedBatch {
  Offset base;
  LeaderEpoch epoch;
  std::uint32_t crc = 0;
};

struct ScanResult {
  std::uint64_t valid_bytes = 0;  // position behind the last whole batch or known damage
  Offset next_offset;             // behind the last whole batch
  LeaderEpoch last_epoch = kNoLeaderEpoch;
  std::vector<EpochStart> epochs;     // rising; as the batches say
  std::vector<ScannedBatch> batches;  // see ScanRange::collect_from
  std::vector<Damage> damage;
  bool has_producers = false;  // a batch with a producer id
  bool has_hole = false;       // offsets that no batch and no damage has
  std::string stop_reason;     // why the walk ended before `end`; empty when it did not
};

// Walks the batches of a segment, adds them to `indexes`.
// A batch is whole when its header holds together, its CRC is right (see verify_from) and its
// offsets go on from the one before without reaching back or into the next segment. A batch that
// jumps ahead of the one behind it is the one that lies. Errors: kIo; kUnsupported for message sets
// of magic 0 and 1.
Result<ScanResult> scan_segment(File& file, const ScanRange& range, SegmentIndexes& indexes);

// The same for indexes that were read from files: compares their last entries with the batches that
// they name and walks only what is behind. `range.begin` is ignored. Errors: as scan_segment();
// kCorrupt when an entry names no batch.
Result<ScanResult> resume_scan(File& file, ScanRange range, SegmentIndexes& indexes);

// Base offsets are not covered by the CRC. Whether the batch at `position`, which leaves a hole
// behind `expected`, lies about its own: then the next one goes on from before the hole.
Result<bool> jumps_ahead(File& file, const BatchHeader& header, std::uint64_t position,
                         std::uint64_t end, Offset expected);

// Adds what one batch says about epochs. An epoch that falls back later was not one: the field has
// no CRC.
void note_epoch(std::vector<EpochStart>& epochs, const BatchHeader& header);

}  // namespace weir::log
