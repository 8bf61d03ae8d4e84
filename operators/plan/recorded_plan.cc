#include "operators/plan/recorded_plan.h"

#include "recorded_plan.pb.h"

#include <fmt/core.h>

#include <algorithm>

namespace weir::internal {

namespace {

constexpr std::uint32_t kFormat = 1;

using File = operators::RecordedPlanFile;

template <class Repeated>
std::vector<std::string> strings(const Repeated& field) {
  return {field.begin(), field.end()};
}

void write_sub_topology(const RecordedPlan::SubTopology& from, File::SubTopology& to) {
  to.mutable_source_topics()->Assign(from.source_topics.begin(), from.source_topics.end());
  to.mutable_sink_topics()->Assign(from.sink_topics.begin(), from.sink_topics.end());
  to.mutable_stores()->Assign(from.stores.begin(), from.stores.end());
  to.set_tasks(from.tasks);
}

void write_store(const RecordedPlan::Store& from, File::Store& to) {
  to.set_name(from.name);
  to.set_key_serde(from.key_serde);
  to.set_value_serde(from.value_serde);
  to.set_changelog_topic(from.changelog_topic);
}

void write_source(const RecordedPlan::SourceTopic& from, File::SourceTopic& to) {
  to.set_name(from.name);
  if (!from.id.is_zero()) {
    to.set_id(std::string(from.id.bytes.begin(), from.id.bytes.end()));
  }
  to.set_partitions(from.partitions);
}

Result<RecordedPlan::SourceTopic> read_source(const File::SourceTopic& from) {
  RecordedPlan::SourceTopic to{from.name(), {}, from.partitions()};
  if (!from.id().empty() && from.id().size() != to.id.bytes.size()) {
    return Error(Errc::kCorrupt,
                 fmt::format("the id of topic {} in the recorded plan has {} bytes instead of 16",
                             from.name(), from.id().size()));
  }
  std::transform(from.id().begin(), from.id().end(), to.id.bytes.begin(),
                 [](char c) { return static_cast<std::uint8_t>(c); });
  return to;
}

}  // namespace

const RecordedPlan::SourceTopic* RecordedPlan::find_source(const std::string& name) const {
  const auto found = std::find_if(source_topics.begin(), source_topics.end(),
                                  [&](const SourceTopic& topic) { return topic.name == name; });
  return found == source_topics.end() ? nullptr : &*found;
}

std::string encode_recorded_plan(const RecordedPlan& plan) {
  File file;
  file.set_format(kFormat);
  file.set_application_id(plan.application_id);
  for (const RecordedPlan::SubTopology& sub_topology : plan.sub_topologies) {
    write_sub_topology(sub_topology, *file.add_sub_topologies());
  }
  for (const RecordedPlan::Store& store : plan.stores) {
    write_store(store, *file.add_stores());
  }
  for (const RecordedPlan::SourceTopic& topic : plan.source_topics) {
    write_source(topic, *file.add_source_topics());
  }
  return file.SerializeAsString();
}

Result<RecordedPlan> decode_recorded_plan(ByteView bytes) {
  File file;
  if (bytes.size() > INT32_MAX ||
      !file.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Error(Errc::kCorrupt, "the recorded plan is damaged");
  }
  if (file.format() != kFormat) {
    return Error(
        file.format() > kFormat ? Errc::kUnsupported : Errc::kCorrupt,
        fmt::format("the recorded plan has format {}; {} is known", file.format(), kFormat));
  }
  RecordedPlan plan;
  plan.application_id = file.application_id();
  for (const File::SubTopology& sub_topology : file.sub_topologies()) {
    plan.sub_topologies.push_back({strings(sub_topology.source_topics()),
                                   strings(sub_topology.sink_topics()),
                                   strings(sub_topology.stores()), sub_topology.tasks()});
  }
  for (const File::Store& store : file.stores()) {
    plan.stores.push_back(
        {store.name(), store.key_serde(), store.value_serde(), store.changelog_topic()});
  }
  for (const File::SourceTopic& topic : file.source_topics()) {
    WEIR_TRY_ASSIGN(RecordedPlan::SourceTopic source, read_source(topic));
    plan.source_topics.push_back(std::move(source));
  }
  return plan;
}

}  // namespace weir::internal
