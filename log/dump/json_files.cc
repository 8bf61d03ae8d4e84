#include "log/dump/json_files.h"

#include "log/dump/index_check.h"
#include "log/dump/partition_files.h"
#include "log/partition/checkpoint_file.h"
#include "log/segment/offset_index.h"
#include "log/segment/segment_names.h"
#include "log/segment/time_index.h"

#include <weir/runtime/endian.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace weir::log {

void JsonFiles::write_sizes() {
  json_.key("files");
  json_.open("{");
  for (const DumpFile& file : target_.files) {
    json_.key(file.name);
    json_.value(file.size);
  }
  json_.close("}");
}

// The contents of a small file; nothing, and a note, when it cannot be read.
std::optional<std::string> JsonFiles::read_small(const DumpFile& file) {
  Result<std::string> bytes = read_file(files_, target_.path_of(file));
  if (!bytes.ok()) {
    if (bytes.error().code() != Errc::kNotFound) {
      note_damaged_file(file, bytes.error());
    }
    return std::nullopt;
  }
  return *std::move(bytes);
}

void JsonFiles::note_damaged_file(const DumpFile& file, const Error& error) {
  damaged_files_.emplace_back(file.name, error.message());
}

void JsonFiles::write_small_files() {
  for (const DumpFile& file : target_.files) {
    if (file.kind == DumpFileKind::kLeaderEpochs) {
      write_leader_epochs(file);
    }
  }
  for (const DumpFile& file : target_.files) {
    if (file.kind == DumpFileKind::kPartitionMetadata) {
      write_partition_metadata(file);
    }
  }
  write_each(DumpFileKind::kSnapshot, "producerSnapshots", "{}",
             [this](const DumpFile& file) { write_snapshot(file); });
  write_each(DumpFileKind::kMetadataSnapshot, "metadataSnapshots", "[]",
             [this](const DumpFile& file) { write_metadata_snapshot(file); });
  write_each(DumpFileKind::kOffsetCheckpoint, "checkpoints", "{}",
             [this](const DumpFile& file) { write_checkpoint(file); });
}

void JsonFiles::write_each(DumpFileKind kind, std::string_view name, std::string_view brackets,
                           const std::function<void(const DumpFile&)>& write) {
  bool is_open = false;
  for (const DumpFile& file : target_.files) {
    if (file.kind != kind) {
      continue;
    }
    if (!std::exchange(is_open, true)) {
      json_.key(name);
      json_.open(brackets.substr(0, 1));
    }
    write(file);
  }
  if (is_open) {
    json_.close(brackets.substr(1));
  }
}

void JsonFiles::write_metadata_snapshot(const DumpFile& file) {
  const bool is_bootstrap = file.epoch == kNoLeaderEpoch;
  json_.value({{"file", file.name},
               {"endOffset", is_bootstrap ? Json(nullptr) : Json(file.base.value())},
               {"epoch", is_bootstrap ? Json(nullptr) : Json(file.epoch.value())}});
}

void JsonFiles::write_checkpoint(const DumpFile& file) {
  const std::optional<std::string> text = read_small(file);
  if (!text) {
    return;
  }
  const Result<OffsetCheckpoint> offsets = parse_offset_checkpoint(*text, file.name);
  if (!offsets.ok()) {
    note_damaged_file(file, offsets.error());
    return;
  }
  json_.key(file.name);
  json_.open("{");
  for (const auto& [partition, offset] : *offsets) {
    json_.key(partition.to_string());
    json_.value(offset.value());
  }
  json_.close("}");
}

void JsonFiles::check_indexes_of(Offset base) {
  const Result<std::vector<IndexFault>> faults = check_indexes(files_, target_.folder(), base);
  if (!faults.ok()) {
    damaged_files_.emplace_back(segment_file_name(base, kLogSuffix), faults.error().message());
    return;
  }
  for (const IndexFault& fault : *faults) {
    const std::string name = fault.file.substr(fault.file.rfind('/') + 1);
    const bool is_known = target_.find(name) == nullptr ||
                          std::any_of(damaged_files_.begin(), damaged_files_.end(),
                                      [&](const auto& damaged) { return damaged.first == name; });
    if (!is_known) {
      damaged_files_.emplace_back(name, fault.what);
    }
  }
}

void JsonFiles::write_leader_epochs(const DumpFile& file) {
  const std::optional<std::string> text = read_small(file);
  if (!text) {
    return;
  }
  const Result<std::vector<EpochStart>> epochs = parse_leader_epochs(*text);
  if (!epochs.ok()) {
    note_damaged_file(file, epochs.error());
    return;
  }
  json_.key("leaderEpochs");
  json_.open("[");
  for (const EpochStart& epoch : *epochs) {
    json_.value({{"epoch", epoch.epoch.value()}, {"startOffset", epoch.start.value()}});
  }
  json_.close("]");
}

