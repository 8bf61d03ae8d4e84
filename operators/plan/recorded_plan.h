#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weir::internal {

// What an application records of itself in <state.dir>/<application.id>/plan.binpb, so that tools
// can decode its stores and a restart notices an input topic that was made anew.
struct RecordedPlan {
  struct SubTopology {
    std::vector<std::string> source_topics;
    std::vector<std::string> sink_topics;
    std::vector<std::string> stores;
    std::int32_t tasks = 0;
    friend bool operator==(const SubTopology&, const SubTopology&) = default;
  };
  struct Store {
    std::string name;
    std::string key_serde;
    std::string value_serde;
    std::string changelog_topic;
    friend bool operator==(const Store&, const Store&) = default;
  };
  struct SourceTopic {
    std::string name;
    Uuid id;
    std::int32_t partitions = 0;
    friend bool operator==(const SourceTopic&, const SourceTopic&) = default;
  };
  std::string application_id;
  std::vector<SubTopology> sub_topologies;
  std::vector<Store> stores;
  std::vector<SourceTopic> source_topics;

  friend bool operator==(const RecordedPlan&, const RecordedPlan&) = default;
  const SourceTopic* find_source(const std::string& name) const;
};

inline constexpr const char* kRecordedPlanFile = "plan.binpb";

std::string encode_recorded_plan(const RecordedPlan& plan);
// Errors: kCorrupt, kUnsupported (a newer format).
Result<RecordedPlan> decode_recorded_plan(ByteView bytes);

}  // namespace weir::internal
