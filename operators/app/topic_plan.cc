#include "operators/app/topic_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace weir::internal {

namespace {

// Partition counts by topic as named in the plan, found step by step.
class Counts {
 public:
  Counts(const Plan& plan, const std::string& application_id, const KnownTopics& known)
      : plan_(plan), application_id_(application_id), known_(known) {}

  Status resolve() {
    for (const SubTopology& sub_topology : plan_.sub_topologies) {
      for (const std::string& topic : sub_topology.source_topics) {
        if (const KnownTopic* found = find(topic); found != nullptr) {
          counts_[topic] = found->partitions;
        }
      }
    }
    for (const RepartitionTopic& topic : plan_.repartition_topics) {
      const auto existing = counts_.find(topic.name);
      if (existing == counts_.end()) {
        if (topic.partitions > 0) {
          counts_[topic.name] = topic.partitions;
        }
      } else if (topic.partitions > 0 && topic.partitions != existing->second) {
        return Error(Errc::kInvalidConfig,
                     fmt::format("repartition topic {} has {} partitions, the topology asks for "
                                 "{}: use a new application id, or delete the topic when it is "
                                 "empty",
                                 internal_topic_name(application_id_, topic.name), existing->second,
                                 topic.partitions));
      }
    }
    // A repartition topic may be fed by a sub-topology that reads another one, or itself: then what
    // is not known yet is left out, as Kafka does.
    while (step(false) || step(true)) {
    }
    return {};
  }

  std::optional<std::int32_t> of(const std::string& topic) const {
    const auto found = counts_.find(topic);
    return found == counts_.end() ? std::nullopt : std::optional(found->second);
  }
  bool exists(const std::string& topic) const { return find(topic) != nullptr; }

 private:
  const KnownTopic* find(const std::string& topic) const {
    const auto found = known_.find(topic_on_log(plan_, application_id_, topic));
    return found == known_.end() ? nullptr : &found->second;
  }

  // Largest source of the sub-topologies that write the topic; nullopt while one is unknown, or,
  // when unknown repartition topics are left out, while all are.
  std::optional<std::int32_t> count_of_writers(const std::string& topic,
                                               bool leaves_out_internal) const {
    std::int32_t count = 0;
    for (const SubTopology& sub_topology : plan_.sub_topologies) {
      if (std::find(sub_topology.sink_topics.begin(), sub_topology.sink_topics.end(), topic) ==
          sub_topology.sink_topics.end()) {
        continue;
      }
      for (const std::string& source : sub_topology.source_topics) {
        const std::optional<std::int32_t> of_source = of(source);
        if (!of_source.has_value() && leaves_out_internal && plan_.is_repartition_topic(source)) {
          continue;
        }
        if (!of_source.has_value()) {
          return std::nullopt;
        }
        count = std::max(count, *of_source);
      }
    }
    return count == 0 ? std::nullopt : std::optional(count);
  }

  bool step(bool leaves_out_internal) {
    bool found = false;
    for (const RepartitionTopic& topic : plan_.repartition_topics) {
      if (counts_.contains(topic.name)) {
        continue;
      }
      if (const std::optional<std::int32_t> count =
              count_of_writers(topic.name, leaves_out_internal)) {
        counts_[topic.name] = *count;
        found = true;
      }
    }
    return found;
  }

  const Plan& plan_;
  const std::string& application_id_;
  const KnownTopics& known_;
  std::map<std::string, std::int32_t> counts_;
};

class Planner {
 public:
  Planner(const Plan& plan, const std::string& application_id, const KnownTopics& known,
          const std::string& durability)
      : plan_(plan),
        application_id_(application_id),
        known_(known),
        durability_(durability),
        counts_(plan, application_id, known) {}

