#include "runtime/base/buffer_pool.h"

#include <weir/runtime/bytes.h>

#include <bit>
#include <limits>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WEIR_ADDRESS_SANITIZER 1
#endif
#if defined(WEIR_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace weir {
namespace {

constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kPageAlignedMin = 16U << 10U;
constexpr std::uint32_t kNotPooled = std::numeric_limits<std::uint32_t>::max();

std::align_val_t alignment_of(std::size_t capacity) {
  return std::align_val_t(capacity >= kPageAlignedMin ? kPageBytes : kHeaderBytes);
}

// The bytes of a block that waits for reuse are out of bounds for everybody, so that a reader that
// kept a view too long is found although nothing was freed.
void set_accessible([[maybe_unused]] void* bytes, [[maybe_unused]] std::size_t size,
                    [[maybe_unused]] bool accessible) {
#if defined(WEIR_ADDRESS_SANITIZER)
  if (accessible) {
    ASAN_UNPOISON_MEMORY_REGION(bytes, size);
  } else {
    ASAN_POISON_MEMORY_REGION(bytes, size);
  }
#endif
}

void free_memory(void* memory, std::size_t capacity) noexcept {
  ::operator delete(memory, alignment_of(capacity));
}

}  // namespace

BufferPool& BufferPool::instance() {
  static auto& pool = *new BufferPool();
  return pool;
}

SharedBytes BufferPool::allocate(std::size_t capacity) {
  WEIR_ASSERT(capacity < std::numeric_limits<std::size_t>::max() / 2);
  std::uint32_t size_class = kNotPooled;
  if (capacity >= kCapacityMin && capacity <= kCapacityMax) {
    capacity = std::bit_ceil(capacity);
    size_class = static_cast<std::uint32_t>(std::countr_zero(capacity / kCapacityMin));
    if (SharedBytes::Block* block = pop(size_class); block != nullptr) {
      set_accessible(block + 1, block->capacity, true);
      block->references.store(1, std::memory_order_relaxed);
      block->size = 0;
      return SharedBytes(block);
    }
  } else {
    capacity = (capacity + kHeaderBytes) / kHeaderBytes * kHeaderBytes;
  }
  void* memory = ::operator new(sizeof(SharedBytes::Block) + capacity, alignment_of(capacity));
  auto* block = new (memory) SharedBytes::Block;
  block->size_class = size_class;
  block->capacity = capacity;
  return SharedBytes(block);
}

void* BufferPool::take(std::size_t capacity) {
  SharedBytes owner = allocate(capacity);
  return std::exchange(owner.block_, nullptr) + 1;
}

void BufferPool::give_back(void* bytes) noexcept {
  recycle(static_cast<SharedBytes::Block*>(bytes) - 1);
}

void BufferPool::recycle(SharedBytes::Block* block) noexcept {
  const std::size_t capacity = block->capacity;
  if (block->size_class == kNotPooled || !make_room(capacity, block->size_class)) {
    block->~Block();
    free_memory(block, capacity);
    return;
  }
  set_accessible(block + 1, capacity, false);
  SizeClass& size_class = classes_[block->size_class];
  const MutexLock lock(size_class.mutex);
  size_class.free.push_back(block);
}

SharedBytes::Block* BufferPool::pop(std::size_t index) noexcept {
  SizeClass& size_class = classes_[index];
  SharedBytes::Block* block = nullptr;
  {
    const MutexLock lock(size_class.mutex);
    if (size_class.free.empty()) {
      return nullptr;
    }
    block = size_class.free.back();
    size_class.free.pop_back();
  }
  cached_bytes_.fetch_sub(block->capacity, std::memory_order_relaxed);
  return block;
}

// Reserves `bytes` under the bound before the block is in its list, so the sum never passes it.
bool BufferPool::make_room(std::size_t bytes, std::size_t index) noexcept {
  std::size_t cached = cached_bytes_.load(std::memory_order_relaxed);
  for (;;) {
    if (cached + bytes <= kCachedBytesMax) {
      if (cached_bytes_.compare_exchange_weak(cached, cached + bytes, std::memory_order_relaxed)) {
        return true;
      }
      continue;
    }
    SharedBytes::Block* victim = nullptr;
    for (std::size_t tries = 0; tries < kClasses && victim == nullptr; ++tries) {
      const std::size_t other = next_victim_.fetch_add(1, std::memory_order_relaxed) % kClasses;
      victim = other == index ? nullptr : pop(other);
    }
    if (victim == nullptr) {
      return false;
    }
    set_accessible(victim + 1, victim->capacity, true);
    const std::size_t capacity = victim->capacity;
    victim->~Block();
    free_memory(victim, capacity);
    cached = cached_bytes_.load(std::memory_order_relaxed);
  }
}

namespace internal {

void* take_memory(std::size_t bytes) {
  return bytes < BufferPool::kCapacityMin ? ::operator new(bytes, std::align_val_t(kHeaderBytes))
                                          : BufferPool::instance().take(bytes);
}

void return_memory(void* memory, std::size_t bytes) noexcept {
  if (bytes < BufferPool::kCapacityMin) {
    ::operator delete(memory, std::align_val_t(kHeaderBytes));
  } else {
    BufferPool::instance().give_back(memory);
  }
}

}  // namespace internal

SharedBytes SharedBytes::allocate(std::size_t capacity) {
  return BufferPool::instance().allocate(capacity);
}

SharedBytes SharedBytes::copy_of(ByteView bytes) {
  SharedBytes copy = allocate(bytes.size());
  if (!bytes.empty()) {
    std::memcpy(copy.data(), bytes.data(), bytes.size());
  }
  copy.resize(bytes.size());
  return copy;
}

void SharedBytes::release() noexcept {
  if (block_ == nullptr) {
    return;
  }
  Block* block = std::exchange(block_, nullptr);
  // The last owner needs no read-modify-write: nobody else can add a reference any more.
  if (block->references.load(std::memory_order_acquire) == 1 ||
      block->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    BufferPool::instance().recycle(block);
  }
}

}  // namespace weir
