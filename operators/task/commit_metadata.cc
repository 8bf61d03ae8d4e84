#include "operators/task/commit_metadata.h"

#include <weir/runtime/endian.h>

#include <fmt/core.h>

#include <array>
#include <optional>

namespace weir::internal {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr char kVersion = 2;

std::string base64(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8U | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += j <= count ? kAlphabet[group >> (18 - 6 * j) & 63U] : '=';
    }
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const std::size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const std::size_t digit = j < digits ? kAlphabet.find(text[i + j]) : 0;
      if (digit == std::string_view::npos) {
        return std::nullopt;
      }
      group = group << 6U | static_cast<std::uint32_t>(digit);
    }
    for (std::size_t j = 0; j + 1 < digits; ++j) {
      bytes += static_cast<char>(group >> (16 - 8 * j) & 255U);
    }
  }
  return bytes;
}

template <class T>
void append_be(std::string& out, T value) {
  char bytes[sizeof(T)];
  store_be(bytes, value);
  out.append(bytes, sizeof(bytes));
}

template <class T>
std::optional<T> take_be(std::string_view& in) {
  if (in.size() < sizeof(T)) {
    return std::nullopt;
  }
  const T value = load_be<T>(in.data());
  in.remove_prefix(sizeof(T));
  return value;
}

bool read_processors(std::string_view in, std::map<std::string, std::int64_t>& processors) {
  if (in.empty()) {
    return true;
  }
  const std::optional<std::int32_t> count = take_be<std::int32_t>(in);
  for (std::int32_t i = 0; count.has_value() && i < *count; ++i) {
    const std::optional<std::int32_t> length = take_be<std::int32_t>(in);
    if (!length.has_value() || *length < 0 || in.size() < static_cast<std::size_t>(*length)) {
      return false;
    }
    std::string name(in.substr(0, static_cast<std::size_t>(*length)));
    in.remove_prefix(static_cast<std::size_t>(*length));
    const std::optional<std::int64_t> value = take_be<std::int64_t>(in);
    if (!value.has_value()) {
      return false;
    }
    processors.emplace(std::move(name), *value);
  }
  return count.has_value();
}

Error not_metadata(std::string_view text) {
  return {Errc::kCorrupt,
          fmt::format("commit metadata '{}' was not written by a stream application", text)};
}

}  // namespace

std::string encode_commit_metadata(const CommitMetadata& metadata) {
  std::string bytes(1, kVersion);
  append_be(bytes, metadata.partition_time);
  if (!metadata.processors.empty()) {
    append_be(bytes, static_cast<std::int32_t>(metadata.processors.size()));
    for (const auto& [name, value] : metadata.processors) {
      append_be(bytes, static_cast<std::int32_t>(name.size()));
      bytes += name;
      append_be(bytes, value);
    }
  }
  return base64(bytes);
}

Result<CommitMetadata> decode_commit_metadata(std::string_view text) {
  if (text.empty()) {
    return CommitMetadata{};
  }
  const std::optional<std::string> bytes = from_base64(text);
  if (!bytes.has_value() || bytes->empty()) {
    return not_metadata(text);
  }
  const char version = bytes->front();
  if (version != 1 && version != kVersion) {
    return Error(Errc::kUnsupported,
                 fmt::format("commit metadata has version {}; 1 and 2 are known",
                             static_cast<int>(version)));
  }
  std::string_view rest = std::string_view(*bytes).substr(1);
  const std::optional<std::int64_t> time = take_be<std::int64_t>(rest);
  CommitMetadata metadata;
  if (!time.has_value() || (version == kVersion && !read_processors(rest, metadata.processors))) {
    return not_metadata(text);
  }
  metadata.partition_time = *time;
  return metadata;
}

}  // namespace weir::internal