  Result<TopicPlan> run() {
    WEIR_TRY(counts_.resolve());
    for (const RepartitionTopic& topic : plan_.repartition_topics) {
      const std::optional<std::int32_t> count = counts_.of(topic.name);
      if (count.has_value() && !counts_.exists(topic.name)) {
        add_internal(
            topic.name, *count,
            {{"cleanup.policy", "delete"}, {"segment.bytes", "52428800"}, {"retention.ms", "-1"}});
      }
    }
    for (const SubTopology& sub_topology : plan_.sub_topologies) {
      WEIR_TRY(add_sub_topology(sub_topology));
    }
    return std::move(out_);
  }

 private:
  void add_internal(const std::string& name, std::int32_t partitions, TopicConfig config) {
    config.emplace("message.timestamp.type", "CreateTime");
    config.emplace("weir.durability", durability_);
    out_.internal_topics.push_back(
        {internal_topic_name(application_id_, name), partitions, std::move(config)});
  }

  Status add_sub_topology(const SubTopology& sub_topology) {
    std::map<std::string, std::int32_t> inputs;
    std::int32_t tasks = 0;
    bool is_complete = true;
    for (const std::string& topic : sub_topology.source_topics) {
      const std::string name = topic_on_log(plan_, application_id_, topic);
      const std::optional<std::int32_t> count = counts_.of(topic);
      if (!count.has_value()) {
        is_complete = false;
        if (!plan_.is_repartition_topic(topic)) {
          out_.missing_inputs.push_back(name);
        }
        continue;
      }
      inputs.emplace(name, *count);
      tasks = std::max(tasks, *count);
    }
    if (!is_complete) {
      tasks = 0;
      inputs.clear();
    }
    if (!sub_topology.stores.empty()) {
      WEIR_TRY(check_copartitioned(inputs));
    }
    for (const std::string& store : sub_topology.stores) {
      WEIR_TRY(add_changelog(store, tasks, inputs));
    }
    out_.tasks.push_back(tasks);
    out_.inputs.push_back(std::move(inputs));
    return {};
  }

  // Records of one key must reach one store partition, whichever topic they come from.
  static Status check_copartitioned(const std::map<std::string, std::int32_t>& inputs) {
    for (const auto& [topic, count] : inputs) {
      if (count != inputs.begin()->second) {
        return Error(Errc::kInvalidConfig,
                     fmt::format("topics {} ({} partitions) and {} ({} partitions) are aggregated "
                                 "together and must have equally many: call repartition() before "
                                 "the aggregation",
                                 inputs.begin()->first, inputs.begin()->second, topic, count));
      }
    }
    return {};
  }

  Status add_changelog(const std::string& store, std::int32_t tasks,
                       const std::map<std::string, std::int32_t>& inputs) {
    const std::string name = changelog_name(store);
    const auto existing = known_.find(internal_topic_name(application_id_, name));
    if (tasks == 0) {
      return {};
    }
    if (existing == known_.end()) {
      add_internal(name, tasks, {{"cleanup.policy", "compact"}});
      return {};
    }
    if (existing->second.partitions != tasks) {
      return Error(Errc::kInvalidConfig,
                   fmt::format("changelog {} of store {} has {} partitions, but its input {} has "
                               "{}: a store cannot change its number of partitions; make the "
                               "input with {} partitions or use a new application id",
                               existing->first, store, existing->second.partitions,
                               inputs.begin()->first, tasks, existing->second.partitions));
    }
    return {};
  }

  const Plan& plan_;
  const std::string& application_id_;
  const KnownTopics& known_;
  const std::string& durability_;
  Counts counts_;
  TopicPlan out_;
};

}  // namespace

std::vector<TaskId> TopicPlan::task_ids() const {
  std::vector<TaskId> ids;
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    for (std::int32_t p = 0; p < tasks[i]; ++p) {
      ids.push_back({i, PartitionId(p)});
    }
  }
  return ids;
}

Result<TopicPlan> plan_topics(const Plan& plan, const std::string& application_id,
                              const KnownTopics& known, const std::string& durability) {
  return Planner(plan, application_id, known, durability).run();
}

}  // namespace weir::internal
