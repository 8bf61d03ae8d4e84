#include "apps/weir/serde_text.h"

#include "apps/cli/json_text.h"

#include <weir/runtime/endian.h>

#include <fmt/core.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

namespace weir::cli {
namespace {

template <class T>
std::optional<T> number(ByteView bytes) {
  return bytes.size() == sizeof(T) ? std::optional(load_be<T>(bytes.data())) : std::nullopt;
}

// The number in its shortest form; nullopt when the serde is none of numbers or the bytes do not
// fit.
std::optional<std::string> number_text(std::string_view serde, ByteView bytes) {
  if (serde == "short") {
    const auto n = number<std::int16_t>(bytes);
    return n ? std::optional(fmt::format("{}", *n)) : std::nullopt;
  }
  if (serde == "integer") {
    const auto n = number<std::int32_t>(bytes);
    return n ? std::optional(fmt::format("{}", *n)) : std::nullopt;
  }
  if (serde == "long") {
    const auto n = number<std::int64_t>(bytes);
    return n ? std::optional(fmt::format("{}", *n)) : std::nullopt;
  }
  if (serde == "float") {
    const auto n = number<std::int32_t>(bytes);
    return n ? std::optional(fmt::format("{}", std::bit_cast<float>(*n))) : std::nullopt;
  }
  if (serde == "double") {
    const auto n = number<std::int64_t>(bytes);
    return n ? std::optional(fmt::format("{}", std::bit_cast<double>(*n))) : std::nullopt;
  }
  return std::nullopt;
}

Error not_a(std::string_view serde, std::string_view text) {
  return Error(Errc::kInvalidArgument, fmt::format("'{}' is no key of type {}", text, serde));
}

template <class T>
Result<std::string> integer_bytes(std::string_view serde, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return not_a(serde, text);
  }
  std::string bytes(sizeof(T), '\0');
  store_be(bytes.data(), value);
  return bytes;
}

Result<std::string> hex_bytes(std::string_view serde, std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    if (error != std::errc() || end != text.data() + i + 2) {
      return not_a(fmt::format("{} (give it in hex)", serde), text);
    }
    bytes.push_back(static_cast<char>(value));
  }
  if (text.size() % 2 != 0) {
    return not_a(fmt::format("{} (give it in hex)", serde), text);
  }
  return bytes;
}

}  // namespace

std::string value_text(std::string_view serde, ByteView bytes) {
  if (serde == "string") {
    return std::string(bytes);
  }
  return number_text(serde, bytes).value_or(hex_text(bytes));
}

std::string value_json(std::string_view serde, ByteView bytes) {
  if (serde == "string") {
    return json_bytes(bytes);
  }
  const std::optional<std::string> text = number_text(serde, bytes);
  if (!text) {
    return fmt::format(R"({{"hex":"{}"}})", hex_text(bytes));
  }
  // JSON has no infinities.
  const bool finite = text->find_first_not_of("+-.0123456789eE") == std::string::npos;
  return finite ? *text : json_string(*text);
}

Result<std::string> value_bytes(std::string_view serde, std::string_view text) {
  if (serde == "string") {
    return std::string(text);
  }
  if (serde == "short") {
    return integer_bytes<std::int16_t>(serde, text);
  }
  if (serde == "integer") {
    return integer_bytes<std::int32_t>(serde, text);
  }
  if (serde == "long") {
    return integer_bytes<std::int64_t>(serde, text);
  }
  return hex_bytes(serde, text);
}

}  // namespace weir::cli
