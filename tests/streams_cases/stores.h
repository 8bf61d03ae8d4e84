#pragma once

#include "tests/streams_cases/case_file.h"

#include <weir/operators/testing/topology_test_driver.h>
#include <weir/operators/topology.h>
#include <weir/runtime/result.h>

#include <string>
#include <vector>

namespace weir::streams_cases {

// A store that the case describes, as it is at the end: rows in the notation of its kind, sorted.
// Errors: kUnsupported (a kind that the driver cannot read yet, a serde that values.h lacks).
Result<Json> store_rows(testing::TopologyTestDriver& driver, const Topology& topology,
                        const std::string& name, const std::string& kind);
// The order of rows has no meaning.
Json sorted_rows(Json rows);

std::vector<std::string> store_names(const Topology& topology);

}  // namespace weir::streams_cases
