#include "log/dump/partition_files.h"

#include <weir/runtime/assert.h>
#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace weir::log {
namespace {

constexpr std::size_t kReadBytes = 64U << 10U;
constexpr std::size_t kSnapshotCrcEnd = 6;
constexpr std::size_t kSnapshotHeaderBytes = 10;
constexpr std::size_t kSnapshotEntryBytes = 46;

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

ProducerEntry read_producer_entry(const char* in) {
  ProducerEntry entry;
  entry.id = ProducerId(load_be<std::int64_t>(in));
  entry.epoch = ProducerEpoch(load_be<std::int16_t>(in + 8));
  if (const auto last_offset = load_be<std::int64_t>(in + 14); last_offset >= 0) {
    entry.last_sequence = load_be<std::int32_t>(in + 10);
    entry.last_offset = Offset(last_offset);
    entry.offset_delta = load_be<std::int32_t>(in + 22);
  }
  entry.timestamp = load_be<std::int64_t>(in + 26);
  entry.coordinator_epoch = load_be<std::int32_t>(in + 34);
  const auto first = load_be<std::int64_t>(in + 38);
  entry.transaction_first_offset = first >= 0 ? Offset(first) : kNoOffset;
  return entry;
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

Result<std::vector<ProducerEntry>> parse_producer_snapshot(ByteView file) {
  if (file.size() < kSnapshotHeaderBytes) {
    return Error(Errc::kCorrupt,
                 fmt::format("{} bytes, a header has {}", file.size(), kSnapshotHeaderBytes));
  }
  if (const auto version = load_be<std::int16_t>(file.data()); version != 1) {
    return Error(Errc::kUnsupported, fmt::format("its version is {}, known is 1", version));
  }
  const auto stated = load_be<std::uint32_t>(file.data() + 2);
  if (const std::uint32_t crc = crc32c(file.substr(kSnapshotCrcEnd)); crc != stated) {
    return Error(Errc::kCorrupt, fmt::format("its crc is {:08x}, it says {:08x}", crc, stated));
  }
  const auto count = load_be<std::int32_t>(file.data() + kSnapshotCrcEnd);
  const std::size_t entry_bytes = file.size() - kSnapshotHeaderBytes;
  if (count < 0 || entry_bytes != static_cast<std::size_t>(count) * kSnapshotEntryBytes) {
    return Error(Errc::kCorrupt, fmt::format("it says {} entries of {} bytes and has {} bytes",
                                             count, kSnapshotEntryBytes, entry_bytes));
  }
  std::vector<ProducerEntry> entries;
  entries.reserve(static_cast<std::size_t>(count));
  for (std::size_t at = kSnapshotHeaderBytes; at < file.size(); at += kSnapshotEntryBytes) {
    entries.push_back(read_producer_entry(file.data() + at));
  }
  return entries;
}

AbortedTransaction read_aborted_transaction(const char* in) {
  AbortedTransaction aborted;
  aborted.version = load_be<std::int16_t>(in);
  aborted.producer_id = ProducerId(load_be<std::int64_t>(in + 2));
  aborted.first_offset = Offset(load_be<std::int64_t>(in + 10));
  aborted.last_offset = Offset(load_be<std::int64_t>(in + 18));
  aborted.last_stable_offset = Offset(load_be<std::int64_t>(in + 26));
  return aborted;
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
