#include "operators/app/state_directory.h"
#include "operators/plan/recorded_plan.h"

#include <weir/operators/application_state.h>
#include <weir/runtime/settings.h>

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace weir {

namespace {

using internal::StateDirectory;

std::string path_of(const ApplicationFolder& folder) {
  return StateDirectory::path_of(folder.state_dir, folder.application_id);
}

std::string plan_path(const ApplicationFolder& folder) {
  return join_path(path_of(folder), internal::kRecordedPlanFile);
}

Error no_application(FileSystem& files, const ApplicationFolder& folder) {
  std::string there = "there is none";
  const Result<std::vector<std::string>> ids = list_applications(files, folder.state_dir);
  if (ids.ok() && !ids->empty()) {
    const std::vector<std::string_view> names(ids->begin(), ids->end());
    const std::string nearest = nearest_name(folder.application_id, names);
    there = nearest.empty() ? fmt::format("there are: {}", fmt::join(*ids, ", "))
                            : fmt::format("did you mean {}?", nearest);
  }
  return {Errc::kNotFound, fmt::format("no application {} has state in {}; {}",
                                       folder.application_id, folder.state_dir, there)};
}

ApplicationPlan public_plan(internal::RecordedPlan recorded) {
  ApplicationPlan plan;
  plan.application_id = std::move(recorded.application_id);
  for (auto& from : recorded.sub_topologies) {
    plan.sub_topologies.push_back({std::move(from.source_topics), std::move(from.sink_topics),
                                   std::move(from.stores), from.tasks});
  }
  for (auto& from : recorded.stores) {
    plan.stores.push_back({std::move(from.name), std::move(from.key_serde),
                           std::move(from.value_serde), std::move(from.changelog_topic)});
  }
  for (auto& from : recorded.source_topics) {
    plan.input_topics.push_back(std::move(from.name));
  }
  return plan;
}

// Whether the process that a lock's text names may be there. The lock itself is tried only then:
// trying it would refuse an application that starts in that moment.
bool may_live(FileSystem& files, std::string_view holder) {
  const std::string process(holder.substr(holder.find_last_of(' ') + 1));
  return !path_exists(files, "/proc/self") ||
         (!process.empty() && path_exists(files, "/proc/" + process));
}

}  // namespace

std::vector<std::string> ApplicationPlan::internal_topics() const {
  std::set<std::string> topics;
  // An input topic is never internal, whatever it is called and whoever uses it as a changelog.
  const auto add = [&](const std::string& topic) {
    if (topic.starts_with(application_id + "-") &&
        std::ranges::find(input_topics, topic) == input_topics.end()) {
      topics.insert(topic);
    }
  };
  for (const Store& store : stores) {
    add(store.changelog_topic);
  }
  for (const SubTopology& sub_topology : sub_topologies) {
    for (const std::string& topic : sub_topology.source_topics) {
      if (topic.ends_with("-repartition")) {
        add(topic);
      }
    }
  }
  return {topics.begin(), topics.end()};
}

Result<std::vector<std::string>> list_applications(FileSystem& files,
                                                   const std::string& state_dir) {
  std::vector<std::string> ids;
  Result<std::vector<DirectoryEntry>> entries = files.list(state_dir);
  if (!entries.ok() && entries.error().code() != Errc::kNotFound) {
    return std::move(entries).error();
  }
  if (entries.ok()) {
    for (const DirectoryEntry& entry : *entries) {
      if (entry.kind == FileKind::kDirectory &&
          path_exists(files, plan_path({state_dir, entry.name}))) {
        ids.push_back(entry.name);
      }
    }
  }
  return ids;
}

Result<ApplicationPlan> read_application_plan(FileSystem& files, const ApplicationFolder& folder) {
  const std::string path = plan_path(folder);
  if (folder.application_id.empty() || !path_exists(files, path)) {
    return no_application(files, folder);
  }
  WEIR_TRY_ASSIGN(const std::string bytes, read_file(files, path));
  Result<internal::RecordedPlan> plan = internal::decode_recorded_plan(bytes);
  if (!plan.ok()) {
    return std::move(plan).error().with_context(path);
  }
  return public_plan(std::move(plan).value());
}

Result<std::optional<std::string>> application_holder(FileSystem& files,
                                                      const ApplicationFolder& folder) {
  const std::string path = StateDirectory::lock_path(path_of(folder));
  if (!path_exists(files, path)) {
    return std::optional<std::string>();
  }
  WEIR_TRY_ASSIGN(std::string holder, read_file(files, path));
  if (!may_live(files, holder)) {
    return std::optional<std::string>();
  }
  const Result<std::unique_ptr<FileLock>> lock = files.lock(path, holder);
  if (lock.ok()) {
    return std::optional<std::string>();
  }
  if (lock.error().code() != Errc::kLocked) {
    return lock.error();
  }
  return std::optional<std::string>(std::move(holder));
}

Result<std::unique_ptr<FileLock>> lock_application(FileSystem& files,
                                                   const ApplicationFolder& folder,
                                                   std::string_view purpose) {
  if (folder.application_id.empty() || !path_exists(files, plan_path(folder))) {
    return no_application(files, folder);
  }
  Result<std::unique_ptr<FileLock>> lock =
      files.lock(StateDirectory::lock_path(path_of(folder)), purpose);
  if (!lock.ok()) {
    return std::move(lock).error().with_context(
        fmt::format("application {} is running; stop it first", folder.application_id));
  }
  return lock;
}

Status remove_application_state(FileSystem& files, const ApplicationFolder& folder) {
  const std::string path = path_of(folder);
  WEIR_TRY(remove_tree(files, StateDirectory::database_path(path)));
  WEIR_TRY(files.sync_directory(path));
  WEIR_TRY(remove_tree(files, path));
  return files.sync_directory(folder.state_dir);
}

}  // namespace weir
