#include "tests/streams_cases/stores.h"

#include "operators/plan/plan.h"
#include "tests/streams_cases/topologies.h"
#include "tests/streams_cases/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::streams_cases {

Json sorted_rows(Json rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<std::string> store_names(const Topology& topology) {
  std::vector<std::string> names;
  for (const internal::PlanStore& store : topology.plan().stores) {
    names.push_back(store.name);
  }
  return names;
}

Result<Json> store_rows(testing::TopologyTestDriver& driver, const Topology& topology,
                        const std::string& name, const std::string& kind) {
  if (kind != "kv" && kind != "timestamped-kv") {
    return not_supported(fmt::format("store kind {}", kind));
  }
  const internal::PlanStore& store = topology.plan().store(name);
  for (const std::string& serde : {std::string(store.key.serde), std::string(store.value.serde)}) {
    if (!is_known_serde(serde)) {
      return unknown(fmt::format("serde '{}' of store {}", serde, name));
    }
  }
  Json rows = Json::array();
  for (const testing::TopologyTestDriver::StoreRow& row : driver.rows(name)) {
    Json line = {decode(row.key, std::string(store.key.serde)),
                 decode(row.value, std::string(store.value.serde))};
    if (kind == "timestamped-kv") {
      line.push_back(row.timestamp);
    }
    rows.push_back(std::move(line));
  }
  return sorted_rows(std::move(rows));
}

}  // namespace weir::streams_cases
