#pragma once

#include "log/record/batch_header.h"
#include "log/record/record_reader.h"

namespace weir::log {

// The records of one batch, whose CRC was found right, as they are encoded: one after the other,
// without a list of them.
//
// Threading: confined to its owner. Ownership: borrows the batch; owns what was decompressed.
class BatchRecords {
 public:
  // Errors: kCorrupt (the compressed stream), kUnsupported (its codec).
  static Result<BatchRecords> open(const BatchHeader& header, ByteView batch,
                                   std::size_t decompressed_bytes_max);

  struct One {
    RawRecord raw;
    ByteView headers;  // encoded
    std::size_t size_bytes = 0;
    Offset offset;
    Timestamp timestamp = kNoTimestamp;  // as readers see it
  };
  // False behind the last one. Errors: kCorrupt: what is there is no record.
  Result<bool> next(One& record);

 private:
  BatchRecords(const BatchHeader& header, SharedBytes plain, ByteView bytes)
      : header_(header),
        plain_(std::move(plain)),
        at_(bytes.data()),
        end_(bytes.data() + bytes.size()) {}

  BatchHeader header_;
  SharedBytes plain_;
  const char* at_;
  const char* end_;
  std::int32_t read_ = 0;
};

}  // namespace weir::log
