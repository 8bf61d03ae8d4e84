#include "apps/cli/columns.h"
#include "apps/cli/data_directory.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/json_text.h"
#include "apps/weir/commands.h"
#include "apps/weir/group_offsets.h"
#include "apps/weir/offset_moves.h"

#include <weir/operators/application_state.h>
#include <weir/runtime/settings.h>

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>

namespace weir::cli {

std::int64_t GroupLag::lag() const {
  return std::max<std::int64_t>(0, end.value() - committed.offset.value());
}

Result<std::vector<GroupLag>> group_lags(Admin& admin, const std::string& group) {
  WEIR_TRY_ASSIGN(const std::vector<PartitionOffset> offsets, admin.group_offsets(group));
  std::vector<GroupLag> lags;
  for (const auto& [partition, committed] : offsets) {
    WEIR_TRY_ASSIGN(const PartitionOffsets at, admin.offsets(partition));
    lags.push_back({partition, committed, at.high_watermark});
  }
  return lags;
}

void print_group_lags(Output& out, const std::string& group, const std::vector<GroupLag>& lags) {
  Columns columns(
      {"GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "METADATA"});
  for (const GroupLag& one : lags) {
    columns.add({group, one.partition.topic, std::to_string(one.partition.partition.value()),
                 std::to_string(one.committed.offset.value()), std::to_string(one.end.value()),
                 std::to_string(one.lag()), one.committed.metadata});
  }
  columns.print(out);
}

std::string group_lag_json(const std::string& group, const GroupLag& one) {
  return fmt::format(
      R"({{"group":{},"topic":{},"partition":{},"currentOffset":{},"logEndOffset":{},"lag":{},)"
      R"("leaderEpoch":{},"metadata":{}}})",
      json_string(group), json_string(one.partition.topic), one.partition.partition.value(),
      one.committed.offset.value(), one.end.value(), one.lag(), one.committed.leader_epoch.value(),
      json_string(one.committed.metadata));
}

Status check_group_may_move(log::EmbeddedLog& log, const std::string& group) {
  const ApplicationFolder folder{log.state_directory(), group};
  Result<ApplicationPlan> plan = read_application_plan(posix_file_system(), folder);
  if (!plan.ok()) {
    return plan.error().code() == Errc::kNotFound ? Status() : plan.status();
  }
  if (!plan->stores.empty()) {
    std::vector<std::string> stores;
    for (const ApplicationPlan::Store& store : plan->stores) {
      stores.push_back(store.name);
    }
    return Error(
        Errc::kInvalidArgument,
        fmt::format("group {} belongs to application {}, whose stores ({}) hold what was read so "
                    "far and would no longer fit its offsets; begin anew with: weir app reset {}",
                    group, group, fmt::join(stores, ", "), group));
  }
  WEIR_TRY_ASSIGN(const std::optional<std::string> holder,
                  application_holder(posix_file_system(), folder));
  if (holder) {
    return Error(Errc::kLocked, fmt::format("application {} is running ({}) and would commit over "
                                            "the new offsets; stop it first",
                                            group, *holder));
  }
  return {};
}

namespace {

Error no_group(Admin& admin, const std::string& group) {
  std::string there = "nothing was committed by any group yet";
  const Result<std::vector<std::string>> groups = admin.list_groups();
  if (groups.ok() && !groups->empty()) {
    const std::vector<std::string_view> names(groups->begin(), groups->end());
    const std::string nearest = nearest_name(group, names);
    there = nearest.empty() ? fmt::format("there are: {}", fmt::join(*groups, ", "))
                            : fmt::format("did you mean {}?", nearest);
  }
  return {Errc::kNotFound,
          fmt::format("group {} has no members and no committed offsets; {}", group, there)};
}

std::string partition_list(const std::vector<TopicPartition>& partitions) {
  std::vector<std::string> names;
  for (const TopicPartition& partition : partitions) {
    names.push_back(partition.to_string());
  }
  return fmt::format("{}", fmt::join(names, ","));
}

std::string group_json(const GroupDescription& group) {
  return fmt::format(
      R"({{"group":{},"state":{},"protocolType":{},"assignor":{},"generation":{},"members":{}}})",
      json_string(group.group_id), json_string(group.state), json_string(group.protocol_type),
      json_string(group.assignor), group.generation, group.members.size());
}

std::string member_json(const std::string& group, const GroupMemberDescription& member) {
  std::vector<std::string> partitions;
  for (const TopicPartition& partition : member.partitions) {
    partitions.push_back(fmt::format(R"({{"topic":{},"partition":{}}})",
                                     json_string(partition.topic), partition.partition.value()));
  }
  return fmt::format(
      R"({{"group":{},"memberId":{},"groupInstanceId":{},"clientId":{},"host":{},"partitions":[{}]}})",
      json_string(group), json_string(member.member_id),
      member.instance_id.empty() ? "null" : json_string(member.instance_id),
      json_string(member.client_id), json_string(member.host), fmt::join(partitions, ","));
}

void print_group(Output& out, const GroupDescription& group) {
  Columns state({"GROUP", "STATE", "ASSIGNOR", "GENERATION", "MEMBERS"});
  state.add({group.group_id, group.state, group.assignor.empty() ? "-" : group.assignor,
             std::to_string(group.generation), std::to_string(group.members.size())});
  state.print(out);
  if (group.members.empty()) {
    return;
  }
  out.line("");
  Columns members({"MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"});
  for (const GroupMemberDescription& member : group.members) {
    members.add({member.member_id, member.instance_id.empty() ? "-" : member.instance_id,
                 member.client_id, member.host,
                 member.partitions.empty() ? "-" : partition_list(member.partitions)});
  }
  members.print(out);
}

Status list(Admin& admin, const CommonOptions& common) {
  WEIR_TRY_ASSIGN(const std::vector<std::string> groups, admin.list_groups());
  Output out;
  for (const std::string& group : groups) {
    if (common.format == Format::kText) {
      out.line(group);
      continue;
    }
    WEIR_TRY_ASSIGN(const GroupDescription description, admin.describe_group(group));
    out.line(group_json(description));
  }
  return {};
}

Status describe(Admin& admin, const CommonOptions& common, const std::string& group,
                const GroupDescribeOptions& options) {
  WEIR_TRY_ASSIGN(const std::vector<GroupLag> lags, group_lags(admin, group));
  Result<GroupDescription> description = admin.describe_group(group);
  const bool unknown = !description.ok() && description.error().code() == Errc::kNotFound;
  if (lags.empty() && (unknown || (description.ok() && description->members.empty()))) {
    return no_group(admin, group);
  }
  WEIR_TRY(description.status());
  Output out;
  if (options.members) {
    if (common.format == Format::kText) {
      print_group(out, *description);
    } else {
      for (const GroupMemberDescription& member : description->members) {
        out.line(member_json(group, member));
      }
    }
    return {};
  }
  if (common.format == Format::kText) {
    print_group_lags(out, group, lags);
    return {};
  }
  for (const GroupLag& one : lags) {
    out.line(group_lag_json(group, one));
  }
  return {};
}

Status remove(Admin& admin, const std::string& group) {
  const Status deleted = admin.delete_group(group);
  return !deleted.ok() && deleted.error().code() == Errc::kNotFound ? no_group(admin, group)
                                                                    : deleted;
}

void print_moves(const CommonOptions& common, const GroupResetOptions& options,
                 const std::vector<OffsetMove>& moves) {
  Output out;
  Columns columns({"GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "NEW-OFFSET"});
  for (const OffsetMove& move : moves) {
    if (common.format == Format::kText) {
      columns.add({options.group, move.partition.topic,
                   std::to_string(move.partition.partition.value()), offset_text(move.current),
                   std::to_string(move.next.value())});
    } else {
      out.line(fmt::format(
          R"({{"group":{},"topic":{},"partition":{},"currentOffset":{},"newOffset":{},"executed":{}}})",
          json_string(options.group), json_string(move.partition.topic),
          move.partition.partition.value(), offset_json(move.current), move.next.value(),
          options.execute));
    }
  }
  columns.print(out);
}

Status reset(log::EmbeddedLog& log, const CommonOptions& common, const GroupResetOptions& options) {
  WEIR_TRY_ASSIGN(const std::optional<OffsetTarget> target, parse_offset_target(options.target));
  if (!target) {
    return Error(Errc::kInvalidArgument,
                 "no target is given; choose one of --to-earliest, --to-latest, --to-offset and "
                 "--to-time");
  }
  if (!options.partitions.empty() && options.topics.size() > 1) {
    return Error(Errc::kInvalidArgument,
                 "--partition goes with one --topic; reset several topics one after the other");
  }
  std::vector<TopicPartition> partitions;
  for (const std::string& topic : options.topics) {
    WEIR_TRY_ASSIGN(const std::vector<TopicPartition> some,
                    partitions_of(log.admin(), topic, options.partitions));
    partitions.insert(partitions.end(), some.begin(), some.end());
  }
  WEIR_TRY(check_group_may_move(log, options.group));
  WEIR_TRY_ASSIGN(const std::vector<OffsetMove> moves,
                  plan_offset_moves(log.admin(), options.group, partitions, *target));
  if (options.execute) {
    WEIR_TRY(commit_offset_moves(log, options.group, moves));
  }
  print_moves(common, options, moves);
  if (!options.execute && !common.quiet) {
    fmt::print(stderr, "{}: nothing was changed; add --execute to set these offsets\n", kProgram);
  }
  return {};
}

}  // namespace

int group_list(const CommonOptions& common) {
  return with_log(common, Access::kRead,
                  [&](log::EmbeddedLog& log) { return list(log.admin(), common); });
}
int group_describe(const CommonOptions& common, const std::string& group,
                   const GroupDescribeOptions& options) {
  return with_log(common, Access::kRead, [&](log::EmbeddedLog& log) {
    return describe(log.admin(), common, group, options);
  });
}
int group_delete(const CommonOptions& common, const std::string& group) {
  return with_log(common, Access::kWrite, [&](log::EmbeddedLog& log) -> Status {
    WEIR_TRY(check_group_may_move(log, group));
    WEIR_TRY(remove(log.admin(), group));
    Output out;
    out.line(common.format == Format::kText
                 ? fmt::format("Deleted group {}.", group)
                 : fmt::format(R"({{"group":{},"deleted":true}})", json_string(group)));
    return {};
  });
}
int group_reset(const CommonOptions& common, const GroupResetOptions& options) {
  return with_log(common, options.execute ? Access::kWrite : Access::kRead,
                  [&](log::EmbeddedLog& log) { return reset(log, common, options); });
}

}  // namespace weir::cli
