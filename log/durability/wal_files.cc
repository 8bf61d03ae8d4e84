#include "log/durability/wal_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace weir::log {
namespace {

constexpr std::size_t kZeroBytes = 1U << 20U;

}  // namespace

char* WalBuffer::reserve(std::size_t bytes) {
  if (bytes > capacity_) {
    memory_.reset(static_cast<char*>(::operator new(bytes, std::align_val_t(kWalBlockBytes))));
    capacity_ = bytes;
  }
  return memory_.get();
}

void WalBuffer::Free::operator()(char* memory) const {
  ::operator delete(memory, std::align_val_t(kWalBlockBytes));
}

Result<WalFiles::Slot> WalFiles::open_slot(const std::string& path) {
  Slot slot;
  slot.path = path;
  WEIR_TRY_ASSIGN(slot.file, files_.open(path, OpenMode::kReadWriteDurable));
  WEIR_TRY_ASSIGN(slot.bytes, slot.file->size());
  slot.bytes = slot.bytes / kWalBlockBytes * kWalBlockBytes;
  return slot;
}

Status WalFiles::adopt(const WalContents& contents) {
  generation_ = contents.generation;
  wal_id_ = contents.wal_id;
  // A process that was killed may have left files whose names or sizes are not durable, and a frame
  // that was read without being so.
  if (!contents.files.empty() || !contents.spare.empty()) {
    WEIR_TRY(files_.sync_directory(folder_));
  }
  for (const WalFile& spare : contents.spare) {
    WEIR_TRY_ASSIGN(Slot slot, open_slot(spare.path));
    WEIR_TRY(slot.file->sync());
    if (spare.header.generation == generation_ && generation_ > 0) {
      WEIR_TRY(forget(slot));
    }
    free_.push_back(std::move(slot));
  }
  for (const WalFile& file : contents.files) {
    WEIR_TRY_ASSIGN(Slot slot, open_slot(file.path));
    slot.first_sequence = file.header.first_sequence;
    if (!full_.empty()) {
      full_.back().end_sequence = slot.first_sequence;
    }
    full_.push_back(std::move(slot));
  }
  next_name_ = static_cast<int>(free_.size() + full_.size());
  if (!full_.empty()) {
    active_ = std::make_unique<Slot>(std::move(full_.back()));
    full_.pop_back();
    position_ = contents.end_position;
    WEIR_TRY(active_->file->sync());
  }
  return Status();
}

Status WalFiles::begin(const WalContents& contents, std::uint64_t wal_id) {
  WEIR_TRY(adopt(contents));
  for (Slot& slot : full_) {
    free_.push_back(std::move(slot));
  }
  full_.clear();
  if (active_ != nullptr) {
    free_.push_back(std::move(*active_));
    active_.reset();
  }
  generation_ = contents.generation + 1;
  wal_id_ = wal_id;
  // Of former generations: from now on a header that is neither sound nor zeros has decayed. What a
  // power cut left of a file that was being made may be too short for one.
  for (const Slot& slot : free_) {
    if (slot.bytes >= kWalBlockBytes) {
      WEIR_TRY(forget(slot));
    }
  }
  while (free_.size() < 2) {  // one to write, one to go on with while the first is flushed
    WEIR_TRY_ASSIGN(std::unique_ptr<Slot> made, make_slot());
    free_.push_back(std::move(*made));
  }
  WEIR_TRY_ASSIGN(std::unique_ptr<Slot> first, take_free(0));
  return begin_file(std::move(first), WalFileHeader{});
}

std::uint64_t WalFiles::total_bytes() const {
  std::uint64_t total = active_ != nullptr ? active_->bytes : 0;
  for (const Slot& slot : full_) {
    total += slot.bytes;
  }
  for (const Slot& slot : free_) {
    total += slot.bytes;
  }
  return total;
}

