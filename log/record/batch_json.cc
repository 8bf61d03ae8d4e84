#include "log/record/batch_json.h"

#include "log/record/control_record.h"
#include "log/record/sha256.h"

#include <weir/runtime/crc32c.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace weir::log {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kHexBytesMax = 512;

template <class Bytes>
std::string to_hex(const Bytes& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const auto byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    hex.push_back(kDigits[value >> 4U]);
    hex.push_back(kDigits[value & 15U]);
  }
  return hex;
}

// The library replaces what is no UTF-8 while it writes, so write and read once.
Json text_json(ByteView text) {
  const std::string written =
      Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(written, nullptr, false);
}

std::string codec_text(std::uint8_t bits) {
  return bits > static_cast<std::uint8_t>(Codec::kZstd)
             ? fmt::format("unknown {}", bits)
             : std::string(codec_name(static_cast<Codec>(bits)));
}

void add_control(const RecordView& record, Json& json) {
  const Result<ControlRecord> control = parse_control_record(record);
  if (!control.ok()) {
    json["control"] = control.error().message();
    return;
  }
  json["type"] = control_type_name(control->type);
  if (control->type == ControlType::kAbort || control->type == ControlType::kCommit) {
    json["coordinatorEpoch"] = control->coordinator_epoch;
  }
}

}  // namespace

std::int32_t sequence_at(const BatchHeader& header, std::int32_t delta) {
  if (header.base_sequence < 0) {
    return -1;
  }
  return static_cast<std::int32_t>(
      (static_cast<std::uint32_t>(header.base_sequence) + static_cast<std::uint32_t>(delta)) &
      0x7fffffffU);
}

Json bytes_json(const NullableBytes& bytes) {
  if (bytes.is_null()) {
    return nullptr;
  }
  const ByteView view = bytes.view();
  if (view.size() <= kHexBytesMax) {
    return to_hex(view);
  }
  Json json;
  json["length"] = view.size();
  json["crc32c"] = crc32c(view);
  json["sha256"] = to_hex(sha256(view));
  return json;
}

Json batch_json(const BatchHeader& header) {
  const bool append_time = header.timestamp_type() == TimestampType::kLogAppendTime;
  Json json;
  json["size"] = header.size_bytes();
  json["baseOffset"] = header.base_offset.value();
  json["lastOffset"] = header.last_offset().value();
  json["leaderEpoch"] = header.leader_epoch.value();
  json["magic"] = header.magic;
  json["crc"] = header.crc;
  json["attributes"] = header.attributes;
  json["codec"] = codec_text(header.codec_bits());
  json["timestampType"] = append_time ? "LogAppendTime" : "CreateTime";
  json["isTransactional"] = header.is_transactional();
  json["isControl"] = header.is_control();
  json["baseTimestamp"] = header.base_timestamp;
  json["maxTimestamp"] = header.max_timestamp;
  json["producerId"] = header.producer_id.value();
  json["producerEpoch"] = header.producer_epoch.value();
  json["baseSequence"] = header.base_sequence;
  json["lastSequence"] = sequence_at(header, header.last_offset_delta);
  json["count"] = header.records_count;
  if (header.has_delete_horizon()) {
    json["deleteHorizonMs"] = header.base_timestamp;
  }
  return json;
}

Json record_json(const BatchHeader& header, const RecordView& record) {
  const auto delta = static_cast<std::uint64_t>(record.offset.value()) -
                     static_cast<std::uint64_t>(header.base_offset.value());
  Json json;
  json["offset"] = record.offset.value();
  json["timestamp"] = record.timestamp;
  json["sequence"] = sequence_at(header, static_cast<std::int32_t>(delta));
  json["key"] = bytes_json(record.key);
  json["value"] = bytes_json(record.value);
  json["headers"] = Json::array();
  for (const HeaderView& entry : record.headers) {
    json["headers"].push_back(Json::array({text_json(entry.name), bytes_json(entry.value)}));
  }
  if (header.is_control()) {
    add_control(record, json);
  }
  return json;
}

}  // namespace weir::log
