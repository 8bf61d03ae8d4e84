#include "log/segment/segment_resources.h"

#include "log/segment/segment.h"

namespace weir::log {

void SegmentResources::opened(Segment& segment) {
  const MutexLock lock(mutex_);
  const auto [place, is_new] = places_.try_emplace(&segment);
  if (is_new) {
    place->second = open_.insert(open_.end(), &segment);
  }
  while (open_.size() > limits_.open_files_max && open_.front() != &segment) {
    Segment* const oldest = open_.front();
    open_.pop_front();
    places_.erase(oldest);
    oldest->close_file();
  }
}

void SegmentResources::closed(Segment& segment) {
  const MutexLock lock(mutex_);
  if (const auto place = places_.find(&segment); place != places_.end()) {
    open_.erase(place->second);
    places_.erase(place);
  }
}

std::size_t SegmentResources::open_files() const {
  const MutexLock lock(mutex_);
  return open_.size();
}

bool SegmentResources::take_unused(std::uint64_t bytes) {
  if (unused_bytes_.fetch_add(bytes) + bytes <= limits_.unused_bytes_max) {
    return true;
  }
  unused_bytes_.fetch_sub(bytes);
  return false;
}

bool SegmentResources::count_tail(std::size_t before, std::size_t after) {
  const std::size_t delta = after - before;  // wraps when it shrank, and so does the sum
  return tail_bytes_.fetch_add(delta) + delta <= limits_.tail_bytes_max || after == 0;
}

}  // namespace weir::log
