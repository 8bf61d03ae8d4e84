#include "log/coordinator/offsets_codec.h"
#include "log/dump/record_decoder.h"
#include "log/metadata/metadata_records.h"
#include "log/partition/checkpoint_file.h"
#include "log/partition/leader_epoch_cache.h"
#include "log/partition/partition_metadata.h"
#include "log/segment/offset_index.h"
#include "log/segment/time_index.h"

#include <weir/runtime/assert.h>

#include <cstdint>
#include <string>

// The first byte chooses a parser of the small files and internal topics, the rest is its input.
// What was read and written again must be read as the same.
namespace {

using weir::ByteView;
using weir::Offset;

void fuzz_offset_index(ByteView bytes) {
  const auto index = weir::log::OffsetIndex::parse(Offset(7), bytes, 1U << 20U);
  if (index.ok()) {
    const std::string again = index.value().encode();
    const auto second = weir::log::OffsetIndex::parse(Offset(7), again, 1U << 20U);
    WEIR_ASSERT(second.ok());
    WEIR_ASSERT(second.value().encode() == again);
  }
}

void fuzz_time_index(ByteView bytes) {
  const auto index = weir::log::TimeIndex::parse(Offset(7), bytes);
  if (index.ok()) {
    const std::string again = index.value().encode();
    const auto second = weir::log::TimeIndex::parse(Offset(7), again);
    WEIR_ASSERT(second.ok());
    WEIR_ASSERT(second.value().encode() == again);
  }
}

void fuzz_epochs(ByteView bytes) {
  const auto cache = weir::log::LeaderEpochCache::parse(bytes);
  if (cache.ok()) {
    const auto second = weir::log::LeaderEpochCache::parse(cache.value().encode());
    WEIR_ASSERT(second.ok());
    WEIR_ASSERT(second.value().encode() == cache.value().encode());
  }
}

void fuzz_partition_metadata(ByteView bytes) {
  const auto id = weir::log::parse_partition_metadata(bytes);
  if (id.ok()) {
    const auto second =
        weir::log::parse_partition_metadata(weir::log::encode_partition_metadata(id.value()));
    WEIR_ASSERT(second.ok());
    WEIR_ASSERT(second.value() == id.value());
  }
}

void fuzz_metadata_record(ByteView bytes) {
  const auto record = weir::log::decode_metadata_record(bytes);
  if (record.ok() && !std::holds_alternative<weir::log::OtherMetadataRecord>(record.value())) {
    const std::string again = weir::log::encode_metadata_record(record.value());
    const auto second = weir::log::decode_metadata_record(again);
    WEIR_ASSERT(second.ok());
    WEIR_ASSERT(weir::log::encode_metadata_record(second.value()) == again);
  }
}

void fuzz_offsets(ByteView bytes) {
  const auto key = weir::log::decode_offset_key(bytes);
  if (key.ok() && key.value().has_value()) {
    const std::string again = weir::log::encode_offset_key(*key.value());
    const auto second = weir::log::decode_offset_key(again);
    WEIR_ASSERT(second.ok());
    WEIR_ASSERT(second.value().has_value());
    WEIR_ASSERT(weir::log::encode_offset_key(*second.value()) == again);
  }
  const auto value = weir::log::decode_offset_value(bytes);
  if (value.ok()) {
    const std::string again = weir::log::encode_offset_value(value.value());
    const auto second = weir::log::decode_offset_value(again);
    WEIR_ASSERT(second.ok());
    WEIR_ASSERT(weir::log::encode_offset_value(second.value()) == again);
  }
}

// As the dump shows them: whatever the bytes are, there is a text and it is bounded by them.
void fuzz_decoders(ByteView bytes) {
  using weir::log::RecordDecoder;
  weir::RecordView record;
  record.key = bytes.substr(0, bytes.size() / 2);
  record.value = bytes.substr(bytes.size() / 2);
  for (const RecordDecoder decoder :
       {RecordDecoder::kOffsets, RecordDecoder::kTransactionLog, RecordDecoder::kClusterMetadata}) {
    const std::string text = weir::log::decoded_text(decoder, record);
    WEIR_ASSERT(!text.empty());
    WEIR_ASSERT(text.size() <= 1000 * (bytes.size() + 1));
  }
}

void fuzz_offset_checkpoint(ByteView bytes) {
  const auto offsets = weir::log::parse_offset_checkpoint(bytes, "checkpoint");
  WEIR_ASSERT(!offsets.ok() || offsets.value().size() <= bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  // A copy of its own: the sanitizer then sees a read behind its end.
  const std::string copy(data + 1, data + size);
  constexpr void (*kParsers[])(ByteView) = {
      fuzz_offset_index,    fuzz_time_index, fuzz_epochs,   fuzz_partition_metadata,
      fuzz_metadata_record, fuzz_offsets,    fuzz_decoders, fuzz_offset_checkpoint};
  kParsers[data[0] % std::size(kParsers)](copy);
  return 0;
}
