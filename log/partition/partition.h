#pragma once

#include "log/durability/durability.h"
#include "log/durability/wal_reader.h"
#include "log/partition/append_options.h"
#include "log/partition/cleanup_settings.h"
#include "log/partition/notifier.h"
#include "log/partition/producer_state.h"
#include "log/record/batch_header.h"
#include "log/segment/aborted_transactions.h"
#include "log/segment/segment_scan.h"

#include <weir/runtime/backend.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/file_system.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::log {

struct CleanedSegment;   // log/partition/segment_swap.h
class DiskReserve;       // log/partition/disk_reserve.h
class Segment;           // log/segment/segment.h
class SegmentResources;  // log/segment/segment_resources.h
struct WatermarkSlot;    // log/partition/watermarks.h

enum class DurabilityMode { kFsync, kMemory };  // weir.durability

// The settings of a topic that its partitions act on. Names, defaults and ranges:
// log/partition/topic_settings.h.
struct PartitionSettings {
  std::int64_t segment_bytes = 1LL << 30;
  std::int64_t segment_ms = 7LL * 24 * 3600 * 1000;
  std::int64_t segment_index_bytes = 10LL << 20;
  std::int64_t index_interval_bytes = 4096;
  std::int64_t max_message_bytes = 1048588;
  TimestampType timestamp_type = TimestampType::kCreateTime;
  std::int64_t timestamp_before_max_ms = INT64_MAX;
  std::int64_t timestamp_after_max_ms = 3600LL * 1000;
  DurabilityMode durability = DurabilityMode::kFsync;
  std::optional<Compression> compression;  // of stored batches; nullopt: as they came
  std::int64_t segment_jitter_ms = 0;
  CleanupSettings cleanup;

  // Largest batch that the partition takes.
  std::int64_t batch_bytes_max() const { return std::min(max_message_bytes, segment_bytes); }
  // The setting that decides it.
  const char* batch_limit_name() const {
    return segment_bytes < max_message_bytes ? "segment.bytes" : "max.message.bytes";
  }
  // Whether a batch must get another codec before it is stored. Control batches keep theirs: none.
  bool must_convert(const BatchHeader& header) const {
    return compression && !header.is_control() &&
           header.codec_bits() != static_cast<std::uint8_t>(compression->codec);
  }
  friend bool operator==(const PartitionSettings&, const PartitionSettings&) = default;
};

// What a start found in one partition folder, for the line that reports it.
struct RecoveryReport {
  bool scanned = false;  // false after a clean close
  std::uint64_t scanned_bytes = 0;
  std::uint64_t truncated_bytes = 0;  // cut behind the last whole batch
  Offset truncated_from = kNoOffset;  // first offset that is gone; kNoOffset when nothing was cut
  std::uint32_t segments_removed = 0;
  std::uint32_t indexes_rebuilt = 0;
  std::uint64_t replayed_bytes = 0;  // written again from the write-ahead log
  std::string reason;  // why the tail was cut ("crc mismatch at position 8192 of ...log")
  // Damage to bytes that were durable, one text each with file, position and offsets. They are
  // kept, reading them answers kCorrupt, and what stands behind them is served.
  std::vector<std::string> damaged;
};

// One batch as it stands in the log.
struct FetchedBatch {
  SharedSlice bytes;
  BatchHeader header;
  bool verified = false;  // the CRC is known to be right (it came from this process's memory)
};

// A damaged range of a partition, and the base of the segment that has it.
struct SegmentDamage {
  Offset segment;
  Damage range;
  friend bool operator==(const SegmentDamage&, const SegmentDamage&) = default;
};

// Up to where a reader sees a log (org.apache.kafka.server.storage.log.FetchIsolation).
enum class FetchIsolation {
  kHighWatermark,
  kLogEnd,     // also what is not durable yet: for internal readers
  kCommitted,  // up to the last stable offset, with what was aborted
};

struct FetchResult {
  std::vector<FetchedBatch> batches;
  AbortedTransactions aborted;  // kCommitted: those that overlap the batches, in marker order
  Offset next_offset;           // behind the last batch; `from` when there is none
  Offset log_start;
  Offset high_watermark;
  Offset last_stable_offset;
  LeaderEpoch leader_epoch;
};

