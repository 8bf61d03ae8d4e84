#include "log/dump/json_dump.h"

#include "log/dump/json_files.h"
#include "log/dump/json_stream.h"
#include "log/dump/record_decoder.h"
#include "log/dump/segment_walk.h"
#include "log/record/batch_decoder.h"
#include "log/record/batch_json.h"
#include "log/record/control_record.h"
#include "log/segment/segment_scan.h"

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace weir::log {
namespace {

using Json = JsonStream::Json;

// Open files that are kept between walks, oldest first: those are what a running process deletes.
constexpr std::size_t kOpenFilesMax = 512;

struct Segment {
  const DumpFile* file = nullptr;
  std::shared_ptr<File> log;  // null: opened for each walk
  Offset base;
  Offset offset_end = kOffsetMax;
  std::uint64_t valid_bytes = 0;
};

// What the first walk saw, so that later ones are made only for lists that have something in them.
struct Contents {
  std::int64_t next_offset = -1;
  bool has_batches = false;
  bool has_control = false;
  bool has_transactions = false;
  bool has_damage = false;
};

class JsonDump {
 public:
  JsonDump(FileSystem& files, const DumpTarget& target, const DumpOptions& options, DumpOutput& out)
      : files_(files),
        target_(target),
        options_(options),
        decoder_(target.decoder(options.decoder)),
        json_(out),
        parts_(files, target, json_) {}

  Status run() {
    WEIR_TRY(open_segments());
    WEIR_TRY(look_through());
    json_.open("{");
    json_.key("folder");
    json_.value(target_.folder_name);
    const bool has_logs = target_.is_partition() || !segments_.empty();
    if (has_logs) {
      json_.key("nextOffsetInFiles");
      json_.value(contents_.next_offset);
    }
    parts_.write_sizes();
    parts_.write_small_files();
    if (has_logs) {
      write_segments();
      WEIR_TRY(write_batches());
      WEIR_TRY(write_control());
      WEIR_TRY(write_records());
      WEIR_TRY(write_decoded());
      WEIR_TRY(write_aborted_transactions());
    } else {
      parts_.write_single_index(target_.files.front());
    }
    WEIR_TRY(write_damage());
    check_indexes();
    parts_.write_damaged_files();
    json_.close("}");
    return Status();
  }

 private:
  Status open_segments() {
    for (const DumpFile& file : target_.files) {
      const bool is_snapshot = file.kind == DumpFileKind::kMetadataSnapshot && !target_.is_folder;
      if (file.kind != DumpFileKind::kLog && !is_snapshot) {
        continue;
      }
      Result<std::shared_ptr<File>> log = files_.open(target_.path_of(file), OpenMode::kRead);
      if (!log.ok() && log.error().code() == Errc::kNotFound) {
        continue;  // a running process took it away meanwhile
      }
      if (!log.ok()) {
        return std::move(log).error();
      }
      if (!segments_.empty()) {
        segments_.back().offset_end = file.base;
      }
      segments_.push_back({&file, *std::move(log)});
      segments_.back().base = is_snapshot ? Offset(0) : file.base;
      if (segments_.size() > kOpenFilesMax) {
        segments_.back().log.reset();
      }
    }
    return Status();
  }

  // Walks all segments and calls visit(segment, batch or range). Errors: kIo, visit's.
  template <class Visit>
  Status walk(const Visit& visit) {
    for (Segment& segment : segments_) {
      std::shared_ptr<File> log = segment.log;
      if (!log) {
        Result<std::shared_ptr<File>> opened =
            files_.open(target_.path_of(*segment.file), OpenMode::kRead);
        if (!opened.ok() && opened.error().code() == Errc::kNotFound) {
          continue;
        }
        WEIR_TRY_ASSIGN(log, std::move(opened));
      }
      SegmentWalk walk(*log, segment.file->size, segment.base, segment.offset_end);
      while (true) {
        WEIR_TRY_ASSIGN(const WalkItem item, walk.next());
        if (std::holds_alternative<std::monostate>(item)) {
          break;
        }
        visit(segment, item);
      }
      segment.valid_bytes = walk.valid_bytes();
    }
    return Status();
  }

  // Walks the batches alone.
  template <class Visit>
  Status walk_batches(const Visit& visit) {
    return walk([&](const Segment& segment, const WalkItem& item) {
      if (const auto* batch = std::get_if<WalkedBatch>(&item)) {
        visit(segment, *batch);
      }
    });
  }

  Status look_through() {
    return walk([&](const Segment&, const WalkItem& item) {
      if (const auto* batch = std::get_if<WalkedBatch>(&item)) {
        contents_.next_offset = batch->header.next_offset().value();
        contents_.has_batches = true;
        contents_.has_control |= batch->header.is_control();
        contents_.has_transactions |= batch->header.is_transactional();
      } else {
        contents_.has_damage = true;
      }
    });
  }

  void write_segments() {
    json_.key("segments");
    json_.open("[");
    for (const Segment& segment : segments_) {
      parts_.write_segment(*segment.file, segment.valid_bytes);
    }
    json_.close("]");
  }

  Status write_batches() {
    json_.key("batches");
    json_.open("[");
    if (contents_.has_batches) {
      WEIR_TRY(walk_batches([&](const Segment& segment, const WalkedBatch& batch) {
        Json json;
        json["segment"] = segment.file->name;
        json["position"] = batch.position;
        json.update(batch_json(batch.header));
        json_.value(json);
      }));
    }
    json_.close("]");
    return Status();
  }

  Status write_control() {
    json_.key("control");
    json_.open("[");
    if (contents_.has_control) {
      WEIR_TRY(walk_batches([&](const Segment&, const WalkedBatch& batch) {
        if (batch.header.is_control()) {
          write_records_of(batch);
        }
      }));
    }
    json_.close("]");
    return Status();
  }

  Status write_records() {
    if (!options_.records) {
      return Status();
    }
    json_.key("records");
    json_.open("[");
    if (contents_.has_batches) {
      WEIR_TRY(walk_batches([&](const Segment&, const WalkedBatch& batch) {
        if (!batch.header.is_control()) {
          write_records_of(batch);
        }
      }));
    }
    json_.close("]");
    return Status();
  }

  Status write_decoded() {
    if (!options_.records || decoder_ == RecordDecoder::kNone) {
      return Status();
    }
    json_.key("decoded");
    json_.open("[");
    if (contents_.has_batches) {
      WEIR_TRY(walk_batches([&](const Segment&, const WalkedBatch& batch) {
        if (batch.header.is_control() || !decode(batch).ok()) {
          return;
        }
        for (const RecordView& record : records_) {
          json_.value(decoded_json(decoder_, record));
        }
      }));
    }
    json_.close("]");
    return Status();
  }

  // Of a snapshot and a segment without its folder there is nothing to compare with.
  void check_indexes() {
    for (const DumpFile& file : target_.files) {
      if (target_.is_folder ? file.kind == DumpFileKind::kLog : is_index(file.kind)) {
        parts_.check_indexes_of(file.base);
      }
    }
  }

  void write_records_of(const WalkedBatch& batch) {
    if (const Status decoded = decode(batch); !decoded.ok()) {
      contents_.has_damage = true;
      return;
    }
    for (const RecordView& record : records_) {
      json_.value(record_json(batch.header, record));
    }
  }

  Status decode(const WalkedBatch& batch) {
    records_.clear();
    return decode_records(batch.header, batch.bytes, DecodeLimits(), records_, decompressed_);
  }

  // From the markers; what a reader at read_committed leaves out.
  Status write_aborted_transactions() {
    json_.key("abortedTransactions");
    json_.open("[");
    if (contents_.has_transactions) {
      std::unordered_map<ProducerId, Offset> open;  // to the first offset
      WEIR_TRY(walk_batches([&](const Segment&, const WalkedBatch& batch) {
        const BatchHeader& header = batch.header;
        if (!header.is_transactional()) {
          return;
        }
        if (!header.is_control()) {
          open.try_emplace(header.producer_id, header.base_offset);
          return;
        }
        end_transaction(batch, open);
      }));
    }
    json_.close("]");
    return Status();
  }

  void end_transaction(const WalkedBatch& marker, std::unordered_map<ProducerId, Offset>& open) {
    if (!decode(marker).ok()) {
      return;
    }
    std::optional<ControlType> type;  // none: compaction removed the marker's record
    if (!records_.empty()) {
      const Result<ControlRecord> control = parse_control_record(records_.front());
      if (!control.ok() ||
          (control->type != ControlType::kAbort && control->type != ControlType::kCommit)) {
        return;
      }
      type = control->type;
    }
    const auto found = open.find(marker.header.producer_id);
    if (found == open.end()) {
      return;
    }
    if (type == ControlType::kAbort) {
      json_.value({{"producerId", found->first.value()},
                   {"firstOffset", found->second.value()},
                   {"lastOffset", marker.header.base_offset.value()}});
    }
    open.erase(found);
  }

  Status write_damage() {
    json_.key("damaged");
    json_.open("[");
    if (contents_.has_damage) {
      WEIR_TRY(walk([&](const Segment& segment, const WalkItem& item) {
        if (const auto* range = std::get_if<DamagedRange>(&item)) {
          write_range(segment, *range);
          return;
        }
        const auto& batch = std::get<WalkedBatch>(item);
        if (!options_.records && !batch.header.is_control()) {
          return;
        }
        if (const Status decoded = decode(batch); !decoded.ok()) {
          write_range(segment, undecodable(batch, decoded.error().message()));
        }
      }));
    }
    json_.close("]");
    return Status();
  }

  void write_range(const Segment& segment, const DamagedRange& range) {
    Json json;
    json["segment"] = segment.file->name;
    json["position"] = range.position;
    json["endPosition"] = range.end_position;
    json["firstOffset"] = range.first_offset.value();
    json["nextOffset"] = range.next_offset ? Json(range.next_offset->value()) : Json(nullptr);
    json["reason"] = range.reason;
    json_.value(json);
  }

  FileSystem& files_;
  const DumpTarget& target_;
  const DumpOptions& options_;
  const RecordDecoder decoder_;
  JsonStream json_;
  JsonFiles parts_;
  std::vector<Segment> segments_;
  Contents contents_;
  RecordViews records_;
  SharedBytes decompressed_;
};

}  // namespace

Status dump_as_json(FileSystem& files, const DumpTarget& target, const DumpOptions& options,
                    DumpOutput& out) {
  WEIR_TRY(JsonDump(files, target, options, out).run());
  out.text("\n");
  return Status();
}

}  // namespace weir::log
