#pragma once

#include "log/record/batch_header.h"

#include <weir/runtime/file_system.h>

#include <cstdint>
#include <optional>

namespace weir::log {

// The batch's offsets are from 0 up and none overflows: false only for bytes that are no batch.
inline bool offsets_fit(const BatchHeader& header) {
  return header.base_offset >= Offset(0) && header.last_offset_delta >= 0 &&
         header.base_offset.value() < INT64_MAX - INT32_MAX;
}

// Walks the batches of a part of a segment file through one buffer.
//
// Threading: confined to its owner. Ownership: borrows `file`.
// Bounds:    the buffer has 64 KiB, more only for whole() of a larger batch (at most 256 MiB).
class BatchScanner {
 public:
  // The part is [position, end).
  BatchScanner(File& file, std::uint64_t position, std::uint64_t end)
      : file_(file), position_(position), end_(end) {}

  std::uint64_t position() const { return position_; }
  // Header of the batch at position(); nullopt at the end of the part. Its offsets are from 0 up
  // and their sum does not overflow. Errors: kCorrupt (says what is wrong, also when the part ends
  // inside the batch), kUnsupported (a message of magic 0 or 1 whose own CRC is right), kIo.
  Result<std::optional<BatchHeader>> peek();
  // All bytes of the batch that peek() returned; valid until the next call.
  Result<ByteView> whole(const BatchHeader& header);
  void skip(const BatchHeader& header) {
    position_ += header.size_bytes();
    hop_ = header.size_bytes();
  }
  void seek(std::uint64_t position) { position_ = position; }

  // The next position at or behind `from` where a whole batch with a right CRC stands whose offsets
  // lie in [low, high); nullopt when there is none. Cost: a pass over the bytes.
  Result<std::optional<std::uint64_t>> find_next(std::uint64_t from, Offset low, Offset high);

 private:
  // Bytes at `position`, at least `need` unless the file ends.
  Result<ByteView> fill(std::uint64_t position, std::size_t need, std::size_t wish);
  bool is_legacy_message(ByteView start);

  File& file_;
  std::uint64_t position_;
  std::uint64_t end_;
  std::size_t hop_ = 0;  // size of the last batch: large ones are hopped over, not read
  SharedBytes buffer_;
  std::uint64_t buffer_position_ = 0;
};

}  // namespace weir::log
