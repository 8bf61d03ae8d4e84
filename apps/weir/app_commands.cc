#include "apps/cli/columns.h"
#include "apps/cli/data_directory.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/json_text.h"
#include "apps/weir/commands.h"
#include "apps/weir/group_offsets.h"
#include "apps/weir/offset_moves.h"

#include <weir/operators/application_state.h>

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace weir::cli {
namespace {

std::string json_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) {
    list += (list.empty() ? "" : ",") + json_string(text);
  }
  return "[" + list + "]";
}

std::string joined(const std::vector<std::string>& texts) {
  return texts.empty() ? "-" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string holder_json(const std::optional<std::string>& holder) {
  return holder ? json_string(*holder) : "null";
}

std::int32_t task_count(const ApplicationPlan& plan) {
  std::int32_t tasks = 0;
  for (const ApplicationPlan::SubTopology& sub_topology : plan.sub_topologies) {
    tasks += sub_topology.tasks;
  }
  return tasks;
}

// One row of `app list`; a plan that cannot be read is a row too.
Status list_one(log::EmbeddedLog& log, const CommonOptions& common, const std::string& id,
                Columns& columns, Output& out) {
  const ApplicationFolder folder{log.state_directory(), id};
  const Result<ApplicationPlan> plan = read_application_plan(posix_file_system(), folder);
  if (!plan.ok()) {
    if (common.format == Format::kJson) {
      out.line(fmt::format(R"({{"application":{},"error":{}}})", json_string(id),
                           json_string(plan.error().message())));
    } else {
      columns.add({id, "damaged", "", "", ""});
    }
    return plan.status();
  }
  WEIR_TRY_ASSIGN(const std::optional<std::string> holder,
                  application_holder(posix_file_system(), folder));
  std::vector<std::string> stores;
  for (const ApplicationPlan::Store& store : plan->stores) {
    stores.push_back(store.name);
  }
  if (common.format == Format::kJson) {
    out.line(fmt::format(
        R"({{"application":{},"running":{},"holder":{},"tasks":{},"inputTopics":{},"stores":{}}})",
        json_string(id), holder.has_value(), holder_json(holder), task_count(*plan),
        json_list(plan->input_topics), json_list(stores)));
  } else {
    columns.add({id, holder ? "running" : "stopped", std::to_string(task_count(*plan)),
                 fmt::format("{}", fmt::join(plan->input_topics, ",")),
                 fmt::format("{}", fmt::join(stores, ","))});
  }
  return {};
}

Status list(log::EmbeddedLog& log, const CommonOptions& common) {
  WEIR_TRY_ASSIGN(const std::vector<std::string> ids,
                  list_applications(posix_file_system(), log.state_directory()));
  Columns columns({"APPLICATION", "STATE", "TASKS", "INPUTS", "STORES"});
  Output out;
  Status first;
  for (const std::string& id : ids) {
    Status listed = list_one(log, common, id, columns, out);
    if (!listed.ok() && first.ok()) {
      first = std::move(listed);
    }
  }
  columns.print(out);
  return first;
}

// Everything that `app describe` shows.
struct Description {
  ApplicationPlan plan;
  std::optional<std::string> holder;
  struct Topic {
    std::string name;
    std::string kind;                        // input, output, changelog, repartition
    std::optional<std::int32_t> partitions;  // nullopt: does not exist
  };
  std::vector<Topic> topics;
  std::vector<GroupLag> lags;
};

std::map<std::string, std::string> topic_kinds(const ApplicationPlan& plan) {
  std::map<std::string, std::string> kinds;
  for (const ApplicationPlan::SubTopology& sub_topology : plan.sub_topologies) {
    for (const std::string& topic : sub_topology.sink_topics) {
      kinds[topic] = "output";
    }
    for (const std::string& topic : sub_topology.source_topics) {
      kinds[topic] = "input";
    }
  }
  for (const std::string& topic : plan.internal_topics()) {
    const bool is_changelog = std::ranges::any_of(
        plan.stores, [&](const auto& store) { return store.changelog_topic == topic; });
    kinds[topic] = is_changelog ? "changelog" : "repartition";
  }
  for (const std::string& topic : plan.input_topics) {
    kinds[topic] = "input";
  }
  return kinds;
}

Result<Description> read_description(log::EmbeddedLog& log, const std::string& id) {
  const ApplicationFolder folder{log.state_directory(), id};
  Description all;
  WEIR_TRY_ASSIGN(all.plan, read_application_plan(posix_file_system(), folder));
  WEIR_TRY_ASSIGN(all.holder, application_holder(posix_file_system(), folder));
  WEIR_TRY_ASSIGN(all.lags, group_lags(log.admin(), id));
  for (const auto& [name, kind] : topic_kinds(all.plan)) {
    Description::Topic topic{name, kind, std::nullopt};
    const Result<TopicDescription> found = log.admin().describe_topic(name);
    if (found.ok()) {
      topic.partitions = found->partitions;
    } else if (found.error().code() != Errc::kUnknownTopic) {
      return found.error();
    }
    all.topics.push_back(std::move(topic));
  }
  return all;
}

void print_text(Output& out, const Description& all) {
  out.line(fmt::format("Application: {}", all.plan.application_id));
  out.line(fmt::format("Running: {}", all.holder ? "yes, " + *all.holder : "no"));
  for (std::size_t i = 0; i < all.plan.sub_topologies.size(); ++i) {
    const ApplicationPlan::SubTopology& one = all.plan.sub_topologies[i];
    out.line(fmt::format("Sub-topology: {}\tTasks: {}\tSources: {}\tSinks: {}\tStores: {}", i,
                         one.tasks, joined(one.source_topics), joined(one.sink_topics),
                         joined(one.stores)));
  }
  Columns stores({"STORE", "KEY", "VALUE", "CHANGELOG"});
  for (const ApplicationPlan::Store& store : all.plan.stores) {
    stores.add({store.name, store.key_serde, store.value_serde, store.changelog_topic});
  }
  stores.print(out);
  Columns topics({"TOPIC", "KIND", "PARTITIONS"});
  for (const Description::Topic& topic : all.topics) {
    topics.add({topic.name, topic.kind,
                topic.partitions ? std::to_string(*topic.partitions) : "does not exist"});
  }
  topics.print(out);
  print_group_lags(out, all.plan.application_id, all.lags);
}

void print_json(Output& out, const Description& all) {
  std::string sub_topologies;
  for (std::size_t i = 0; i < all.plan.sub_topologies.size(); ++i) {
    const ApplicationPlan::SubTopology& one = all.plan.sub_topologies[i];
    sub_topologies +=
        fmt::format(R"({}{{"id":{},"tasks":{},"sourceTopics":{},"sinkTopics":{},"stores":{}}})",
                    i == 0 ? "" : ",", i, one.tasks, json_list(one.source_topics),
                    json_list(one.sink_topics), json_list(one.stores));
  }
  std::string stores;
  for (const ApplicationPlan::Store& store : all.plan.stores) {
    stores += fmt::format(R"({}{{"name":{},"keySerde":{},"valueSerde":{},"changelogTopic":{}}})",
                          stores.empty() ? "" : ",", json_string(store.name),
                          json_string(store.key_serde), json_string(store.value_serde),
                          json_string(store.changelog_topic));
  }
  std::string topics;
  for (const Description::Topic& topic : all.topics) {
    topics +=
        fmt::format(R"({}{{"topic":{},"kind":{},"partitions":{}}})", topics.empty() ? "" : ",",
                    json_string(topic.name), json_string(topic.kind),
                    topic.partitions ? std::to_string(*topic.partitions) : "null");
  }
  std::string lags;
  for (const GroupLag& lag : all.lags) {
    lags += (lags.empty() ? "" : ",") + group_lag_json(all.plan.application_id, lag);
  }
  out.line(fmt::format(
      R"({{"application":{},"running":{},"holder":{},"subTopologies":[{}],"stores":[{}],)"
      R"("topics":[{}],"committedOffsets":[{}]}})",
      json_string(all.plan.application_id), all.holder.has_value(), holder_json(all.holder),
      sub_topologies, stores, topics, lags));
}

Status describe(log::EmbeddedLog& log, const CommonOptions& common, const std::string& id) {
  WEIR_TRY_ASSIGN(const Description all, read_description(log, id));
  Output out;
  if (common.format == Format::kJson) {
    print_json(out, all);
  } else {
    print_text(out, all);
  }
  return {};
}

// What a reset does. The order is that of its execution.
struct Reset {
  std::vector<std::string> topics;        // to delete
  std::vector<OffsetMove> moves;          // of input topics
  std::vector<TopicPartition> forgotten;  // other committed offsets
};

Result<Reset> plan_reset(log::EmbeddedLog& log, const ApplicationPlan& plan,
                         const OffsetTarget& target) {
  Reset reset;
  Admin& admin = log.admin();
  for (const std::string& topic : plan.internal_topics()) {
    const Result<TopicDescription> found = admin.describe_topic(topic);
    if (found.ok()) {
      reset.topics.push_back(topic);
    } else if (found.error().code() != Errc::kUnknownTopic) {
      return found.error();
    }
  }
  std::vector<TopicPartition> inputs;
  for (const std::string& topic : plan.input_topics) {
    const Result<std::vector<TopicPartition>> partitions = partitions_of(admin, topic);
    if (partitions.ok()) {
      inputs.insert(inputs.end(), partitions->begin(), partitions->end());
    } else if (partitions.error().code() != Errc::kUnknownTopic) {
      return partitions.error();
    }
  }
  WEIR_TRY_ASSIGN(reset.moves, plan_offset_moves(admin, plan.application_id, inputs, target));
  WEIR_TRY_ASSIGN(const std::vector<PartitionOffset> committed,
                  admin.group_offsets(plan.application_id));
  for (const auto& [partition, offset] : committed) {
    const bool goes_with_topic =
        std::ranges::find(reset.topics, partition.topic) != reset.topics.end();
    if (!goes_with_topic && std::ranges::find(inputs, partition) == inputs.end()) {
      reset.forgotten.push_back(partition);
    }
  }
  return reset;
}

// Interrupted at any point it can be run again: the plan that it follows goes last.
Status execute_reset(log::EmbeddedLog& log, const ApplicationFolder& folder, const Reset& reset) {
  for (const std::string& topic : reset.topics) {
    WEIR_TRY(log.admin().delete_topic(topic));
  }
  if (!reset.moves.empty()) {
    WEIR_TRY(commit_offset_moves(log, folder.application_id, reset.moves));
  }
  WEIR_TRY(log.admin().delete_group_offsets(folder.application_id, reset.forgotten));
  return remove_application_state(posix_file_system(), folder);
}

void print_reset(const CommonOptions& common, const AppResetOptions& options,
                 const std::string& folder, const Reset& reset) {
  Output out;
  const bool json = common.format == Format::kJson;
  const auto line = [&](std::string_view action, const std::string& fields,
                        const std::string& text) {
    out.line(json ? fmt::format(R"({{"application":{},"action":"{}",{},"executed":{}}})",
                                json_string(options.application), action, fields, options.execute)
                  : text);
  };
  for (const std::string& topic : reset.topics) {
    line("deleteTopic", fmt::format(R"("topic":{})", json_string(topic)),
         fmt::format("delete topic {}", topic));
  }
  for (const OffsetMove& move : reset.moves) {
    line("setOffset",
         fmt::format(R"("topic":{},"partition":{},"currentOffset":{},"newOffset":{})",
                     json_string(move.partition.topic), move.partition.partition.value(),
                     offset_json(move.current), move.next.value()),
         fmt::format("set offset of {} to {}{}", move.partition.to_string(), move.next.value(),
                     move.current ? fmt::format(" (from {})", move.current->value()) : ""));
  }
  for (const TopicPartition& partition : reset.forgotten) {
    line("deleteOffset",
         fmt::format(R"("topic":{},"partition":{})", json_string(partition.topic),
                     partition.partition.value()),
         fmt::format("delete offset of {}", partition.to_string()));
  }
  line("removeState", fmt::format(R"("folder":{})", json_string(folder)),
       fmt::format("remove state {}", folder));
}

Status reset_application(log::EmbeddedLog& log, const CommonOptions& common,
                         const AppResetOptions& options) {
  WEIR_TRY_ASSIGN(const std::optional<OffsetTarget> target, parse_offset_target(options.target));
  const ApplicationFolder folder{log.state_directory(), options.application};
  FileSystem& files = posix_file_system();
  WEIR_TRY_ASSIGN(const ApplicationPlan plan, read_application_plan(files, folder));
  WEIR_TRY_ASSIGN(
      const std::unique_ptr<FileLock> lock,
      lock_application(files, folder,
                       fmt::format("weir app reset in process {}", static_cast<long>(::getpid()))));
  WEIR_TRY_ASSIGN(const Reset reset, plan_reset(log, plan, target.value_or(OffsetTarget{})));
  if (options.execute) {
    if (Status done = execute_reset(log, folder, reset); !done.ok()) {
      return std::move(done).error().with_context(
          fmt::format("the reset of application {} is not complete; do not start it, run the reset "
                      "again",
                      options.application));
    }
  }
  print_reset(common, options, join_path(folder.state_dir, folder.application_id), reset);
  if (!options.execute && !common.quiet) {
    fmt::print(stderr, "{}: nothing was changed; add --execute to do this\n", kProgram);
  }
  return {};
}

}  // namespace

int app_list(const CommonOptions& common) {
  return with_log(common, Access::kRead, [&](log::EmbeddedLog& log) { return list(log, common); });
}
int app_describe(const CommonOptions& common, const std::string& application) {
  return with_log(common, Access::kRead,
                  [&](log::EmbeddedLog& log) { return describe(log, common, application); });
}
int app_reset(const CommonOptions& common, const AppResetOptions& options) {
  return with_log(common, options.execute ? Access::kWrite : Access::kRead,
                  [&](log::EmbeddedLog& log) { return reset_application(log, common, options); });
}

}  // namespace weir::cli
