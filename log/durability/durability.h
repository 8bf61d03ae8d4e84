#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/types.h>

#include <memory>
#include <string>
#include <vector>

namespace weir::log {

// How a flush of many logs makes their files durable.
enum class FlushMode {
  kByFile,  // every file and folder that is named, one by one
  kByDisk   // one FileSystem::sync_disk() for all: nothing has to be named or synced
};

// A log whose bytes become durable. Implemented by Partition.
// Threading: thread-safe. No callback holds a lock of the caller.
class DurableLog {
 public:
  virtual ~DurableLog() = default;

  // Its name in the write-ahead log.
  struct Identity {
    Uuid topic_id;
    PartitionId partition;
  };
  virtual Identity identity() const = 0;

  // What stands in its files and was not flushed yet.
  struct Unflushed {
    std::vector<std::shared_ptr<File>> files;
    std::vector<std::string> folders;  // whose names changed, to be synced in this order
    Offset end;                        // behind the last of these bytes
  };
  // How many files and folders a flush would name now; cheap.
  virtual std::size_t unflushed_count() const = 0;
  // Writes side files, too, so that what is named here (or a sync of the disk) is all there is to
  // do. Errors: kIo, kNoSpace.
  virtual Result<Unflushed> prepare_flush(FlushMode mode) = 0;
  // The files hold everything below `end`, durably. Moves the recovery point. Monotonic.
  virtual void on_flushed(Offset end) = 0;

  // Everything below `end` survives a power cut. Moves the high watermark. Monotonic.
  virtual void on_durable(Offset end) = 0;
  // Wakes who waits for that. Behind on_durable() of all logs that one write made durable, so that
  // who waits for several is woken once.
  virtual void wake_waiters() = 0;
  // Unknown bytes are lost. The log refuses further appends.
  virtual void on_durability_lost(const Error& error) = 0;
};

// Port (DESIGN D4): add -> durable end offset. The write-ahead log of a data directory; or a
// flusher that syncs the files of each log, for a log without a directory.
//
// Threading: thread-safe. Calls DurableLog from the file system's completion thread or from the
//            thread that calls start() or drain().
class Durability {
 public:
  virtual ~Durability() = default;

  // Whether the bytes are kept apart from their files: then no file and no name has to be synced
  // before its log is told that bytes are durable.
  virtual bool writes_ahead() const = 0;
  // Not ok while nothing can be added: kNoSpace (retriable), kIo once bytes were lost.
  virtual Status admit() const = 0;
  // `batch`, which ends at `end`, stands in `log`'s file now. In the order of the log's appends.
  // Calls nothing back.
  virtual void add(std::shared_ptr<DurableLog> log, SharedBytes batch, Offset end) = 0;
  struct Entry {
    std::shared_ptr<DurableLog> log;
    SharedBytes batch;
    Offset end;
  };
  // The same for several: where bytes are kept apart from their files, all of them survive a crash
  // or none. Requires: not empty.
  virtual void add_group(std::vector<Entry> group) = 0;
  // Starts what was added; what is added while work is under way is served together by the next
  // round. At the bound of waiting bytes it returns when there is room again. Hold no lock.
  virtual void start() = 0;
  // `log` has bytes in its files that the next checkpoint is to flush, though none were added.
  virtual void note_unflushed(std::shared_ptr<DurableLog> log) = 0;
  // Waits until everything added so far is durable or lost.
  virtual void drain() = 0;
};

// Syncs the files of each log that was added, a round of syncs a log. note_unflushed() does
// nothing.
std::unique_ptr<Durability> make_flusher(FileSystem& files);

}  // namespace weir::log
