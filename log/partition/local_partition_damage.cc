#include "log/partition/local_partition.h"

#include <algorithm>

// The part of LocalPartition that keeps side-cars and knows what is damaged.

namespace weir::log {

// Before the recovery point moves: below it a side-car is taken at its word.
Status LocalPartition::write_checksums(Offset end) {
  if (options_.checksum_folder.empty()) {
    return Status();
  }
  const MutexLock writing(checksum_mutex_);
  Segments flushed;
  {
    const MutexLock lock(mutex_);
    if (durability_lost_) {  // or it is to be deleted
      return Status();
    }
    for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
      if (std::min((*segment)->next_offset(), log_end_) <= recovery_point_) {
        break;
      }
      if ((*segment)->base_offset() < end) {
        flushed.push_back(*segment);
      }
    }
  }
  for (const std::shared_ptr<Segment>& segment : flushed) {
    WEIR_TRY(segment->write_checksums(end));
  }
  return Status();
}

std::vector<SegmentDamage> LocalPartition::damage() const {
  std::vector<SegmentDamage> all;
  for (const std::shared_ptr<Segment>& segment : segments()) {
    for (Damage& damage : segment->damage()) {
      all.push_back({segment->base_offset(), std::move(damage)});
    }
  }
  return all;
}

}  // namespace weir::log
