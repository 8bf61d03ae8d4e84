#include "log/partition/checkpoint_file.h"

#include <fmt/core.h>

#include <charconv>
#include <string_view>

namespace weir::log {
namespace {

template <class T>
bool parse(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string_view next_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

// "<topic> <partition> <offset>"; the topic has no spaces.
bool parse_entry(std::string_view line, OffsetCheckpoint& offsets) {
  const std::size_t last = line.rfind(' ');
  const std::size_t first = last == std::string_view::npos ? last : line.rfind(' ', last - 1);
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  if (first == std::string_view::npos || first == 0 ||
      !parse(line.substr(first + 1, last - first - 1), &partition) ||
      !parse(line.substr(last + 1), &offset)) {
    return false;
  }
  offsets[TopicPartition{std::string(line.substr(0, first)), PartitionId(partition)}] =
      Offset(offset);
  return true;
}

}  // namespace

Result<OffsetCheckpoint> read_offset_checkpoint(FileSystem& files, const std::string& path) {
  const Result<std::string> text = read_file(files, path);
  if (!text.ok()) {
    return text.error().code() == Errc::kNotFound ? Result<OffsetCheckpoint>(OffsetCheckpoint())
                                                  : text.error();
  }
  return parse_offset_checkpoint(*text, path);
}

Result<OffsetCheckpoint> parse_offset_checkpoint(std::string_view text, std::string_view name) {
  OffsetCheckpoint offsets;
  if (text.empty()) {
    return offsets;
  }
  std::string_view rest = text;
  const auto corrupt = [&name](std::string_view what) {
    return Error(Errc::kCorrupt,
                 fmt::format("{}: {}; remove the file to have it rebuilt", name, what));
  };
  std::uint64_t count = 0;
  if (next_line(rest) != "0") {
    return corrupt("does not start with version 0");
  }
  if (!parse(next_line(rest), &count)) {
    return corrupt("its second line is no number");
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!parse_entry(next_line(rest), offsets)) {
      return corrupt(fmt::format("line {} is not 'topic partition offset'", i + 3));
    }
  }
  return offsets;
}

Status write_offset_checkpoint(FileSystem& files, const std::string& path,
                               const OffsetCheckpoint& offsets) {
  std::string text = fmt::format("0\n{}\n", offsets.size());
  for (const auto& [partition, offset] : offsets) {
    text += fmt::format("{} {} {}\n", partition.topic, partition.partition.value(), offset.value());
  }
  return replace_file(files, path, text);
}

}  // namespace weir::log
