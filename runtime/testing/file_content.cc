#include "runtime/testing/file_content.h"

#include <weir/runtime/assert.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir::testing::internal {
namespace {

constexpr std::size_t kSectorBytes = 512;  // what a disk writes whole

}  // namespace

FileContent::FileContent(std::size_t block_bytes) : block_bytes_(block_bytes) {
  WEIR_ASSERT(block_bytes != 0 && block_bytes % kSectorBytes == 0);
}

std::uint64_t FileContent::blocks_for(std::uint64_t size) const {
  return size / block_bytes_ + (size % block_bytes_ == 0 ? 0 : 1);
}

FileContent::Block& FileContent::block_at(std::uint64_t index) {
  if (index >= blocks_.size()) {
    blocks_.resize(static_cast<std::size_t>(index) + 1);
  }
  return blocks_[static_cast<std::size_t>(index)];
}

void FileContent::mark_dirty(std::uint64_t index) {
  Block& block = blocks_[static_cast<std::size_t>(index)];
  if (!block.dirty) {
    block.dirty = true;
    dirty_.push_back(index);
  }
}

SharedBytes FileContent::copy_block(const SharedBytes& from) const {
  SharedBytes copy = SharedBytes::allocate(block_bytes_);
  copy.resize(block_bytes_);
  if (from) {
    std::memcpy(copy.data(), from.data(), block_bytes_);
  } else {
    std::memset(copy.data(), 0, block_bytes_);
  }
  return copy;
}

char* FileContent::writable(Block& block, bool overwritten) {
  if (!block.cached.is_unique()) {
    if (overwritten) {
      block.cached = SharedBytes::allocate(block_bytes_);
      block.cached.resize(block_bytes_);
    } else {
      block.cached = copy_block(block.cached);
    }
  }
  return block.cached.data();
}

std::size_t FileContent::read(std::uint64_t position, std::span<char> out) const {
  if (position >= size_) {
    return 0;
  }
  const std::size_t count =
      static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size_ - position));
  for (std::size_t done = 0; done < count;) {
    const std::uint64_t at = position + done;
    const std::size_t index = static_cast<std::size_t>(at / block_bytes_);
    const std::size_t offset = static_cast<std::size_t>(at % block_bytes_);
    const std::size_t part = std::min(count - done, block_bytes_ - offset);
    if (index < blocks_.size() && blocks_[index].cached) {
      std::memcpy(out.data() + done, blocks_[index].cached.data() + offset, part);
    } else {
      std::memset(out.data() + done, 0, part);
    }
    done += part;
  }
  return count;
}

std::uint64_t FileContent::writable_bytes(std::uint64_t position, std::uint64_t count,
                                          std::uint64_t free_blocks) const {
  const std::uint64_t end = position + count;
  const std::uint64_t first = position / block_bytes_;
  if (count == 0 || blocks_for(end) - first <= free_blocks) {
    return count;
  }
  for (std::uint64_t index = first; index * block_bytes_ < end; ++index) {
    const bool allocated =
        index < reserved_blocks_ ||
        (index < blocks_.size() && blocks_[static_cast<std::size_t>(index)].cached);
    if (allocated) {
      continue;
    }
    if (free_blocks == 0) {
      return std::max(index * block_bytes_, position) - position;
    }
    --free_blocks;
  }
  return count;
}

void FileContent::write(std::uint64_t position, ByteView bytes) {
  if (bytes.empty()) {
    return;
  }
  WEIR_ASSERT(position <= kSizeMax && bytes.size() <= kSizeMax - position);
  const std::uint64_t end = position + bytes.size();
  while (!bytes.empty()) {
    const std::uint64_t index = position / block_bytes_;
    const std::size_t offset = static_cast<std::size_t>(position % block_bytes_);
    const std::size_t part = std::min(bytes.size(), block_bytes_ - offset);
    Block& block = block_at(index);
    if (!block.cached && index >= reserved_blocks_) {
      ++allocated_;
    }
    std::memcpy(writable(block, part == block_bytes_) + offset, bytes.data(), part);
    mark_dirty(index);
    position += part;
    bytes.remove_prefix(part);
  }
  size_ = std::max(size_, end);
}

