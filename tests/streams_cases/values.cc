#include "tests/streams_cases/values.h"

#include "tests/support/hex.h"

#include <weir/runtime/endian.h>
#include <weir/state/serde.h>

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

namespace weir::streams_cases {

namespace {

constexpr std::string_view kTimeWindowed = "timewindowed:string:";
constexpr std::string_view kSessionWindowed = "sessionwindowed:string";
constexpr std::size_t kTimeBytes = sizeof(std::int64_t);

Error no_value(const Json& value, std::string_view serde) {
  return {Errc::kInvalidArgument, fmt::format("{} is no {}", value.dump(), serde)};
}

void append_time(std::int64_t time, std::string& out) {
  Serde<std::int64_t>::write(time, out);
}
std::int64_t time_at(std::string_view bytes, std::size_t position) {
  return load_be<std::int64_t>(bytes.data() + position);
}

template <class T>
Result<MaybeBytes> encode_integer(const Json& value, std::string_view serde) {
  std::int64_t number = 0;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || end != text.data() + text.size()) {
      return no_value(value, serde);
    }
  } else if (value.is_number_integer()) {
    number = value.get<std::int64_t>();
  } else {
    return no_value(value, serde);
  }
  if (number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max()) {
    return no_value(value, serde);
  }
  std::string bytes;
  Serde<T>::write(static_cast<T>(number), bytes);
  return MaybeBytes(std::move(bytes));
}

template <class T>
Result<MaybeBytes> encode_floating(const Json& value, std::string_view serde) {
  T number = 0;
  if (value.is_string()) {
    // strtod also takes Java's "NaN", "Infinity" and "1.0E300".
    const auto& text = value.get_ref<const std::string&>();
    char* end = nullptr;
    number = std::is_same_v<T, float> ? static_cast<T>(std::strtof(text.c_str(), &end))
                                      : static_cast<T>(std::strtod(text.c_str(), &end));
    if (text.empty() || end != text.c_str() + text.size()) {
      return no_value(value, serde);
    }
  } else if (value.is_number()) {
    number = value.get<T>();
  } else {
    return no_value(value, serde);
  }
  std::string bytes;
  Serde<T>::write(number, bytes);
  return MaybeBytes(std::move(bytes));
}

Result<MaybeBytes> encode_string(const Json& value, std::string_view serde) {
  return value.is_string() ? Result<MaybeBytes>(value.get<std::string>())
                           : Result<MaybeBytes>(no_value(value, serde));
}

Result<MaybeBytes> encode_boolean(const Json& value, std::string_view serde) {
  return value.is_boolean() ? Result<MaybeBytes>(std::string(1, value.get<bool>() ? '\1' : '\0'))
                            : Result<MaybeBytes>(no_value(value, serde));
}

Result<MaybeBytes> encode_hex(const Json& value, std::string_view serde) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    std::string bytes = testing::from_hex(text);
    if (bytes.size() * 2 == text.size()) {
      return MaybeBytes(std::move(bytes));
    }
  }
  return no_value(value, serde);
}

bool is_windowed_key(const Json& value) {
  return value.is_object() && value.size() == 3 && value.contains("key") &&
         value["key"].is_string() && value.contains("start") &&
         value["start"].is_number_integer() && value.contains("end") &&
         value["end"].is_number_integer();
}

// TimeWindowedSerializer: the key, the start. The size is known to both sides.
Result<MaybeBytes> encode_time_windowed(const Json& value, std::string_view serde) {
  if (!is_windowed_key(value)) {
    return no_value(value, serde);
  }
  std::string bytes = value["key"].get<std::string>();
  append_time(value["start"], bytes);
  return MaybeBytes(std::move(bytes));
}

// SessionWindowedSerializer: the key, the end, the start.
Result<MaybeBytes> encode_session_windowed(const Json& value, std::string_view serde) {
  if (!is_windowed_key(value)) {
    return no_value(value, serde);
  }
  std::string bytes = value["key"].get<std::string>();
  append_time(value["end"], bytes);
  append_time(value["start"], bytes);
  return MaybeBytes(std::move(bytes));
}

Json undecodable(std::string_view bytes) {
  return Json{{"undecodable", testing::to_hex(bytes)}};
}

template <class T>
Json decode_integer(std::string_view bytes) {
  const Result<T> value = Serde<T>::read(bytes);
  return value.ok() ? Json(*value) : undecodable(bytes);
}

