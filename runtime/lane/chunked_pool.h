#pragma once

#include <weir/runtime/assert.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weir::internal {

// "No element" wherever elements of a pool are named by index.
inline constexpr std::uint32_t kNone = UINT32_MAX;

// Elements of one kind, named by 4-byte indices that stay valid until released; no allocation per
// element, and a chunk whose elements are all released goes back to the heap (one is kept).
//
// Requires: T is default-constructible and has a member `std::uint32_t next`, which links free
// elements. An element keeps its old contents from release() to acquire(): the owner sets all.
// Bounds:    the owner's.
// Threading: confined to its owner.
template <class T, std::size_t ChunkElements = 1024>
class ChunkedPool {
 public:
  std::uint32_t acquire() {
    if (open_ == kNone) {
      add_chunk();
    }
    Chunk& chunk = *chunks_[open_];
    const std::uint32_t index = chunk.free;
    chunk.free = (*this)[index].next;
    ++chunk.live;
    ++live_;
    if (chunk.free == kNone) {
      unlink(open_);
    }
    return index;
  }
  void release(std::uint32_t index) {
    const auto number = static_cast<std::uint32_t>(index / ChunkElements);
    Chunk& chunk = *chunks_[number];
    WEIR_ASSERT(chunk.live > 0);
    const bool was_full = chunk.free == kNone;
    (*this)[index].next = chunk.free;
    chunk.free = index;
    --chunk.live;
    --live_;
    if (was_full) {
      link(number);
    }
    if (chunk.live == 0 && chunk_count_ > 1) {
      unlink(number);
      chunks_[number].reset();
      vacant_.push_back(number);
      --chunk_count_;
    }
  }
  T& operator[](std::uint32_t index) {
    return chunks_[index / ChunkElements]->elements[index % ChunkElements];
  }
  const T& operator[](std::uint32_t index) const {
    return chunks_[index / ChunkElements]->elements[index % ChunkElements];
  }
  // Whether `index` may be read: it is held, or was released and its chunk is still here.
  bool contains(std::uint32_t index) const {
    return index / ChunkElements < chunks_.size() && chunks_[index / ChunkElements] != nullptr;
  }
  std::size_t live() const { return live_; }
  std::size_t capacity() const { return chunk_count_ * ChunkElements; }

 private:
  struct Chunk {
    T elements[ChunkElements];
    std::uint32_t free = kNone;
    std::uint32_t live = 0;
    std::uint32_t open_prev = kNone;  // chunks with free elements
    std::uint32_t open_next = kNone;
  };

  void add_chunk() {
    std::uint32_t number = 0;
    if (vacant_.empty()) {
      number = static_cast<std::uint32_t>(chunks_.size());
      chunks_.emplace_back();
    } else {
      number = vacant_.back();
      vacant_.pop_back();
    }
    chunks_[number] = std::make_unique<Chunk>();
    ++chunk_count_;
    Chunk& chunk = *chunks_[number];
    const auto first = static_cast<std::uint32_t>(number * ChunkElements);
    for (std::uint32_t i = 0; i < ChunkElements; ++i) {
      chunk.elements[i].next = i + 1 < ChunkElements ? first + i + 1 : kNone;
    }
    chunk.free = first;
    link(number);
  }
  void link(std::uint32_t number) {
    Chunk& chunk = *chunks_[number];
    chunk.open_prev = kNone;
    chunk.open_next = open_;
    if (open_ != kNone) {
      chunks_[open_]->open_prev = number;
    }
    open_ = number;
  }
  void unlink(std::uint32_t number) {
    Chunk& chunk = *chunks_[number];
    (chunk.open_prev == kNone ? open_ : chunks_[chunk.open_prev]->open_next) = chunk.open_next;
    if (chunk.open_next != kNone) {
      chunks_[chunk.open_next]->open_prev = chunk.open_prev;
    }
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::uint32_t> vacant_;  // numbers of chunks that were freed
  std::uint32_t open_ = kNone;
  std::size_t chunk_count_ = 0;
  std::size_t live_ = 0;
};

}  // namespace weir::internal
