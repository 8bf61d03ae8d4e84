#pragma once

#include "log/compaction/batch_cleaner.h"
#include "log/compaction/cleanable_range.h"
#include "log/compaction/cleaned_writer.h"
#include "log/partition/partition.h"
#include "log/segment/batch_scanner.h"
#include "log/segment/segment.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace weir::log {

// What a pass is to do.
struct CompactionPlan {
  CleanableRange range;
  Timestamp now = 0;
  std::size_t map_bytes_max = 128U << 20U;  // log.cleaner.dedupe.buffer.size
  std::uint64_t seed = 0;                   // of the map's hashes
  AbortedTransactions aborted;              // all with a batch in the log
  LastOfProducers producers;                // that may go on
};

// One pass over a partition (Kafka's Cleaner.doClean): notes the last offset of each key of the
// dirty range, as far as the map has room; then copies the segments from the log's start to there
// without what is replaced, neighbours into one as long as they fit, and puts each copy in the
// place of what it was made of. Beside appends and reads, in small steps.
//
// Threading: confined to its owner; of one partition one pass at a time, and no scrub in the same
//            moment as a step.
// Ownership: shares the partition; borrows `files`.
// Bounds:    the map; one batch; one copy on the disk, at most segment.bytes.
// A crash:   at any moment leaves, of each group of segments, what was there or its copy.
class CompactionPass {
 public:
  // Told before tombstones below this offset are gone for good: when it returns ok that is on
  // record, durably.
  using RaiseHorizon = std::function<Status(Offset)>;
  CompactionPass(FileSystem& files, std::shared_ptr<Partition> partition, CompactionPlan plan,
                 RaiseHorizon raise_horizon);
  ~CompactionPass();
  CompactionPass(const CompactionPass&) = delete;
  CompactionPass& operator=(const CompactionPass&) = delete;

  // Reads and writes about `bytes`, or one batch. Returns how many it were; 0: the pass is done.
  // Errors, after which no step may follow: kCorrupt (a batch that is damaged: nothing of its
  // segment was changed), kNoSpace, kIo, kNotFound (segments are gone), kClosed.
  Result<std::uint64_t> step(std::uint64_t bytes);

  // Below it everything was compacted. Once the pass is done.
  Offset clean_end() const { return map_end_; }
  const CompactionCounts& counts() const;
  std::size_t keys() const { return map_.size(); }

 private:
  Result<std::uint64_t> run(std::uint64_t bytes);
  Status open(const std::shared_ptr<Segment>& segment);
  Result<std::optional<BatchHeader>> peek();
  Result<ByteView> whole(const BatchHeader& header);
  Result<std::uint64_t> map_one();
  Status begin_cleaning();
  Result<std::uint64_t> clean_one();
  Status begin_group();
  Status end_group();
  Error damaged(const Error& error) const;

  FileSystem& files_;
  const std::shared_ptr<Partition> partition_;
  CompactionPlan plan_;
  const RaiseHorizon raise_horizon_;

  std::vector<std::shared_ptr<Segment>> segments_;  // wholly below the range's end
  std::size_t at_ = 0;                              // of them
  std::shared_ptr<Segment> segment_;                // that is read; null: between two
  std::shared_ptr<File> file_;
  std::optional<BatchScanner> scanner_;
  Offset expected_;  // no batch falls behind it

  // The first half.
  OffsetMap map_;
  std::unique_ptr<CleanedTransactions> transactions_;
  Offset map_end_;
  // The second half.
  std::unique_ptr<BatchCleaner> cleaner_;
  std::vector<std::size_t> groups_;  // counts of segments, the last one first
  std::vector<std::shared_ptr<Segment>> group_;
  std::shared_ptr<Segment> last_filled_;  // the last one that has batches
  std::optional<CleanedWriter> writer_;
  bool group_is_changed_ = false;
  bool is_done_ = false;
};

}  // namespace weir::log
