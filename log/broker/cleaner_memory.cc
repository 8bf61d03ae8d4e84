#include "log/broker/cleaner_memory.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace weir::log {
namespace {

std::string_view take(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return part;
}

bool parse(std::string_view text, std::int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= 0;
}

Result<TombstoneHorizons> parse_horizons(std::string_view text, const std::string& path) {
  TombstoneHorizons horizons;
  std::int64_t count = 0;
  if (take(text, '\n') != "0" || !parse(take(text, '\n'), &count)) {
    return Error(Errc::kCorrupt, fmt::format("{} does not start with version 0 and a count", path));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::string_view line = take(text, '\n');
    const Result<Uuid> id = Uuid::parse(take(line, ' '));
    std::int64_t partition = 0;
    std::int64_t offset = 0;
    if (!id.ok() || !parse(take(line, ' '), &partition) || partition > INT32_MAX ||
        !parse(line, &offset)) {
      return Error(Errc::kCorrupt, fmt::format("{}: line {} is no horizon", path, i + 3));
    }
    horizons[{*id, PartitionId(static_cast<std::int32_t>(partition))}] = Offset(offset);
  }
  return horizons;
}

}  // namespace

Result<TombstoneHorizons> read_tombstone_horizons(FileSystem& files, const std::string& path) {
  const Result<std::string> text = read_file(files, path);
  if (!text.ok()) {
    return text.error().code() == Errc::kNotFound ? Result<TombstoneHorizons>(TombstoneHorizons())
                                                  : text.error();
  }
  return parse_horizons(*text, path);
}

Status write_tombstone_horizons(FileSystem& files, const std::string& path,
                                const TombstoneHorizons& horizons) {
  std::string text = fmt::format("0\n{}\n", horizons.size());
  for (const auto& [key, offset] : horizons) {
    text += fmt::format("{} {} {}\n", key.first.to_string(), key.second.value(), offset.value());
  }
  return replace_file(files, path, text);
}

}  // namespace weir::log
