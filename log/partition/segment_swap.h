#pragma once

#include "log/segment/aborted_transactions.h"

#include <weir/runtime/file_system.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <string>
#include <vector>

// How one segment takes the place of neighbours so that a crash at any moment leaves either them or
// it (Kafka's UnifiedLog.replaceSegments and LogLoader; docs/formats/segment.md):
//
//   1. its files are written as "<base>.log.cleaned" and the like, and synced: a start drops them;
//   2. ".cleaned" becomes ".swap", the log last; synced: from here on a start finishes the swap;
//   3. the files of the others go; synced;
//   4. ".swap" goes from the names, the log's last; synced.

namespace weir::log {

// What compaction made of neighbours.
struct CleanedSegment {
  Offset base;  // of the first of them
  Offset end;   // base of the segment behind them; its last batch ends here
  std::uint64_t size_bytes = 0;
  AbortedTransactions aborted;  // what its .txnindex says
};

// "<folder>/<base>.index.cleaned" for ".index".
std::string cleaned_path(const std::string& folder, Offset base, std::string_view suffix);

// Step 2 of the files ".cleaned" that are there. Errors: kIo, kNoSpace: the old ones are in force.
Status commit_swap(FileSystem& files, const std::string& folder, Offset base);
// Steps 3 and 4. `replaced`: bases of the old segments. Errors: kIo, kNoSpace: a start finishes it.
Status finish_swap(FileSystem& files, const std::string& folder, Offset base,
                   const std::vector<Offset>& replaced);
// Removes what was written of it, as far as that is possible.
void drop_cleaned(FileSystem& files, const std::string& folder, Offset base);

// At a start: what a crash left of all this in a partition folder. ".cleaned" and ".deleted" go, a
// ".swap" at or above a ".cleaned" too; other swaps are finished. True when anything was done.
// `checksum_folder`: where side-cars of replaced segments are; empty: nowhere. Errors: kIo,
// kNoSpace.
Result<bool> finish_swaps(FileSystem& files, const std::string& folder,
                          const std::vector<DirectoryEntry>& entries,
                          const std::string& checksum_folder);

}  // namespace weir::log
