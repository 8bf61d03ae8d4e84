#include "log/metadata/metadata_snapshot.h"

#include "log/record/batch_builder.h"
#include "log/record/batch_decoder.h"
#include "log/record/control_record.h"
#include "log/record/wire.h"
#include "log/segment/segment_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace weir::log {
namespace {

constexpr std::string_view kSuffix = ".checkpoint";
constexpr std::size_t kOffsetDigits = 20;
constexpr std::size_t kEpochDigits = 10;
constexpr std::size_t kBatchBytes = 1U << 20U;
constexpr std::size_t kSnapshotBytesMax = std::size_t{2} << 30U;

class SnapshotWriter {
 public:
  explicit SnapshotWriter(Timestamp now) : now_(now) {}

  // SNAPSHOT_HEADER and SNAPSHOT_FOOTER, both in version 0.
  void frame(ControlType type, ByteView value) {
    WireWriter key;
    key.integer(std::int16_t{0});
    key.integer(static_cast<std::int16_t>(type));
    add(build_control_batch(key.bytes(), value, now_, {}), 1);
  }

  void records(std::span<const MetadataRecord> records) {
    BatchBuilder batch(kBatchBytes);
    for (const MetadataRecord& record : records) {
      const std::string value = encode_metadata_record(record);
      const RecordRef encoded{{}, ByteView(value), now_, {}};
      if (!batch.append(encoded)) {
        seal(batch);
        WEIR_ASSERT(batch.append(encoded));
      }
    }
    if (!batch.empty()) {
      seal(batch);
    }
  }

  std::string finish() { return std::move(file_); }

 private:
  void seal(BatchBuilder& batch) {
    const std::int32_t count = batch.count();
    add(batch.seal(), count);
  }
  void add(SharedBytes batch, std::int32_t count) {
    stamp_offset(batch.data(), Offset(next_), LeaderEpoch(0));
    file_.append(batch.view());
    next_ += count;
  }

  Timestamp now_;
  std::string file_;
  std::int64_t next_ = 0;
};

// Takes one batch; true when it is the footer.
Result<bool> take_batch(ByteView bytes, MetadataImage& image) {
  WEIR_TRY_ASSIGN(const BatchHeader header, verify_batch(bytes));
  RecordViews records;
  SharedBytes decompressed;
  WEIR_TRY(decode_records(header, bytes, DecodeLimits{}, records, decompressed));
  bool is_footer = false;
  for (const RecordView& record : records) {
    if (header.is_control()) {
      const Result<ControlRecord> control = parse_control_record(record);
      is_footer |= control.ok() && control->type == ControlType::kSnapshotFooter;
    } else if (!record.value.is_null()) {
      WEIR_TRY_ASSIGN(const MetadataRecord decoded, decode_metadata_record(record.value.view()));
      WEIR_TRY(image.apply(decoded));
    }
  }
  return is_footer;
}

Result<MetadataImage> parse_snapshot(ByteView left) {
  MetadataImage image;
  bool is_whole = false;
  while (!left.empty()) {
    if (left.size() < kBatchHeaderBytes) {
      return Error(Errc::kCorrupt,
                   fmt::format("it ends within a batch header ({} bytes)", left.size()));
    }
    WEIR_TRY_ASSIGN(const BatchHeader header, read_batch_header(left));
    if (header.size_bytes() > left.size()) {
      return Error(Errc::kCorrupt, fmt::format("it ends within the batch of offset {}",
                                               header.base_offset.value()));
    }
    WEIR_TRY_ASSIGN(is_whole, take_batch(left.substr(0, header.size_bytes()), image));
    left.remove_prefix(header.size_bytes());
  }
  if (!is_whole) {
    return Error(Errc::kCorrupt, "it has no SNAPSHOT_FOOTER: it is cut off");
  }
  return image;
}

}  // namespace

std::string snapshot_name(const SnapshotId& id) {
  return segment_file_name(id.end, fmt::format("-{:010d}{}", id.epoch.value(), kSuffix));
}

std::optional<SnapshotId> parse_snapshot_name(std::string_view name) {
  if (name.size() != kOffsetDigits + 1 + kEpochDigits + kSuffix.size() ||
      !name.ends_with(kSuffix) || name[kOffsetDigits] != '-') {
    return std::nullopt;
  }
  const std::optional<Offset> end = parse_segment_file_name(name, name.substr(kOffsetDigits));
  const char* const epoch_end = name.data() + kOffsetDigits + 1 + kEpochDigits;
  std::int32_t epoch = -1;
  const auto [stop, error] = std::from_chars(epoch_end - kEpochDigits, epoch_end, epoch);
  if (!end || error != std::errc() || stop != epoch_end || epoch < 0) {
    return std::nullopt;
  }
  return SnapshotId{*end, LeaderEpoch(epoch)};
}

std::string encode_snapshot(std::span<const MetadataRecord> records, Timestamp last_contained,
                            Timestamp now) {
  constexpr std::uint32_t kNoTaggedFields = 0;
  SnapshotWriter writer(now);
  WireWriter header;
  header.integer(std::int16_t{0});
  header.integer(last_contained);
  header.uvarint(kNoTaggedFields);
  writer.frame(ControlType::kSnapshotHeader, header.bytes());
  writer.records(records);
  WireWriter footer;
  footer.integer(std::int16_t{0});
  footer.uvarint(kNoTaggedFields);
  writer.frame(ControlType::kSnapshotFooter, footer.bytes());
  return writer.finish();
}

Result<MetadataImage> read_snapshot(FileSystem& files, const std::string& path) {
  WEIR_TRY_ASSIGN(const std::string bytes, read_file(files, path, kSnapshotBytesMax));
  Result<MetadataImage> image = parse_snapshot(bytes);
  if (!image.ok()) {
    return std::move(image).error().with_context(fmt::format("read {}", path));
  }
  return image;
}

Result<std::vector<SnapshotId>> list_snapshots(FileSystem& files, const std::string& folder) {
  std::vector<SnapshotId> all;
  Result<std::vector<DirectoryEntry>> entries = files.list(folder);
  if (!entries.ok()) {
    if (entries.error().code() == Errc::kNotFound) {
      return all;
    }
    return std::move(entries).error();
  }
  for (const DirectoryEntry& entry : *entries) {
    if (const std::optional<SnapshotId> id = parse_snapshot_name(entry.name)) {
      all.push_back(*id);
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

Result<std::optional<LoadedSnapshot>> load_newest_snapshot(FileSystem& files,
                                                           const std::string& folder,
                                                           std::vector<std::string>& notes) {
  WEIR_TRY_ASSIGN(std::vector<SnapshotId> all, list_snapshots(files, folder));
  for (; !all.empty(); all.pop_back()) {
    Result<MetadataImage> image =
        read_snapshot(files, join_path(folder, snapshot_name(all.back())));
    if (image.ok()) {
      return std::optional(LoadedSnapshot{all.back(), *std::move(image)});
    }
    if (image.error().code() == Errc::kIo) {
      return std::move(image).error();
    }
    notes.push_back(fmt::format("snapshot not used: {}", image.error().message()));
  }
  return std::optional<LoadedSnapshot>();
}

}  // namespace weir::log
