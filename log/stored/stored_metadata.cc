#include "log/stored/stored_metadata.h"

#include "log/dump/segment_walk.h"
#include "log/metadata/metadata_records.h"
#include "log/record/batch_decoder.h"
#include "log/record/control_record.h"
#include "log/segment/segment_scan.h"
#include "log/stored/stored_partition.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <variant>

namespace weir::log {
namespace {

constexpr std::size_t kReadBytes = 1U << 20U;
// Types of records that frame a metadata transaction (KIP-868).
constexpr std::uint32_t kBeginTransaction = 23;
constexpr std::uint32_t kEndTransaction = 24;
constexpr std::uint32_t kAbortTransaction = 25;

// "00000000000000000141-0000000002.checkpoint" -> 141.
std::optional<Offset> parse_snapshot_name(std::string_view name) {
  constexpr std::string_view kSuffix = ".checkpoint";
  constexpr std::size_t kOffsetDigits = 20;
  constexpr std::size_t kNameBytes = kOffsetDigits + 1 + 10 + kSuffix.size();
  if (name.size() != kNameBytes || !name.ends_with(kSuffix) || name[kOffsetDigits] != '-') {
    return std::nullopt;
  }
  std::int64_t end = 0;
  const char* stop = name.data() + kOffsetDigits;
  const auto [parsed, error] = std::from_chars(name.data(), stop, end);
  return error == std::errc() && parsed == stop && end >= 0 ? std::optional(Offset(end))
                                                            : std::nullopt;
}

// Applies records, those of a metadata transaction at its end.
class Applier {
 public:
  explicit Applier(MetadataImage& image) : image_(image) {}

  Status take(const RecordView& record) {
    if (record.value.is_null()) {
      return Status();
    }
    WEIR_TRY_ASSIGN(MetadataRecord decoded, decode_metadata_record(record.value.view()));
    if (const auto* other = std::get_if<OtherMetadataRecord>(&decoded)) {
      return frame(other->type);
    }
    if (in_transaction_) {
      held_.push_back(std::move(decoded));
      return Status();
    }
    return image_.apply(decoded);
  }

 private:
  Status frame(std::uint32_t type) {
    if (type != kBeginTransaction && type != kEndTransaction && type != kAbortTransaction) {
      return Status();
    }
    in_transaction_ = type == kBeginTransaction;
    const std::vector<MetadataRecord> held = std::exchange(held_, {});
    for (const MetadataRecord& record : held) {
      if (type == kEndTransaction) {
        WEIR_TRY(image_.apply(record));
      }
    }
    return Status();
  }

  MetadataImage& image_;
  bool in_transaction_ = false;
  std::vector<MetadataRecord> held_;
};

// Errors: kCorrupt when the snapshot is damaged or not whole.
Status read_snapshot(FileSystem& files, const std::string& path, MetadataImage& image) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, files.open(path, OpenMode::kRead));
  WEIR_TRY_ASSIGN(const std::uint64_t size, file->size());
  SegmentWalk walk(*file, size, Offset(0), kOffsetMax);
  Applier applier(image);
  bool is_whole = false;
  while (true) {
    WEIR_TRY_ASSIGN(const WalkItem item, walk.next());
    if (const auto* damage = std::get_if<DamagedRange>(&item)) {
      return Error(Errc::kCorrupt, fmt::format("{} is damaged at position {}: {}", path,
                                               damage->position, damage->reason));
    }
    const auto* batch = std::get_if<WalkedBatch>(&item);
    if (batch == nullptr) {
      return is_whole
                 ? Status()
                 : Status(Error(Errc::kCorrupt,
                                fmt::format("{} has no SNAPSHOT_FOOTER: it is cut off", path)));
    }
    RecordViews records;
    SharedBytes decompressed;
    WEIR_TRY(decode_records(batch->header, batch->bytes, DecodeLimits{}, records, decompressed));
    for (const RecordView& record : records) {
      if (batch->header.is_control()) {
        const Result<ControlRecord> control = parse_control_record(record);
        is_whole |= control.ok() && control->type == ControlType::kSnapshotFooter;
      } else {
        WEIR_TRY(applier.take(record));
      }
    }
  }
}

class MetadataReader {
 public:
  MetadataReader(FileSystem& files, const std::string& folder) : files_(files), folder_(folder) {}

  Result<StoredMetadata> run() {
    WEIR_TRY(read_newest_snapshot());
    WEIR_TRY_ASSIGN(log_,
                    StoredPartition::open(files_, {.name = {"__cluster_metadata", PartitionId(0)},
                                                   .path = folder_,
                                                   .log_start = Offset(0),
                                                   .compacted = true}));
    WEIR_TRY(replay());
    return std::move(out_);
  }

 private:
  Status read_newest_snapshot() {
    WEIR_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, files_.list(folder_));
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      const std::optional<Offset> end = parse_snapshot_name(entry->name);
      if (!end) {
        continue;
      }
      MetadataImage image;
      const Status read = read_snapshot(files_, join_path(folder_, entry->name), image);
      if (read.ok()) {
        out_.image = std::move(image);
        next_ = *end;
        return Status();
      }
      if (read.error().code() == Errc::kIo) {
        return read;
      }
      out_.notes.push_back(fmt::format("snapshot not used: {}", read.error().message()));
    }
    return Status();
  }

  Status replay() {
    const StoredPartitionReport& report = log_->report();
    if (report.offsets.log_start > next_) {
      return Error(Errc::kCorrupt,
                   fmt::format("{} has records from offset {} and no whole snapshot up to there",
                               folder_, report.offsets.log_start.value()));
    }
    for (const LostOffsets& lost : report.lost) {
      if (lost.to > next_) {
        out_.notes.push_back("metadata lost: " + lost.what);
      }
    }
    Applier applier(out_.image);
    while (next_ < report.offsets.log_end) {
      WEIR_TRY_ASSIGN(const StoredPartition::Fetched fetched, log_->read(next_, kReadBytes));
      for (const FetchedBatch& batch : fetched.batches) {
        WEIR_TRY(apply(batch, applier));
      }
      next_ = fetched.next_offset;
    }
    return Status();
  }

  Status apply(const FetchedBatch& batch, Applier& applier) {
    if (batch.header.is_control()) {
      return Status();
    }
    RecordViews records;
    SharedBytes decompressed;
    WEIR_TRY(
        decode_records(batch.header, batch.bytes.bytes, DecodeLimits{}, records, decompressed));
    for (const RecordView& record : records) {
      if (record.offset >= next_) {
        WEIR_TRY(applier.take(record));
      }
    }
    return Status();
  }

  FileSystem& files_;
  const std::string& folder_;
  std::shared_ptr<StoredPartition> log_;
  Offset next_;
  StoredMetadata out_;
};

}  // namespace

Result<StoredMetadata> read_stored_metadata(FileSystem& files, const std::string& folder) {
  return MetadataReader(files, folder).run();
}

}  // namespace weir::log
