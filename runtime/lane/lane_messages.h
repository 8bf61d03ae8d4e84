#pragma once

#include <weir/runtime/record.h>
#include <weir/runtime/result.h>

#include <cstdint>
#include <optional>
#include <vector>

// What the dispatcher and a worker's lanes send each other: one vector a poll there, one a round
// back.

namespace weir::internal {

// A record on its way to its lane. Borrows record and session from a block that the dispatcher
// holds until the record's completion releases it.
struct Delivery {
  const RecordView* record = nullptr;
  NullableBytes session;
  std::uint64_t hash = 0;  // session_hash()
  std::uint32_t partition = 0;
  std::uint32_t seq = 0;
  std::uint32_t block = 0;
  std::uint16_t failures = 0;  // attempts that a former owner saw fail
};

struct ShardCommand {
  enum class Kind : std::uint8_t { kOpen, kDrainRunning, kDrainQueued, kDetach, kSkip };
  Kind kind = Kind::kOpen;
  std::uint32_t partition = 0;
  std::uint32_t epoch = 0;       // kDetach: the next one
  std::int32_t generation = -1;  // kOpen
  std::uint32_t seq = 0;         // kSkip
};

// Commands first, then records.
struct ShardMessage {
  std::vector<ShardCommand> commands;
  std::vector<Delivery> records;
};

enum class Fate : std::uint8_t {
  // Terminal (2.3): the commit may pass the record.
  kDone,
  kDeadLettered,
  kGapSkipped,
  kDropped,  // exhausted, by policy kDrop
  // Not terminal: the record belongs to the partition's next owner.
  kDiscarded,  // never ran to an end in this epoch
  kDetached,   // its handler returned after its epoch
  kReleased,   // was terminal before; its handler returned
};
constexpr bool is_terminal(Fate fate) {
  return fate <= Fate::kDropped;
}

struct Completion {
  std::uint32_t partition = 0;
  std::uint32_t epoch = 0;
  std::uint32_t seq = 0;
  std::uint32_t block = 0;
  std::uint16_t slot = 0;  // of the slot table
  Fate fate = Fate::kDone;
  bool releases = true;  // nobody reads the record any more
};
static_assert(sizeof(Completion) == 20);

// A record has failed so often that its attempts go into the lane map.
struct AttemptNote {
  std::uint32_t partition = 0;
  std::uint32_t epoch = 0;
  std::uint32_t seq = 0;
  std::uint16_t failures = 0;
};

// The stash of a partition passed its high or its low mark.
struct Pressure {
  std::uint32_t partition = 0;
  std::uint32_t epoch = 0;
  bool is_high = false;
};

struct Drained {
  std::uint32_t partition = 0;
  std::uint32_t epoch = 0;
};

// In the order of the vectors: completions first, drained last.
struct ShardReport {
  std::vector<Completion> completions;
  std::vector<AttemptNote> notes;
  std::vector<Pressure> pressure;
  std::vector<Drained> drained;
  std::optional<Error> stop;  // a record asked the program to stop
  std::uint32_t batches_received = 0;
  std::optional<bool> is_full;  // came to its bound of lanes (nothing new please), or left it

  bool empty() const {
    return completions.empty() && notes.empty() && pressure.empty() && drained.empty() &&
           !stop.has_value() && batches_received == 0 && !is_full.has_value();
  }
  void clear() {
    completions.clear();
    notes.clear();
    pressure.clear();
    drained.clear();
    stop.reset();
    is_full.reset();
    batches_received = 0;
  }
};

}  // namespace weir::internal
