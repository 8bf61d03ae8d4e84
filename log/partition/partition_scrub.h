#pragma once

#include "log/partition/partition.h"
#include "log/segment/segment.h"
#include "log/segment/segment_scrub.h"

#include <memory>
#include <optional>
#include <vector>

namespace weir::log {

// Reads the durable part of a partition again, segment by segment, in small steps beside appends
// and reads (reference R 2.11). What is damaged is put in quarantine: the partition's readers then
// meet kCorrupt there and nowhere else. What an earlier pass found and is right again comes out of
// it. A segment whose side-car is missing or short gets one when all of it was found right.
//
// Threading: confined to its owner. No lock is held while it reads.
// Ownership: shares the partition; borrows `files`. Bounds: one descriptor, as SegmentScrub.
class PartitionScrub {
 public:
  PartitionScrub(FileSystem& files, std::shared_ptr<Partition> partition)
      : files_(files), partition_(std::move(partition)) {}

  struct Progress {
    bool is_done = false;
    std::uint64_t bytes = 0;          // read in this step
    std::vector<SegmentDamage> news;  // found now, not known before; told on the log already
    bool damage_changed = false;      // the partition's list of damage is another one
  };
  // Reads about `bytes`, at most up to the end of a segment. What cannot be read is told on the log
  // and left out.
  Progress step(std::uint64_t bytes);

 private:
  bool begin();
  Status begin_segment(const std::shared_ptr<Segment>& segment);
  Status begin_side_car(const Segment& segment, Offset end, std::uint64_t bytes);
  Status end_segment(Progress& progress);
  void end_side_car();
  void leave_out(const Error& error);

  FileSystem& files_;
  const std::shared_ptr<Partition> partition_;
  Offset next_;  // segments below it are done
  std::shared_ptr<Segment> segment_;
  std::optional<SegmentScrub> scrub_;
  std::optional<ChecksumWriter> side_car_;  // that is made anew
};

}  // namespace weir::log
