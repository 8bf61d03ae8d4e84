#include "log/broker/kafka_files.h"

#include "log/metadata/metadata_snapshot.h"
#include "log/partition/leader_epoch_cache.h"

#include <fmt/core.h>

#include <utility>

namespace weir::log {
namespace {

// Levels of Kafka 4.3: metadata.version 30 is 4.3-IV0.
std::vector<MetadataRecord> feature_levels() {
  return {FeatureLevelMetadataRecord{"metadata.version", 30},
          FeatureLevelMetadataRecord{"eligible.leader.replicas.version", 1},
          FeatureLevelMetadataRecord{"group.version", 1},
          FeatureLevelMetadataRecord{"share.version", 1},
          FeatureLevelMetadataRecord{"streams.version", 1},
          FeatureLevelMetadataRecord{"transaction.version", 2}};
}

Status write_if_different(FileSystem& files, const std::string& path, ByteView text) {
  const Result<std::string> present = read_file(files, path);
  if (present.ok() && *present == text) {
    return {};
  }
  return replace_file(files, path, text);
}

}  // namespace

Result<Uuid> parse_meta_properties(std::string_view text, const std::string& path) {
  constexpr std::string_view kKey = "directory.id=";
  const std::size_t at = text.find(kKey);
  if (text.find("version=1") == std::string_view::npos || at == std::string_view::npos) {
    return Error(
        Errc::kCorrupt,
        fmt::format("{} has no 'version=1' or no 'directory.id'; restore it from a copy", path));
  }
  Result<Uuid> id = Uuid::parse(text.substr(at + kKey.size(), 22));
  if (!id.ok()) {
    return Error(Errc::kCorrupt,
                 fmt::format("{} has a damaged 'directory.id' ({}); restore it from a copy", path,
                             id.error().message()));
  }
  return id;
}

std::vector<MetadataRecord> first_metadata_records(RegisterBrokerMetadataRecord node,
                                                   Offset first) {
  constexpr std::int8_t kBrokerResource = 4;
  std::vector<MetadataRecord> records = feature_levels();
  records.emplace_back(ConfigMetadataRecord{kBrokerResource, "", "min.insync.replicas", "1"});
  node.broker_epoch = first.value() + static_cast<std::int64_t>(records.size());
  records.emplace_back(node);
  return records;
}

std::string clean_shutdown_marker(std::int64_t broker_epoch) {
  return fmt::format(R"({{"version":0,"brokerEpoch":{}}})", broker_epoch);
}

std::string bootstrap_checkpoint(Timestamp now) {
  return encode_snapshot(feature_levels(), 0, now);
}

std::string quorum_state(std::int32_t leader, LeaderEpoch epoch) {
  return fmt::format(
      R"({{"clusterId":"","leaderId":{0},"leaderEpoch":{1},"votedId":-1,"appliedOffset":0,)"
      R"("currentVoters":[{{"voterId":{0}}}],"data_version":0}})",
      leader, epoch.value());
}

Status write_kafka_files(FileSystem& files, const std::string& log, std::int32_t node,
                         Timestamp now) {
  const std::string metadata = join_path(log, "__cluster_metadata-0");
  WEIR_TRY_ASSIGN(const std::string text,
                  read_file(files, join_path(metadata, std::string(LeaderEpochCache::kFileName))));
  WEIR_TRY_ASSIGN(const LeaderEpochCache epochs, LeaderEpochCache::parse(text));
  WEIR_TRY(write_if_different(files, join_path(metadata, "quorum-state"),
                              quorum_state(node, epochs.latest())));
  const std::string bootstrap = join_path(log, "bootstrap.checkpoint");
  if (path_exists(files, bootstrap)) {
    return {};
  }
  return replace_file(files, bootstrap, bootstrap_checkpoint(now));
}

}  // namespace weir::log
