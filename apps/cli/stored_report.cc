#include "apps/cli/stored_report.h"

#include <fmt/core.h>

#include <cstdio>

namespace weir::cli {
namespace {

void print_lost(const char* program, const TopicPartition& name, const log::LostOffsets& lost) {
  const std::string offsets =
      lost.from == lost.to
          ? fmt::format("bytes in front of offset {} are no records", lost.to.value())
          : fmt::format("offsets {} to {} are lost", lost.from.value(), lost.to.value() - 1);
  fmt::print(stderr, "{}: {}: {}: {}\n", program, name.to_string(), offsets, lost.what);
}

// How far it is read, where that is not plain.
void print_extent(const char* program, const log::StoredPartitionReport& report, bool is_in_use) {
  const std::string name = report.name.to_string();
  const std::int64_t end = report.offsets.log_end.value();
  if (report.folder.empty()) {
    fmt::print(stderr, "{}: {}: has no folder there and is read as empty\n", program, name);
  } else if (report.offsets.high_watermark < report.offsets.log_end) {
    fmt::print(stderr,
               "{}: {}: read up to offset {}, where a transaction begins that has no end; the log "
               "goes on to {}\n",
               program, name, report.offsets.high_watermark.value(), end);
  } else if (!report.tail.empty()) {
    fmt::print(stderr, "{}: {}: read up to offset {}; behind it stands: {}\n", program, name, end,
               report.tail);
  } else if (is_in_use) {
    fmt::print(stderr, "{}: {}: read up to offset {}\n", program, name, end);
  }
}

}  // namespace

Result<StoredLosses> report_stored(const char* program, log::StoredLog& stored,
                                   const std::vector<TopicPartition>& partitions, bool quiet) {
  StoredLosses losses;
  if (!quiet) {
    for (const std::string& note : stored.notes()) {
      fmt::print(stderr, "{}: {}\n", program, note);
    }
  }
  for (const TopicPartition& name : partitions) {
    WEIR_TRY_ASSIGN(const log::StoredPartitionReport report, stored.report(name));
    for (const log::LostOffsets& lost : report.lost) {
      ++losses.ranges;
      losses.offsets += static_cast<std::uint64_t>(lost.to.value() - lost.from.value());
      print_lost(program, name, lost);
    }
    for (const std::string& transaction : report.transactions) {
      fmt::print(stderr, "{}: {}: {}\n", program, name.to_string(), transaction);
    }
    if (!quiet) {
      print_extent(program, report, stored.may_be_in_use());
    }
  }
  return losses;
}

}  // namespace weir::cli
