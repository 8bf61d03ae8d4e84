#pragma once

#include <weir/runtime/file_system.h>
#include <weir/runtime/types.h>

#include <memory>

namespace weir::log {

// What becomes durable. Implemented by Partition.
class DurableLog {
 public:
  virtual ~DurableLog() = default;
  // The files with appended bytes that were not synced yet, and the offset behind the last of these
  // bytes; clears the list.
  struct Dirty {
    std::vector<std::shared_ptr<File>> files;
    Offset end;
  };
  virtual Dirty take_dirty() = 0;
  // Everything below `end` survives a power cut. Monotonic.
  virtual void on_durable(Offset end) = 0;
  // A sync failed: unknown bytes are lost. The log refuses further appends.
  virtual void on_durability_lost(const Error& error) = 0;
};

// Port (DESIGN D4): submit -> durable end offset. Today one flusher that syncs dirty segments;
// later the write-ahead log, with the same contract.
//
// Threading: thread-safe. Calls DurableLog from the file system's completion thread or from
// submit().
class Durability {
 public:
  virtual ~Durability() = default;
  // `log` has bytes to make durable. Coalesces: while a sync of it runs, later submits are served
  // together by the next one. The shared pointer keeps the log alive until its callback ran.
  virtual void submit(std::shared_ptr<DurableLog> log) = 0;
  // Waits until everything submitted so far is durable or lost.
  virtual void drain() = 0;
};

std::unique_ptr<Durability> make_flusher(FileSystem& files);

}  // namespace weir::log
