#include "log/partition/watermarks.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace weir::log {
namespace {

constexpr std::string_view kMagic = "WEIRWM01";
constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kSlots = 16'384;
constexpr std::size_t kFileBytes = kHeaderBytes + kSlots * sizeof(WatermarkSlot);
constexpr std::uint32_t kFree = 0;
constexpr std::uint32_t kUsed = 1;
constexpr std::uint32_t kReleased = 2;  // keeps the chain of used slots unbroken for readers

bool names(const WatermarkSlot& slot, const Uuid& topic_id, PartitionId partition) {
  return slot.partition == partition.value() &&
         std::memcmp(slot.topic_id, topic_id.bytes.data(), topic_id.bytes.size()) == 0;
}

}  // namespace

WatermarkSlot* Watermarks::slots() const {
  return reinterpret_cast<WatermarkSlot*>(mapping_->data() + kHeaderBytes);
}

Result<std::unique_ptr<Watermarks>> Watermarks::create(FileSystem& files, const std::string& path) {
  // The old file is used again, so that readers need not look for a new one and a full disk does
  // not keep the holder from starting.
  WEIR_TRY_ASSIGN(std::unique_ptr<SharedMapping> mapping,
                  files.map(path, kFileBytes, /*writable=*/true));
  std::unique_ptr<Watermarks> watermarks(new Watermarks(std::move(mapping)));
  for (std::size_t i = 0; i < kSlots; ++i) {
    watermarks->slots()[i].state.store(kFree, std::memory_order_release);
  }
  std::memcpy(watermarks->mapping_->data(), kMagic.data(), kMagic.size());
  return watermarks;
}

Result<std::unique_ptr<Watermarks>> Watermarks::open(FileSystem& files, const std::string& path) {
  WEIR_TRY_ASSIGN(std::unique_ptr<SharedMapping> mapping,
                  files.map(path, kFileBytes, /*writable=*/false));
  if (std::memcmp(mapping->data(), kMagic.data(), kMagic.size()) != 0) {
    return Error(Errc::kCorrupt, fmt::format("{} does not start with {}", path, kMagic));
  }
  return std::unique_ptr<Watermarks>(new Watermarks(std::move(mapping)));
}

WatermarkSlot* Watermarks::claim(const Uuid& topic_id, PartitionId partition) {
  const MutexLock lock(mutex_);
  WatermarkSlot* slot = nullptr;
  if (!released_.empty()) {
    slot = released_.back();
    released_.pop_back();
  } else if (used_ < kSlots) {
    slot = &slots()[used_++];
    slot->state.store(kReleased, std::memory_order_release);
  } else {
    return nullptr;
  }
  std::memcpy(slot->topic_id, topic_id.bytes.data(), topic_id.bytes.size());
  slot->partition = partition.value();
  return slot;
}

void Watermarks::activate(WatermarkSlot* slot) {
  if (slot != nullptr) {
    slot->state.store(kUsed, std::memory_order_release);
  }
}

void Watermarks::release(WatermarkSlot* slot) {
  if (slot == nullptr) {
    return;
  }
  slot->state.store(kReleased, std::memory_order_release);
  const MutexLock lock(mutex_);
  released_.push_back(slot);
}

std::optional<Watermarks::Published> Watermarks::find(const Uuid& topic_id,
                                                      PartitionId partition) const {
  for (std::size_t i = 0; i < kSlots; ++i) {
    const WatermarkSlot& slot = slots()[i];
    const std::uint32_t state = slot.state.load(std::memory_order_acquire);
    if (state == kFree) {
      return std::nullopt;
    }
    if (state == kUsed && names(slot, topic_id, partition)) {
      const Offset start(slot.log_start.load(std::memory_order_acquire));
      const Offset high(slot.high_watermark.load(std::memory_order_acquire));
      // It may have moved beyond since.
      const Offset stable(slot.last_stable.load(std::memory_order_acquire));
      return Published{start, high, std::min(stable, high)};
    }
  }
  return std::nullopt;
}

}  // namespace weir::log
