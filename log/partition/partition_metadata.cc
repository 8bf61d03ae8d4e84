#include "log/partition/partition_metadata.h"

#include <fmt/format.h>

namespace weir::log {
namespace {

constexpr std::string_view kStart = "version: 0\ntopic_id: ";

}  // namespace

std::string encode_partition_metadata(const Uuid& topic_id) {
  return fmt::format("{}{}", kStart, topic_id.to_string());
}

Result<Uuid> parse_partition_metadata(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  if (!text.starts_with(kStart)) {
    return Error(Errc::kCorrupt,
                 fmt::format("{} is not version 0 with a topic id", kPartitionMetadataName));
  }
  Result<Uuid> id = Uuid::parse(text.substr(kStart.size()));
  if (!id.ok()) {
    return Error(Errc::kCorrupt,
                 fmt::format("{}: {}", kPartitionMetadataName, id.error().message()));
  }
  return id;
}

}  // namespace weir::log
