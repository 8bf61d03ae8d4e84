#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/thread_annotations.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir {

// Recycles the blocks of SharedBytes.
//
// Blocks of 16 KiB and more start on a page, so their bytes are 64 bytes into it; smaller ones are
// 64-byte aligned, because a page for each header would double a 4 KiB block.
//
// Threading: thread-safe; one lock per size, held for a push or a pop.
// Bounds:    at most kCachedBytesMax wait for reuse. At the bound a block of another size, in turn,
//            is freed to make room, so that no size keeps the pool for itself.
class BufferPool {
 public:
  static constexpr std::size_t kCapacityMin = 4U << 10U;
  static constexpr std::size_t kCapacityMax = 4U << 20U;
  static constexpr std::size_t kCachedBytesMax = 64U << 20U;

  // Never destroyed: bytes that a static object holds are released after main().
  static BufferPool& instance();

  SharedBytes allocate(std::size_t capacity);
  // Takes a block whose count fell to zero.
  void recycle(SharedBytes::Block* block) noexcept;
  // The bytes of a block that nobody counts.
  void* take(std::size_t capacity);
  void give_back(void* bytes) noexcept;
  // Bytes that wait for reuse, without their headers.
  std::size_t cached_bytes() const noexcept {
    return cached_bytes_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kClasses = 11;  // 4 KiB << 0 .. 4 KiB << 10

  struct alignas(64) SizeClass {
    Mutex mutex;
    std::vector<SharedBytes::Block*> free WEIR_GUARDED_BY(mutex);
  };

  BufferPool() = default;
  SharedBytes::Block* pop(std::size_t index) noexcept;
  bool make_room(std::size_t bytes, std::size_t index) noexcept;

  std::array<SizeClass, kClasses> classes_;
  std::atomic<std::size_t> cached_bytes_{0};
  std::atomic<std::size_t> next_victim_{0};
};

}  // namespace weir
