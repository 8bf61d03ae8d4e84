#pragma once

#include "runtime/lane/chunked_pool.h"

#include <weir/runtime/clock.h>
#include <weir/runtime/record.h>

#include <cstdint>
#include <cstring>

namespace weir::internal {

// A record that waits in a lane, runs, or is being written to the dead-letter topic.
// Bounds: 32 bytes a queued record (the bound of the design).
struct RecordNode {
  const RecordView* record = nullptr;
  std::uint32_t next = kNone;
  std::uint32_t seq = 0;    // low half of the delivery sequence
  std::uint32_t block = 0;  // the dispatcher's, given back with the completion
  std::uint32_t epoch = 0;
  std::uint32_t lane = kNone;
  std::uint16_t failures = 0;  // attempts that failed
  bool is_terminal = false;    // its gap was skipped while it runs
};
static_assert(sizeof(RecordNode) == 32);

enum class LaneState : std::uint8_t {
  kFree,        // not in use
  kIdle,        // nothing to do
  kReady,       // in the run queue of its partition
  kRunning,     // a handler has its record
  kWaiting,     // its head waits for the next attempt
  kLetter,      // its record is being written to the dead-letter topic
  kLetterWait,  // that failed and waits to be tried again
  kStopped,     // its head asked the program to stop
};

// The queue of one session in one partition. At most one record of it is running.
// Bounds: 120 bytes, and 8 to 32 in the table that finds it.
struct Lane {
  enum Flag : std::uint8_t {
    kEvictable = 1,  // idle, with nothing that must be kept
    kQuarantined = 2,
    kFailing = 4,   // has an entry in the shard's failures
    kSkipping = 8,  // its running record is being skipped (2.8)
    kInIdleQueue = 16,
    kTimed = 64,      // its handler's time-out runs
    kUsedSince = 32,  // was busy and idle again since it entered the idle queue
  };
  static constexpr std::uint32_t kInlineKeyBytes = 40;
  static constexpr std::uint32_t kNullKey = UINT32_MAX;

  // One timer a lane: back-off, its handler's time-out, or how long it stays idle.
  MonotonicTime due{};
  std::uint32_t prev = kNone;  // timer
  std::uint32_t next = kNone;  // the same, or the run queue
  std::uint64_t hash = 0;
  union Key {
    char inline_bytes[kInlineKeyBytes];
    char* heap;
  } key{};
  std::uint32_t key_size = 0;  // kNullKey: the session of records without a key
  std::uint32_t head = kNone;
  std::uint32_t tail = kNone;
  std::uint32_t length = 0;       // queued, without the current record
  std::uint32_t stashed = 0;      // waiting in the partition's stash
  std::uint32_t current = kNone;  // kRunning, kLetter, kLetterWait
  std::uint32_t run_number = 0;   // kRunning
  std::uint32_t partition = 0;
  std::uint32_t partition_prev = kNone;
  std::uint32_t partition_next = kNone;
  std::uint16_t timer_slot = 0;
  LaneState state = LaneState::kFree;
  std::uint8_t flags = 0;
  std::uint8_t served = 0;  // records of the present turn

  bool has(Flag flag) const { return (flags & flag) != 0; }
  void set(Flag flag) { flags = static_cast<std::uint8_t>(flags | flag); }
  void clear(Flag flag) { flags = static_cast<std::uint8_t>(flags & ~flag); }

  NullableBytes session() const {
    if (key_size == kNullKey) {
      return {};
    }
    return ByteView(key_size > kInlineKeyBytes ? key.heap : key.inline_bytes, key_size);
  }
  bool is_session(NullableBytes other) const {
    if (other.is_null() || key_size == kNullKey) {
      return other.is_null() && key_size == kNullKey;
    }
    return other.size() == key_size &&
           std::memcmp(session().view().data(), other.view().data(), key_size) == 0;
  }
  void take_session(NullableBytes from) {
    key_size = from.is_null() ? kNullKey : static_cast<std::uint32_t>(from.size());
    if (!from.is_null()) {
      char* const to =
          key_size > kInlineKeyBytes ? key.heap = new char[key_size] : key.inline_bytes;
      std::memcpy(to, from.view().data(), key_size);
    }
  }
  void drop_session() {
    if (key_size != kNullKey && key_size > kInlineKeyBytes) {
      delete[] key.heap;
    }
    key_size = 0;
  }
};
static_assert(sizeof(Lane) <= 128);

}  // namespace weir::internal
