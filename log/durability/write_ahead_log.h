#pragma once

#include "log/durability/durability.h"
#include "log/durability/wal_reader.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace weir::log {

struct WalOptions {
  // Files are made when they are needed, each twice the one before between these sizes, written
  // once with zeros and used again and again. Multiples of kWalBlockBytes.
  std::size_t file_bytes_min = 4U << 20U;
  std::size_t file_bytes_max = 64U << 20U;
  std::size_t total_bytes_max = 256U << 20U;
  // start() waits while more bytes than this are not written yet.
  std::size_t waiting_bytes_max = 64U << 20U;
  // A checkpoint is due when this much was written since the last.
  std::size_t checkpoint_bytes = 64U << 20U;
  // More files and folders than this are flushed by one sync of the disk.
  std::size_t flush_by_file_max = 64;
};

// What the write-ahead log asks of the directory around it.
struct WalHost {
  // Makes the recovery points durable: frames below them may be forgotten afterwards.
  std::function<Status()> write_recovery_points;
  // A checkpoint is due; runs it soon, elsewhere. Null: it is run when no file is free.
  std::function<void()> checkpoint_due;
  // The disk is full: gives something up, so that a checkpoint may succeed now. False when there is
  // nothing to give.
  std::function<bool()> make_room;
  std::string log_folder;  // what FlushMode::kByDisk syncs
};

// One write-ahead log for all `fsync` partitions of a data directory (DESIGN D4, reference R 5.4,
// docs/formats/wal.md): appended batches are collected while a write is under way and go out with
// the next one, so that one durable write serves every partition. No timer: an idle log writes at
// once. Up to 1 MiB a write, 4 MiB when more than 8 MiB wait.
//
// Order:   entries of one log become durable in the order of add(); so do all of one group.
// Failure: a failed write or flush is never tried again. Every log that has or will have entries
//          here is told by on_durability_lost(), and admit() answers kIo for good.
// Disk:    files are prewritten, so a full disk stops only their growth; then, and when all are
//          used, a checkpoint frees them. While that fails for want of space admit() answers
//          kNoSpace.
class WriteAheadLog final : public Durability {
 public:
  // Goes on behind `contents`, or begins a new generation when `fresh` (after a clean close, when
  // nothing in it is needed). `seed` makes the id of a new generation. Errors: kIo, kNoSpace.
  static Result<std::unique_ptr<WriteAheadLog>> open(FileSystem& files, const std::string& folder,
                                                     WalOptions options,
                                                     const WalContents& contents, bool fresh,
                                                     std::uint64_t seed);
  ~WriteAheadLog() override;

  // Before the first add().
  void attach(WalHost host);

  bool writes_ahead() const override { return true; }
  Status admit() const override;
  void add(std::shared_ptr<DurableLog> log, SharedBytes batch, Offset end) override;
  void add_group(std::vector<Entry> group) override;
  void start() override;
  void note_unflushed(std::shared_ptr<DurableLog> log) override;
  void drain() override;

  // Flushes the files of every log with unflushed bytes, makes the recovery points durable and
  // forgets the frames below them. One at a time; others wait. Errors: kNoSpace (try again), kIo
  // (the write-ahead log is lost).
  Status checkpoint();

  struct Metrics {
    std::uint64_t writes = 0;  // durable writes, each one sync of the device
    std::uint64_t bytes = 0;   // with headers and padding
    std::uint64_t entries = 0;
    std::uint64_t checkpoints = 0;
    std::uint64_t files = 0;
    std::uint64_t file_bytes = 0;
  };
  Metrics metrics() const;

 private:
  class Core;
  explicit WriteAheadLog(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  // Shared with completions that are still on their way.
  std::shared_ptr<Core> core_;
};

}  // namespace weir::log
