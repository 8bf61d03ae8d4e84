#include <weir/runtime/commit_metadata.h>
#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>
#include <weir/runtime/varint.h>

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace weir {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr char kVersion = 2;
constexpr char kMagic = static_cast<char>(0xC5);
constexpr char kEnvelopeVersion = 1;
constexpr char kTimesSection = 1;
constexpr char kLaneMapSection = 2;
// Magic, version, two section heads of at most 1 + 2 bytes, CRC.
constexpr std::size_t kEnvelopeBytes = 2 + 2 * 3 + 4;
constexpr std::size_t kRawBytesMax = kCommitMetadataBytesMax / 4 * 3;

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
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1U : 0U;
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
    // Bits that stand for nothing are zero, or else one text could be taken for another.
    if (digits < 4 && (group & ((1U << (8 * (4 - digits))) - 1)) != 0) {
      return std::nullopt;
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

std::string encode_times(const CommitMetadata& metadata) {
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
  return bytes;
}

void append_section(std::string& out, char id, std::string_view bytes) {
  char length[10];
  out += id;
  out.append(length, write_uvarint(length, bytes.size()));
  out += bytes;
}

// Versions 1 and 2. False: cut short.
bool read_times(std::string_view bytes, CommitMetadata& metadata) {
  const bool has_map = bytes.front() == kVersion;
  bytes.remove_prefix(1);
  const std::optional<std::int64_t> time = take_be<std::int64_t>(bytes);
  if (!time.has_value() || (has_map && !read_processors(bytes, metadata.processors))) {
    return false;
  }
  metadata.partition_time = *time;
  return true;
}

bool is_times_version(char version) {
  return version == 1 || version == kVersion;
}

// The sections between version and CRC. False: cut short.
bool read_sections(std::string_view bytes, CommitMetadata& metadata) {
  while (!bytes.empty()) {
    const char id = bytes.front();
    std::uint64_t length = 0;
    const char* const in = read_uvarint64(bytes.data() + 1, bytes.data() + bytes.size(), &length);
    if (in == nullptr || length > static_cast<std::size_t>(bytes.data() + bytes.size() - in)) {
      return false;
    }
    const std::string_view section(in, static_cast<std::size_t>(length));
    bytes.remove_prefix(static_cast<std::size_t>(in - bytes.data()) + section.size());
    if (id == kLaneMapSection) {
      metadata.lane_map = section;
    } else if (id == kTimesSection && (section.empty() || !is_times_version(section.front()) ||
                                       !read_times(section, metadata))) {
      return false;
    }
  }
  return true;
}

bool read_envelope(std::string_view bytes, CommitMetadata& metadata) {
  if (bytes.size() < 2 + 4) {
    return false;
  }
  const std::string_view covered = bytes.substr(0, bytes.size() - 4);
  return load_be<std::uint32_t>(covered.data() + covered.size()) == crc32c(covered) &&
         read_sections(covered.substr(2), metadata);
}

}  // namespace

std::string encode_commit_metadata(const CommitMetadata& metadata) {
  const std::string times = encode_times(metadata);
  if (metadata.lane_map.empty()) {
    return base64(times);
  }
  std::string bytes{kMagic, kEnvelopeVersion};
  append_section(bytes, kTimesSection, times);
  append_section(bytes, kLaneMapSection, metadata.lane_map);
  append_be(bytes, crc32c(bytes));
  return base64(bytes);
}

std::size_t lane_map_room(const CommitMetadata& metadata) {
  const std::size_t taken = encode_times(metadata).size() + kEnvelopeBytes;
  return taken < kRawBytesMax ? kRawBytesMax - taken : 0;
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
  const bool is_envelope = version == kMagic && bytes->size() > 1;
  if (is_envelope ? (*bytes)[1] != kEnvelopeVersion : !is_times_version(version)) {
    return Error(
        Errc::kUnsupported,
        fmt::format("commit metadata has version {}; Kafka's 1 and 2 and Weir's 1 are known",
                    static_cast<int>(is_envelope ? (*bytes)[1] : version)));
  }
  CommitMetadata metadata;
  if (is_envelope ? !read_envelope(*bytes, metadata) : !read_times(*bytes, metadata)) {
    return not_metadata(text);
  }
  return metadata;
}

}  // namespace weir
