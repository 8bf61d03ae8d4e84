#include "apps/cli/json_text.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

// Size of the well-formed sequence at the start of `bytes`, which are not empty; 0 when there is
// none.
std::size_t utf8_sequence(std::string_view bytes) {
  const auto at = [&bytes](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = at(0);
  if (first < 0x80U) {
    return 1;
  }
  const std::size_t size = first >= 0xF0U ? 4 : first >= 0xE0U ? 3 : 2;
  if (first < 0xC2U || first > 0xF4U || size > bytes.size()) {
    return 0;
  }
  // The second byte excludes overlong forms, surrogates and what is above U+10FFFF.
  const unsigned low = first == 0xE0U ? 0xA0U : first == 0xF0U ? 0x90U : 0x80U;
  const unsigned high = first == 0xEDU ? 0x9FU : first == 0xF4U ? 0x8FU : 0xBFU;
  if (at(1) < low || at(1) > high) {
    return 0;
  }
  for (std::size_t i = 2; i < size; ++i) {
    if ((at(i) & 0xC0U) != 0x80U) {
      return 0;
    }
  }
  return size;
}

Json bytes_json(const NullableBytes& bytes) {
  if (bytes.is_null()) {
    return nullptr;
  }
  if (is_utf8(bytes.view())) {
    return std::string(bytes.view());
  }
  return Json{{"hex", hex_text(bytes.view())}};
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string hex_text(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t size = utf8_sequence(bytes);
    if (size == 0) {
      return false;
    }
    bytes.remove_prefix(size);
  }
  return true;
}

std::string json_bytes(const NullableBytes& bytes) {
  return dump(bytes_json(bytes));
}

std::string json_string(std::string_view text) {
  return dump(Json(std::string(text)));
}

std::string json_record(const TopicPartition& partition, const RecordView& record) {
  Json headers = Json::array();
  for (const HeaderView& header : record.headers) {
    headers.push_back(Json::array({bytes_json(header.name), bytes_json(header.value)}));
  }
  const Json json{{"topic", partition.topic},        {"partition", partition.partition.value()},
                  {"offset", record.offset.value()}, {"timestamp", record.timestamp},
                  {"key", bytes_json(record.key)},   {"value", bytes_json(record.value)},
                  {"headers", std::move(headers)}};
  return dump(json);
}

}  // namespace weir::cli
