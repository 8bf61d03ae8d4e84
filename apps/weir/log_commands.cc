#include "apps/cli/data_directory.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/json_text.h"
#include "apps/weir/commands.h"

#include <weir/log/log_dump.h>
#include <weir/log/log_verify.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace weir::cli {
namespace {

// A number as JSON and in text, where there is one.
std::string json_number(std::string_view name, const std::optional<std::int64_t>& value) {
  return value ? fmt::format(R"(,"{}":{})", name, *value) : std::string();
}

std::optional<std::int64_t> number(const std::optional<Offset>& offset) {
  return offset ? std::optional(offset->value()) : std::nullopt;
}
std::optional<std::int64_t> number(const std::optional<std::uint64_t>& position) {
  return position ? std::optional(static_cast<std::int64_t>(*position)) : std::nullopt;
}

std::string_view severity_name(log::VerifySeverity severity) {
  return severity == log::VerifySeverity::kDamage ? "damage" : "note";
}

std::string finding_json(const log::VerifyFinding& finding) {
  return fmt::format(
      R"({{"severity":"{}","file":{}{}{}{}{},"what":{}}})", severity_name(finding.severity),
      json_string(finding.file), json_number("position", number(finding.position)),
      json_number("endPosition", number(finding.end_position)),
      json_number("firstOffset", number(finding.first_offset)),
      json_number("nextOffset", number(finding.next_offset)), json_string(finding.what));
}

// "damage: FILE, bytes 2923 to 3159, offsets 106 to 107: crc is .."
std::string finding_text(const log::VerifyFinding& finding) {
  std::string text = fmt::format("{}: {}", severity_name(finding.severity), finding.file);
  if (finding.position) {
    text += finding.end_position
                ? fmt::format(", bytes {} to {}", *finding.position, *finding.end_position)
                : fmt::format(", at byte {}", *finding.position);
  }
  if (finding.first_offset) {
    const std::int64_t first = finding.first_offset->value();
    const std::int64_t last = finding.next_offset ? finding.next_offset->value() - 1 : first;
    text += last > first ? fmt::format(", offsets {} to {}", first, last)
            : !finding.end_position || finding.next_offset
                ? fmt::format(", offset {}", first)
                : fmt::format(", offsets from {}", first);
  }
  return fmt::format("{}: {}", text, finding.what);
}

std::string totals_json(const log::VerifyTotals& totals) {
  return fmt::format(
      R"({{"sound":{},"partitions":{},"segments":{},"batches":{},"records":{},"bytes":{},)"
      R"("damage":{},"notes":{}}})",
      totals.sound(), totals.partitions, totals.segments, totals.batches, totals.records,
      totals.bytes, totals.damage, totals.notes);
}

std::string totals_text(const log::VerifyTotals& totals) {
  return fmt::format(
      "{}: {} partitions, {} segments, {} batches, {} records, {} bytes; {} of damage, {} notes",
      totals.sound() ? "sound" : "damaged", totals.partitions, totals.segments, totals.batches,
      totals.records, totals.bytes, totals.damage, totals.notes);
}

std::string recovery_json(const log::PartitionRecovery& recovery) {
  std::string damaged;
  for (const std::string& what : recovery.damaged) {
    damaged += (damaged.empty() ? "" : ",") + json_string(what);
  }
  return fmt::format(
      R"({{"partition":{},"scannedBytes":{},"replayedBytes":{},"cutBytes":{},"cutFromOffset":{},)"
      R"("segmentsRemoved":{},"indexesRebuilt":{},"reason":{},"damaged":[{}],"failure":{}}})",
      json_string(recovery.name.to_string()), recovery.scanned_bytes, recovery.replayed_bytes,
      recovery.cut_bytes,
      recovery.cut_from == kNoOffset ? "null" : fmt::to_string(recovery.cut_from.value()),
      recovery.segments_removed, recovery.indexes_rebuilt,
      recovery.reason.empty() ? "null" : json_string(recovery.reason), damaged,
      recovery.failure.ok() ? "null" : json_string(recovery.failure.error().message()));
}

std::string recovery_text(const log::PartitionRecovery& recovery) {
  const std::string name = recovery.name.to_string();
  if (!recovery.failure.ok()) {
    return fmt::format("{}: not served: {}\n", name, recovery.failure.error().message());
  }
  std::string text = fmt::format("{}: {} bytes scanned", name, recovery.scanned_bytes);
  const auto out = std::back_inserter(text);
  if (recovery.replayed_bytes > 0) {
    fmt::format_to(out, ", {} bytes from the write-ahead log", recovery.replayed_bytes);
  }
  if (recovery.cut_bytes > 0) {
    fmt::format_to(out, ", {} bytes cut from offset {} on ({})", recovery.cut_bytes,
                   recovery.cut_from.value(), recovery.reason);
  }
  if (recovery.segments_removed > 0) {
    fmt::format_to(out, ", {} segments removed", recovery.segments_removed);
  }
  if (recovery.indexes_rebuilt > 0) {
    fmt::format_to(out, ", {} indexes rebuilt", recovery.indexes_rebuilt);
  }
  text += "\n";
  for (const std::string& what : recovery.damaged) {
    fmt::format_to(out, "{}: damaged: {}\n", name, what);
  }
  return text;
}

bool is_damaged(const log::PartitionRecovery& recovery) {
  return !recovery.failure.ok() || !recovery.damaged.empty();
}

// Opens the directory as its holder and closes it cleanly; what the start found.
Result<log::RecoveryResult> open_and_close(const std::string& data) {
  WEIR_TRY_ASSIGN(const auto log, open_existing(data));
  log::RecoveryResult recovery = log->recovery();
  WEIR_TRY(log->close());
  return recovery;
}

void write_recovery(const CommonOptions& common, const log::RecoveryResult& recovery, Output& out) {
  for (const log::PartitionRecovery& partition : recovery.partitions) {
    if (common.format == Format::kJson) {
      out.line(recovery_json(partition));
    } else {
      out.write(recovery_text(partition));
    }
  }
}

int recovery_exit_code(const log::RecoveryResult& recovery) {
  return std::any_of(recovery.partitions.begin(), recovery.partitions.end(), is_damaged) ? kDamage
                                                                                         : kOk;
}

}  // namespace

