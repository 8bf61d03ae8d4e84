#include "log/record/control_record.h"

#include "log/record/batch_builder.h"
#include "log/record/batch_decoder.h"

#include <weir/runtime/endian.h>

#include <fmt/format.h>

#include <array>

namespace weir::log {

namespace {

constexpr std::size_t kKeyBytes = 4;     // version i16, type i16
constexpr std::size_t kMarkerBytes = 6;  // version i16, coordinatorEpoch i32

Error bad_record(const RecordView& record, std::string_view what) {
  return Error(Errc::kCorrupt,
               fmt::format("control record at offset {}: {}", record.offset.value(), what));
}

}  // namespace

std::string_view control_type_name(ControlType type) {
  switch (type) {
    case ControlType::kAbort:
      return "ABORT";
    case ControlType::kCommit:
      return "COMMIT";
    case ControlType::kLeaderChange:
      return "LEADER_CHANGE";
    case ControlType::kSnapshotHeader:
      return "SNAPSHOT_HEADER";
    case ControlType::kSnapshotFooter:
      return "SNAPSHOT_FOOTER";
    case ControlType::kKRaftVersion:
      return "KRAFT_VERSION";
    case ControlType::kKRaftVoters:
      return "KRAFT_VOTERS";
  }
  return "UNKNOWN";
}

Result<ControlRecord> parse_control_record(const RecordView& record) {
  const ByteView key = record.key.view_or_empty();
  if (key.size() < kKeyBytes) {
    return bad_record(record, fmt::format("its key has {} bytes, not {}", key.size(), kKeyBytes));
  }
  ControlRecord control;
  control.version = load_be<std::int16_t>(key.data());
  if (control.version < 0) {
    return bad_record(record, fmt::format("its key has version {}", control.version));
  }
  control.type = static_cast<ControlType>(load_be<std::int16_t>(key.data() + 2));
  if (control.type != ControlType::kAbort && control.type != ControlType::kCommit) {
    return control;
  }
  // Later versions add fields behind these; Kafka reads them so too.
  const ByteView value = record.value.view_or_empty();
  if (value.size() < kMarkerBytes) {
    return bad_record(record,
                      fmt::format("its marker has {} bytes, not {}", value.size(), kMarkerBytes));
  }
  if (const auto version = load_be<std::int16_t>(value.data()); version < 0) {
    return bad_record(record, fmt::format("its marker has version {}", version));
  }
  control.coordinator_epoch = load_be<std::int32_t>(value.data() + 2);
  return control;
}

SharedBytes build_end_transaction_marker(ControlType type, ProducerId producer, ProducerEpoch epoch,
                                         std::int32_t coordinator_epoch, Timestamp now) {
  WEIR_ASSERT(type == ControlType::kAbort || type == ControlType::kCommit);
  std::array<char, kKeyBytes> key{};
  store_be(key.data() + 2, static_cast<std::int16_t>(type));
  std::array<char, kMarkerBytes> value{};
  store_be(value.data() + 2, coordinator_epoch);
  const BatchBuilder::Producer from{producer, epoch, -1, true};
  return build_control_batch({key.data(), key.size()}, {value.data(), value.size()}, now, from);
}

Result<std::optional<ControlRecord>> read_end_transaction_marker(const BatchHeader& header,
                                                                 ByteView batch) {
  if (!header.is_control() || header.records_count == 0) {
    return std::optional<ControlRecord>();
  }
  RecordViews records;
  SharedBytes decompressed;
  WEIR_TRY(decode_records(header, batch, DecodeLimits{}, records, decompressed));
  for (const RecordView& record : records) {
    WEIR_TRY_ASSIGN(const ControlRecord control, parse_control_record(record));
    if (control.type == ControlType::kAbort || control.type == ControlType::kCommit) {
      return std::optional(control);
    }
  }
  return std::optional<ControlRecord>();
}

}  // namespace weir::log
