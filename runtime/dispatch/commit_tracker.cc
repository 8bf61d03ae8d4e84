#include "runtime/dispatch/commit_tracker.h"

#include <weir/runtime/assert.h>

#include <algorithm>

namespace weir::internal {

CommitTracker::CommitTracker(Offset committed, LeaderEpoch committed_epoch, std::size_t window_max)
    : window_max_(window_max), fetch_next_(committed) {
  WEIR_ASSERT(window_max > 0);
  ring_.resize(2);
  marks_.push_back({0, MonotonicTime{}, committed_epoch});
}

void CommitTracker::begin_batch(MonotonicTime now, LeaderEpoch epoch) {
  Mark& last = marks_.back();
  const bool is_near = now - last.at < kMarkEvery && next_ != 0;
  if (last.first == next_ && next_ != 0) {
    last.at = now;
    last.epoch = epoch;
  } else if (!is_near || last.epoch != epoch) {
    marks_.push_back({next_, now, epoch});
  }
}

bool CommitTracker::done(std::uint64_t seq) {
  if (seq < base_ || seq >= next_ || bit(seq)) {
    return false;
  }
  Chunk& place = chunk(seq);
  place.done[word_of(seq)] |= 1ULL << (seq % 64);
  ++done_ahead_;
  ++version_;
  if (highest_done_ == kNoOffset || seq > highest_done_seq_) {
    highest_done_seq_ = seq;
    highest_done_ = place.slots[seq % kChunkRecords].offset;
  }
  if (seq == base_) {
    advance();
  }
  return true;
}

void CommitTracker::advance() {
  while (base_ < next_) {
    const std::uint64_t done = chunk(base_).done[word_of(base_)] >> (base_ % 64);
    const auto run = static_cast<std::uint64_t>(std::countr_one(done));
    // The bits shifted in are zero, so a run never leaves its word.
    base_ += run;
    done_ahead_ -= run;
    if (run > 0 && base_ % kChunkRecords == 0) {
      pass_chunk(base_ - 1);
    }
    if (run == 0 || base_ % 64 != 0) {
      break;
    }
  }
  while (marks_.size() > 1 && base_ > 0 && marks_[1].first <= base_ - 1) {
    marks_.pop_front();
  }
}

void CommitTracker::pass_chunk(std::uint64_t last_seq) {
  std::unique_ptr<Chunk>& passed = ring_[(last_seq / kChunkRecords) & (ring_.size() - 1)];
  if (spare_ == nullptr) {
    passed->done = {};
    spare_ = std::move(passed);
  }
  passed.reset();
}

void CommitTracker::add_chunk(std::uint64_t seq) {
  const std::uint64_t number = seq / kChunkRecords;
  const std::uint64_t first = base_ / kChunkRecords;
  if (number - first >= ring_.size()) {
    std::vector<std::unique_ptr<Chunk>> larger(ring_.size() * 2);
    for (std::uint64_t i = first; i < number; ++i) {
      larger[i & (larger.size() - 1)] = std::move(ring_[i & (ring_.size() - 1)]);
    }
    ring_ = std::move(larger);
  }
  std::unique_ptr<Chunk>& place = ring_[number & (ring_.size() - 1)];
  place = spare_ != nullptr ? std::move(spare_) : std::make_unique<Chunk>();
}

LeaderEpoch CommitTracker::commit_epoch() const {
  return marks_.front().epoch;
}

std::vector<CommitTracker::Unfinished> CommitTracker::stuck(std::size_t count_max) const {
  std::vector<Unfinished> found;
  std::size_t mark = 0;
  for_each_unfinished([&](std::uint64_t seq, Offset offset, std::uint64_t session_hash) {
    if (found.size() == count_max) {
      return false;
    }
    while (mark + 1 < marks_.size() && marks_[mark + 1].first <= seq) {
      ++mark;
    }
    found.push_back({seq, offset, session_hash, marks_[mark].at});
    return true;
  });
  return found;
}

}  // namespace weir::internal
