#include "log/stored/stored_partition.h"

#include "log/partition/batch_reader.h"
#include "log/record/batch_decoder.h"
#include "log/segment/batch_scanner.h"

#include <fmt/core.h>

#include <algorithm>

namespace weir::log {
namespace {

constexpr std::size_t kSearchBytes = 1U << 20U;

std::vector<std::string> transaction_texts(const TransactionEnds& transactions) {
  std::vector<std::string> texts;
  for (const auto& [producer, first] : transactions.unknown_ends()) {
    texts.push_back(fmt::format(
        "the end of the transaction of producer {} that began at offset {} is lost: its records "
        "are served as committed",
        producer.value(), first.value()));
  }
  return texts;
}

// What leader-epoch-checkpoint says, else what the batches say up to the controller's `latest`.
LeaderEpochCache read_epochs(FileSystem& files, const std::string& folder, const Survey& survey,
                             LeaderEpoch latest) {
  const Result<std::string> text = read_file(files, join_path(folder, LeaderEpochCache::kFileName));
  Result<LeaderEpochCache> parsed = LeaderEpochCache::parse(text.ok() ? *text : std::string());
  if (parsed.ok() && !parsed->empty()) {
    return *std::move(parsed);
  }
  LeaderEpochCache epochs;
  for (const EpochStart& epoch : survey.epochs) {
    if (latest == kNoLeaderEpoch || epoch.epoch <= latest) {
      epochs.assign(epoch.epoch, epoch.start);
    }
  }
  return epochs;
}

// First record of a batch at or after `time`, not before `from`.
Result<std::optional<Offset>> find_in_batch(const FetchedBatch& batch, Timestamp time,
                                            Offset from) {
  WEIR_TRY(verify_batch(batch.bytes.bytes));
  RecordViews records;
  SharedBytes decompressed;
  WEIR_TRY(decode_records(batch.header, batch.bytes.bytes, DecodeLimits{}, records, decompressed));
  for (const RecordView& record : records) {
    if (record.timestamp >= time && record.offset >= from) {
      return std::optional(record.offset);
    }
  }
  return std::optional<Offset>();
}

}  // namespace

Result<std::shared_ptr<StoredPartition>> StoredPartition::open(FileSystem& files, Options options) {
  std::shared_ptr<StoredPartition> opened(new StoredPartition(files));
  if (!options.path.empty()) {
    WEIR_TRY_ASSIGN(opened->survey_, survey_folder(files, options.path, options.compacted));
  }
  Survey& survey = opened->survey_;
  const Offset start = std::max(options.log_start, survey.first);
  const Offset end = std::max(survey.end, start);
  opened->epochs_ = read_epochs(files, options.path, survey, options.leader_epoch);
  opened->epochs_.truncate_from_start(start);

  StoredPartitionReport& report = opened->report_;
  report.name = std::move(options.name);
  report.folder = std::move(options.path);
  report.bytes = survey.bytes;
  report.offsets = {start, end, survey.transactions.last_stable(end), end,
                    std::max(opened->epochs_.latest(), options.leader_epoch)};
  report.offsets.high_watermark = end;
  for (LostOffsets& lost : survey.lost) {
    if (lost.from < end && (lost.to > start || lost.to == lost.from)) {
      report.lost.push_back(std::move(lost));
    }
  }
  survey.lost.clear();
  report.tail = survey.tail;
  report.transactions = transaction_texts(survey.transactions);
  return opened;
}

Result<std::shared_ptr<File>> StoredPartition::file_of(const BatchRun& run) {
  {
    const MutexLock lock(mutex_);
    if (open_file_ != nullptr && open_index_ == run.file) {
      return open_file_;
    }
  }
  WEIR_TRY_ASSIGN(std::shared_ptr<File> file,
                  files_.open(survey_.files[run.file], OpenMode::kRead));
  const MutexLock lock(mutex_);
  open_file_ = file;
  open_index_ = run.file;
  return file;
}

void StoredPartition::remember(Offset next, std::uint64_t position) {
  const MutexLock lock(mutex_);
  hints_[next_hint_++ % hints_.size()] = Hint{next, position};
}

// Position of the batch of the run that holds `from`, or of the first behind it.
Result<std::uint64_t> StoredPartition::locate(File& file, const BatchRun& run, Offset from) {
  if (from <= run.first) {
    return run.position;
  }
  {
    const MutexLock lock(mutex_);
    for (const Hint& hint : hints_) {
      if (hint.next == from && hint.position >= run.position && hint.position < run.end_position) {
        return hint.position;
      }
    }
  }
  BatchScanner scanner(file, run.position, run.end_position);
  while (true) {
    WEIR_TRY_ASSIGN(const std::optional<BatchHeader> header, scanner.peek());
    if (!header || header->last_offset() >= from) {
      return scanner.position();
    }
    scanner.skip(*header);
  }
}

Result<StoredPartition::Fetched> StoredPartition::read(Offset from, std::size_t bytes_max) {
  const Offset start = report_.offsets.log_start;
  const Offset end = report_.offsets.log_end;
  if (from < start || from > end) {
    return Error(Errc::kOffsetOutOfRange,
                 fmt::format("offset {} of {} is outside its log, which has {} to {}", from.value(),
                             report_.name.to_string(), start.value(), end.value()));
  }
  const auto run =
      std::upper_bound(survey_.runs.begin(), survey_.runs.end(), from,
                       [](Offset value, const BatchRun& one) { return value < one.next; });
  if (run == survey_.runs.end()) {
    return Fetched{{}, end};  // what is left is lost
  }
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, file_of(*run));
  WEIR_TRY_ASSIGN(const std::uint64_t position, locate(*file, *run, from));
  const ReadRange range{position, run->end_position, from, run->next, run->next, bytes_max};
  WEIR_TRY_ASSIGN(ReadBatches read, read_batches(*file, range));
  if (read.batches.empty()) {
    return Error(Errc::kCorrupt, fmt::format("{} changed while it was read: no batch is left at "
                                             "position {}",
                                             file->path(), position));
  }
  Fetched fetched{std::move(read.batches), {}};
  fetched.next_offset = fetched.batches.back().header.next_offset();
  remember(fetched.next_offset, read.end_position);
  return fetched;
}

Result<std::optional<Offset>> StoredPartition::offset_for_time(Timestamp time) {
  for (const BatchRun& run : survey_.runs) {
    Offset from = std::max(run.first, report_.offsets.log_start);
    while (run.max_timestamp >= time && from < run.next) {
      WEIR_TRY_ASSIGN(const Fetched fetched, read(from, kSearchBytes));
      for (const FetchedBatch& batch : fetched.batches) {
        if (batch.header.max_timestamp < time) {
          continue;
        }
        WEIR_TRY_ASSIGN(const std::optional<Offset> found, find_in_batch(batch, time, from));
        if (found) {
          return found;
        }
      }
      from = fetched.next_offset;
    }
  }
  return std::optional<Offset>();
}

}  // namespace weir::log
