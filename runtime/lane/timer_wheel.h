#pragma once

#include "runtime/lane/chunked_pool.h"

#include <weir/runtime/clock.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace weir::internal {

// Timers of pool elements: four levels of 256 slots, a tick of 65.5 microseconds (session-workers
// 4.5). A slot only narrows down; an element fires by its exact due time, never early and not a
// tick late.
//
// Requires: Nodes[i] has `due` (MonotonicTime), `prev`, `next` (links, used while the timer runs)
// and `timer_slot` (std::uint16_t). One timer an element.
// Cost:      add, remove and fire are O(1); a timer moves down at most three times.
// Bounds:    4 KiB, whatever the number of timers. Beyond 3.2 days a timer waits in the farthest
//            slot and is looked at once a round.
// Threading: confined to its owner.
template <class Nodes>
class TimerWheel {
 public:
  explicit TimerWheel(Nodes& nodes) : nodes_(nodes) {
    for (auto& level : heads_) {
      level.fill(kNone);
    }
  }

  void add(std::uint32_t node, MonotonicTime due) {
    nodes_[node].due = due;
    insert(node);
    ++size_;
  }
  // Requires: the timer of `node` runs.
  void remove(std::uint32_t node) {
    unlink(node);
    --size_;
  }
  std::size_t size() const { return size_; }

  // Calls fire(node) for every element due at `now` or before; its timer has ended then, and the
  // call may add timers that are due later.
  template <class Fire>
  void advance(MonotonicTime now, Fire fire) {
    const std::uint64_t target = tick_of(now);
    while (size_ > 0) {
      const Event event = next_event();
      if (event.tick > target) {
        break;
      }
      tick_ = event.tick;
      if (event.level > 0) {
        cascade(event.level);
        continue;
      }
      fire_due(now, fire);
      if (tick_ == target) {
        break;
      }
    }
    tick_ = tick_ < target ? target : tick_;
  }

  // When advance() has something to do next: the earliest due time, or an earlier moment at which
  // timers move down a level. nullopt: no timer runs.
  std::optional<MonotonicTime> next_due() const {
    if (size_ == 0) {
      return std::nullopt;
    }
    const Event event = next_event();
    if (event.level > 0) {
      return MonotonicTime(static_cast<std::int64_t>(event.tick << kTickBits));
    }
    MonotonicTime due = MonotonicTime::max();
    for (std::uint32_t node = heads_[0][event.tick % kSlots]; node != kNone;
         node = nodes_[node].next) {
      due = nodes_[node].due < due ? nodes_[node].due : due;
    }
    return due;
  }

 private:
  static constexpr unsigned kTickBits = 16;
  static constexpr std::size_t kSlots = 256;
  static constexpr unsigned kLevels = 4;

  struct Event {
    std::uint64_t tick = 0;
    unsigned level = 0;
  };

  static std::uint64_t tick_of(MonotonicTime time) {
    return time.count() > 0 ? static_cast<std::uint64_t>(time.count()) >> kTickBits : 0;
  }
  static std::size_t digit(std::uint64_t tick, unsigned level) {
    return tick >> (8 * level) & (kSlots - 1);
  }

  void insert(std::uint32_t node) {
    std::uint64_t tick = tick_of(nodes_[node].due);
    tick = tick < tick_ ? tick_ : tick;
    unsigned level = (63U - static_cast<unsigned>(std::countl_zero((tick ^ tick_) | 1U))) / 8;
    std::size_t slot = 0;
    if (level < kLevels) {
      slot = digit(tick, level);
    } else {
      // The next round of the top level: a slot up to the present one. Beyond it the farthest.
      level = kLevels - 1;
      slot = digit(tick - tick_ < 1ULL << (8 * kLevels) ? tick : tick_, level);
    }
    auto& element = nodes_[node];
    std::uint32_t& head = heads_[level][slot];
    element.timer_slot = static_cast<std::uint16_t>(level * kSlots + slot);
    element.prev = kNone;
    element.next = head;
    if (head != kNone) {
      nodes_[head].prev = node;
    }
    head = node;
    used_[level][slot / 64] |= 1ULL << (slot % 64);
  }
  void unlink(std::uint32_t node) {
    auto& element = nodes_[node];
    const unsigned level = element.timer_slot / kSlots;
    const std::size_t slot = element.timer_slot % kSlots;
    if (element.next != kNone) {
      nodes_[element.next].prev = element.prev;
    }
    if (element.prev != kNone) {
      nodes_[element.prev].next = element.next;
      return;
    }
    heads_[level][slot] = element.next;
    if (element.next == kNone) {
      used_[level][slot / 64] &= ~(1ULL << (slot % 64));
    }
  }
  // First used slot at or behind `from`; kSlots when there is none.
  std::size_t used_from(unsigned level, std::size_t from) const {
    for (std::size_t word = from / 64; word < kSlots / 64; ++word) {
      std::uint64_t bits = used_[level][word];
      if (word == from / 64) {
        bits &= ~0ULL << (from % 64);
      }
      if (bits != 0) {
        return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      }
    }
    return kSlots;
  }
  // Requires: size_ > 0. Lower levels come first: all their slots lie before the next slot of the
  // level above.
  Event next_event() const {
    for (unsigned level = 0; level < kLevels; ++level) {
      const std::size_t slot = used_from(level, digit(tick_, level) + (level > 0 ? 1 : 0));
      if (slot < kSlots) {
        const std::uint64_t above = tick_ >> (8 * (level + 1)) << (8 * (level + 1));
        return {above | static_cast<std::uint64_t>(slot) << (8 * level), level};
      }
    }
    const std::uint64_t round = (tick_ >> (8 * kLevels)) + 1;
    const std::size_t slot = used_from(kLevels - 1, 0);
    return {round << (8 * kLevels) | static_cast<std::uint64_t>(slot) << (8 * (kLevels - 1)),
            kLevels - 1};
  }
  void cascade(unsigned level) {
    const std::size_t slot = digit(tick_, level);
    std::uint32_t node = heads_[level][slot];
    heads_[level][slot] = kNone;
    used_[level][slot / 64] &= ~(1ULL << (slot % 64));
    while (node != kNone) {
      const std::uint32_t next = nodes_[node].next;
      insert(node);
      node = next;
    }
  }
  template <class Fire>
  void fire_due(MonotonicTime now, Fire& fire) {
    std::uint32_t node = heads_[0][digit(tick_, 0)];
    while (node != kNone) {
      const std::uint32_t next = nodes_[node].next;
      if (nodes_[node].due <= now) {
        remove(node);
        fire(node);
      }
      node = next;
    }
  }

  Nodes& nodes_;
  std::uint64_t tick_ = 0;
  std::size_t size_ = 0;
  std::array<std::array<std::uint32_t, kSlots>, kLevels> heads_{};
  std::array<std::array<std::uint64_t, kSlots / 64>, kLevels> used_{};
};

}  // namespace weir::internal
