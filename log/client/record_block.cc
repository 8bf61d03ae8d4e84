#include "log/client/record_block.h"

#include "log/record/batch_decoder.h"

#include <algorithm>

namespace weir::log {

RecordBlock block_without_records(const FetchedBatch& batch) {
  RecordBlock block;
  block.leader_epoch = batch.header.leader_epoch;
  block.next_offset = batch.header.next_offset();
  return block;
}

Result<RecordBlock> decode_block(FetchedBatch& batch, Offset from) {
  RecordBlock block = block_without_records(batch);
  if (batch.header.is_control()) {
    return block;
  }
  SharedBytes decompressed;
  WEIR_TRY(
      decode_records(batch.header, batch.bytes.bytes, DecodeLimits{}, block.records, decompressed));
  if (batch.header.base_offset < from) {
    const auto first =
        std::find_if(block.records.begin(), block.records.end(),
                     [&](const RecordView& record) { return record.offset >= from; });
    block.records.erase(block.records.begin(), first);
  }
  block.owner = std::make_shared<const SharedBytes>(decompressed ? std::move(decompressed)
                                                                 : std::move(batch.bytes.owner));
  return block;
}

}  // namespace weir::log
