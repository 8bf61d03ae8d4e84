#pragma once

#include <weir/operators/testing/topology_test_driver.h>
#include <weir/operators/topology.h>

#include <nlohmann/json.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weir::test {

using Json = nlohmann::json;

// One case of tests/data/streams/*.jsonl with the topology that it uses.
struct StreamCase {
  std::string name;
  Json topology;
  std::vector<Json> events;
  Json end;
};

// Cases of a file, in order; `op` empty: all.
std::vector<StreamCase> load_stream_cases(const std::string& file);
StreamCase find_stream_case(const std::vector<StreamCase>& cases, const std::string& name);
std::vector<Json> load_json_lines(const std::string& file);

// Pipes every event into the driver and compares outputs (in the order of writing over all topics),
// drops, internal records where recorded, and the stores at the end. Fails the running test.
void replay(const StreamCase& stream_case, testing::TopologyTestDriver& driver);

}  // namespace weir::test
