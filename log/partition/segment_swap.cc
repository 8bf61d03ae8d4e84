#include "log/partition/segment_swap.h"

#include "log/segment/batch_scanner.h"
#include "log/segment/checksum_file.h"
#include "log/segment/segment_names.h"
#include "log/segment/segment_scan.h"

#include <weir/runtime/logger.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

namespace weir::log {
namespace {

constexpr std::size_t kDigits = 20;
// In the order in which names change: the log's last.
constexpr std::string_view kSuffixes[] = {kOffsetIndexSuffix, kTimeIndexSuffix,
                                          kTransactionIndexSuffix, kLogSuffix};

std::string segment_path(const std::string& folder, Offset base, std::string_view suffix) {
  return join_path(folder, segment_file_name(base, suffix));
}

// "<base>.log.swap" is the ".log" of `base`, in transition.
struct InTransition {
  Offset base;
  std::string_view suffix;
  std::string_view transition;
};

std::optional<InTransition> parse_transition(std::string_view name) {
  for (const std::string_view transition : {kCleanedSuffix, kSwapSuffix, kDeletedSuffix}) {
    if (!name.ends_with(transition) || name.size() < kDigits + transition.size()) {
      continue;
    }
    const std::string_view rest = name.substr(kDigits, name.size() - kDigits - transition.size());
    const std::optional<Offset> base =
        parse_log_file_name(std::string(name.substr(0, kDigits)) + std::string(kLogSuffix));
    for (const std::string_view suffix : {kLogSuffix, kOffsetIndexSuffix, kTimeIndexSuffix,
                                          kTransactionIndexSuffix, kSnapshotSuffix}) {
      if (base && rest == suffix) {
        return InTransition{*base, suffix, transition};
      }
    }
  }
  return std::nullopt;
}

Status remove_if_there(FileSystem& files, const std::string& path) {
  Status removed = files.remove_file(path);
  return !removed.ok() && removed.error().code() == Errc::kNotFound ? Status() : std::move(removed);
}

// Gives up the ending of the names that are there.
Status rename_all(FileSystem& files, const std::string& folder, Offset base, std::string_view from,
                  std::string_view to) {
  for (const std::string_view suffix : kSuffixes) {
    const std::string path = segment_path(folder, base, suffix);
    const std::string present = path + std::string(from);
    if (path_exists(files, present)) {
      WEIR_TRY(files.rename(present, path + std::string(to)));
    }
  }
  return files.sync_directory(folder);
}

// Behind the last whole batch.
Result<Offset> end_of(FileSystem& files, const std::string& path, Offset base) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, files.open(path, OpenMode::kRead));
  WEIR_TRY_ASSIGN(const std::uint64_t size, file->size());
  BatchScanner scanner(*file, 0, size);
  Offset next = base;
  while (true) {
    const Result<std::optional<BatchHeader>> header = scanner.peek();
    if (!header.ok()) {
      if (header.error().code() == Errc::kIo) {
        return header.error();
      }
      WEIR_TRY_ASSIGN(const std::optional<std::uint64_t> behind,
                      scanner.find_next(scanner.position() + 1, next, kOffsetMax));
      if (!behind) {
        return next;
      }
      scanner.seek(*behind);
      continue;
    }
    if (!*header) {
      return next;
    }
    next = std::max(next, (*header)->next_offset());
    scanner.skip(**header);
  }
}

class Leftovers {
 public:
  Leftovers(FileSystem& files, const std::string& folder, const std::string& checksum_folder)
      : files_(files), folder_(folder), checksum_folder_(checksum_folder) {}

  Result<bool> finish(const std::vector<DirectoryEntry>& entries) {
    WEIR_TRY(remove_unfinished(entries));
    for (const Offset base : swaps_) {
      WEIR_TRY(finish_one(base));
    }
    return is_changed_;
  }

 private:
  Status remove_unfinished(const std::vector<DirectoryEntry>& entries) {
    Offset unfinished = kOffsetMax;
    for (const DirectoryEntry& entry : entries) {
      const std::optional<InTransition> file = parse_transition(entry.name);
      if (file && file->transition == kCleanedSuffix) {
        unfinished = std::min(unfinished, file->base);
      }
      if (const std::optional<Offset> base = parse_log_file_name(entry.name)) {
        bases_.insert(*base);
      }
    }
    for (const DirectoryEntry& entry : entries) {
      const std::optional<InTransition> file = parse_transition(entry.name);
      if (!file || entry.kind != FileKind::kFile) {
        continue;
      }
      is_changed_ = true;
      if (file->transition == kSwapSuffix && file->base < unfinished) {
        swaps_.insert(file->base);
      } else {
        WEIR_TRY(remove_if_there(files_, join_path(folder_, entry.name)));
      }
    }
    return is_changed_ ? files_.sync_directory(folder_) : Status();
  }

  Status finish_one(Offset base) {
    const std::string log = segment_path(folder_, base, kLogSuffix);
    const std::string swap = log + std::string(kSwapSuffix);
    std::vector<Offset> replaced{base};
    if (path_exists(files_, swap)) {
      WEIR_TRY_ASSIGN(const Offset end, end_of(files_, swap, base));
      replaced.insert(replaced.end(), bases_.upper_bound(base), bases_.lower_bound(end));
      WEIR_INFO("finished a compaction that was cut short file={} end_offset={} segments={}", log,
                end.value(), replaced.size());
    }
    if (!checksum_folder_.empty()) {
      for (const Offset old : replaced) {
        remove_if_there(files_, segment_path(checksum_folder_, old, kChecksumSuffix))
            .ignore("a scrub finds out that it is of another segment");
      }
    }
    return finish_swap(files_, folder_, base, replaced);
  }

  FileSystem& files_;
  const std::string& folder_;
  const std::string& checksum_folder_;
  std::set<Offset> bases_;  // of segments in force
  std::set<Offset> swaps_;
  bool is_changed_ = false;
};

}  // namespace

std::string cleaned_path(const std::string& folder, Offset base, std::string_view suffix) {
  return segment_path(folder, base, suffix) + std::string(kCleanedSuffix);
}

Status commit_swap(FileSystem& files, const std::string& folder, Offset base) {
  return rename_all(files, folder, base, kCleanedSuffix, kSwapSuffix);
}

Status finish_swap(FileSystem& files, const std::string& folder, Offset base,
                   const std::vector<Offset>& replaced) {
  bool is_changed = false;
  for (const Offset old : replaced) {
    if (old == base) {
      continue;
    }
    for (const std::string_view suffix : kSuffixes) {
      WEIR_TRY(remove_if_there(files, segment_path(folder, old, suffix)));
    }
    WEIR_TRY(remove_if_there(files, segment_path(folder, old, kSnapshotSuffix)));
    is_changed = true;
  }
  // The log's new name must not outlive a power cut that brings the others back.
  if (is_changed) {
    WEIR_TRY(files.sync_directory(folder));
  }
  return rename_all(files, folder, base, kSwapSuffix, "");
}

void drop_cleaned(FileSystem& files, const std::string& folder, Offset base) {
  for (const std::string_view suffix : kSuffixes) {
    for (const std::string_view transition : {kCleanedSuffix, kSwapSuffix}) {
      files.remove_file(segment_path(folder, base, suffix) + std::string(transition))
          .ignore("it may not be there; the next start drops it");
    }
  }
}

Result<bool> finish_swaps(FileSystem& files, const std::string& folder,
                          const std::vector<DirectoryEntry>& entries,
                          const std::string& checksum_folder) {
  return Leftovers(files, folder, checksum_folder).finish(entries);
}

}  // namespace weir::log
