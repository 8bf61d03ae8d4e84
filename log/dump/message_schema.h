#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// Kafka's messages as tables, and one decoder for all of them. A table is what Kafka's own schema
// files say (metadata/, group-coordinator/, transaction-coordinator/, clients/ ../common/*.json):
// field names, types, versions. docs/formats/decoded_records.md.

namespace weir::log {

struct MessageField;

enum class FieldKind : std::uint8_t {
  kBool,
  kInt8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kFloat64,
  kUuid,
  kString,
  kBytes,
  kStruct,
};

struct FieldType {
  constexpr FieldType(FieldKind value) : kind(value) {}  // NOLINT(google-explicit-constructor)
  constexpr FieldType(FieldKind value, bool array, std::span<const MessageField> children)
      : kind(value), is_array(array), fields(children) {}

  FieldKind kind;
  bool is_array = false;
  std::span<const MessageField> fields;  // of a struct
};

constexpr FieldType array_of(FieldKind kind) {
  return {kind, true, {}};
}
constexpr FieldType array_of(std::span<const MessageField> fields) {
  return {FieldKind::kStruct, true, fields};
}
constexpr FieldType struct_of(std::span<const MessageField> fields) {
  return {FieldKind::kStruct, false, fields};
}

struct FieldRules {
  std::int16_t since = 0;  // versions that have the field
  std::int16_t until = INT16_MAX;
  bool nullable = false;
  std::int16_t tag = -1;    // from 0: a tagged field, behind the others
  std::int64_t absent = 0;  // what a tagged number means when it is not there
};

// In the order of Kafka's schema file, which is that of its JSON.
struct MessageField {
  std::string_view name;
  FieldType type;
  FieldRules rules = {};
};

struct MessageSchema {
  std::int16_t id = 0;  // of the record type
  std::string_view name;
  std::int16_t version_max = 0;     // versions are 0 to this
  std::int16_t flexible_since = 0;  // from here on: compact lengths and tagged fields
  std::span<const MessageField> fields;
};
inline constexpr std::int16_t kNeverFlexible = INT16_MAX;

// The schema of record type `id`; null for an unknown one.
const MessageSchema* find_schema(std::span<const MessageSchema> schemas, std::int64_t id);

// As Kafka's generated JsonConverter classes show a message: bytes are Base64, ids are 22
// characters, a tagged field is left out when it has its default.
//
// Bounds:  `body` has at most kMessageBytesMax; an element costs at least one byte of it.
// Errors:  kUnsupported (a version that the table does not know, a longer message); kCorrupt (it
//          ends too early, or has bytes behind its last field).
inline constexpr std::size_t kMessageBytesMax = 8U << 20U;
Result<nlohmann::ordered_json> decode_message(const MessageSchema& schema, std::int32_t version,
                                              ByteView body);

// RFC 4648, with padding.
std::string base64(ByteView bytes);

}  // namespace weir::log
