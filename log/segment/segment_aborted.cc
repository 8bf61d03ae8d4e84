#include "log/segment/segment.h"
#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <fmt/format.h>

#include <algorithm>

// The part of Segment that knows which transactions were aborted.

namespace weir::log {

void Segment::set_aborted(AbortedTransactions entries, std::size_t written) {
  const MutexLock lock(mutex_);
  aborted_count_ = entries.size();
  aborted_written_ = written;
  aborted_ = std::move(entries);
}

void Segment::add_aborted(const AbortedTransaction& aborted) {
  {
    const MutexLock lock(mutex_);
    WEIR_ASSERT(aborted_.has_value());
    aborted_->push_back(aborted);
    ++aborted_count_;
  }
  if (Status written = write_aborted(false); !written.ok()) {
    WEIR_WARN("transaction index not written, the next flush writes it file={} error=\"{}\"",
              path(kTransactionIndexSuffix), written.error().message());
  }
}

Status Segment::write_aborted(bool durable) {
  std::string bytes;
  std::size_t from = 0;
  std::size_t count = 0;
  {
    const MutexLock lock(mutex_);
    from = aborted_written_;
    count = aborted_count_;
    if (from < count) {
      WEIR_ASSERT(aborted_.has_value());
      bytes = encode_transaction_index(
          {aborted_->begin() + static_cast<std::ptrdiff_t>(from), aborted_->end()});
    }
  }
  if (count == 0 || (from == count && !durable)) {
    return Status();
  }
  const OpenMode mode = from == 0 ? OpenMode::kCreateTruncate : OpenMode::kReadWrite;
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file,
                  files_.open(path(kTransactionIndexSuffix), mode));
  if (!bytes.empty()) {
    WEIR_TRY(file->write_at(from * AbortedTransaction::kBytes, bytes));
  }
  if (durable) {
    WEIR_TRY(file->sync());
  }
  const MutexLock lock(mutex_);
  aborted_written_ = std::max(aborted_written_, count);
  return Status();
}

void Segment::forget_aborted() {
  const MutexLock lock(mutex_);
  WEIR_ASSERT(!writable_);
  aborted_.reset();
}

bool Segment::has_aborted() const {
  const MutexLock lock(mutex_);
  return aborted_count_ > 0;
}

Result<AbortedTransactions> Segment::aborted_transactions() {
  {
    const MutexLock lock(mutex_);
    if (aborted_) {
      return *aborted_;
    }
    if (writable_ && aborted_count_ == 0) {
      return AbortedTransactions();
    }
  }
  Result<std::string> file = read_file(files_, path(kTransactionIndexSuffix));
  if (is_retired()) {
    return replaced();  // the file may be another's
  }
  if (!file.ok()) {
    // Beside its holder a segment without aborted transactions has no file.
    return file.error().code() == Errc::kNotFound && !writable_
               ? Result<AbortedTransactions>(AbortedTransactions())
               : std::move(file).error();
  }
  Offset end;
  {
    const MutexLock lock(mutex_);
    end = sealed_ ? next_offset_ : kOffsetMax;
  }
  Result<AbortedTransactions> entries = parse_transaction_index(*file, base_, end);
  if (!entries.ok()) {
    return std::move(entries).error().with_context(path(kTransactionIndexSuffix));
  }
  if (writable_) {
    const MutexLock lock(mutex_);
    aborted_ = *entries;
  }
  return entries;
}

Result<bool> Segment::collect_aborted(Offset from, Offset to, AbortedTransactions& out) {
  {
    const MutexLock lock(mutex_);
    if (aborted_) {
      return weir::log::collect_aborted(*aborted_, from, to, out);
    }
  }
  WEIR_TRY_ASSIGN(const AbortedTransactions entries, aborted_transactions());
  return weir::log::collect_aborted(entries, from, to, out);
}

}  // namespace weir::log
