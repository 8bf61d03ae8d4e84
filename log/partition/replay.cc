#include "log/partition/replay.h"

#include "log/record/batch_decoder.h"

namespace weir::log {
namespace {

constexpr std::size_t kReadBytes = 1U << 20U;

Status replay_batch(const FetchedBatch& batch, Offset from,
                    const std::function<Status(const BatchHeader&, const RecordView&)>& record) {
  if (!batch.verified) {
    WEIR_TRY(verify_batch(batch.bytes.bytes).status());
  }
  RecordViews records;
  SharedBytes decompressed;
  WEIR_TRY(decode_records(batch.header, batch.bytes.bytes, DecodeLimits{}, records, decompressed));
  for (const RecordView& one : records) {
    if (one.offset >= from) {
      WEIR_TRY(record(batch.header, one));
    }
  }
  return {};
}

}  // namespace

Result<Offset> replay_records(Partition& partition, Offset from,
                              const std::function<Status(const RecordView&)>& record) {
  return replay_batches(partition, from,
                        [&record](const BatchHeader& batch, const RecordView& one) {
                          return batch.is_control() ? Status() : record(one);
                        });
}

Result<Offset> replay_batches(
    Partition& partition, Offset from,
    const std::function<Status(const BatchHeader&, const RecordView&)>& record) {
  for (;;) {
    WEIR_TRY_ASSIGN(const FetchResult fetched, partition.read(from, kReadBytes));
    if (fetched.batches.empty()) {
      return from;
    }
    for (const FetchedBatch& batch : fetched.batches) {
      WEIR_TRY(replay_batch(batch, from, record));
    }
    from = fetched.next_offset;
  }
}

}  // namespace weir::log