void FileContent::write_changed(ByteView bytes) {
  bytes = bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), size_)));
  for (std::size_t at = 0; at < bytes.size(); at += block_bytes_) {
    const ByteView part = bytes.substr(at, block_bytes_);
    const std::size_t index = at / block_bytes_;
    const bool hole = index >= blocks_.size() || !blocks_[index].cached;
    const bool same =
        hole ? part.find_first_not_of('\0') == ByteView::npos
             : std::memcmp(blocks_[index].cached.data(), part.data(), part.size()) == 0;
    if (!same) {
      write(at, part);
    }
  }
}

void FileContent::truncate(std::uint64_t size) {
  WEIR_ASSERT(size <= kSizeMax);
  const std::uint64_t end = blocks_for(size);
  for (std::uint64_t index = end; index < blocks_.size(); ++index) {
    Block& block = blocks_[static_cast<std::size_t>(index)];
    if (block.cached && index >= reserved_blocks_) {
      --allocated_;
    }
    block.cached = SharedBytes();
    if (block.durable) {
      mark_dirty(index);
    }
  }
  if (reserved_blocks_ > end) {
    allocated_ -= reserved_blocks_ - end;
    reserved_blocks_ = end;
  }
  // Bytes behind the end are zeros, so that a later extension reads zeros.
  const std::size_t tail = static_cast<std::size_t>(size % block_bytes_);
  if (size < size_ && tail != 0 && end <= blocks_.size() &&
      blocks_[static_cast<std::size_t>(end - 1)].cached) {
    Block& block = blocks_[static_cast<std::size_t>(end - 1)];
    std::memset(writable(block, false) + tail, 0, block_bytes_ - tail);
    mark_dirty(end - 1);
  }
  size_ = size;
}

std::uint64_t FileContent::blocks_to_reserve(std::uint64_t size) const {
  const std::uint64_t end = blocks_for(size);
  if (end <= reserved_blocks_) {
    return 0;
  }
  std::uint64_t present = 0;
  for (std::uint64_t index = reserved_blocks_; index < std::min<std::uint64_t>(end, blocks_.size());
       ++index) {
    present += blocks_[static_cast<std::size_t>(index)].cached ? 1U : 0U;
  }
  return end - reserved_blocks_ - present;
}

void FileContent::reserve(std::uint64_t size) {
  allocated_ += blocks_to_reserve(size);
  reserved_blocks_ = std::max(reserved_blocks_, blocks_for(size));
}

void FileContent::sync() {
  for (const std::uint64_t index : dirty_) {
    Block& block = blocks_[static_cast<std::size_t>(index)];
    block.durable = block.cached;
    block.dirty = false;
  }
  dirty_.clear();
  durable_size_ = size_;
  cut_durable_tail();
}

void FileContent::fail_sync() {
  for (const std::uint64_t index : dirty_) {
    blocks_[static_cast<std::size_t>(index)].dirty = false;
  }
  dirty_.clear();
}

// Durable bytes behind the durable end are gone; only blocks that a failed sync lost have any.
void FileContent::cut_durable_tail() {
  const std::size_t end = static_cast<std::size_t>(blocks_for(durable_size_));
  if (blocks_.size() > end) {
    blocks_.resize(end);
  }
  const std::size_t tail = static_cast<std::size_t>(durable_size_ % block_bytes_);
  if (tail == 0 || blocks_.size() < end) {
    return;
  }
  Block& last = blocks_[end - 1];
  const bool shared_with_cache = last.durable.data() == last.cached.data();
  if (last.durable && !shared_with_cache) {
    last.durable = copy_block(last.durable);
    std::memset(last.durable.data() + tail, 0, block_bytes_ - tail);
  }
}