// The ordered log of one partition: segments, indexes, epochs, high watermark. A replica in Kafka's
// words; here it is always the leader.
//
// Threading: thread-safe. Appends of one partition are serialised; reads run beside them.
// Bounds:    keeps the last appended batches in memory, at most `tail_cache_bytes`, so that a
// reader at
//            the tail gets the very buffer that was appended.
class Partition : public DurableLog, public std::enable_shared_from_this<Partition> {
 public:
  struct Environment {
    FileSystem& files;
    const Clock& clock;
    Durability* durability = nullptr;  // null: read only
    std::size_t tail_cache_bytes = 4U << 20U;
    std::shared_ptr<SegmentResources> resources = nullptr;  // null: no bounds beyond this partition
    DiskReserve* reserve = nullptr;
    ProducerState::Limits producers = {};
  };
  struct OpenOptions {
    TopicPartition name;
    Uuid topic_id;
    std::string path;  // the partition folder; made at the first append if absent
    PartitionSettings settings;
    Offset log_start;       // from log-start-offset-checkpoint; 0 if unknown
    Offset recovery_point;  // everything below was synced; from recovery-point-offset-checkpoint
    bool clean = false;     // trust sizes and indexes: no scan
    // After an unclean end with a write-ahead log: what it holds of this partition. Bytes above the
    // recovery point are then kept as far as they are whole, and the write-ahead log decides where
    // they differ or end. Without it the files alone are recovered, and synced.
    std::optional<WalTail> wal_tail;
    // The recovery point is what the last checkpoint wrote: whatever stands above it and was ever
    // acknowledged is in the write-ahead log.
    bool recovery_point_known = false;
    LeaderEpoch leader_epoch;  // of the controller's metadata
    bool read_only = false;    // writes nothing; high watermark comes from refresh()
    bool internal = false;     // the log's own topic: on a full disk it may use the reserve
    // Where the side-cars of its segments are (log/segment/checksum_file.h); empty: it has none.
    std::string checksum_folder;
    // What an earlier scrub found.
    std::vector<SegmentDamage> damage;
    // What wal/producers says of its producers (docs/formats/producers.md).
    std::optional<ProducersAt> producers;
    // Published on every move of log start, high watermark or last stable offset; null: nowhere.
    WatermarkSlot* watermark = nullptr;
  };

  // Opens or makes the log. An unclean start scans from the recovery point, cuts the tail behind
  // the last whole batch, removes the segments behind it and rebuilds indexes; what is left and is
  // not in the write-ahead log is synced before anyone may read it (high watermark = log end).
  // Errors: kIo, kUnsupported (magic 0
  // and 1), kCorrupt (the folder holds what is no segment).
  static Result<std::shared_ptr<Partition>> open(const Environment& environment,
                                                 OpenOptions options);
  ~Partition() override = default;

  struct Appended {
    Offset base_offset;
    Offset next_offset;
    LeaderEpoch leader_epoch;
    Timestamp log_append_time = kNoTimestamp;  // LogAppendTime topics
    // Nothing was appended: the batch is one of the producer's last five and has its offsets, or
    // the transaction of the marker has ended already.
    bool duplicate = false;
  };
  // Appends one whole batch: validates it, gives it the topic's codec if it has another, assigns
  // offsets, stamps epoch (and time), writes it. The buffer is stamped in place, so the caller must
  // be its only owner; it is shared afterwards. Its size is judged as it came and as it is stored.
  // A batch with a producer id must follow the producer's last one, and a transactional one opens
  // the transaction here; a marker (kCoordinator, build_end_transaction_marker()) ends it. Errors:
  // kRecordTooLarge, kInvalidRecord, kInvalidTimestamp, kCorrupt: nothing was written.
  //         kOutOfOrderSequence, kInvalidProducerEpoch, kInvalidTxnState, kFenced: as
  //         ProducerState::check() and check_marker().
  //         kNoSpace: nothing was kept, retriable. kIo: the log refuses all further appends.
  virtual Result<Appended> append(SharedBytes batch, AppendOptions options = {}) = 0;
  // As ProducerState's.
  virtual Result<std::optional<std::uint64_t>> start_verification(ProducerId id,
                                                                  ProducerEpoch epoch,
                                                                  std::int32_t base_sequence) = 0;
  virtual bool has_open_transaction(ProducerId id, ProducerEpoch epoch) const = 0;
  // A copy, for tools, tests and compaction.
  virtual ProducerState producers() const = 0;
  // The producers as of a moment when everything below that offset was flushed; nullopt: none.
  virtual std::optional<ProducersAt> flushed_producers() const = 0;

