#pragma once

#include "log/record/batch_header.h"

#include <weir/runtime/file_system.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// The side-car of a segment (docs/formats/checksums.md): what its batches were when they were
// written. A batch's own CRC leaves out its first 17 bytes (base offset, length, leader epoch,
// magic); here they have one, too.
//
// What stands in a side-car is true of every offset below the log's recovery point, and says
// nothing about those above it. A missing, short or unreadable side-car says nothing at all: then
// the CRCs and the order of the offsets are what a batch is judged by.

namespace weir::log {

inline constexpr std::string_view kChecksumSuffix = ".chk";

// Of one batch.
struct BatchChecksum {
  Offset base;
  Offset next;
  std::uint32_t size = 0;
  std::uint32_t batch_crc = 0;   // the header's field
  std::uint32_t header_crc = 0;  // CRC-32C of the first 21 bytes
};

std::uint32_t batch_head_crc(ByteView batch);
BatchChecksum checksum_of(const BatchHeader& header, ByteView batch);

// A batch as the side-car knows it.
struct KnownBatch {
  std::uint64_t position = 0;
  std::uint32_t size = 0;
  std::uint32_t batch_crc = 0;
  std::uint32_t header_crc = 0;
};

// Up to 64 KiB of a segment, or one batch.
struct ChecksumGroup {
  Offset base;  // of the first batch
  Offset next;  // behind the last one
  std::uint64_t position = 0;
  std::uint64_t end_position = 0;
  std::uint64_t chain = 0;  // over all batches from the last gap to the end of this group
  std::vector<KnownBatch> batches;
};

// Encodes neighbours, the first of them at `position`, as groups. `chain` goes on.
std::string encode_checksums(std::span<const BatchChecksum> batches, std::uint64_t position,
                             std::uint64_t& chain);

// Reads a side-car from its start. Threading: confined to its owner.
// Bounds: one group, at most 16 KiB.
class ChecksumReader {
 public:
  ChecksumReader() = default;  // says nothing
  // Of what is below `limit`. An absent file says nothing. Errors: kIo.
  static Result<ChecksumReader> open(FileSystem& files, const std::string& path, Offset limit);

  // The next group; null at the end, and at what is torn or rotten: nothing behind it counts.
  // Valid until the next call. Errors: kIo.
  Result<const ChecksumGroup*> next_group();
  // Behind the last group that was read.
  std::uint64_t valid_bytes() const { return valid_bytes_; }
  // The offset behind it.
  Offset end() const { return group_.next; }
  // Whether the file has bytes there.
  bool has_more() const { return valid_bytes_ < size_; }

  // The first known batch at or behind `position`, which never falls; none at the end. Do not mix
  // with next_group(). Errors: kIo.
  Result<std::optional<KnownBatch>> find(std::uint64_t position);

 private:
  Result<bool> read_group();
  bool decode(ByteView bytes);

  std::shared_ptr<File> file_;
  std::uint64_t size_ = 0;
  Offset limit_;
  std::uint64_t valid_bytes_ = 0;
  ChecksumGroup group_;
  std::size_t next_in_group_ = 0;
};

// Where a side-car goes on.
struct ChecksumEnd {
  std::uint64_t bytes = 0;         // of the groups that stay
  std::uint64_t end_position = 0;  // in the segment
  std::uint64_t chain = 0;
  bool has_more = false;  // bytes that are to go
};
// Of a side-car of which everything from `offset` or from `position` on is not true any more.
// Errors: kIo.
Result<ChecksumEnd> find_checksum_end(FileSystem& files, const std::string& path, Offset offset,
                                      std::uint64_t position);

// Makes a side-car anew: a file beside it that takes its name at the end.
// Threading: confined to its owner. Ownership: borrows `files`.
class ChecksumWriter {
 public:
  static Result<ChecksumWriter> create(FileSystem& files, std::string path);
  // Batches in order. Errors: kIo, kNoSpace.
  Status add(const BatchChecksum& batch, std::uint64_t position);
  Status finish();
  void abandon();

 private:
  ChecksumWriter(FileSystem& files, std::string path, std::shared_ptr<File> file)
      : files_(&files), path_(std::move(path)), file_(std::move(file)) {}
  Status write();

  FileSystem* files_;
  std::string path_;
  std::shared_ptr<File> file_;
  std::uint64_t bytes_ = 0;
  std::vector<BatchChecksum> batches_;
  std::uint64_t position_ = 0;      // of the first of them
  std::uint64_t end_position_ = 0;  // behind the last one
  std::uint64_t chain_ = 0;
};

}  // namespace weir::log
