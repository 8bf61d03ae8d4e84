#include "log/dump/text_dump.h"

#include "log/dump/control_text.h"
#include "log/dump/index_check.h"
#include "log/dump/partition_files.h"
#include "log/dump/record_decoder.h"
#include "log/dump/segment_walk.h"
#include "log/partition/checkpoint_file.h"
#include "log/record/batch_decoder.h"
#include "log/record/batch_json.h"
#include "log/segment/offset_index.h"
#include "log/segment/time_index.h"

#include <weir/runtime/endian.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace weir::log {
namespace {

std::string codec_text(std::uint8_t bits) {
  return bits > static_cast<std::uint8_t>(Codec::kZstd)
             ? fmt::format("unknown {}", bits)
             : std::string(codec_name(static_cast<Codec>(bits)));
}

std::string_view time_name(const BatchHeader& header) {
  return header.timestamp_type() == TimestampType::kLogAppendTime ? "LogAppendTime" : "CreateTime";
}

// java.util.OptionalLong's text.
std::string optional_text(bool is_present, std::int64_t value) {
  return is_present ? fmt::format("OptionalLong[{}]", value) : "OptionalLong.empty";
}

// firstSequence = lastSequence - delta, wrapping below 0 to 2^31 - 1.
std::int32_t first_sequence(const ProducerEntry& entry) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(entry.last_sequence) -
                                    static_cast<std::uint32_t>(entry.offset_delta)) &
                                   0x7fffffffU);
}

class TextDump {
 public:
  TextDump(FileSystem& files, const DumpTarget& target, const DumpOptions& options, DumpOutput& out)
      : files_(files),
        target_(target),
        options_(options),
        decoder_(target.decoder(options.decoder)),
        out_(out) {}

  Status run() {
    for (const DumpFile& file : target_.files) {
      if (file.kind != DumpFileKind::kOther) {
        WEIR_TRY(dump_file(file));
      }
    }
    return Status();
  }

 private:
  Status dump_file(const DumpFile& file) {
    const Result<std::shared_ptr<File>> opened =
        files_.open(target_.path_of(file), OpenMode::kRead);
    if (!opened.ok() && opened.error().code() == Errc::kNotFound) {
      return Status();  // a running process took it away meanwhile
    }
    if (!opened.ok() && file.kind == DumpFileKind::kLog) {
      return opened.error();
    }
    out_.text("Dumping ");
    out_.printable(target_.path_of(file));
    out_.text("\n");
    if (!opened.ok()) {
      note_unreadable(opened.error());
      return Status();
    }
    if (file.kind == DumpFileKind::kLog) {
      out_.format("Log starting offset: {}\n", file.base.value());
      return dump_batches(file, **opened, file.base, decoder_);
    }
    if (file.kind == DumpFileKind::kMetadataSnapshot) {
      return dump_metadata_snapshot(file, **opened);
    }
    const Status status = dump_entries(file, **opened);
    if (!status.ok()) {
      note_unreadable(status.error());
    } else if (is_index(file.kind)) {
      note_contradictions(file);
    }
    return Status();
  }

  // What the log beside an index says against it.
  void note_contradictions(const DumpFile& file) {
    if (!faults_ || faults_base_ != file.base) {
      faults_ = check_indexes(files_, target_.folder(), file.base);
      faults_base_ = file.base;
    }
    if (!faults_->ok()) {
      note_unreadable(faults_->error());
      return;
    }
    for (const IndexFault& fault : **faults_) {
      if (fault.file.substr(fault.file.rfind('/') + 1) == file.name) {
        out_.format("Damaged: reason: {}\n", fault.what);
      }
    }
  }

  Status dump_metadata_snapshot(const DumpFile& file, File& snapshot) {
    if (file.epoch != kNoLeaderEpoch) {
      out_.format("Snapshot end offset: {}, epoch: {}\n", file.base.value(), file.epoch.value());
    }
    return dump_batches(file, snapshot, Offset(0),
                        options_.decoder == RecordDecoder::kByTopic
                            ? RecordDecoder::kClusterMetadata
                            : options_.decoder);
  }

  void note_unreadable(const Error& error) {
    out_.text("Damaged: reason: ");
    out_.printable(error.message());
    out_.text("\n");
  }

