#pragma once

#include <weir/runtime/record.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weir::internal {

struct HeldBlock {
  RecordBlock block;
  std::vector<NullableBytes> sessions;  // empty: the keys
  std::uint32_t readers = 0;            // records out, and one while it is pending
  std::uint32_t partition = 0;
  std::uint64_t bytes = 0;
};

// Fetched blocks while somebody reads their records, each at a stable address and named by 4 bytes.
// Bytes count whole blocks, since one record keeps its whole block alive. Threading: confined to
// the dispatcher.
class HeldBlocks {
 public:
  std::uint32_t hold(RecordBlock block, std::vector<NullableBytes> sessions,
                     std::uint32_t partition) {
    std::uint64_t bytes = sizeof(HeldBlock);
    for (const RecordView& record : block.records) {
      bytes += sizeof(RecordView) + record.key.size() + record.value.size() +
               record.headers.encoded().size();
    }
    std::uint32_t id = 0;
    if (free_.empty()) {
      id = static_cast<std::uint32_t>(blocks_.size());
      blocks_.push_back(std::make_unique<HeldBlock>());
    } else {
      id = free_.back();
      free_.pop_back();
    }
    *blocks_[id] = {std::move(block), std::move(sessions), 1, partition, bytes};
    bytes_ += bytes;
    ++live_;
    return id;
  }
  HeldBlock& operator[](std::uint32_t id) { return *blocks_[id]; }
  const HeldBlock& operator[](std::uint32_t id) const { return *blocks_[id]; }
  void drop(std::uint32_t id) {
    bytes_ -= blocks_[id]->bytes;
    --live_;
    *blocks_[id] = HeldBlock{};
    free_.push_back(id);
  }
  std::uint64_t bytes() const { return bytes_; }
  std::size_t live() const { return live_; }

 private:
  std::vector<std::unique_ptr<HeldBlock>> blocks_;
  std::vector<std::uint32_t> free_;
  std::uint64_t bytes_ = 0;
  std::size_t live_ = 0;
};

}  // namespace weir::internal
