#include "runtime/dispatch/slot_table.h"

#include <weir/runtime/assert.h>

namespace weir::internal {

SlotTable::SlotTable(std::uint32_t workers) {
  WEIR_ASSERT(workers > 0 && workers <= kSlots);
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    owner_[slot] = wanted_[slot] = static_cast<std::uint16_t>(slot * workers / kSlots);
  }
}

void SlotTable::move(std::uint16_t slot, std::uint32_t worker) {
  pending_ -= wanted_[slot] != owner_[slot] ? 1U : 0U;
  wanted_[slot] = static_cast<std::uint16_t>(worker);
  if (out_[slot] == 0) {
    owner_[slot] = wanted_[slot];
  }
  pending_ += wanted_[slot] != owner_[slot] ? 1U : 0U;
}

void SlotTable::resize(std::uint32_t workers) {
  WEIR_ASSERT(workers > 0 && workers <= kSlots);
  std::vector<std::size_t> held(workers, 0);
  // The first kSlots % workers workers have one slot more.
  const auto share = [&](std::size_t worker) {
    return kSlots / workers + (worker < kSlots % workers ? 1U : 0U);
  };
  std::vector<std::uint16_t> homeless;
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    const std::uint16_t worker = wanted_[slot];
    if (worker < workers && held[worker] < share(worker)) {
      ++held[worker];
    } else {
      homeless.push_back(static_cast<std::uint16_t>(slot));
    }
  }
  std::size_t worker = 0;
  for (const std::uint16_t slot : homeless) {
    while (held[worker] >= share(worker)) {
      ++worker;
    }
    move(slot, static_cast<std::uint32_t>(worker));
    ++held[worker];
  }
}

}  // namespace weir::internal