  // Whole batches from the one that holds `from`, as far as the isolation lets one see. At least
  // one batch if there is any, then up to `bytes_max`. Errors: kOffsetOutOfRange (names log start
  // and end), kCorrupt (names file, position, offset), kIo.
  virtual Result<FetchResult> read(Offset from, std::size_t bytes_max,
                                   FetchIsolation isolation = FetchIsolation::kHighWatermark) = 0;

  // First offset at or after `time` by record timestamps; nullopt when there is none.
  virtual Result<std::optional<Offset>> offset_for_time(Timestamp time) = 0;
  virtual std::optional<Offset> epoch_end_offset(LeaderEpoch epoch) const = 0;
  virtual PartitionOffsets offsets() const = 0;

  // Called by waiters: notified whenever the high watermark moves, and the last stable offset with
  // it, or the partition fails or closes.
  virtual void add_waiter(std::shared_ptr<Notifier> waiter) = 0;
  virtual void remove_waiter(const std::shared_ptr<Notifier>& waiter) = 0;

  // Not ok after an I/O error poisoned the log, or after close.
  virtual Status health() const = 0;
  virtual const RecoveryReport& recovery() const = 0;
  virtual const OpenOptions& options() const = 0;
  // Raises the leader epoch; the next batch starts it. Writes leader-epoch-checkpoint.
  virtual Status set_leader_epoch(LeaderEpoch epoch) = 0;
  // Settings in force; options().settings are those of the opening.
  virtual PartitionSettings settings() const = 0;
  // In force from the next append on. When weir.durability changes, what was appended under the
  // old one is synced first: a waiting acknowledgement is still what it promised, and below the
  // high watermark of an fsync log all is on disk. Errors: kIo (the sync failed: the log refuses
  // further appends), kClosed, kReadOnly; the old settings stay then.
  virtual Status set_settings(const PartitionSettings& settings) = 0;
  // Read-only partitions: what the holder published; also finds segments that were rolled since.
  // Without a last stable offset it is found from the log.
  virtual Status refresh(Offset log_start, Offset high_watermark,
                         std::optional<Offset> last_stable = std::nullopt) = 0;
  // DeleteRecords in two steps, so that the caller makes the new start durable in between: moves
  // the log start up to `before` (a start that is higher already stays), then removes the segments
  // that lie wholly below it. Readers that hold them keep their data. Errors: kOffsetOutOfRange
  // when `before` is negative or above the high watermark; kReadOnly, kIo.
  virtual Status advance_log_start(Offset before) = 0;
  virtual Status remove_old_segments() = 0;
  // The next batch starts a new segment; nothing happens when the active one is empty. Retention
  // does so before it gives up all of the active one. Errors: kReadOnly, kClosed, kIo, kNoSpace.
  virtual Status roll_active() = 0;
  // Puts one segment in the place of `old`, neighbours that are sealed: what compaction left of
  // them. Readers that hold them keep their data. Either all of them are in force after a crash or
  // the new one is. Errors: kNotFound when they are not this log's segments any more (retention
  // took one away), kReadOnly, kClosed, kNoSpace, kIo: nothing was changed, or, when the disk
  // failed on the way, the log refuses further appends and the next start finishes it.
  virtual Status replace_segments(const std::vector<std::shared_ptr<Segment>>& old,
                                  const CleanedSegment& cleaned) = 0;
  // Syncs all that was appended, so that flushed_producers() knows of it. Errors: kNoSpace; kIo
  // (the log refuses further appends).
  virtual Status flush() = 0;
  // Offset below which everything is synced.
  virtual Offset recovery_point() const = 0;
  // Gives back descriptors and memory when nothing was appended since the last call.
  virtual void release_idle() = 0;
  // Ranges that are known to be damaged: a read in one answers kCorrupt and says where reading can
  // go on; everything else is served.
  virtual std::vector<SegmentDamage> damage() const = 0;
  // Rising; for the scrub and tools.
  virtual std::vector<std::shared_ptr<Segment>> segments() const = 0;
  // Syncs everything, cuts preallocation, writes indexes. No appends afterwards. Idempotent.
  // kByDisk: nothing is synced: the caller syncs the disk afterwards, and then calls
  // on_flushed(offsets().log_end).
  virtual Status close(FlushMode mode) = 0;
  Status close() { return close(FlushMode::kByFile); }
  // Closes without a sync; for deletion. Open readers keep their data.
  virtual void abandon() = 0;
};

}  // namespace weir::log