template <class T>
Json decode_floating(std::string_view bytes) {
  const Result<T> value = Serde<T>::read(bytes);
  if (!value.ok()) {
    return undecodable(bytes);
  }
  if (std::isnan(*value)) {
    return "NaN";
  }
  if (std::isinf(*value)) {
    return *value < 0 ? "-Infinity" : "Infinity";
  }
  // The shortest text of a float is another number than the float widened.
  return std::strtod(fmt::format("{}", *value).c_str(), nullptr);
}

Json decode_boolean(std::string_view bytes) {
  return bytes.size() == 1 && (bytes[0] == '\0' || bytes[0] == '\1') ? Json(bytes[0] == '\1')
                                                                     : undecodable(bytes);
}

Json decode_hex(std::string_view bytes) {
  return testing::to_hex(bytes);
}

Json decode_time_windowed(std::string_view bytes, std::int64_t size) {
  if (bytes.size() < kTimeBytes) {
    return undecodable(bytes);
  }
  const std::size_t key_bytes = bytes.size() - kTimeBytes;
  const std::int64_t start = time_at(bytes, key_bytes);
  // As Kafka: an end beyond the largest time is the largest time.
  const std::int64_t left =
      std::numeric_limits<std::int64_t>::max() - std::max<std::int64_t>(start, 0);
  return Json{{"key", text_of(bytes.substr(0, key_bytes))},
              {"start", start},
              {"end", size > left ? std::numeric_limits<std::int64_t>::max() : start + size}};
}

Json decode_session_windowed(std::string_view bytes) {
  if (bytes.size() < 2 * kTimeBytes) {
    return undecodable(bytes);
  }
  const std::size_t key_bytes = bytes.size() - 2 * kTimeBytes;
  return Json{{"key", text_of(bytes.substr(0, key_bytes))},
              {"start", time_at(bytes, key_bytes + kTimeBytes)},
              {"end", time_at(bytes, key_bytes)}};
}

struct Codec {
  Result<MaybeBytes> (*encode)(const Json& value, std::string_view serde);
  Json (*decode)(std::string_view bytes);
};

const Codec* find_codec(std::string_view serde) {
  static const std::map<std::string_view, Codec> kCodecs{
      {"string", {encode_string, text_of}},
      {"uuid", {encode_string, text_of}},  // UUIDSerializer writes the text
      {"long", {encode_integer<std::int64_t>, decode_integer<std::int64_t>}},
      {"integer", {encode_integer<std::int32_t>, decode_integer<std::int32_t>}},
      {"short", {encode_integer<std::int16_t>, decode_integer<std::int16_t>}},
      {"double", {encode_floating<double>, decode_floating<double>}},
      {"float", {encode_floating<float>, decode_floating<float>}},
      {"boolean", {encode_boolean, decode_boolean}},
      {"bytes", {encode_hex, decode_hex}},
      {kSessionWindowed, {encode_session_windowed, decode_session_windowed}},
  };
  const auto found = kCodecs.find(serde);
  return found == kCodecs.end() ? nullptr : &found->second;
}

// The size of a time-windowed serde.
std::optional<std::int64_t> window_size(std::string_view serde) {
  if (!serde.starts_with(kTimeWindowed)) {
    return std::nullopt;
  }
  serde.remove_prefix(kTimeWindowed.size());
  std::int64_t size = 0;
  const auto [end, failed] = std::from_chars(serde.data(), serde.data() + serde.size(), size);
  const bool whole = failed == std::errc() && end == serde.data() + serde.size() && size >= 0;
  return whole ? std::optional(size) : std::nullopt;
}

}  // namespace

bool is_known_serde(std::string_view serde) {
  return find_codec(serde) != nullptr || window_size(serde).has_value();
}

Result<MaybeBytes> encode(const Json& value, std::string_view serde) {
  const Codec* codec = find_codec(serde);
  if (codec == nullptr && !window_size(serde).has_value()) {
    return Error(Errc::kUnsupported, fmt::format("unknown serde '{}'", serde));
  }
  if (value.is_null()) {
    return MaybeBytes();
  }
  return codec != nullptr ? codec->encode(value, serde) : encode_time_windowed(value, serde);
}

Json decode(const MaybeBytes& bytes, std::string_view serde) {
  if (!bytes.has_value()) {
    return nullptr;
  }
  if (const std::optional<std::int64_t> size = window_size(serde); size.has_value()) {
    return decode_time_windowed(*bytes, *size);
  }
  const Codec* codec = find_codec(serde);
  WEIR_ASSERT(codec != nullptr);
  return codec->decode(*bytes);
}

Json hex_or_null(const MaybeBytes& bytes) {
  return bytes.has_value() ? Json(testing::to_hex(*bytes)) : Json(nullptr);
}

Json text_of(std::string_view bytes) {
  return Json::parse(Json(std::string(bytes)).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace weir::streams_cases
