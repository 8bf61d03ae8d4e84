#pragma once

#include "tests/streams_cases/case_file.h"

#include <weir/operators/stream_builder.h>
#include <weir/operators/testing/topology_test_driver.h>
#include <weir/operators/topology.h>
#include <weir/runtime/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// From a description (op, params, config) to a topology. A family of ops is one file:
// <family>_topologies.cc, with a function for each op and a list of them.

namespace weir::streams_cases {

// The parameters of a description. Remembers which were asked for, so that none is ignored: a
// parameter that the built topology did not ask for is unknown.
// Errors: a parameter of another type is nlohmann-json's exception; build_topology() catches it.
class Params {
 public:
  explicit Params(Json object);

  std::optional<std::string> text(const std::string& name) const;
  std::string text(const std::string& name, std::string_view otherwise) const;
  std::optional<std::int64_t> number(const std::string& name) const;
  bool flag(const std::string& name) const;
  // A nested object ("window"), a list of them ("schedules"): asked for field by field.
  std::optional<Params> object(const std::string& name) const;
  std::vector<Params> objects(const std::string& name) const;

  // kUnsupported when one of the names is there: for what the operators cannot do yet.
  Status refuse(std::initializer_list<const char*> names) const;
  // Names that nobody asked for ("window.size").
  std::vector<std::string> not_asked() const;

 private:
  using Names = std::set<std::string>;
  Params(Json object, std::string prefix, std::shared_ptr<Names> asked);
  const Json* find(const std::string& name) const;
  void collect(std::vector<std::string>& names) const;

  Json object_;
  std::string prefix_;
  std::shared_ptr<Names> asked_;  // shared with nested objects
};

struct Description {
  std::string op;
  Params params;
  const TopicSerdes& in;
  const TopicSerdes& out;
  StreamBuilder::Options builder;
};

// "not supported yet: <what>": the case is skipped.
Error not_supported(std::string_view what);
// "unknown <what>": the case is skipped.
Error unknown(std::string_view what);

// One op. The function's topology may have a bad status(): then we refuse it as Kafka may.
// Errors: kUnsupported (not_supported(), unknown()).
struct OpBuilder {
  std::string_view op;
  Result<Topology> (*build)(const Description& description);
};
std::span<const OpBuilder> stateless_topologies();
std::span<const OpBuilder> aggregate_topologies();
std::span<const OpBuilder> table_topologies();
std::span<const OpBuilder> processor_topologies();
std::span<const OpBuilder> error_topologies();

// With which store a table is kept: "store" and its siblings.
enum class StoreName { kGiven, kGenerated };
// `parameter` is "none", "rocksdb" or "memory"; the last two are one, since the driver's stores are
// all in memory. Errors: kUnsupported.
Result<StoreName> store_name(const Params& params, const std::string& parameter,
                             std::string_view otherwise = "rocksdb");

struct Built {
  Topology topology;
  testing::TopologyTestDriver::Options driver;
};
// Errors: kUnsupported (the case is skipped, the message says why), kInvalidArgument (the
// description is malformed).
Result<Built> build_topology(const TopologyRow& row);

}  // namespace weir::streams_cases
