#include "log/stored/segment_survey.h"

#include "log/dump/partition_files.h"
#include "log/dump/segment_walk.h"
#include "log/record/batch_decoder.h"
#include "log/record/control_record.h"
#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <fmt/core.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <map>
#include <variant>

namespace weir::log {
namespace {

constexpr std::uint64_t kParallelBytesMin = 8U << 20U;
constexpr std::uint64_t kRunBytes = 1U << 20U;

struct Marker {
  ProducerId producer;
  Offset at;
  bool is_commit = false;
};
struct Loss {
  Offset from;
  Offset to;
};
// In offset order. Of the data only what opens a transaction in this segment, as far as it can say.
using Event = std::variant<BatchHeader, Marker, Loss>;

// One segment file.
struct Piece {
  Offset base;
  Offset next_base = kOffsetMax;
  std::uint64_t file_bytes = 0;
  std::string path;
  // Found:
  Offset next_offset;
  std::vector<DamagedRange> damage;
  std::vector<BatchRun> runs;
  std::vector<Event> events;
  std::vector<EpochStart> epochs;
  bool has_holes = false;  // that no damage explains: compaction
  Status status;
};

// Walks one piece.
class PieceWalk {
 public:
  PieceWalk(FileSystem& files, Piece& piece) : files_(files), piece_(piece) {}

  Status run() {
    WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, files_.open(piece_.path, OpenMode::kRead));
    piece_.next_offset = piece_.base;
    SegmentWalk walk(*file, piece_.file_bytes, piece_.base, offset_end());
    while (true) {
      WEIR_TRY_ASSIGN(const WalkItem item, walk.next());
      if (const auto* batch = std::get_if<WalkedBatch>(&item)) {
        WEIR_TRY(add(*batch));
      } else if (const auto* range = std::get_if<DamagedRange>(&item)) {
        WEIR_TRY(add(*range));
      } else {
        return Status();
      }
    }
  }

 private:
  Status add(const WalkedBatch& batch) {
    const BatchHeader& header = batch.header;
    piece_.has_holes |= header.base_offset > piece_.next_offset;
    piece_.next_offset = header.next_offset();
    note_epoch(piece_.epochs, header);
    add_to_run(batch);
    if (!header.is_transactional()) {
      return Status();
    }
    if (header.is_control()) {
      return add_marker(batch);
    }
    const auto known = open_.find(header.producer_id);
    if (known == open_.end() || known->second < header.producer_epoch) {
      open_[header.producer_id] = header.producer_epoch;
      piece_.events.emplace_back(header);
    }
    return Status();
  }

  void add_to_run(const WalkedBatch& batch) {
    const BatchHeader& header = batch.header;
    const bool goes_on = !piece_.runs.empty() &&
                         piece_.runs.back().end_position == batch.position &&
                         batch.position - piece_.runs.back().position < kRunBytes;
    if (!goes_on) {
      BatchRun run;
      run.position = batch.position;
      run.first = header.base_offset;
      piece_.runs.push_back(run);
    }
    BatchRun& run = piece_.runs.back();
    run.end_position = batch.position + header.size_bytes();
    run.next = header.next_offset();
    run.max_timestamp = std::max(run.max_timestamp, header.max_timestamp);
  }

  Status add_marker(const WalkedBatch& batch) {
    RecordViews records;
    SharedBytes decompressed;
    const Status decoded =
        decode_records(batch.header, batch.bytes, DecodeLimits{}, records, decompressed);
    for (const RecordView& record : records) {
      const Result<ControlRecord> control = parse_control_record(record);
      if (control.ok() &&
          (control->type == ControlType::kAbort || control->type == ControlType::kCommit)) {
        piece_.events.emplace_back(
            Marker{batch.header.producer_id, record.offset, control->type == ControlType::kCommit});
        open_.erase(batch.header.producer_id);
      }
    }
    if (!decoded.ok()) {
      return add(undecodable(batch, decoded.error().message()));
    }
    return Status();
  }

  Status add(DamagedRange range) {
    if (range.is_message_set) {
      return Error(Errc::kUnsupported,
                   fmt::format("{} at position {}: {}", piece_.path, range.position, range.reason));
    }
    const bool is_last = piece_.next_base == kOffsetMax;
    if (is_last && range.next_offset == offset_end()) {
      range.next_offset.reset();  // nothing stands behind it
    }
    if (range.next_offset && *range.next_offset > range.first_offset) {
      piece_.events.emplace_back(Loss{range.first_offset, *range.next_offset});
      piece_.next_offset = *range.next_offset;
      open_.clear();
    }
    piece_.damage.push_back(std::move(range));
    return Status();
  }

  Offset offset_end() const { return segment_offset_end(piece_.base, piece_.next_base); }

  FileSystem& files_;
  Piece& piece_;
  std::map<ProducerId, ProducerEpoch> open_;  // with an event since the last marker or loss
};

class Surveyor {
 public:
  Surveyor(FileSystem& files, const std::string& folder, bool compacted)
      : files_(files), folder_(folder), compacted_(compacted) {}

