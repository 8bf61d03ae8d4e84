#pragma once

#include <weir/runtime/assert.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir {

// Borrowed bytes, not text. std::string_view because every library that we meet takes it.
using ByteView = std::string_view;

// Borrowed bytes or null; null and empty differ (Kafka's nullable bytes). 16 bytes, trivially
// copyable.
class NullableBytes {
 public:
  constexpr NullableBytes() = default;     // null
  constexpr NullableBytes(ByteView bytes)  // NOLINT(google-explicit-constructor)
      : data_(bytes.data() == nullptr ? "" : bytes.data()), size_(bytes.size()) {}

  constexpr bool is_null() const { return data_ == nullptr; }
  // Requires: !is_null().
  constexpr ByteView view() const { return {data_, size_}; }
  constexpr ByteView view_or_empty() const { return data_ == nullptr ? ByteView() : view(); }
  constexpr std::size_t size() const { return size_; }  // 0 when null
  std::optional<std::string> to_owned() const {
    return is_null() ? std::nullopt : std::optional<std::string>(std::in_place, view());
  }
  friend constexpr bool operator==(const NullableBytes& a, const NullableBytes& b) {
    return a.is_null() == b.is_null() && a.view_or_empty() == b.view_or_empty();
  }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

// A counted block of bytes from the aligned pool.
//
// Every I/O buffer comes from here: 64-byte aligned and never 16 bytes into a page, where copies
// from the page cache are 4 to 8 times slower on current AMD processors
// (reference/performance 2.2).
//
// Threading: the count is atomic; the bytes are the owner's business. Copying shares, it never
//            copies bytes.
// Bounds:    blocks of 4 KiB to 4 MiB (powers of two) are recycled, at most 64 MiB in total per
//            process; others are freed at once.
class SharedBytes {
 public:
  SharedBytes() = default;
  // Capacity at least `capacity`, size 0. Never fails (aborts when memory is exhausted, as new
  // does).
  static SharedBytes allocate(std::size_t capacity);
  static SharedBytes copy_of(ByteView bytes);

  SharedBytes(const SharedBytes& other) noexcept : block_(other.block_) { retain(); }
  SharedBytes(SharedBytes&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  SharedBytes& operator=(const SharedBytes& other) noexcept {
    SharedBytes copy(other);
    std::swap(block_, copy.block_);
    return *this;
  }
  SharedBytes& operator=(SharedBytes&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~SharedBytes() { release(); }

  explicit operator bool() const { return block_ != nullptr; }
  // The bytes in use. Mutable only while the caller is the single owner.
  char* data() { return block_ == nullptr ? nullptr : reinterpret_cast<char*>(block_ + 1); }
  const char* data() const {
    return block_ == nullptr ? nullptr : reinterpret_cast<const char*>(block_ + 1);
  }
  std::size_t size() const { return block_ == nullptr ? 0 : block_->size; }
  std::size_t capacity() const { return block_ == nullptr ? 0 : block_->capacity; }
  ByteView view() const { return {data(), size()}; }
  // Requires: size <= capacity().
  void resize(std::size_t size) {
    WEIR_ASSERT(block_ != nullptr && size <= block_->capacity);
    block_->size = size;
  }
  bool is_unique() const {
    return block_ != nullptr && block_->references.load(std::memory_order_acquire) == 1;
  }

 private:
  // 64 bytes, so that the bytes behind it keep the alignment of the block.
  struct alignas(64) Block {
    std::atomic<std::uint32_t> references{1};
    std::uint32_t size_class = 0;
    std::size_t size = 0;
    std::size_t capacity = 0;
  };

  explicit SharedBytes(Block* block) : block_(block) {}
  void retain() const noexcept {
    if (block_ != nullptr) {
      block_->references.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void release() noexcept;

  Block* block_ = nullptr;
  friend class BufferPool;
};

namespace internal {
// `bytes` from the pool of SharedBytes, from the heap when they are less than its smallest block.
void* take_memory(std::size_t bytes);
// Requires: `memory` is of take_memory(bytes).
void return_memory(void* memory, std::size_t bytes) noexcept;
}  // namespace internal

// For vectors that come and go with every poll: the heap gives memory at its top back to the
// system when they go and faults it in again when they come, which costs more than their use.
template <class T>
struct PooledAllocator {
  using value_type = T;
  static_assert(alignof(T) <= 64);

  PooledAllocator() = default;
  template <class U>
  PooledAllocator(const PooledAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)
  T* allocate(std::size_t count) {
    return static_cast<T*>(internal::take_memory(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    internal::return_memory(memory, count * sizeof(T));
  }
  friend bool operator==(const PooledAllocator&, const PooledAllocator&) { return true; }
};

// A counted part of a SharedBytes: keeps the whole block alive.
struct SharedSlice {
  SharedBytes owner;
  ByteView bytes;
};

}  // namespace weir
