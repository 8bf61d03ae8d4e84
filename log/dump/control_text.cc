#include "log/dump/control_text.h"

#include "log/dump/message_schemas.h"
#include "log/record/control_record.h"

#include <weir/runtime/endian.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>

namespace weir::log {
namespace {

using Json = nlohmann::ordered_json;

// A KRaft record's value in words; nothing when it is of another type or version, or does not hold
// together.
std::optional<std::string> kraft_text(ControlType type, ByteView value) {
  const MessageSchema* const schema =
      find_schema(control_schemas(), static_cast<std::int64_t>(type));
  if (schema == nullptr || value.size() < sizeof(std::int16_t)) {
    return std::nullopt;
  }
  const Result<Json> json = decode_message(*schema, load_be<std::int16_t>(value.data()), value);
  if (!json.ok()) {
    return std::nullopt;
  }
  return fmt::format("{} {}", schema->name,
                     json->dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::string control_text(const RecordView& record) {
  const Result<ControlRecord> control = parse_control_record(record);
  if (!control.ok()) {
    return fmt::format("control: {}", control.error().message());
  }
  if (control->type == ControlType::kAbort || control->type == ControlType::kCommit) {
    return fmt::format("endTxnMarker: {} coordinatorEpoch: {}", control_type_name(control->type),
                       control->coordinator_epoch);
  }
  if (const std::optional<std::string> text =
          kraft_text(control->type, record.value.view_or_empty())) {
    return *text;
  }
  return fmt::format("controlType: {}({})", control_type_name(control->type),
                     static_cast<int>(control->type));
}

}  // namespace weir::log
