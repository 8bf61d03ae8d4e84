#include "log/dump/message_schema.h"

#include "log/record/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

namespace weir::log {
namespace {

using Json = nlohmann::ordered_json;

class MessageReader {
 public:
  MessageReader(const MessageSchema& schema, std::int32_t version)
      : version_(version), flexible_(version >= schema.flexible_since) {}

  Json read_fields(std::span<const MessageField> fields, WireReader& in) {
    std::vector<std::optional<Json>> values(fields.size());
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const FieldRules& rules = fields[i].rules;
      if (rules.tag < 0 && rules.since <= version_ && version_ <= rules.until) {
        values[i] = read_field(fields[i], in);
      }
    }
    if (flexible_) {
      read_tagged_fields(fields, in, values);
    }
    Json json = Json::object();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (values[i]) {
        json[std::string(fields[i].name)] = *std::move(values[i]);
      }
    }
    return json;
  }

  bool ok() const { return !failed_; }

 private:
  void read_tagged_fields(std::span<const MessageField> fields, WireReader& in,
                          std::vector<std::optional<Json>>& values) {
    in.tagged_fields([&](std::uint32_t tag, WireReader& bytes) {
      const auto field = std::find_if(fields.begin(), fields.end(), [&](const MessageField& one) {
        return one.rules.tag >= 0 && static_cast<std::uint32_t>(one.rules.tag) == tag;
      });
      if (field == fields.end()) {
        return;  // of a later version: to be passed over
      }
      Json value = read_field(*field, bytes);
      failed_ |= !bytes.ok() || bytes.left() > 0;
      if (!is_default(*field, value)) {
        values[static_cast<std::size_t>(field - fields.begin())] = std::move(value);
      }
    });
  }

  static bool is_default(const MessageField& field, const Json& value) {
    if (field.type.is_array) {
      return field.rules.nullable ? value.is_null() : value.empty();
    }
    switch (field.type.kind) {
      case FieldKind::kStruct:
        return false;
      case FieldKind::kString:
      case FieldKind::kBytes:
        return field.rules.nullable ? value.is_null() : value == "";
      case FieldKind::kUuid:
        return value == Uuid().to_string();
      default:
        return value == field.rules.absent;
    }
  }

  Json read_field(const MessageField& field, WireReader& in) {
    if (!field.type.is_array) {
      return read_value(field.type, field.rules.nullable, in);
    }
    const std::int64_t count = read_length(in, field.rules.nullable);
    if (count < 0) {
      return nullptr;
    }
    if (static_cast<std::uint64_t>(count) > in.left()) {
      failed_ = true;  // an element has at least one byte
      return nullptr;
    }
    Json array = Json::array();
    for (std::int64_t i = 0; i < count && in.ok() && !failed_; ++i) {
      array.push_back(read_value(field.type, false, in));
    }
    return array;
  }

  Json read_value(const FieldType& type, bool nullable, WireReader& in) {
    switch (type.kind) {
      case FieldKind::kBool:
        return in.integer<std::int8_t>() != 0;
      case FieldKind::kInt8:
        return in.integer<std::int8_t>();
      case FieldKind::kInt16:
        return in.integer<std::int16_t>();
      case FieldKind::kUint16:
        return in.integer<std::uint16_t>();
      case FieldKind::kInt32:
        return in.integer<std::int32_t>();
      case FieldKind::kUint32:
        return in.integer<std::uint32_t>();
      case FieldKind::kInt64:
        return in.integer<std::int64_t>();
      case FieldKind::kFloat64:
        return std::bit_cast<double>(in.integer<std::uint64_t>());
      case FieldKind::kUuid:
        return in.uuid().to_string();
      case FieldKind::kString:
      case FieldKind::kBytes:
        return read_text(type.kind, nullable, in);
      case FieldKind::kStruct:
        break;
    }
    return read_struct(type, nullable, in);
  }

  Json read_struct(const FieldType& type, bool nullable, WireReader& in) {
    if (nullable) {
      const auto marker = in.integer<std::int8_t>();  // KIP-893: null or there
      failed_ |= marker > 1;
      if (marker <= 0) {
        return nullptr;
      }
    }
    return read_fields(type.fields, in);
  }

  Json read_text(FieldKind kind, bool nullable, WireReader& in) {
    const bool is_string = kind == FieldKind::kString;
    const std::int64_t size =
        is_string && !flexible_ ? in.integer<std::int16_t>() : read_length_field(in);
    if (size < 0) {
      failed_ |= !nullable;
      return nullptr;
    }
    const ByteView bytes = in.raw(static_cast<std::size_t>(size));
    return is_string ? std::string(bytes) : base64(bytes);
  }

  // Of an array; -1 for null.
  std::int64_t read_length(WireReader& in, bool nullable) {
    const std::int64_t length = read_length_field(in);
    failed_ |= length < 0 && !nullable;
    return length;
  }
  std::int64_t read_length_field(WireReader& in) const {
    return flexible_ ? static_cast<std::int64_t>(in.uvarint()) - 1 : in.integer<std::int32_t>();
  }

  const std::int32_t version_;
  const bool flexible_;
  bool failed_ = false;
};

}  // namespace

const MessageSchema* find_schema(std::span<const MessageSchema> schemas, std::int64_t id) {
  const auto found = std::find_if(schemas.begin(), schemas.end(),
                                  [&](const MessageSchema& schema) { return schema.id == id; });
  return found == schemas.end() ? nullptr : &*found;
}

Result<Json> decode_message(const MessageSchema& schema, std::int32_t version, ByteView body) {
  if (version < 0 || version > schema.version_max) {
    return Error(Errc::kUnsupported, fmt::format("{} of version {}, known are 0 to {}", schema.name,
                                                 version, schema.version_max));
  }
  if (body.size() > kMessageBytesMax) {
    return Error(Errc::kUnsupported, fmt::format("{} of {} bytes, at most {} are decoded",
                                                 schema.name, body.size(), kMessageBytesMax));
  }
  WireReader in(body);
  MessageReader reader(schema, version);
  Json json = reader.read_fields(schema.fields, in);
  if (!in.ok() || !reader.ok()) {
    return Error(Errc::kCorrupt, fmt::format("{} of version {} does not hold together in its {} "
                                             "bytes",
                                             schema.name, version, body.size()));
  }
  if (in.left() > 0) {
    return Error(Errc::kCorrupt, fmt::format("{} of version {} has {} bytes behind its end",
                                             schema.name, version, in.left()));
  }
  return json;
}

std::string base64(ByteView bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t size = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = (group << 8U) | (i < size ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= size ? kDigits[(group >> (18 - 6 * i)) & 63U] : '=';
    }
  }
  return text;
}

}  // namespace weir::log
