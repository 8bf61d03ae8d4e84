#include "log/partition/partition_folder.h"

#include <charconv>
#include <string>
#include <system_error>

namespace weir::log {

std::optional<TopicPartition> parse_partition_folder(std::string_view folder) {
  const std::size_t dash = folder.rfind('-');
  if (dash == std::string_view::npos || dash == 0 || dash + 1 == folder.size()) {
    return std::nullopt;
  }
  std::int32_t partition = 0;
  const char* end = folder.data() + folder.size();
  const auto [stop, error] = std::from_chars(folder.data() + dash + 1, end, partition);
  if (error != std::errc() || stop != end || partition < 0) {
    return std::nullopt;
  }
  return TopicPartition{std::string(folder.substr(0, dash)), PartitionId(partition)};
}

}  // namespace weir::log
