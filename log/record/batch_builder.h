#pragma once

#include "log/record/batch_header.h"

#include <weir/runtime/record.h>

#include <cstdint>

namespace weir::log {

// Encodes records once, into the aligned buffer that is then appended, read and decoded in place.
//
//   BatchBuilder builder(64 << 10);
//   if (!builder.append(record)) { sink(builder.seal()); builder.append(record); }
//
// The first record of a batch always fits: the buffer grows for it. Offsets count from 0; the
// partition stamps the base. CreateTime. With a codec the records are compressed when the batch is
// sealed, and stay so when that makes them larger, as in Kafka; only above 2^31 - 1 bytes they do
// not.
//
// Threading: confined to its owner. Cost: about 100 instructions a record of 116 bytes with the
// CRC.
class BatchBuilder {
 public:
  // `batch_bytes`: size at which append() refuses (batch.size), header included, before
  // compression.
  explicit BatchBuilder(std::size_t batch_bytes, Compression compression = {});
  // Largest `batch_bytes` with which no sealed batch is over `sealed_bytes`, whatever the records,
  // save one of a single record.
  static std::size_t batch_bytes_within(std::size_t sealed_bytes, Codec codec);

  // False when the record does not fit behind those that are there; nothing was written then.
  // A record.timestamp of kNoTimestamp is written as it is: stamp it before.
  // Requires: batch_size_of(record) < 2^31; max.request.size is judged before.
  bool append(const RecordRef& record);
  bool empty() const { return count_ == 0; }
  std::int32_t count() const { return count_; }
  // Bytes so far, header included, before compression: 61 when empty.
  std::size_t size_bytes() const { return used_; }

  struct Producer {
    ProducerId id = kNoProducerId;
    ProducerEpoch epoch = kNoProducerEpoch;
    std::int32_t base_sequence = -1;
    bool transactional = false;
  };
  // Writes header and CRC, hands the buffer over and starts anew. Requires: !empty().
  SharedBytes seal() { return seal(Producer{}); }
  SharedBytes seal(const Producer& producer);

  // Encoded size of `record` alone in an uncompressed batch: what max.message.bytes and
  // max.request.size judge.
  static std::size_t batch_size_of(const RecordRef& record);

 private:
  bool make_room(const RecordRef& record);
  bool append_slowly(const RecordRef& record);
  void write(const RecordRef& record);
  SharedBytes take_records(BatchHeader& header);

  SharedBytes buffer_;
  char* data_ = nullptr;  // buffer_.data()
  std::size_t batch_bytes_;
  Compression compression_;
  std::size_t limit_ = 0;  // min(batch_bytes_, capacity), 0 without a buffer
  std::size_t used_ = kBatchHeaderBytes;
  std::int32_t count_ = 0;
  Timestamp base_timestamp_ = 0;
  Timestamp max_timestamp_ = 0;
};

// One control batch (markers, KRaft control records): attributes 0x20 (0x30 when transactional).
SharedBytes build_control_batch(ByteView key, ByteView value, Timestamp timestamp,
                                const BatchBuilder::Producer& producer);

}  // namespace weir::log