// Zeros are written, not only reserved: a durable write into blocks that were never written has to
// change the file system's own records, too (reference P 2.3: four times as many syncs a second).
Result<std::unique_ptr<WalFiles::Slot>> WalFiles::make_slot() {
  std::uint64_t largest = 0;
  for (const Slot& slot : free_) {
    largest = std::max(largest, slot.bytes);
  }
  for (const Slot& slot : full_) {
    largest = std::max(largest, slot.bytes);
  }
  largest = std::max(largest, active_ != nullptr ? active_->bytes : 0);
  const std::uint64_t size =
      std::clamp<std::uint64_t>(count() < 2 ? options_.file_bytes_min : largest * 2,
                                options_.file_bytes_min, options_.file_bytes_max);
  if (total_bytes() + size > options_.total_bytes_max && count() >= 2) {
    return std::unique_ptr<Slot>();
  }
  auto slot = std::make_unique<Slot>();
  do {
    slot->path = join_path(folder_, fmt::format("{:03}{}", next_name_++, kWalSuffix));
  } while (path_exists(files_, slot->path));
  {
    WEIR_TRY_ASSIGN(const std::shared_ptr<File> file,
                    files_.open(slot->path, OpenMode::kCreateNew));
    const std::string zeros(std::min<std::size_t>(kZeroBytes, static_cast<std::size_t>(size)),
                            '\0');
    Status status;
    for (std::uint64_t at = 0; at < size && status.ok(); at += zeros.size()) {
      const std::size_t bytes = std::min<std::uint64_t>(zeros.size(), size - at);
      status = file->write_at(at, ByteView(zeros).substr(0, bytes));
    }
    if (status.ok()) {
      status = file->sync();
    }
    if (!status.ok()) {
      files_.remove_file(slot->path).ignore("the failure is reported; the name is tried again");
      return std::move(status).error();
    }
  }
  WEIR_TRY(files_.sync_directory(folder_));
  WEIR_TRY_ASSIGN(Slot opened, open_slot(slot->path));
  return std::make_unique<Slot>(std::move(opened));
}

Result<std::unique_ptr<WalFiles::Slot>> WalFiles::take_free(std::size_t bytes) {
  const auto found = std::find_if(free_.begin(), free_.end(), [bytes](const Slot& slot) {
    return slot.bytes >= bytes + kWalBlockBytes;
  });
  if (found == free_.end()) {
    return make_slot();
  }
  auto slot = std::make_unique<Slot>(std::move(*found));
  free_.erase(found);
  return slot;
}

Status WalFiles::begin_file(std::unique_ptr<Slot> slot, WalFileHeader header) {
  header.generation = generation_;
  header.wal_id = wal_id_;
  header.file_bytes = slot->bytes;
  WalBuffer block;
  write_wal_file_header(block.reserve(kWalBlockBytes), header);
  WEIR_TRY(slot->file->write_at(0, {block.data(), kWalBlockBytes}));
  slot->first_sequence = header.first_sequence;
  if (active_ != nullptr) {
    active_->end_sequence = header.first_sequence;
    full_.push_back(std::move(*active_));
  }
  active_ = std::move(slot);
  position_ = kWalBlockBytes;
  return Status();
}

Result<WalFiles::Place> WalFiles::place(std::size_t bytes, const WalFileHeader& next) {
  if (active_ == nullptr || position_ + bytes > active_->bytes) {
    WEIR_TRY_ASSIGN(std::unique_ptr<Slot> slot, take_free(bytes));
    if (slot == nullptr) {
      return Place{};
    }
    WEIR_TRY(begin_file(std::move(slot), next));
  }
  return Place{active_->file, position_};
}

// Oldest first: when only a later one of several free files is used again or removed, a reader must
// not take its frames for lost.
Status WalFiles::forget(const Slot& slot) {
  WalBuffer block;
  std::memset(block.reserve(kWalBlockBytes), 0, kWalBlockBytes);
  return slot.file->write_at(0, {block.data(), kWalBlockBytes});
}

Status WalFiles::trim(std::uint64_t sequence) {
  while (!full_.empty() && full_.front().end_sequence <= sequence) {
    WEIR_TRY(forget(full_.front()));
    free_.push_back(std::move(full_.front()));
    full_.pop_front();
  }
  std::uint64_t largest = active_ != nullptr ? active_->bytes : 0;
  for (const Slot& slot : free_) {
    largest = std::max(largest, slot.bytes);
  }
  // Two stay in any case; beyond them the small ones have done their duty. A file that is too small
  // for a frame (the options have changed) never goes on.
  bool removed = false;
  for (auto slot = free_.begin(); slot != free_.end();) {
    const bool is_extra = count() > 2 && slot->bytes * 2 <= largest;
    if (!is_extra && slot->bytes >= options_.file_bytes_min) {
      ++slot;
      continue;
    }
    WEIR_TRY(files_.remove_file(slot->path));
    slot = free_.erase(slot);
    removed = true;
  }
  return removed ? files_.sync_directory(folder_) : Status();
}

}  // namespace weir::log
