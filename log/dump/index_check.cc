#include "log/dump/index_check.h"

#include "log/record/batch_decoder.h"
#include "log/record/control_record.h"
#include "log/segment/segment_names.h"

#include <weir/runtime/endian.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace weir::log {
namespace {

constexpr std::uint64_t kIndexBytesMax = 64U << 20U;

}  // namespace

IndexCheck::IndexCheck(FileSystem& files, const std::string& folder, Offset base,
                       std::string_view suffix) {
  const auto path_of = [&](std::string_view kind) {
    return join_path(folder, segment_file_name(base, kind) + std::string(suffix));
  };
  offset_file_.path = path_of(kOffsetIndexSuffix);
  time_file_.path = path_of(kTimeIndexSuffix);
  transaction_file_.path = path_of(kTransactionIndexSuffix);
  has_offset_index_ = read(files, offset_file_, OffsetIndex::kEntryBytes,
                           [&](const char* in) { read_offset_entry(in, base); });
  has_time_index_ = read(files, time_file_, TimeIndex::kEntryBytes,
                         [&](const char* in) { read_time_entry(in, base); });
  has_transaction_index_ =
      read(files, transaction_file_, AbortedTransaction::kBytes, [&](const char* in) {
        const AbortedTransaction entry = read_aborted_transaction(in);
        if (!aborted_.emplace(entry.last_offset, entry).second) {
          fault(transaction_file_, std::nullopt, entry.last_offset,
                fmt::format("two entries name the marker at {}", entry.last_offset.value()));
        }
      });
}

bool IndexCheck::read(FileSystem& files, IndexFile& file, std::size_t entry_bytes,
                      const std::function<void(const char*)>& entry) {
  const Result<std::shared_ptr<File>> opened = files.open(file.path, OpenMode::kRead);
  if (!opened.ok()) {
    if (opened.error().code() != Errc::kNotFound) {
      fault(file, std::nullopt, std::nullopt, opened.error().message());
    }
    return opened.error().code() != Errc::kNotFound;
  }
  const Result<std::uint64_t> size = (*opened)->size();
  if (!size.ok() || *size > kIndexBytesMax) {
    fault(file, std::nullopt, std::nullopt,
          size.ok() ? fmt::format("{} bytes, at most {} are read", *size, kIndexBytesMax)
                    : size.error().message());
    return true;
  }
  if (*size % entry_bytes != 0) {
    fault(file, std::nullopt, std::nullopt, odd_size(*size, entry_bytes).message());
  }
  const Status done = for_each_entry(**opened, *size, entry_bytes, entry);
  if (!done.ok()) {
    fault(file, std::nullopt, std::nullopt, done.error().message());
  }
  return true;
}

void IndexCheck::fault(IndexFile& file, std::optional<std::uint64_t> position,
                       std::optional<Offset> offset, std::string what) {
  if (!std::exchange(file.failed, true)) {
    faults_.push_back({file.path, position, offset, std::move(what)});
  }
}

void IndexCheck::read_offset_entry(const char* in, Offset base) {
  const OffsetIndex::Entry entry{base.plus(load_be<std::int32_t>(in)),
                                 load_be<std::uint32_t>(in + 4)};
  if (!offsets_.empty() && (entry.last_offset <= offsets_.back().last_offset ||
                            entry.position <= offsets_.back().position)) {
    fault(offset_file_, offsets_.size() * OffsetIndex::kEntryBytes, entry.last_offset,
          fmt::format("entry {} (offset {}, position {}) does not rise above the one before it",
                      offsets_.size(), entry.last_offset.value(), entry.position));
  }
  offsets_.push_back(entry);
}

void IndexCheck::read_time_entry(const char* in, Offset base) {
  const TimeEntry entry{load_be<std::int64_t>(in), base.plus(load_be<std::int32_t>(in + 8))};
  if (!times_.empty() &&
      (entry.timestamp <= times_.back().timestamp || entry.offset <= times_.back().offset)) {
    fault(time_file_, times_.size() * TimeIndex::kEntryBytes, entry.offset,
          fmt::format("entry {} (timestamp {}, offset {}) does not rise above the one before it",
                      times_.size(), entry.timestamp, entry.offset.value()));
  }
  times_.push_back(entry);
}

void IndexCheck::add(const WalkedBatch& batch) {
  check_offset_entry(batch);
  largest_ = std::max(largest_, batch.header.max_timestamp);
  check_time_entries(batch.header);
}

void IndexCheck::check_offset_entry(const WalkedBatch& batch) {
  while (!offset_file_.failed && next_offset_entry_ < offsets_.size() &&
         offsets_[next_offset_entry_].position <= batch.position) {
    const std::size_t i = next_offset_entry_++;
    const OffsetIndex::Entry& entry = offsets_[i];
    const auto wrong = [&](std::string_view why) {
      fault(offset_file_, i * OffsetIndex::kEntryBytes, entry.last_offset,
            fmt::format("entry {} (offset {}, position {}): {}", i, entry.last_offset.value(),
                        entry.position, why));
    };
    if (entry.position < batch.position) {
      no_batch_at(i);
    } else if (batch.header.last_offset() > entry.last_offset) {
      wrong(fmt::format("the batch there ends at offset {}", batch.header.last_offset().value()));
    } else if (i > 0 && batch.header.base_offset <= offsets_[i - 1].last_offset) {
      wrong(fmt::format("the batch there begins at offset {}, the entry before it reaches {}",
                        batch.header.base_offset.value(), offsets_[i - 1].last_offset.value()));
    }
  }
}

