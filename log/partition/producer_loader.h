#pragma once

#include "log/partition/partition.h"
#include "log/segment/segment.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weir::log {

// What is known of a partition folder when its producers are read.
struct ProducerLoad {
  FileSystem& files;
  const std::string& folder;
  const TopicPartition& name;
  const std::set<std::string>& names;  // of the files in it
  const std::vector<std::shared_ptr<Segment>>& segments;
  Offset log_start;
  Offset log_end;
  bool clean = false;
  bool read_only = false;  // nothing is written or removed
  // After an unclean end: below it snapshots and transaction indexes are what was flushed.
  Offset trusted = kOffsetMax;
  std::optional<ProducersAt> known;  // of wal/producers
  ProducerState::Limits limits;
  Timestamp now = 0;
  // Segments that were walked and have no batch with a producer id: they are not walked again.
  std::set<Offset> plain;
};

struct LoadedProducers {
  ProducerState state;
  Offset newest_abort = kNoOffset;  // marker of the last aborted transaction
  bool has_snapshots = false;       // in the folder
  // At the base of the last segment, unless the walk began behind it: a log whose last segment is
  // never flushed has no later state that it may keep.
  std::optional<ProducersAt> at_last_segment;
};

// The producers at the end of the log: the newest state that is known, from wal/producers (all five
// batches of each) or from a .snapshot file (one), and the batches behind it (ProducerStateManager.
// truncateAndReload, UnifiedLog.rebuildProducerState). What is damaged is left out: then an older
// snapshot counts, in the end an empty one at the log's start. After a clean close a folder without
// snapshots has no producers.
// Also makes the .txnindex files of what was walked anew, removes snapshots that lie behind the end
// and those of former ends, and after an unclean end writes one at the log's end.
// Errors: kIo, kNoSpace.
Result<LoadedProducers> load_producers(const ProducerLoad& load);

// `folder/00000000000000000042.snapshot` for 42.
std::string snapshot_path(const std::string& folder, Offset offset);

}  // namespace weir::log
