#pragma once

#include <weir/runtime/result.h>

#include <memory>
#include <string>

namespace weir {

namespace internal {
struct Plan;
}

// A finished pipeline: the plan that an App or a TopologyTestDriver runs. Mistakes made while
// building (a name that is not legal, a store used twice, a topic read with two types) are kept in
// status(); App::start() returns it.
//
// Threading: immutable. Copies share the plan.
class Topology {
 public:
  explicit Topology(std::shared_ptr<const internal::Plan> plan);

  const Status& status() const;
  // Sub-topologies, nodes, topics and stores in the text format of Kafka Streams'
  // Topology.describe() (streams-features TOP-5). Empty unless status().ok().
  std::string describe() const;

  const internal::Plan& plan() const { return *plan_; }

 private:
  std::shared_ptr<const internal::Plan> plan_;  // tasks on several threads and the App share it
};

}  // namespace weir