std::uint64_t FileContent::size_after_power_cut(Rng& rng) const {
  const auto [low, high] = std::minmax(size_, durable_size_);
  switch (rng.below(3)) {
    case 0:
      return durable_size_;
    case 1:
      return size_;
    default:
      return low + rng.below(high - low + 1);
  }
}

// Whole-file outcomes and write-back in order are likelier than a coin per block would make them:
// they are what a real kernel does most.
std::vector<FileContent::Fate> FileContent::fates(std::size_t count, Rng& rng) const {
  std::vector<Fate> result(count, Fate::kLost);
  switch (rng.below(5)) {
    case 0:
      break;
    case 1:
      std::fill(result.begin(), result.end(), Fate::kKept);
      break;
    case 2: {
      const std::size_t kept = static_cast<std::size_t>(rng.below(count + 1));
      std::fill_n(result.begin(), kept, Fate::kKept);
      if (kept < count) {
        result[kept] = Fate::kTorn;
      }
      break;
    }
    default:
      for (Fate& fate : result) {
        fate = static_cast<Fate>(rng.below(3));
      }
  }
  return result;
}

SharedBytes FileContent::torn(const Block& block, Rng& rng) const {
  const std::size_t sectors = block_bytes_ / kSectorBytes;
  const std::size_t border = static_cast<std::size_t>(rng.below(sectors + 1));
  const std::uint64_t kind = rng.below(3);  // a prefix, a suffix or any sectors reached the disk
  SharedBytes result = copy_block(block.durable);
  for (std::size_t sector = 0; sector < sectors; ++sector) {
    const bool reached = kind == 0   ? sector < border
                         : kind == 1 ? sector >= border
                                     : rng.chance(1, 2);
    const std::size_t at = sector * kSectorBytes;
    if (reached && block.cached) {
      std::memcpy(result.data() + at, block.cached.data() + at, kSectorBytes);
    } else if (reached) {
      std::memset(result.data() + at, 0, kSectorBytes);
    }
  }
  return result;
}

void FileContent::power_cut(Rng& rng) {
  const std::uint64_t size = size_after_power_cut(rng);
  std::sort(dirty_.begin(), dirty_.end());
  const std::vector<Fate> decided = fates(dirty_.size(), rng);
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    Block& block = blocks_[static_cast<std::size_t>(dirty_[i])];
    if (decided[i] == Fate::kKept) {
      block.durable = block.cached;
    } else if (decided[i] == Fate::kTorn) {
      block.durable = torn(block, rng);
    }
    block.dirty = false;
  }
  dirty_.clear();
  settle(size);
}

// The disk's bytes are all there is; the file ends at `size`.
void FileContent::settle(std::uint64_t size) {
  size_ = size;
  durable_size_ = size;
  reserved_blocks_ = 0;
  for (Block& block : blocks_) {
    block.cached = SharedBytes();
  }
  cut_durable_tail();
  allocated_ = 0;
  for (Block& block : blocks_) {
    block.cached = block.durable;
    allocated_ += block.cached ? 1U : 0U;
  }
}

SharedBytes FileContent::with_flipped_bit(const SharedBytes& from, std::size_t offset,
                                          int bit) const {
  SharedBytes copy = copy_block(from);
  copy.data()[offset] = static_cast<char>(copy.data()[offset] ^ (1 << bit));
  return copy;
}

void FileContent::flip_bit(std::uint64_t position, int bit) {
  WEIR_ASSERT(position < size_ && bit >= 0 && bit < 8);
  const std::uint64_t index = position / block_bytes_;
  const std::size_t offset = static_cast<std::size_t>(position % block_bytes_);
  Block& block = block_at(index);
  if (!block.cached && index >= reserved_blocks_) {
    ++allocated_;
  }
  const bool same = block.cached.data() == block.durable.data();
  const bool durable = position < durable_size_;
  block.cached = with_flipped_bit(block.cached, offset, bit);
  if (!durable) {
    mark_dirty(index);
  } else if (same) {
    block.durable = block.cached;
  } else {
    block.durable = with_flipped_bit(block.durable, offset, bit);
  }
}

}  // namespace weir::testing::internal