  Result<Survey> run() {
    WEIR_TRY(list());
    if (pieces_.empty()) {
      return std::move(out_);
    }
    walk_all();
    for (Piece& piece : pieces_) {
      WEIR_TRY(std::move(piece.status));
      compacted_ |= piece.has_holes;
    }
    out_.first = pieces_.front().base;
    out_.end = out_.first;
    for (const Piece& piece : pieces_) {
      take(piece);
    }
    out_.transactions.finish();
    return std::move(out_);
  }

 private:
  Status list() {
    WEIR_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, files_.list(folder_));
    for (const DirectoryEntry& entry : entries) {
      const std::optional<Offset> base = parse_log_file_name(entry.name);
      if (base && entry.kind == FileKind::kFile) {
        Piece piece;
        piece.base = *base;
        piece.path = join_path(folder_, entry.name);
        WEIR_TRY_ASSIGN(const FileInfo info, files_.info(piece.path));
        piece.file_bytes = info.size;
        out_.bytes += info.size;
        pieces_.push_back(std::move(piece));
      } else if (entry.name.ends_with(kTransactionIndexSuffix)) {
        read_aborted(join_path(folder_, entry.name));
      }
    }
    // Names have 20 digits, so the folder's order is that of the offsets.
    for (std::size_t i = 0; i + 1 < pieces_.size(); ++i) {
      pieces_[i].next_base = pieces_[i + 1].base;
    }
    return Status();
  }

  // A file that cannot be read is none: the markers say the same.
  void read_aborted(const std::string& path) {
    const auto add = [this](const char* bytes) {
      const AbortedTransaction entry = read_aborted_transaction(bytes);
      if (entry.version == 0 && entry.first_offset <= entry.last_offset) {
        out_.transactions.know_aborted(entry.producer_id, {entry.first_offset, entry.last_offset});
      }
    };
    const Result<std::shared_ptr<File>> file = files_.open(path, OpenMode::kRead);
    const Result<std::uint64_t> size = file.ok() ? (*file)->size() : Result<std::uint64_t>(0);
    Status read = file.ok() && size.ok()
                      ? for_each_entry(**file, *size, AbortedTransaction::kBytes, add)
                      : file.status();
    if (!read.ok()) {
      WEIR_WARN("transaction index not used file={} error=\"{}\"", path, read.error().message());
    }
  }

  void walk_all() {
    const auto walk = [this](std::size_t i) {
      pieces_[i].status = PieceWalk(files_, pieces_[i]).run();
    };
    if (out_.bytes < kParallelBytesMin) {
      for (std::size_t i = 0; i < pieces_.size(); ++i) {
        walk(i);
      }
    } else {
      oneapi::tbb::parallel_for(std::size_t{0}, pieces_.size(), walk);
    }
  }

  void take(const Piece& piece) {
    // The hole in front of this segment.
    if (piece.base > out_.end && &piece != &pieces_.front() && !compacted_) {
      lose(out_.end, piece.base,
           fmt::format("missing in front of {}: a lost file, or compaction", piece.path));
      out_.transactions.add_loss(out_.end, piece.base);
    }
    for (const Event& event : piece.events) {
      std::visit([this](const auto& one) { feed(one); }, event);
    }
    for (const DamagedRange& range : piece.damage) {
      note(piece, range);
    }
    for (BatchRun run : piece.runs) {
      run.file = static_cast<std::uint32_t>(out_.files.size());
      out_.runs.push_back(run);
    }
    out_.files.push_back(piece.path);
    for (const EpochStart& epoch : piece.epochs) {
      BatchHeader header;
      header.base_offset = epoch.start;
      header.leader_epoch = epoch.epoch;
      note_epoch(out_.epochs, header);
    }
    out_.end = std::max(out_.end, piece.next_offset);
  }

  void feed(const BatchHeader& data) { out_.transactions.add_data(data); }
  void feed(const Marker& marker) {
    out_.transactions.add_marker(marker.producer, marker.at, marker.is_commit);
  }
  void feed(const Loss& loss) { out_.transactions.add_loss(loss.from, loss.to); }

  void note(const Piece& piece, const DamagedRange& range) {
    const std::string what = fmt::format("{} positions {} to {}: {}", piece.path, range.position,
                                         range.end_position - 1, range.reason);
    if (!range.next_offset) {
      out_.tail = what;
    } else if (*range.next_offset > range.first_offset) {
      lose(range.first_offset, *range.next_offset, what);
    } else {
      out_.lost.push_back({range.first_offset, range.first_offset, what});
    }
  }

  void lose(Offset from, Offset to, std::string what) {
    out_.lost.push_back({from, to, std::move(what)});
  }

  FileSystem& files_;
  const std::string& folder_;
  bool compacted_;
  std::vector<Piece> pieces_;
  Survey out_;
};

}  // namespace

Result<Survey> survey_folder(FileSystem& files, const std::string& folder, bool compacted) {
  constexpr int kAttempts = 3;
  for (int attempt = 1;; ++attempt) {
    Result<Survey> survey = Surveyor(files, folder, compacted).run();
    // A running process took a segment away since it was listed.
    if (survey.ok() || survey.error().code() != Errc::kNotFound || attempt == kAttempts) {
      return survey;
    }
  }
}

}  // namespace weir::log
