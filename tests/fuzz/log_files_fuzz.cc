#include "log/broker/kafka_files.h"
#include "log/coordinator/offsets_codec.h"
#include "log/dump/partition_files.h"
#include "log/dump/record_decoder.h"
#include "log/durability/wal_reader.h"
#include "log/metadata/metadata_image.h"
#include "log/metadata/metadata_records.h"
#include "log/partition/checkpoint_file.h"
#include "log/partition/leader_epoch_cache.h"
#include "log/partition/partition_metadata.h"
#include "log/partition/producers_file.h"
#include "log/partition/watermarks.h"
#include "log/segment/offset_index.h"
#include "log/segment/time_index.h"
#include "tests/fuzz/fuzz.h"

#include <weir/runtime/assert.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <algorithm>
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

// Records of one length behind each other: whatever they say, the image takes or refuses them.
void fuzz_metadata_image(ByteView bytes) {
  weir::log::MetadataImage image;
  while (!bytes.empty()) {
    const std::size_t size =
        std::min<std::size_t>(static_cast<unsigned char>(bytes[0]), bytes.size() - 1);
    const auto record = weir::log::decode_metadata_record(bytes.substr(1, size));
    if (record.ok()) {
      image.apply(record.value()).ignore("a contradiction is an answer");
    }
    bytes.remove_prefix(1 + size);
  }
  for (const auto& [name, topic] : image.topics()) {
    WEIR_ASSERT(topic.name == name);
    WEIR_ASSERT(image.find(name) == &topic);
  }
}

void put(weir::FileSystem& files, ByteView bytes) {
  const auto file = files.open("file", weir::OpenMode::kCreateTruncate);
  WEIR_ASSERT(file.ok());
  WEIR_ASSERT((*file)->write_at(0, bytes).ok());
}

void fuzz_offset_checkpoint(ByteView bytes) {
  weir::testing::MemoryFileSystem files;
  put(files, bytes);
  const auto offsets = weir::log::read_offset_checkpoint(files, "file");
  if (offsets.ok()) {
    WEIR_ASSERT(weir::log::write_offset_checkpoint(files, "file", *offsets).ok());
    const auto second = weir::log::read_offset_checkpoint(files, "file");
    WEIR_ASSERT(second.ok());
    WEIR_ASSERT(*second == *offsets);
  } else {
    WEIR_ASSERT(offsets.error().code() == weir::Errc::kCorrupt);
  }
}

void fuzz_meta_properties(ByteView bytes) {
  const auto id = weir::log::parse_meta_properties(bytes, "file");
  if (id.ok()) {
    const std::string again = "version=1\ndirectory.id=" + id->to_string() + "\n";
    WEIR_ASSERT(weir::log::parse_meta_properties(again, "file").value() == *id);
  }
}

void fuzz_producer_snapshot(ByteView bytes) {
  const auto producers = weir::log::parse_producer_snapshot(bytes);
  WEIR_ASSERT(!producers.ok() || producers->size() <= bytes.size() / 46);
}

void fuzz_transaction_index(ByteView bytes) {
  using weir::log::AbortedTransaction;
  weir::testing::MemoryFileSystem files;
  put(files, bytes);
  const auto file = files.open("file", weir::OpenMode::kRead);
  std::size_t entries = 0;
  WEIR_ASSERT(weir::log::for_each_entry(**file, bytes.size(), AbortedTransaction::kBytes,
                                        [&entries](const char* in) {
                                          weir::log::read_aborted_transaction(in);
                                          ++entries;
                                        })
                  .ok());
  WEIR_ASSERT(entries <= bytes.size() / AbortedTransaction::kBytes);
  const auto parsed =
      weir::log::parse_transaction_index(bytes, weir::Offset(0), weir::log::kOffsetMax);
  WEIR_ASSERT(!parsed.ok() || parsed->size() <= entries);
}

void fuzz_producers(ByteView bytes) {
  const auto all = weir::log::parse_producers_file(bytes);
  WEIR_ASSERT(!all.ok() || all->size() <= bytes.size() / 32);
  const auto state = weir::log::ProducerState::decode(bytes, {});
  WEIR_ASSERT(!state.ok() || state->size() <= bytes.size() / 31);
}

void fuzz_watermarks(ByteView bytes) {
  weir::testing::MemoryFileSystem files;
  put(files, bytes);
  const auto watermarks = weir::log::Watermarks::open(files, "file");
  if (watermarks.ok()) {
    (*watermarks)->find(weir::Uuid{}, weir::PartitionId(0));
  }
}

void fuzz_wal(ByteView bytes) {
  weir::testing::MemoryFileSystem files;
  WEIR_ASSERT(files.create_directories("wal").ok());
  const auto file = files.open("wal/000.wal", weir::OpenMode::kCreateTruncate);
  WEIR_ASSERT((*file)->write_at(0, bytes).ok());
  const auto contents = weir::log::read_wal(files, "wal");
  WEIR_ASSERT(contents.ok());
  WEIR_ASSERT(contents->batches <= bytes.size());
}

}  // namespace

std::size_t weir::fuzz::allocation_max(std::size_t input) {
  return small_allocation_max(input) + (2U << 20U);  // the slots of wal/watermarks: 1 MiB
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  // A copy of its own: the sanitizer then sees a read behind its end.
  const std::string copy(data + 1, data + size);
  constexpr void (*kParsers[])(ByteView) = {fuzz_offset_index,
                                            fuzz_time_index,
                                            fuzz_epochs,
                                            fuzz_partition_metadata,
                                            fuzz_metadata_record,
                                            fuzz_offsets,
                                            fuzz_metadata_image,
                                            fuzz_offset_checkpoint,
                                            fuzz_meta_properties,
                                            fuzz_producer_snapshot,
                                            fuzz_transaction_index,
                                            fuzz_watermarks,
                                            fuzz_decoders,
                                            fuzz_wal,
                                            fuzz_producers};
  kParsers[data[0] % std::size(kParsers)](copy);
  return 0;
}
