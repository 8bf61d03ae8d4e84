#include "log/partition/producer_snapshot.h"

#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>

#include <fmt/format.h>

namespace weir::log {
namespace {

constexpr std::int16_t kVersion = 1;
constexpr std::size_t kCrcEnd = 6;
constexpr std::size_t kHeaderBytes = 10;
constexpr std::size_t kEntryBytes = 46;

void write_entry(char* out, const ProducerEntry& entry) {
  store_be(out, entry.id.value());
  store_be(out + 8, entry.epoch.value());
  store_be(out + 10, entry.last_sequence);
  store_be(out + 14, entry.last_offset.value());
  store_be(out + 22, entry.offset_delta);
  store_be(out + 26, entry.timestamp);
  store_be(out + 34, entry.coordinator_epoch);
  store_be(out + 38, entry.transaction_first_offset.value());
}

ProducerEntry read_entry(const char* in) {
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

std::string encode_producer_snapshot(const std::vector<ProducerEntry>& entries) {
  std::string file(kHeaderBytes + entries.size() * kEntryBytes, '\0');
  store_be(file.data(), kVersion);
  store_be(file.data() + kCrcEnd, static_cast<std::int32_t>(entries.size()));
  char* out = file.data() + kHeaderBytes;
  for (const ProducerEntry& entry : entries) {
    write_entry(out, entry);
    out += kEntryBytes;
  }
  store_be(file.data() + 2, crc32c(ByteView(file).substr(kCrcEnd)));
  return file;
}

Result<std::vector<ProducerEntry>> parse_producer_snapshot(ByteView file) {
  if (file.size() < kHeaderBytes) {
    return Error(Errc::kCorrupt,
                 fmt::format("{} bytes, a header has {}", file.size(), kHeaderBytes));
  }
  if (const auto version = load_be<std::int16_t>(file.data()); version != kVersion) {
    return Error(Errc::kUnsupported,
                 fmt::format("its version is {}, known is {}", version, kVersion));
  }
  const auto stated = load_be<std::uint32_t>(file.data() + 2);
  if (const std::uint32_t crc = crc32c(file.substr(kCrcEnd)); crc != stated) {
    return Error(Errc::kCorrupt, fmt::format("its crc is {:08x}, it says {:08x}", crc, stated));
  }
  const auto count = load_be<std::int32_t>(file.data() + kCrcEnd);
  const std::size_t entry_bytes = file.size() - kHeaderBytes;
  if (count < 0 || entry_bytes != static_cast<std::size_t>(count) * kEntryBytes) {
    return Error(Errc::kCorrupt, fmt::format("it says {} entries of {} bytes and has {} bytes",
                                             count, kEntryBytes, entry_bytes));
  }
  std::vector<ProducerEntry> entries;
  entries.reserve(static_cast<std::size_t>(count));
  for (std::size_t at = kHeaderBytes; at < file.size(); at += kEntryBytes) {
    entries.push_back(read_entry(file.data() + at));
  }
  return entries;
}

}  // namespace weir::log
