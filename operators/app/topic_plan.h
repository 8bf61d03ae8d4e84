#pragma once

#include "operators/plan/plan.h"
#include "operators/task/task_id.h"

#include <weir/runtime/backend.h>
#include <weir/runtime/result.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weir::internal {

struct KnownTopic {
  Uuid id;
  std::int32_t partitions = 0;
};
// By name on the log.
using KnownTopics = std::map<std::string, KnownTopic>;

// How a plan lies on the topics that there are.
struct TopicPlan {
  std::vector<std::int32_t> tasks;          // by sub-topology; 0: waits for an input topic
  std::vector<TopicSpec> internal_topics;   // to be made
  std::vector<std::string> missing_inputs;  // user topics that do not exist
  // By sub-topology: source topics on the log with their partitions (empty while it waits).
  std::vector<std::map<std::string, std::int32_t>> inputs;

  std::vector<TaskId> task_ids() const;
};

// Partition counts (streams-features REP-5, TOP-3) and settings (TOP-1) of internal topics; those
// that exist keep their count. Pure. `durability`: weir.durability of what is made.
// Errors: kInvalidConfig: two counts that must be equal are not; names both topics.
Result<TopicPlan> plan_topics(const Plan& plan, const std::string& application_id,
                              const KnownTopics& known, const std::string& durability);

}  // namespace weir::internal
