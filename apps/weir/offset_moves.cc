#include "apps/weir/offset_moves.h"

#include "apps/cli/iso_time.h"

#include <fmt/core.h>

namespace weir::cli {
namespace {

Result<Offset> resolve(Admin& admin, const TopicPartition& partition, const OffsetTarget& target) {
  WEIR_TRY_ASSIGN(const PartitionOffsets at, admin.offsets(partition));
  switch (target.kind) {
    case OffsetTarget::Kind::kEarliest:
      return at.log_start;
    case OffsetTarget::Kind::kLatest:
      return at.high_watermark;
    case OffsetTarget::Kind::kTime: {
      WEIR_TRY_ASSIGN(const std::optional<Offset> found,
                      admin.offset_for_time(partition, target.time));
      return found.value_or(at.high_watermark);
    }
    case OffsetTarget::Kind::kOffset:
      break;
  }
  if (target.offset < at.log_start || target.offset > at.high_watermark) {
    return Error(Errc::kOffsetOutOfRange,
                 fmt::format("offset {} is outside {}, which holds {} to {}; choose one of these, "
                             "--to-earliest or --to-latest",
                             target.offset.value(), partition.to_string(), at.log_start.value(),
                             at.high_watermark.value()));
  }
  return target.offset;
}

}  // namespace

Result<std::optional<OffsetTarget>> parse_offset_target(const OffsetTargetOptions& options) {
  OffsetTarget target;
  int given = 0;
  if (options.to_earliest) {
    ++given;
  }
  if (options.to_latest) {
    ++given;
    target.kind = OffsetTarget::Kind::kLatest;
  }
  if (options.to_offset) {
    ++given;
    target.kind = OffsetTarget::Kind::kOffset;
    target.offset = Offset(*options.to_offset);
    if (*options.to_offset < 0) {
      return Error(
          Errc::kInvalidArgument,
          fmt::format("--to-offset {} is negative; offsets count from 0", *options.to_offset));
    }
  }
  if (options.to_time) {
    ++given;
    target.kind = OffsetTarget::Kind::kTime;
    WEIR_TRY_ASSIGN(target.time, parse_time(*options.to_time));
  }
  if (given > 1) {
    return Error(Errc::kInvalidArgument,
                 "more than one target is given; choose one of --to-earliest, --to-latest, "
                 "--to-offset and --to-time");
  }
  return given == 0 ? std::optional<OffsetTarget>() : std::optional(target);
}

Result<std::vector<OffsetMove>> plan_offset_moves(Admin& admin, const std::string& group,
                                                  const std::vector<TopicPartition>& partitions,
                                                  const OffsetTarget& target) {
  WEIR_TRY_ASSIGN(const std::vector<PartitionOffset> committed, admin.group_offsets(group));
  std::vector<OffsetMove> moves;
  for (const TopicPartition& partition : partitions) {
    OffsetMove move{partition, std::nullopt, {}};
    for (const auto& [where, offset] : committed) {
      if (where == partition) {
        move.current = offset.offset;
      }
    }
    WEIR_TRY_ASSIGN(move.next, resolve(admin, partition, target));
    moves.push_back(std::move(move));
  }
  return moves;
}

Status commit_offset_moves(Backend& log, const std::string& group,
                           const std::vector<OffsetMove>& moves) {
  std::vector<PartitionOffset> offsets;
  for (const OffsetMove& move : moves) {
    offsets.emplace_back(move.partition, CommittedOffset{move.next, kNoLeaderEpoch, {}});
  }
  WEIR_TRY_ASSIGN(const std::unique_ptr<Group> member, log.make_group(group));
  return member->commit(offsets);
}

Result<std::vector<TopicPartition>> partitions_of(Admin& admin, const std::string& topic,
                                                  const std::vector<std::int32_t>& only) {
  WEIR_TRY_ASSIGN(const TopicDescription description, admin.describe_topic(topic));
  std::vector<TopicPartition> partitions;
  for (const std::int32_t partition : only) {
    if (partition < 0 || partition >= description.partitions) {
      return Error(Errc::kUnknownTopic, fmt::format("topic {} has partitions 0 to {}, not {}",
                                                    topic, description.partitions - 1, partition));
    }
    partitions.push_back({topic, PartitionId(partition)});
  }
  for (std::int32_t i = 0; only.empty() && i < description.partitions; ++i) {
    partitions.push_back({topic, PartitionId(i)});
  }
  return partitions;
}

std::string offset_text(const std::optional<Offset>& offset) {
  return offset ? std::to_string(offset->value()) : std::string();
}
std::string offset_json(const std::optional<Offset>& offset) {
  return offset ? std::to_string(offset->value()) : "null";
}

}  // namespace weir::cli
