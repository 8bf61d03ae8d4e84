#include "tests/streams_cases/topologies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace weir::streams_cases {

namespace {

// What the case files describe and no builder makes yet: the op, or its family with a dot, and
// the operator that it waits for. An op that is neither here nor in a family's list is unknown.
struct Waiting {
  std::string_view op;
  std::string_view needs;
};
constexpr std::array kWaiting{
    Waiting{"cogroup", "cogroup"},
    Waiting{"ttj", "join of two tables"},
    Waiting{"fkj", "foreign-key join"},
    Waiting{"ssj", "join of two streams"},
    Waiting{"stj", "join of a stream and a table"},
    Waiting{"sgj", "join of a stream and a global table"},
    Waiting{"table.suppress", "suppress"},
    Waiting{"papi.globalStore", "global stores"},
    Waiting{"err.deserGlobal", "global tables"},
};

bool waits_for(const Waiting& waiting, std::string_view op) {
  return waiting.op.ends_with('.') ? op.starts_with(waiting.op) : op == waiting.op;
}

Result<const OpBuilder*> find_builder(std::string_view op) {
  for (const std::span<const OpBuilder> family :
       {stateless_topologies(), aggregate_topologies(), table_topologies(), processor_topologies(),
        error_topologies()}) {
    for (const OpBuilder& builder : family) {
      if (builder.op == op) {
        return &builder;
      }
    }
  }
  const auto* const found =
      std::find_if(kWaiting.begin(), kWaiting.end(),
                   [&](const Waiting& waiting) { return waits_for(waiting, op); });
  if (found != kWaiting.end()) {
    return not_supported(found->needs);
  }
  return unknown(fmt::format("op '{}'", op));
}

// Settings that are there and not followed yet.
constexpr std::array<std::string_view, 1> kWaitingSettings{
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__",
};
// Settings of which one value is what we do.
const std::map<std::string_view, std::string_view> kOnlyValue{
    {"topology.optimization", "none"},
    {"dsl.store.format", "DEFAULT"},
};

// Kafka's classes that go on: LogAndContinueExceptionHandler and the like.
ErrorResponse response_of(std::string_view handler) {
  return handler.find("Continue") == std::string_view::npos ? ErrorResponse::kFail
                                                            : ErrorResponse::kContinue;
}

Result<InvalidTimestamp> invalid_timestamp_of(std::string_view extractor) {
  if (extractor.ends_with(".LogAndSkipOnInvalidTimestamp")) {
    return InvalidTimestamp::kSkip;
  }
  if (extractor.ends_with(".UsePartitionTimeOnInvalidTimestamp")) {
    return InvalidTimestamp::kUsePartitionTime;
  }
  return unknown(fmt::format("timestamp extractor '{}'", extractor));
}

Result<testing::TopologyTestDriver::Options> driver_options(const Json& config) {
  testing::TopologyTestDriver::Options options;
  for (const auto& [name, value] : config.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    const auto only = kOnlyValue.find(name);
    if (name == "statestore.cache.max.bytes") {
      options.cache_bytes_max = std::stoul(text);
    } else if (name == "errors.dead.letter.queue.topic.name") {
      options.errors.dead_letter_topic = text;
    } else if (name == "deserialization.exception.handler") {
      options.errors.deserialization = response_of(text);
    } else if (name == "processing.exception.handler") {
      options.errors.processing = response_of(text);
    } else if (name == "production.exception.handler") {
      options.errors.production = response_of(text);
    } else if (name == "default.timestamp.extractor") {
      WEIR_TRY_ASSIGN(options.errors.invalid_timestamp, invalid_timestamp_of(text));
    } else if (std::find(kWaitingSettings.begin(), kWaitingSettings.end(), name) !=
                   kWaitingSettings.end() ||
               (only != kOnlyValue.end() && only->second != text)) {
      return not_supported(fmt::format("{}={}", name, text));
    } else if (only == kOnlyValue.end()) {
      return unknown(fmt::format("setting '{}'", name));
    }
  }
  return options;
}

Result<Built> build_described(const TopologyRow& row) {
  WEIR_TRY_ASSIGN(const OpBuilder* builder, find_builder(row.op));
  WEIR_TRY_ASSIGN(testing::TopologyTestDriver::Options driver, driver_options(row.config));
  const Description description{
      row.op, Params(row.params), row.in, row.out, {.require_names = false}};
  WEIR_TRY_ASSIGN(Topology topology, builder->build(description));
  const std::vector<std::string> left = description.params.not_asked();
  if (!left.empty()) {
    return unknown(fmt::format("parameter '{}' of op '{}'", left.front(), row.op));
  }
  return Built{std::move(topology), std::move(driver)};
}

}  // namespace

