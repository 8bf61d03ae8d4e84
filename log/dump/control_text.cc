#include "log/dump/control_text.h"

#include "log/record/control_record.h"
#include "log/record/wire.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>

namespace weir::log {
namespace {

using Json = nlohmann::ordered_json;

// Calls `element` for each element of a compact array; a count past the end fails the reader.
template <class Element>
Json compact_array(WireReader& in, Element element) {
  Json array = Json::array();
  const std::uint32_t size = in.uvarint();  // plus 1
  for (std::uint32_t i = 1; i < size && in.ok(); ++i) {
    array.push_back(element());
  }
  return array;
}

// LeaderChangeMessage.json, versions 0 and 1.
Json leader_change(WireReader& in, std::int16_t version) {
  const auto voter = [&] {
    Json json;
    json["voterId"] = in.integer<std::int32_t>();
    if (version >= 1) {
      json["voterDirectoryId"] = in.uuid().to_string();
    }
    in.skip_tagged_fields();
    return json;
  };
  Json json;
  json["version"] = version;
  json["leaderId"] = in.integer<std::int32_t>();
  json["voters"] = compact_array(in, voter);
  json["grantingVoters"] = compact_array(in, voter);
  return json;
}

// VotersRecord.json, version 0.
Json voters(WireReader& in, std::int16_t version) {
  const auto endpoint = [&] {
    Json json;
    json["name"] = std::string(in.compact_string());
    json["host"] = std::string(in.compact_string());
    json["port"] = in.integer<std::uint16_t>();
    in.skip_tagged_fields();
    return json;
  };
  const auto voter = [&] {
    Json json;
    json["voterId"] = in.integer<std::int32_t>();
    json["voterDirectoryId"] = in.uuid().to_string();
    json["endpoints"] = compact_array(in, endpoint);
    Json& feature = json["kRaftVersionFeature"];
    feature["minSupportedVersion"] = in.integer<std::int16_t>();
    feature["maxSupportedVersion"] = in.integer<std::int16_t>();
    in.skip_tagged_fields();
    in.skip_tagged_fields();
    return json;
  };
  Json json;
  json["version"] = version;
  json["voters"] = compact_array(in, voter);
  return json;
}

// A KRaft record's value in words; nothing when it is of another type or version, or does not hold
// together.
std::optional<std::string> kraft_text(ControlType type, ByteView value) {
  WireReader in(value);
  const auto version = in.integer<std::int16_t>();
  std::string_view name;
  Json json;
  if (type == ControlType::kLeaderChange && version <= 1) {
    name = "LeaderChange:";
    json = leader_change(in, version);
  } else if (type == ControlType::kSnapshotHeader && version == 0) {
    name = "SnapshotHeader";
    json["version"] = version;
    json["lastContainedLogTimestamp"] = in.integer<std::int64_t>();
  } else if (type == ControlType::kSnapshotFooter && version == 0) {
    name = "SnapshotFooter";
    json["version"] = version;
  } else if (type == ControlType::kKRaftVersion && version == 0) {
    name = "KRaftVersion";
    json["version"] = version;
    json["kRaftVersion"] = in.integer<std::int16_t>();
  } else if (type == ControlType::kKRaftVoters && version == 0) {
    name = "KRaftVoters";
    json = voters(in, version);
  }
  in.skip_tagged_fields();
  if (name.empty() || version < 0 || !in.ok()) {
    return std::nullopt;
  }
  return fmt::format("{} {}", name, json.dump(-1, ' ', false, Json::error_handler_t::replace));
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
