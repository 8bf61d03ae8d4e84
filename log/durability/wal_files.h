#pragma once

#include "log/durability/wal_reader.h"
#include "log/durability/write_ahead_log.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace weir::log {

// The files of a write-ahead log: which one is written, which hold frames that are still needed,
// which are free. Threading: confined to its owner. Does I/O.
class WalFiles {
 public:
  WalFiles(FileSystem& files, std::string folder, const WalOptions& options)
      : files_(files), folder_(std::move(folder)), options_(options) {}

  // Goes on behind what was read.
  Status adopt(const WalContents& contents);
  // A new generation: every file is free, and the first one begins it.
  Status begin(const WalContents& contents, std::uint64_t wal_id);

  // Where a frame of `bytes` (whole blocks) goes; moves on to the next file when the active one is
  // full. nullptr when there is no file for it: a trim() must come first. `header` describes the
  // next frame. Errors: kIo; kNoSpace when a file had to be made.
  struct Place {
    std::shared_ptr<File> file;
    std::uint64_t position = 0;
  };
  Result<Place> place(std::size_t bytes, const WalFileHeader& next);
  void written(std::size_t bytes) { position_ += bytes; }
  // Frames below `sequence` are not needed any more. Extra small files are removed.
  Status trim(std::uint64_t sequence);

  std::uint64_t generation() const { return generation_; }
  std::uint64_t wal_id() const { return wal_id_; }
  std::uint64_t total_bytes() const;
  std::size_t count() const { return full_.size() + free_.size() + (active_ ? 1U : 0U); }

 private:
  struct Slot {
    std::string path;
    std::shared_ptr<File> file;
    std::uint64_t bytes = 0;
    std::uint64_t first_sequence = 0;
    std::uint64_t end_sequence = 0;  // of a full one: behind its last frame
  };

  Result<Slot> open_slot(const std::string& path);
  Result<std::unique_ptr<Slot>> make_slot();
  Status begin_file(std::unique_ptr<Slot> slot, WalFileHeader header);
  Result<std::unique_ptr<Slot>> take_free(std::size_t bytes);
  Status forget(const Slot& slot);

  FileSystem& files_;
  const std::string folder_;
  const WalOptions options_;
  std::uint64_t generation_ = 0;
  std::uint64_t wal_id_ = 0;
  std::unique_ptr<Slot> active_;
  std::uint64_t position_ = 0;  // in the active one
  std::deque<Slot> full_;       // rising
  std::vector<Slot> free_;
  int next_name_ = 0;
};

// Memory for direct I/O: whole blocks at a block's alignment. Threading: confined to its owner.
class WalBuffer {
 public:
  char* reserve(std::size_t bytes);
  char* data() { return memory_.get(); }

 private:
  struct Free {
    void operator()(char* memory) const;
  };
  std::unique_ptr<char, Free> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace weir::log
