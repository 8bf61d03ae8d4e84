#pragma once

#include <weir/runtime/types.h>

#include <optional>
#include <string>
#include <string_view>

// Kafka's names of the files of one segment (org.apache.kafka.storage.internals.log.LogFileUtils):
// the base offset in 20 digits and a suffix.

namespace weir::log {

inline constexpr std::string_view kLogSuffix = ".log";
inline constexpr std::string_view kOffsetIndexSuffix = ".index";
inline constexpr std::string_view kTimeIndexSuffix = ".timeindex";
inline constexpr std::string_view kTransactionIndexSuffix = ".txnindex";
inline constexpr std::string_view kSnapshotSuffix = ".snapshot";

// Behind the names of files in transition: written by compaction, not in force; in force as soon as
// all of them are; about to be removed.
inline constexpr std::string_view kCleanedSuffix = ".cleaned";
inline constexpr std::string_view kSwapSuffix = ".swap";
inline constexpr std::string_view kDeletedSuffix = ".deleted";

// segment_file_name(Offset(36), ".log") == "00000000000000000036.log". Requires: base >= 0.
std::string segment_file_name(Offset base, std::string_view suffix);

// The base offset in the name of a ".log" file; nullopt for every other name (".log.deleted",
// ".log.swap", a folder of another program).
std::optional<Offset> parse_log_file_name(std::string_view name);
// The same for any suffix.
std::optional<Offset> parse_segment_file_name(std::string_view name, std::string_view suffix);

}  // namespace weir::log