void JsonFiles::write_partition_metadata(const DumpFile& file) {
  const std::optional<std::string> text = read_small(file);
  if (!text) {
    return;
  }
  const Result<PartitionMetadata> metadata = parse_metadata_file(*text);
  if (!metadata.ok()) {
    note_damaged_file(file, metadata.error());
    return;
  }
  json_.key("partitionMetadata");
  json_.value({{"version", metadata->version}, {"topicId", metadata->topic_id.to_string()}});
}

void JsonFiles::write_snapshot(const DumpFile& file) {
  const std::optional<std::string> bytes = read_small(file);
  if (!bytes) {
    return;
  }
  const Result<std::vector<ProducerEntry>> entries = parse_producer_snapshot(*bytes);
  if (!entries.ok()) {
    note_damaged_file(file, entries.error());
    return;
  }
  json_.key(file.name);
  json_.open("[");
  for (const ProducerEntry& entry : *entries) {
    json_.value({{"producerId", entry.id.value()},
                 {"producerEpoch", entry.epoch.value()},
                 {"lastSequence", entry.last_sequence},
                 {"lastOffset", entry.last_offset.value()},
                 {"offsetDelta", entry.offset_delta},
                 {"timestamp", entry.timestamp},
                 {"coordinatorEpoch", entry.coordinator_epoch},
                 {"currentTxnFirstOffset", entry.transaction_first_offset.value()}});
  }
  json_.close("]");
}

void JsonFiles::write_segment(const DumpFile& log, std::uint64_t valid_bytes) {
  open_row(log);
  json_.key("validBytes");
  json_.value(valid_bytes);
  if (target_.is_folder) {
    write_index("offsetIndex", log.base, kOffsetIndexSuffix);
    write_index("timeIndex", log.base, kTimeIndexSuffix);
    write_index("txnIndex", log.base, kTransactionIndexSuffix);
  }
  json_.close("}");
}

void JsonFiles::write_single_index(const DumpFile& file) {
  if (!is_index(file.kind)) {
    return;
  }
  json_.key("segments");
  json_.open("[");
  open_row(file);
  write_entries(file);
  json_.close("}");
  json_.close("]");
}

void JsonFiles::open_row(const DumpFile& file) {
  json_.open("{");
  json_.key("file");
  json_.value(file.name);
  json_.key("baseOffset");
  json_.value(file.base.value());
  json_.key("size");
  json_.value(file.size);
}

// A missing .index or .timeindex has no entries, a missing .txnindex is not named.
void JsonFiles::write_index(std::string_view name, Offset base, std::string_view suffix) {
  const DumpFile* const file = target_.find(segment_file_name(base, suffix));
  if (file != nullptr) {
    write_entries(*file);
  } else if (suffix != kTransactionIndexSuffix) {
    json_.key(name);
    json_.value(Json::array());
  }
}

void JsonFiles::write_entries(const DumpFile& file) {
  switch (file.kind) {
    case DumpFileKind::kOffsetIndex:
      write_entries(file, "offsetIndex", OffsetIndex::kEntryBytes, [&](const char* in) -> Json {
        return {{"offset", file.base.plus(load_be<std::int32_t>(in)).value()},
                {"position", load_be<std::int32_t>(in + 4)}};
      });
      break;
    case DumpFileKind::kTimeIndex:
      write_entries(file, "timeIndex", TimeIndex::kEntryBytes, [&](const char* in) -> Json {
        return {{"timestamp", load_be<std::int64_t>(in)},
                {"offset", file.base.plus(load_be<std::int32_t>(in + 8)).value()}};
      });
      break;
    default:
      write_entries(file, "txnIndex", AbortedTransaction::kBytes, [](const char* in) -> Json {
        const AbortedTransaction aborted = read_aborted_transaction(in);
        return {{"version", aborted.version},
                {"producerId", aborted.producer_id.value()},
                {"firstOffset", aborted.first_offset.value()},
                {"lastOffset", aborted.last_offset.value()},
                {"lastStableOffset", aborted.last_stable_offset.value()}};
      });
  }
}

void JsonFiles::write_entries(const DumpFile& file, std::string_view name, std::size_t entry_bytes,
                              const std::function<Json(const char*)>& entry_json) {
  json_.key(name);
  json_.open("[");
  const Result<std::shared_ptr<File>> index = files_.open(target_.path_of(file), OpenMode::kRead);
  Status status;
  if (index.ok()) {
    status = for_each_entry(**index, file.size, entry_bytes,
                            [&](const char* in) { json_.value(entry_json(in)); });
    if (status.ok() && file.size % entry_bytes != 0) {
      status = odd_size(file.size, entry_bytes);
    }
  } else if (index.error().code() != Errc::kNotFound) {
    status = index.error();
  }
  json_.close("]");
  if (!status.ok()) {
    note_damaged_file(file, status.error());
  }
}

void JsonFiles::write_damaged_files() {
  if (damaged_files_.empty()) {
    return;
  }
  json_.key("damagedFiles");
  json_.open("[");
  for (const auto& [file, reason] : damaged_files_) {
    json_.value({{"file", file}, {"reason", reason}});
  }
  json_.close("]");
}

}  // namespace weir::log
