#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/rng.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::testing::internal {

// The bytes of one simulated file, twice: as the page cache has them and as the disk has them.
//
// A block holds two counted buffers, cached and durable. They are one buffer while the block is
// clean, so sync() moves pointers and copies nothing; the next write copies that one block. Copies
// of a FileContent share buffers the same way. A null buffer is a hole and reads as zeros.
//
// Threading: confined to its owner; copies may live on other threads.
// Bounds:    files up to kSizeMax.
class FileContent {
 public:
  static constexpr std::uint64_t kSizeMax = 64ULL << 30U;

  // Requires: block_bytes is a multiple of 512 and not 0.
  explicit FileContent(std::size_t block_bytes);

  std::uint64_t size() const { return size_; }
  // What counts against the disk's capacity: cached blocks that are not holes, and reserved ones.
  std::uint64_t allocated_blocks() const { return allocated_; }

  std::size_t read(std::uint64_t position, std::span<char> out) const;
  // How many of `count` bytes can be written at `position` when `free_blocks` may be allocated.
  std::uint64_t writable_bytes(std::uint64_t position, std::uint64_t count,
                               std::uint64_t free_blocks) const;
  // Requires: position + bytes.size() <= kSizeMax.
  void write(std::uint64_t position, ByteView bytes);
  // Writes the blocks of `bytes`, from the file's start, that differ from the cache.
  void write_changed(ByteView bytes);
  // Frees blocks that were reserved behind the new end, as ext4 and xfs do.
  void truncate(std::uint64_t size);
  // Blocks that reserve(size) would allocate.
  std::uint64_t blocks_to_reserve(std::uint64_t size) const;
  void reserve(std::uint64_t size);

  // The cache becomes durable, save blocks that a failed sync has lost.
  void sync();
  // A sync that failed: Linux marks the dirty pages clean although the disk does not have them, so
  // the next sync succeeds and makes nothing of them durable. Only a new write to the block does.
  void fail_sync();
  // Throws the cache away; what of it had reached the disk is up to `rng`.
  void power_cut(Rng& rng);
  // Requires: position < size().
  void flip_bit(std::uint64_t position, int bit);

 private:
  struct Block {
    SharedBytes cached;
    SharedBytes durable;
    bool dirty = false;
  };
  enum class Fate { kLost, kKept, kTorn };

  std::uint64_t blocks_for(std::uint64_t size) const;
  Block& block_at(std::uint64_t index);
  void mark_dirty(std::uint64_t index);
  // The cached bytes of a block, owned by nobody else; not filled when all will be overwritten.
  char* writable(Block& block, bool overwritten);
  SharedBytes copy_block(const SharedBytes& from) const;
  SharedBytes with_flipped_bit(const SharedBytes& from, std::size_t offset, int bit) const;
  SharedBytes torn(const Block& block, Rng& rng) const;
  std::uint64_t size_after_power_cut(Rng& rng) const;
  std::vector<Fate> fates(std::size_t count, Rng& rng) const;
  void cut_durable_tail();
  void settle(std::uint64_t size);

  const std::size_t block_bytes_;
  std::vector<Block> blocks_;
  std::vector<std::uint64_t> dirty_;  // indexes of blocks with `dirty`, each once
  std::uint64_t size_ = 0;
  std::uint64_t durable_size_ = 0;
  std::uint64_t reserved_blocks_ = 0;  // [0, reserved_blocks_) is allocated, holes included
  std::uint64_t allocated_ = 0;
};

}  // namespace weir::testing::internal
