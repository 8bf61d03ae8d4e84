#include "apps/cli/json_text.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string hex(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

Json bytes_json(const NullableBytes& bytes) {
  if (bytes.is_null()) {
    return nullptr;
  }
  if (is_utf8(bytes.view())) {
    return std::string(bytes.view());
  }
  return Json{{"hex", hex(bytes.view())}};
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  const auto at = [&bytes](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  for (std::size_t i = 0; i < bytes.size();) {
    const unsigned first = at(i);
    if (first < 0x80U) {
      ++i;
      continue;
    }
    const std::size_t more = first >= 0xF0U ? 3 : first >= 0xE0U ? 2 : 1;
    if (first < 0xC2U || first > 0xF4U || i + more >= bytes.size()) {
      return false;
    }
    // The second byte excludes overlong forms, surrogates and what is above U+10FFFF.
    const unsigned second = at(i + 1);
    const unsigned low = first == 0xE0U ? 0xA0U : first == 0xF0U ? 0x90U : 0x80U;
    const unsigned high = first == 0xEDU ? 0x9FU : first == 0xF4U ? 0x8FU : 0xBFU;
    if (second < low || second > high) {
      return false;
    }
    for (std::size_t k = 2; k <= more; ++k) {
      if ((at(i + k) & 0xC0U) != 0x80U) {
        return false;
      }
    }
    i += more + 1;
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
