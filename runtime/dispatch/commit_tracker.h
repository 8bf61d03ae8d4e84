#pragma once

#include <weir/runtime/clock.h>
#include <weir/runtime/types.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace weir::internal {

// The highest offset of one partition below which every record is finished (session-workers 2.3),
// although records finish in any order.
//
// Records get a dense sequence, whatever their offsets are, so that holes of compaction, markers
// and aborted data cost nothing (T13). The window is what lies between the first unfinished record
// and the last accepted one; a bit a record says whether it is finished.
//
// Cost:      accept and done are O(1), amortised over the window's advance.
// Bounds:    `window_max` records of 17 bytes, in chunks of 512 that go when the window passes
//            them. When full() the caller pauses the partition.
// Threading: confined to the partition's owner.
class CommitTracker {
 public:
  static constexpr std::size_t kChunkRecords = 512;

  struct Unfinished {
    std::uint64_t seq = 0;
    Offset offset;
    std::uint64_t session_hash = 0;
    MonotonicTime accepted_at{};
  };

  // Starts at the committed offset, 0 where nothing was committed. Requires: window_max > 0.
  CommitTracker(Offset committed, LeaderEpoch committed_epoch, std::size_t window_max);

  // Time and leader epoch of the records accepted next.
  void begin_batch(MonotonicTime now, LeaderEpoch epoch);
  // The record's sequence; nullopt for one that was accepted before (C8) or lies below the start.
  // Requires: !full().
  std::optional<std::uint64_t> accept(Offset offset, std::uint64_t session_hash) {
    if (offset < fetch_next_) {
      return std::nullopt;
    }
    const std::uint64_t seq = next_++;
    Slot& slot = make_chunk(seq).slots[seq % kChunkRecords];
    slot = {offset, session_hash};
    fetch_next_ = offset.next();
    ++version_;
    return seq;
  }
  // Everything below `offset` is accounted for: control batches, aborted data, holes (2.5). Never
  // goes back.
  void skip_to(Offset offset) {
    if (offset > fetch_next_) {
      fetch_next_ = offset;
      ++version_;
    }
  }
  // The record is terminal. False when it was already or never was accepted.
  bool done(std::uint64_t seq);

  // C1: the first unfinished record, else behind everything that was accounted for.
  Offset commit_value() const { return empty() ? fetch_next_ : slot(base_).offset; }
  // Leader epoch of the last record below commit_value().
  LeaderEpoch commit_epoch() const;
  Offset fetch_next() const { return fetch_next_; }
  // The highest finished record; kNoOffset before the first.
  Offset highest_done() const { return highest_done_; }

  bool empty() const { return base_ == next_; }
  bool full() const { return next_ - base_ >= window_max_; }
  std::uint64_t base() const { return base_; }
  std::uint64_t next() const { return next_; }
  std::size_t window() const { return static_cast<std::size_t>(next_ - base_); }
  std::size_t unfinished() const { return window() - done_ahead_; }
  bool is_done(std::uint64_t seq) const { return seq < base_ || (seq < next_ && bit(seq)); }
  // Rises with every change: equal versions mean an equal commit (C4).
  std::uint64_t version() const { return version_; }
  // Widens the 32 bits that travel with a record to its sequence.
  std::uint64_t widen(std::uint32_t low) const {
    return base_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(
                       static_cast<std::int32_t>(low - static_cast<std::uint32_t>(base_))));
  }
  Offset offset_of(std::uint64_t seq) const { return slot(seq).offset; }

  // Calls `visit(seq, offset, session_hash)` for unfinished records in order until it returns
  // false.
  template <class Visit>
  void for_each_unfinished(Visit visit) const {
    for (std::uint64_t seq = base_; seq < next_;) {
      const std::uint64_t open = ~chunk(seq).done[word_of(seq)] >> (seq % 64);
      if (open == 0) {
        seq = (seq / 64 + 1) * 64;
        continue;
      }
      seq += static_cast<std::uint64_t>(std::countr_zero(open));
      if (seq >= next_ || !visit(seq, slot(seq).offset, slot(seq).session_hash)) {
        return;
      }
      ++seq;
    }
  }
  // The first unfinished records, one by one, with the time since when each is here (2.8).
  std::vector<Unfinished> stuck(std::size_t count_max) const;

 private:
  struct Slot {
    Offset offset;
    std::uint64_t session_hash = 0;
  };
  struct Chunk {
    std::array<Slot, kChunkRecords> slots;
    std::array<std::uint64_t, kChunkRecords / 64> done{};
  };
  // Records from `first` on were accepted then; one a batch, at most one a kMarkEvery.
  struct Mark {
    std::uint64_t first = 0;
    MonotonicTime at{};
    LeaderEpoch epoch;
  };
  static constexpr Duration kMarkEvery = std::chrono::milliseconds(10);

  static std::size_t word_of(std::uint64_t seq) { return seq % kChunkRecords / 64; }
  Chunk& chunk(std::uint64_t seq) const {
    return *ring_[(seq / kChunkRecords) & (ring_.size() - 1)];
  }
  const Slot& slot(std::uint64_t seq) const { return chunk(seq).slots[seq % kChunkRecords]; }
  bool bit(std::uint64_t seq) const {
    return (chunk(seq).done[word_of(seq)] >> (seq % 64) & 1U) != 0;
  }
  Chunk& make_chunk(std::uint64_t seq) {
    if (seq % kChunkRecords == 0) {
      add_chunk(seq);
    }
    return chunk(seq);
  }
  void add_chunk(std::uint64_t seq);
  void advance();
  void pass_chunk(std::uint64_t last_seq);

  std::vector<std::unique_ptr<Chunk>> ring_;  // by chunk number; a power of two
  std::unique_ptr<Chunk> spare_;
  std::uint64_t base_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t done_ahead_ = 0;  // finished records in the window
  std::uint64_t highest_done_seq_ = 0;
  std::uint64_t version_ = 0;
  std::size_t window_max_;
  Offset fetch_next_;
  Offset highest_done_ = kNoOffset;
  std::deque<Mark> marks_;  // the first covers the record below base_
};

}  // namespace weir::internal
