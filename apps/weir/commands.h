#pragma once

#include "apps/cli/options.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// One function a command; each returns the exit code. The options are what main.cc parsed.

namespace weir::cli {

struct TopicCreateOptions {
  std::string name;
  std::int32_t partitions = 1;
  std::vector<std::string> config;  // "k=v"
};
int topic_create(const CommonOptions& common, const TopicCreateOptions& options);
int topic_list(const CommonOptions& common);
// Every topic when `name` is empty.
int topic_describe(const CommonOptions& common, const std::string& name);
int topic_delete(const CommonOptions& common, const std::string& name);

struct ProduceOptions {
  std::string topic;
  bool parse_key = false;
  std::string key_separator = "\t";
  std::optional<std::int32_t> partition;
  std::vector<std::string> config;  // producer settings, "k=v"
};
int produce(const CommonOptions& common, const ProduceOptions& options);

struct ConsumeOptions {
  std::string topic;
  std::optional<std::int32_t> partition;
  std::optional<std::int64_t> offset;
  std::optional<std::uint64_t> max_messages;
  bool follow = false;
  bool print_key = false;
  bool print_headers = false;
  bool print_offset = false;
  bool print_timestamp = false;
  std::string separator = "\t";
  std::string key_format = "string";  // a serde's name, or hex
  std::string value_format = "string";
};
int consume(const CommonOptions& common, const ConsumeOptions& options);

struct StateOptions {
  std::string application;
  std::string store;
  std::optional<std::string> key;   // get
  std::optional<std::string> from;  // scan
  std::optional<std::string> to;
};
int state_get(const CommonOptions& common, const StateOptions& options);
int state_scan(const CommonOptions& common, const StateOptions& options);

int log_dump(const CommonOptions& common, const std::string& path);
int version(const CommonOptions& common);

inline constexpr const char* kProgram = "weir";

}  // namespace weir::cli