Params::Params(Json object) : Params(std::move(object), "", std::make_shared<Names>()) {}

Params::Params(Json object, std::string prefix, std::shared_ptr<Names> asked)
    : object_(std::move(object)), prefix_(std::move(prefix)), asked_(std::move(asked)) {}

const Json* Params::find(const std::string& name) const {
  asked_->insert(prefix_ + name);
  const auto found = object_.find(name);
  return found == object_.end() ? nullptr : &*found;
}

std::optional<std::string> Params::text(const std::string& name) const {
  const Json* value = find(name);
  return value == nullptr ? std::nullopt : std::optional(value->get<std::string>());
}

std::string Params::text(const std::string& name, std::string_view otherwise) const {
  return text(name).value_or(std::string(otherwise));
}

std::optional<std::int64_t> Params::number(const std::string& name) const {
  const Json* value = find(name);
  return value == nullptr ? std::nullopt : std::optional(value->get<std::int64_t>());
}

bool Params::flag(const std::string& name) const {
  const Json* value = find(name);
  return value != nullptr && value->get<bool>();
}

std::optional<Params> Params::object(const std::string& name) const {
  const Json* value = find(name);
  return value == nullptr ? std::nullopt
                          : std::optional(Params(*value, prefix_ + name + ".", asked_));
}

std::vector<Params> Params::objects(const std::string& name) const {
  std::vector<Params> list;
  if (const Json* value = find(name); value != nullptr) {
    for (const Json& element : *value) {
      list.push_back(Params(element, prefix_ + name + ".", asked_));
    }
  }
  return list;
}

Status Params::refuse(std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    if (const Json* value = find(name); value != nullptr) {
      return not_supported(fmt::format("{}: {}", prefix_ + name, value->dump()));
    }
  }
  return {};
}

std::vector<std::string> Params::not_asked() const {
  std::vector<std::string> names;
  collect(names);
  return names;
}

void Params::collect(std::vector<std::string>& names) const {
  for (const auto& [name, value] : object_.items()) {
    if (!asked_->contains(prefix_ + name)) {
      names.push_back(prefix_ + name);
      continue;
    }
    const Json list = value.is_array() ? value : Json::array({value});
    for (const Json& element : list) {
      if (element.is_object()) {
        Params(element, prefix_ + name + ".", asked_).collect(names);
      }
    }
  }
}

Error not_supported(std::string_view what) {
  return {Errc::kUnsupported, fmt::format("not supported yet: {}", what)};
}

Error unknown(std::string_view what) {
  return {Errc::kUnsupported, fmt::format("unknown {}", what)};
}

Result<StoreName> store_name(const Params& params, const std::string& parameter,
                             std::string_view otherwise) {
  const std::string kind = params.text(parameter, otherwise);
  if (kind == "none") {
    return StoreName::kGenerated;
  }
  if (kind == "rocksdb" || kind == "memory") {
    return StoreName::kGiven;
  }
  if (kind.starts_with("lru:") || kind.starts_with("versioned:")) {
    return not_supported(fmt::format("{}: {}", parameter, kind));
  }
  return unknown(fmt::format("{} '{}'", parameter, kind));
}

Result<Built> build_topology(const TopologyRow& row) {
  try {  // nlohmann-json and std::stoul report by exceptions
    return build_described(row);
  } catch (const std::exception& exception) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("op '{}' has bad parameters: {}", row.op, exception.what()));
  }
}

}  // namespace weir::streams_cases