  Status dump_batches(const DumpFile& file, File& log, Offset base, RecordDecoder decoder) {
    SegmentWalk walk(log, file.size, base, offset_end(file));
    while (true) {
      WEIR_TRY_ASSIGN(const WalkItem item, walk.next());
      if (const auto* batch = std::get_if<WalkedBatch>(&item)) {
        dump_batch(*batch, decoder);
      } else if (const auto* range = std::get_if<DamagedRange>(&item)) {
        dump_damage(*range);
      } else {
        return Status();
      }
    }
  }

  // Base of the next segment.
  Offset offset_end(const DumpFile& file) const {
    Offset end = kOffsetMax;
    for (const DumpFile& other : target_.files) {
      if (other.kind == DumpFileKind::kLog && file.kind == DumpFileKind::kLog &&
          other.base > file.base) {
        end = std::min(end, other.base);
      }
    }
    return end;
  }

  void dump_batch(const WalkedBatch& batch, RecordDecoder decoder) {
    dump_header(batch.header, batch.position, true);
    if (!options_.records) {
      return;
    }
    records_.clear();
    const Status decoded =
        decode_records(batch.header, batch.bytes, DecodeLimits(), records_, decompressed_);
    if (!decoded.ok()) {
      dump_damage(undecodable(batch, decoded.error().message()));
      return;
    }
    for (const RecordView& record : records_) {
      dump_record(batch.header, record, decoder);
    }
  }

