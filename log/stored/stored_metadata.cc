#include "log/stored/stored_metadata.h"

#include "log/metadata/metadata_records.h"
#include "log/metadata/metadata_snapshot.h"
#include "log/record/batch_decoder.h"
#include "log/stored/stored_partition.h"

#include <fmt/core.h>

#include <utility>
#include <variant>

namespace weir::log {
namespace {

constexpr std::size_t kReadBytes = 1U << 20U;
// Types of records that frame a metadata transaction (KIP-868).
constexpr std::uint32_t kBeginTransaction = 23;
constexpr std::uint32_t kEndTransaction = 24;
constexpr std::uint32_t kAbortTransaction = 25;

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

class MetadataReader {
 public:
  MetadataReader(FileSystem& files, const std::string& folder) : files_(files), folder_(folder) {}

  Result<StoredMetadata> run() {
    WEIR_TRY(load_snapshot());
    WEIR_TRY_ASSIGN(log_,
                    StoredPartition::open(files_, {.name = {"__cluster_metadata", PartitionId(0)},
                                                   .path = folder_,
                                                   .log_start = Offset(0),
                                                   .compacted = true}));
    WEIR_TRY(replay());
    return std::move(out_);
  }

 private:
  Status load_snapshot() {
    WEIR_TRY_ASSIGN(std::optional<LoadedSnapshot> snapshot,
                    load_newest_snapshot(files_, folder_, out_.notes));
    if (snapshot) {
      out_.image = std::move(snapshot->image);
      next_ = snapshot->id.end;
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
