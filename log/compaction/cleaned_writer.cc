#include "log/compaction/cleaned_writer.h"

#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <utility>

namespace weir::log {
namespace {

constexpr std::size_t kBufferBytes = 256U << 10U;
// So that the sync at the end has little left to do.
constexpr std::uint64_t kSyncBytes = 8U << 20U;
constexpr std::size_t kChecksumsMax = 65'536;

}  // namespace

Result<CleanedWriter> CleanedWriter::create(FileSystem& files, Target target) {
  drop_cleaned(files, target.folder, target.base);
  WEIR_TRY_ASSIGN(
      std::shared_ptr<File> log,
      files.open(cleaned_path(target.folder, target.base, kLogSuffix), OpenMode::kCreateTruncate));
  return CleanedWriter(files, std::move(target), std::move(log));
}

Status CleanedWriter::add(const BatchHeader& header, ByteView batch) {
  if (buffer_.size() + batch.size() > kBufferBytes) {
    WEIR_TRY(flush());
  }
  indexes_.add(header, position_, target_.index_interval_bytes);
  has_all_checksums_ &= checksums_.size() < kChecksumsMax;
  if (has_all_checksums_ && !target_.side_car.empty()) {
    checksums_.push_back(checksum_of(header, batch));
  }
  buffer_.append(batch);
  position_ += batch.size();
  return Status();
}

Status CleanedWriter::flush() {
  if (!buffer_.empty()) {
    WEIR_TRY(log_->write_at(position_ - buffer_.size(), buffer_));
    buffer_.clear();
  }
  if (position_ - synced_ >= kSyncBytes) {
    WEIR_TRY(log_->sync());
    synced_ = position_;
  }
  return Status();
}

Status CleanedWriter::write_file(std::string_view suffix, ByteView bytes) {
  WEIR_TRY_ASSIGN(
      const std::shared_ptr<File> file,
      files_->open(cleaned_path(target_.folder, target_.base, suffix), OpenMode::kCreateTruncate));
  if (!bytes.empty()) {
    WEIR_TRY(file->write_at(0, bytes));
  }
  return file->sync();
}

Status CleanedWriter::finish(const AbortedTransactions& aborted) {
  WEIR_TRY(flush());
  WEIR_TRY(log_->sync());
  indexes_.finish();
  WEIR_TRY(write_file(kOffsetIndexSuffix, indexes_.offsets().encode()));
  WEIR_TRY(write_file(kTimeIndexSuffix, indexes_.times().encode()));
  // An empty one where there is one: that must not stay.
  const bool has_index = path_exists(
      *files_, join_path(target_.folder, segment_file_name(target_.base, kTransactionIndexSuffix)));
  if (!aborted.empty() || has_index) {
    WEIR_TRY(write_file(kTransactionIndexSuffix, encode_transaction_index(aborted)));
  }
  return files_->sync_directory(target_.folder);
}

void CleanedWriter::write_side_car() {
  if (!has_all_checksums_ || checksums_.empty()) {
    return;
  }
  const Status made = [&]() -> Status {
    WEIR_TRY_ASSIGN(ChecksumWriter side_car, ChecksumWriter::create(*files_, target_.side_car));
    std::uint64_t position = 0;
    for (const BatchChecksum& batch : checksums_) {
      if (Status added = side_car.add(batch, position); !added.ok()) {
        side_car.abandon();
        return added;
      }
      position += batch.size;
    }
    return side_car.finish();
  }();
  if (!made.ok()) {
    WEIR_WARN("side-car not written, the scrub makes it later file={} error=\"{}\"",
              target_.side_car, made.error().message());
  }
}

void CleanedWriter::abandon() {
  log_.reset();
  drop_cleaned(*files_, target_.folder, target_.base);
}

}  // namespace weir::log