int log_dump(const CommonOptions& common, const LogDumpOptions& options) {
  const int decoders = static_cast<int>(options.offsets_decoder) +
                       static_cast<int>(options.transaction_log_decoder) +
                       static_cast<int>(options.cluster_metadata_decoder) +
                       static_cast<int>(options.no_decoder);
  if (decoders > 1) {
    return report(kProgram, Error(Errc::kInvalidArgument,
                                  "more than one decoder is named: give one of --offsets-decoder, "
                                  "--transaction-log-decoder, --cluster-metadata-decoder and "
                                  "--no-decoder"));
  }
  log::DumpOptions dump;
  dump.json = common.format == Format::kJson;
  dump.records = !options.skip_records;
  dump.decoder = options.offsets_decoder            ? log::RecordDecoder::kOffsets
                 : options.transaction_log_decoder  ? log::RecordDecoder::kTransactionLog
                 : options.cluster_metadata_decoder ? log::RecordDecoder::kClusterMetadata
                 : options.no_decoder               ? log::RecordDecoder::kNone
                                                    : log::RecordDecoder::kByTopic;
  Output out;
  const Status dumped = log::dump_log(posix_file_system(), options.path, dump,
                                      [&out](std::string_view text) { out.write(text); });
  out.flush();
  return dumped.ok() ? kOk : report(kProgram, dumped.error());
}

int log_verify(const CommonOptions& common, const std::vector<std::string>& paths) {
  Output out;
  const bool json = common.format == Format::kJson;
  log::VerifyTotals totals;
  int code = kOk;
  for (const std::string& path : paths) {
    const Result<log::VerifyTotals> one =
        log::verify_log(posix_file_system(), path, [&out, json](const log::VerifyFinding& finding) {
          out.line(json ? finding_json(finding) : finding_text(finding));
        });
    if (!one.ok()) {
      out.flush();
      code = std::max(code, report(kProgram, one.error()));
      continue;
    }
    totals += *one;
  }
  if (totals.partitions > 0 || code == kOk) {
    out.line(json ? totals_json(totals) : totals_text(totals));
  }
  out.flush();
  return totals.sound() ? code : kDamage;
}

int log_seal(const CommonOptions& common, const std::string& directory) {
  const std::string& data = directory.empty() ? common.data : directory;
  const Result<log::RecoveryResult> recovery = open_and_close(data);
  if (!recovery.ok()) {
    return report(kProgram, recovery.error());
  }
  Output out;
  write_recovery(common, *recovery, out);
  const std::string log = join_path(data, "log");
  if (common.format == Format::kJson) {
    out.line(
        fmt::format(R"({{"sealed":{},"wasClean":{}}})", json_string(log), recovery->was_clean));
  } else {
    out.line(
        fmt::format("{} is complete by itself{}: a copy of it can be read and served without "
                    "wal/",
                    log, recovery->was_clean ? "" : ", after a recovery"));
  }
  return recovery_exit_code(*recovery);
}

int log_recover(const CommonOptions& common, const std::string& directory) {
  const std::string& data = directory.empty() ? common.data : directory;
  const Result<log::RecoveryResult> recovery = open_and_close(data);
  if (!recovery.ok()) {
    return report(kProgram, recovery.error());
  }
  Output out;
  write_recovery(common, *recovery, out);
  if (common.format == Format::kJson) {
    out.line(fmt::format(R"({{"recovered":{},"wasClean":{},"partitions":{}}})", json_string(data),
                         recovery->was_clean, recovery->partitions.size()));
  } else if (recovery->was_clean) {
    out.line(fmt::format("{} was closed cleanly: nothing to recover", data));
  } else {
    out.line(fmt::format("{} is recovered and closed cleanly: {} partitions", data,
                         recovery->partitions.size()));
  }
  return recovery_exit_code(*recovery);
}

int version(const CommonOptions& common) {
  Output out;
  if (common.format == Format::kJson) {
    out.line(fmt::format(R"({{"version":{}}})", json_string(WEIR_VERSION)));
  } else {
    out.line(fmt::format("weir {}", WEIR_VERSION));
  }
  return kOk;
}

}  // namespace weir::cli
