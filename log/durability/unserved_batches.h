#pragma once

#include "log/durability/wal_reader.h"

#include <weir/runtime/file_system.h>
#include <weir/runtime/types.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weir::log {

// Durable batches of partitions that could not be opened after a crash. The write-ahead log forgets
// its frames at the next checkpoint, so what it has of such a partition is kept in a file of its
// own (docs/formats/wal.md) until a later start can put it where it belongs.
//
// Threading: confined to one thread at a time. Does I/O.
// Bounds:    what the write-ahead log held, a file a partition.
class UnservedBatches {
 public:
  using Name = std::pair<Uuid, PartitionId>;

  UnservedBatches(FileSystem& files, std::string folder)
      : files_(files), folder_(std::move(folder)) {}

  // Adds what earlier starts kept to what the write-ahead log has, in front of it.
  // A file that is damaged is named in `contents.damaged`, left where it is, and its partition is
  // recovered without taking the write-ahead log for complete. Errors: kIo.
  Status add_to(WalContents& contents);
  // Durable when ok; replaces what was kept of it. Errors: kIo, kNoSpace.
  Status keep(const Name& name, const std::vector<WalBatch>& batches);
  // The partition has them in its files again, or is gone: its file goes away at forget_served().
  void served(const Name& name);
  // Requires: what served() named is durable. Errors: kIo.
  Status forget_served();

 private:
  std::string path_of(const Name& name) const;

  FileSystem& files_;
  const std::string folder_;
  std::set<Name> kept_;
  std::set<Name> served_;
};

}  // namespace weir::log
