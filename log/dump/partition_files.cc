#include "log/dump/partition_files.h"

#include <weir/runtime/assert.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace weir::log {
namespace {

constexpr std::size_t kReadBytes = 64U << 10U;

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

// The next line, taken off `text`.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// What stands behind "key:"; nothing when the line has another key.
std::optional<std::string_view> value_of(std::string_view line, std::string_view key) {
  if (line.size() <= key.size() || !line.starts_with(key) || line[key.size()] != ':') {
    return std::nullopt;
  }
  line.remove_prefix(key.size() + 1);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line.substr(0, line.find_last_not_of(" \t\r") + 1);
}

}  // namespace

Result<std::vector<EpochStart>> parse_leader_epochs(std::string_view text) {
  std::vector<EpochStart> epochs;
  if (text.empty()) {
    return epochs;
  }
  if (const auto version = parse_number<int>(take_line(text)); version != 0) {
    return version
               ? Error(Errc::kUnsupported, fmt::format("its version is {}, known is 0", *version))
               : Error(Errc::kCorrupt, "its first line is no version");
  }
  const auto count = parse_number<std::uint32_t>(take_line(text));
  if (!count) {
    return Error(Errc::kCorrupt, "its second line is no count");
  }
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t space = std::min(line.find(' '), line.size());
    const auto epoch = parse_number<std::int32_t>(line.substr(0, space));
    const auto start = parse_number<std::int64_t>(line.substr(std::min(space + 1, line.size())));
    if (!epoch || !start || *start < 0) {
      return Error(Errc::kCorrupt,
                   fmt::format("line {} is no epoch and start offset", epochs.size() + 3));
    }
    epochs.push_back({LeaderEpoch(*epoch), Offset(*start)});
  }
  if (epochs.size() != *count) {
    return Error(Errc::kCorrupt,
                 fmt::format("it says {} entries and has {}", *count, epochs.size()));
  }
  return epochs;
}

Result<PartitionMetadata> parse_metadata_file(std::string_view text) {
  const std::optional<std::string_view> version = value_of(take_line(text), "version");
  const auto number = version ? parse_number<std::int32_t>(*version) : std::nullopt;
  if (!number) {
    return Error(Errc::kCorrupt, "its first line is not \"version: \" and a number");
  }
  if (*number != 0) {
    return Error(Errc::kUnsupported, fmt::format("its version is {}, known is 0", *number));
  }
  const std::optional<std::string_view> id = value_of(take_line(text), "topic_id");
  if (!id) {
    return Error(Errc::kCorrupt, "its second line is not \"topic_id: \" and an id");
  }
  Result<Uuid> topic_id = Uuid::parse(*id);
  if (!topic_id.ok()) {
    return Error(Errc::kCorrupt, topic_id.error().message());
  }
  return PartitionMetadata{*number, *topic_id};
}

Status for_each_entry(File& file, std::uint64_t size, std::size_t entry_bytes,
                      const std::function<void(const char*)>& entry) {
  std::array<char, kReadBytes> buffer{};
  const std::array<char, 64> zeroes{};
  WEIR_ASSERT(entry_bytes > 0 && entry_bytes <= zeroes.size());
  const std::size_t chunk = kReadBytes - kReadBytes % entry_bytes;
  std::uint64_t held_back = 0;  // entries of zeroes that are real only if another follows
  for (std::uint64_t position = 0; position + entry_bytes <= size;) {
    const auto wish = static_cast<std::size_t>(std::min<std::uint64_t>(chunk, size - position));
    WEIR_TRY_ASSIGN(const std::size_t got, file.read_at(position, {buffer.data(), wish}));
    const std::size_t usable = got - got % entry_bytes;
    for (std::size_t at = 0; at < usable; at += entry_bytes) {
      const ByteView bytes(buffer.data() + at, entry_bytes);
      if (bytes.find_first_not_of('\0') == ByteView::npos) {
        ++held_back;
        continue;
      }
      for (; held_back > 0; --held_back) {
        entry(zeroes.data());
      }
      entry(bytes.data());
    }
    if (usable == 0) {
      break;  // shorter than it was when the dump began
    }
    position += usable;
  }
  return Status();
}

Error odd_size(std::uint64_t size, std::size_t entry_bytes) {
  return Error(Errc::kCorrupt,
               fmt::format("{} bytes are no multiple of {}: the last {} are left out", size,
                           entry_bytes, size % entry_bytes));
}

}  // namespace weir::log