void IndexCheck::no_batch_at(std::size_t i) {
  const OffsetIndex::Entry& entry = offsets_[i];
  fault(offset_file_, i * OffsetIndex::kEntryBytes, entry.last_offset,
        fmt::format("entry {} (offset {}, position {}): no batch begins there", i,
                    entry.last_offset.value(), entry.position));
}

void IndexCheck::check_time_entries(const BatchHeader& header) {
  while (!time_file_.failed && next_time_entry_ < times_.size() &&
         times_[next_time_entry_].offset <= header.last_offset()) {
    const std::size_t i = next_time_entry_++;
    const TimeEntry& entry = times_[i];
    // Behind damage the largest timestamp may be one that is not readable.
    const bool is_right = has_damage_ ? entry.timestamp >= largest_ : entry.timestamp == largest_;
    if (!is_right) {
      fault(time_file_, i * TimeIndex::kEntryBytes, entry.offset,
            fmt::format("entry {} (timestamp {}, offset {}): the largest timestamp up to there is "
                        "{}",
                        i, entry.timestamp, entry.offset.value(), largest_));
    }
  }
}

void IndexCheck::add(const DamagedRange& range) {
  has_damage_ = true;
  for (; next_offset_entry_ < offsets_.size() &&
         offsets_[next_offset_entry_].position < range.end_position;
       ++next_offset_entry_) {
    if (offsets_[next_offset_entry_].position < range.position) {
      no_batch_at(next_offset_entry_);
    }
  }
  while (next_time_entry_ < times_.size() &&
         (!range.next_offset || times_[next_time_entry_].offset < *range.next_offset)) {
    ++next_time_entry_;
  }
}

void IndexCheck::add(const AbortMarker& marker) {
  const auto found = aborted_.find(marker.offset);
  if (found == aborted_.end()) {
    if (has_transaction_index_ && marker.ends_records) {
      fault(transaction_file_, std::nullopt, marker.offset,
            fmt::format("the transaction of producer {} that was aborted at {} is not in it",
                        marker.producer.value(), marker.offset.value()));
    }
    return;
  }
  if (found->second.producer_id != marker.producer) {
    fault(
        transaction_file_, std::nullopt, marker.offset,
        fmt::format("the marker at {} is of producer {}, the entry says {}", marker.offset.value(),
                    marker.producer.value(), found->second.producer_id.value()));
  }
  aborted_.erase(found);
}

std::vector<IndexFault> IndexCheck::finish() {
  if (next_offset_entry_ < offsets_.size()) {
    const OffsetIndex::Entry& entry = offsets_[next_offset_entry_];
    fault(offset_file_, next_offset_entry_ * OffsetIndex::kEntryBytes, entry.last_offset,
          fmt::format("entry {} (offset {}, position {}) points behind the last batch",
                      next_offset_entry_, entry.last_offset.value(), entry.position));
  }
  if (next_time_entry_ < times_.size()) {
    const TimeEntry& entry = times_[next_time_entry_];
    fault(time_file_, next_time_entry_ * TimeIndex::kEntryBytes, entry.offset,
          fmt::format("entry {} (timestamp {}, offset {}) points behind the last batch",
                      next_time_entry_, entry.timestamp, entry.offset.value()));
  }
  if (!aborted_.empty() && !has_damage_) {
    const auto& [marker, entry] = *aborted_.begin();
    fault(transaction_file_, std::nullopt, marker,
          fmt::format("its entry {} to {} of producer {} names no ABORT marker of this segment",
                      entry.first_offset.value(), marker.value(), entry.producer_id.value()));
  }
  return std::move(faults_);
}

std::optional<AbortMarker> AbortTracker::add(const WalkedBatch& batch) {
  const BatchHeader& header = batch.header;
  if (!header.is_transactional()) {
    return std::nullopt;
  }
  if (!header.is_control()) {
    if (header.records_count > 0) {
      open_.insert(header.producer_id);
    }
    return std::nullopt;
  }
  AbortMarker marker{header.producer_id, header.base_offset, open_.erase(header.producer_id) > 0};
  records_.clear();
  if (!decode_records(header, batch.bytes, DecodeLimits(), records_, decompressed_).ok() ||
      records_.empty()) {
    marker.ends_records = false;
    return marker;
  }
  const Result<ControlRecord> control = parse_control_record(records_.front());
  return control.ok() && control->type == ControlType::kAbort ? std::optional(marker)
                                                              : std::nullopt;
}

Result<std::vector<IndexFault>> check_indexes(FileSystem& files, const std::string& folder,
                                              Offset base) {
  const Result<std::shared_ptr<File>> log =
      files.open(join_path(folder, segment_file_name(base, kLogSuffix)), OpenMode::kRead);
  if (!log.ok()) {
    return std::vector<IndexFault>();
  }
  WEIR_TRY_ASSIGN(const std::uint64_t size, (*log)->size());
  IndexCheck check(files, folder, base);
  AbortTracker aborts;
  SegmentWalk walk(**log, size, base, kOffsetMax);
  while (true) {
    WEIR_TRY_ASSIGN(const WalkItem item, walk.next());
    if (const auto* batch = std::get_if<WalkedBatch>(&item)) {
      check.add(*batch);
      if (const std::optional<AbortMarker> marker = aborts.add(*batch)) {
        check.add(*marker);
      }
    } else if (const auto* range = std::get_if<DamagedRange>(&item)) {
      check.add(*range);
    } else {
      return check.finish();
    }
  }
}

}  // namespace weir::log
