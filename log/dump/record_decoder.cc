#include "log/dump/record_decoder.h"

#include "log/dump/message_schemas.h"
#include "log/record/batch_json.h"
#include "log/record/wire.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace weir::log {
namespace {

using Json = nlohmann::ordered_json;

// A message in Json, or what stands for it.
struct Decoded {
  std::optional<std::int64_t> type;  // of a key or a metadata record; a value's version
  std::int64_t version = 0;          // of a metadata record
  const MessageSchema* schema = nullptr;
  Json data;
};

Json in_hex(ByteView bytes, std::string_view reason) {
  return {{"hex", bytes_json(NullableBytes(bytes))}, {"reason", std::string(reason)}};
}

Json data_or_hex(const MessageSchema* schema, std::int64_t version, ByteView body, ByteView all) {
  if (schema == nullptr) {
    return in_hex(all, "unknown type");
  }
  Result<Json> json = decode_message(*schema, static_cast<std::int32_t>(version), body);
  return json.ok() ? *std::move(json) : in_hex(all, json.error().message());
}

std::optional<std::int16_t> take_int16(ByteView& bytes) {
  if (bytes.size() < sizeof(std::int16_t)) {
    return std::nullopt;
  }
  const auto value = load_be<std::int16_t>(bytes.data());
  bytes.remove_prefix(sizeof(std::int16_t));
  return value;
}

// A field of bytes that holds a message of the consumer protocol, its version in front.
void open_embedded(Json& field, const MessageSchema& schema, ByteView bytes) {
  const std::optional<std::int16_t> version = take_int16(bytes);
  if (!version) {
    return;
  }
  Result<Json> json = decode_message(schema, std::min(*version, schema.version_max), bytes);
  if (json.ok()) {
    field = *std::move(json);
  }
}

std::optional<std::string> from_base64(const std::string& text) {
  std::string bytes;
  std::uint32_t group = 0;
  unsigned bits = 0;
  for (const char digit : text) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) {
      return digit == '=' ? std::optional(bytes) : std::nullopt;
    }
    group = (group << 6U) | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>((group >> bits) & 0xffU);
    }
  }
  return bytes;
}

void open_members(Json& group) {
  if (group.value("protocolType", "") != "consumer") {
    return;
  }
  for (Json& member : group["members"]) {
    for (const auto& [name, schema] : {std::pair("subscription", &consumer_subscription_schema()),
                                       std::pair("assignment", &consumer_assignment_schema())}) {
      if (const std::optional<std::string> bytes = from_base64(member[name])) {
        open_embedded(member[name], *schema, *bytes);
      }
    }
  }
}

Decoded decode_key(RecordDecoder decoder, ByteView all) {
  ByteView body = all;
  Decoded key;
  key.type = take_int16(body);
  if (!key.type) {
    key.data = in_hex(all, "no key type");
    return key;
  }
  key.schema = find_schema(
      decoder == RecordDecoder::kOffsets ? offsets_key_schemas() : transaction_key_schemas(),
      *key.type);
  key.data = data_or_hex(key.schema, 0, body, all);
  return key;
}

// Requires: the record has a value.
Decoded decode_value(RecordDecoder decoder, const Decoded& key, ByteView all) {
  ByteView body = all;
  Decoded value;
  value.type = take_int16(body);
  if (!value.type) {
    value.data = in_hex(all, "no value version");
    return value;
  }
  constexpr std::int64_t kGroupMetadata = 2;
  const bool is_offsets = decoder == RecordDecoder::kOffsets;
  if (key.type) {
    value.schema =
        find_schema(is_offsets ? offsets_value_schemas() : transaction_value_schemas(), *key.type);
  }
  value.data = data_or_hex(value.schema, *value.type, body, all);
  if (is_offsets && key.type == kGroupMetadata) {
    open_members(value.data);
  }
  return value;
}

Decoded decode_metadata(ByteView all) {
  WireReader in(all);
  Decoded record;
  const std::uint32_t frame = in.uvarint();
  const std::uint32_t type = in.uvarint();
  record.version = in.uvarint();
  if (!in.ok() || frame != 1) {
    record.data = in_hex(all, in.ok() ? fmt::format("frame version {}, known is 1", frame)
                                      : std::string("no frame"));
    return record;
  }
  record.type = type;
  record.schema = find_schema(metadata_schemas(), type);
  record.data = data_or_hex(record.schema, record.version, in.raw(in.left()), all);
  return record;
}

Json metadata_json(const RecordView& record) {
  const Decoded decoded = decode_metadata(record.value.view_or_empty());
  Json json;
  if (decoded.schema != nullptr) {
    json["type"] = std::string(decoded.schema->name);
  } else {
    json["type"] = decoded.type ? Json(*decoded.type) : Json(nullptr);
  }
  json["version"] = decoded.version;
  json["data"] = decoded.data;
  return json;
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// {"<name>":"2","data":{..}}
std::string numbered_text(std::string_view name, const Decoded& decoded) {
  Json json;
  json[std::string(name)] = decoded.type ? fmt::to_string(*decoded.type) : "unknown";
  json["data"] = decoded.data;
  return text_of(json);
}

}  // namespace

RecordDecoder decoder_for(RecordDecoder wanted, std::string_view folder_name) {
  if (wanted != RecordDecoder::kByTopic) {
    return wanted;
  }
  const std::string_view topic = folder_name.substr(0, folder_name.rfind('-'));
  if (topic == "__consumer_offsets") {
    return RecordDecoder::kOffsets;
  }
  if (topic == "__transaction_state") {
    return RecordDecoder::kTransactionLog;
  }
  return topic == "__cluster_metadata" ? RecordDecoder::kClusterMetadata : RecordDecoder::kNone;
}

std::string decoded_text(RecordDecoder decoder, const RecordView& record) {
  if (decoder == RecordDecoder::kClusterMetadata) {
    return fmt::format(" payload: {}", text_of(metadata_json(record)));
  }
  const Decoded key = decode_key(decoder, record.key.view_or_empty());
  return fmt::format(
      " key: {} payload: {}", numbered_text("type", key),
      record.value.is_null()
          ? std::string("<DELETE>")
          : numbered_text("version", decode_value(decoder, key, record.value.view())));
}

Json decoded_json(RecordDecoder decoder, const RecordView& record) {
  Json json;
  json["offset"] = record.offset.value();
  if (decoder == RecordDecoder::kClusterMetadata) {
    json.update(metadata_json(record));
    return json;
  }
  const Decoded key = decode_key(decoder, record.key.view_or_empty());
  json["keyType"] = key.type ? Json(*key.type) : Json(nullptr);
  json["keyName"] = key.schema != nullptr ? Json(std::string(key.schema->name)) : Json(nullptr);
  json["key"] = key.data;
  if (record.value.is_null()) {
    json["valueVersion"] = nullptr;
    json["value"] = nullptr;
    return json;
  }
  const Decoded value = decode_value(decoder, key, record.value.view());
  json["valueVersion"] = value.type ? Json(*value.type) : Json(nullptr);
  json["value"] = value.data;
  return json;
}

}  // namespace weir::log