  void dump_header(const BatchHeader& header, std::uint64_t position, bool is_valid) {
    out_.format(
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} "
        "producerEpoch: {} partitionLeaderEpoch: {} isTransactional: {} isControl: {} "
        "deleteHorizonMs: {} position: {} {}: {} size: {} magic: {} compresscodec: {} crc: {} "
        "isvalid: {}\n",
        header.base_offset.value(), header.last_offset().value(), header.records_count,
        header.base_sequence, sequence_at(header, header.last_offset_delta),
        header.producer_id.value(), header.producer_epoch.value(), header.leader_epoch.value(),
        header.is_transactional(), header.is_control(),
        optional_text(header.has_delete_horizon(), header.base_timestamp), position,
        time_name(header), header.max_timestamp, header.size_bytes(),
        static_cast<int>(header.magic), codec_text(header.codec_bits()), header.crc, is_valid);
  }

  void dump_record(const BatchHeader& header, const RecordView& record, RecordDecoder decoder) {
    const auto delta = static_cast<std::uint64_t>(record.offset.value()) -
                       static_cast<std::uint64_t>(header.base_offset.value());
    out_.format("| offset: {} {}: {} keySize: {} valueSize: {} sequence: {} headerKeys: [",
                record.offset.value(), time_name(header), record.timestamp, size_text(record.key),
                size_text(record.value), sequence_at(header, static_cast<std::int32_t>(delta)));
    std::string_view separator;
    for (const HeaderView& entry : record.headers) {
      out_.text(separator);
      out_.printable(entry.name);
      separator = ",";
    }
    out_.text("]");
    if (header.is_control()) {
      out_.text(" ");
      out_.printable(control_text(record));
    } else if (decoder != RecordDecoder::kNone) {
      out_.printable(decoded_text(decoder, record));
    } else {
      dump_field(" key: ", record.key);
      dump_field(" payload: ", record.value);
    }
    out_.text("\n");
  }

  static std::int64_t size_text(const NullableBytes& bytes) {
    return bytes.is_null() ? -1 : static_cast<std::int64_t>(bytes.size());
  }

  void dump_field(std::string_view name, const NullableBytes& bytes) {
    if (!bytes.is_null()) {
      out_.text(name);
      out_.printable(bytes.view());
    }
  }

  void dump_damage(const DamagedRange& range) {
    if (range.header) {
      dump_header(*range.header, range.position, range.is_crc_right);
    }
    out_.format("Damaged: position: {} endPosition: {} firstOffset: {} nextOffset: {} reason: {}\n",
                range.position, range.end_position, range.first_offset.value(),
                range.next_offset ? fmt::to_string(range.next_offset->value()) : "unknown",
                range.reason);
  }

  Status dump_entries(const DumpFile& file, File& index) {
    switch (file.kind) {
      case DumpFileKind::kOffsetIndex:
        return dump_index(file, index, OffsetIndex::kEntryBytes, [&](const char* in) {
          out_.format("offset: {} position: {}\n",
                      file.base.plus(load_be<std::int32_t>(in)).value(),
                      load_be<std::int32_t>(in + 4));
        });
      case DumpFileKind::kTimeIndex:
        return dump_index(file, index, TimeIndex::kEntryBytes, [&](const char* in) {
          out_.format("timestamp: {} offset: {}\n", load_be<std::int64_t>(in),
                      file.base.plus(load_be<std::int32_t>(in + 8)).value());
        });
      case DumpFileKind::kTransactionIndex:
        return dump_index(file, index, AbortedTransaction::kBytes, [&](const char* in) {
          const AbortedTransaction aborted = read_aborted_transaction(in);
          out_.format(
              "version: {} producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}\n",
              aborted.version, aborted.producer_id.value(), aborted.first_offset.value(),
              aborted.last_offset.value(), aborted.last_stable_offset.value());
        });
      case DumpFileKind::kSnapshot:
        return dump_snapshot(file);
      default:
        return dump_small_text(file);
    }
  }

  Status dump_small_text(const DumpFile& file) {
    WEIR_TRY_ASSIGN(const std::string text, read_file(files_, target_.path_of(file)));
    if (file.kind == DumpFileKind::kLeaderEpochs) {
      WEIR_TRY_ASSIGN(const std::vector<EpochStart> epochs, parse_leader_epochs(text));
      for (const EpochStart& epoch : epochs) {
        out_.format("epoch: {} startOffset: {}\n", epoch.epoch.value(), epoch.start.value());
      }
      return Status();
    }
    if (file.kind == DumpFileKind::kPartitionMetadata) {
      WEIR_TRY_ASSIGN(const PartitionMetadata metadata, parse_metadata_file(text));
      out_.format("version: {} topicId: {}\n", metadata.version, metadata.topic_id.to_string());
      return Status();
    }
    WEIR_TRY_ASSIGN(const OffsetCheckpoint offsets, parse_offset_checkpoint(text, file.name));
    for (const auto& [partition, offset] : offsets) {
      out_.text("topic: ");
      out_.printable(partition.topic);
      out_.format(" partition: {} offset: {}\n", partition.partition.value(), offset.value());
    }
    return Status();
  }

  Status dump_index(const DumpFile& file, File& index, std::size_t entry_bytes,
                    const std::function<void(const char*)>& entry) {
    WEIR_TRY(for_each_entry(index, file.size, entry_bytes, entry));
    if (const std::uint64_t rest = file.size % entry_bytes; rest != 0) {
      return odd_size(file.size, entry_bytes);
    }
    return Status();
  }

  Status dump_snapshot(const DumpFile& file) {
    WEIR_TRY_ASSIGN(const std::string bytes, read_file(files_, target_.path_of(file)));
    WEIR_TRY_ASSIGN(const std::vector<ProducerEntry> entries, parse_producer_snapshot(bytes));
    for (const ProducerEntry& entry : entries) {
      out_.format(
          "producerId: {} producerEpoch: {} coordinatorEpoch: {} currentTxnFirstOffset: {} "
          "lastTimestamp: {}",
          entry.id.value(), entry.epoch.value(), entry.coordinator_epoch,
          optional_text(entry.transaction_first_offset != kNoOffset,
                        entry.transaction_first_offset.value()),
          entry.timestamp);
      if (entry.last_offset != kNoOffset) {
        out_.format(
            " firstSequence: {} lastSequence: {} lastOffset: {} offsetDelta: {} timestamp: {}",
            first_sequence(entry), entry.last_sequence, entry.last_offset.value(),
            entry.offset_delta, entry.timestamp);
      }
      out_.text("\n");
    }
    return Status();
  }

  FileSystem& files_;
  const DumpTarget& target_;
  const DumpOptions& options_;
  const RecordDecoder decoder_;
  DumpOutput& out_;
  std::optional<Result<std::vector<IndexFault>>> faults_;  // of the segment at faults_base_
  Offset faults_base_;
  RecordViews records_;
  SharedBytes decompressed_;
};

}  // namespace

Status dump_as_text(FileSystem& files, const DumpTarget& target, const DumpOptions& options,
                    DumpOutput& out) {
  return TextDump(files, target, options, out).run();
}

}  // namespace weir::log
