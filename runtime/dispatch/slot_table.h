#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::internal {

inline constexpr std::size_t kSlots = 4096;

// The slot of a session. The lane tables use lower bits of the hash.
constexpr std::uint16_t slot_of(std::uint64_t session_hash) {
  return static_cast<std::uint16_t>(session_hash >> 52U);
}

// Tier one of mode `spread`: which worker has the lanes of a slot (session-workers D3, 4.6).
// Consistent: another number of workers moves as few slots as can be, one of N + 1 for the new one.
// A slot moves only while none of its records is out, so that no session is ever in two places:
// a move that is asked for earlier waits for that moment.
//
// Threading: confined to the dispatcher.
class SlotTable {
 public:
  explicit SlotTable(std::uint32_t workers);

  std::uint32_t worker(std::uint16_t slot) const { return owner_[slot]; }
  void sent(std::uint16_t slot) { ++out_[slot]; }
  // Requires: sent() before.
  void returned(std::uint16_t slot) {
    if (--out_[slot] == 0 && wanted_[slot] != owner_[slot]) {
      owner_[slot] = wanted_[slot];
      --pending_;
    }
  }
  void move(std::uint16_t slot, std::uint32_t worker);
  // Spreads the slots over `workers` workers.
  void resize(std::uint32_t workers);
  // Slots that wait until they are drained.
  std::size_t pending() const { return pending_; }
  std::uint32_t out(std::uint16_t slot) const { return out_[slot]; }

 private:
  std::array<std::uint16_t, kSlots> owner_{};
  std::array<std::uint16_t, kSlots> wanted_{};
  std::array<std::uint32_t, kSlots> out_{};
  std::size_t pending_ = 0;
};

}  // namespace weir::internal
