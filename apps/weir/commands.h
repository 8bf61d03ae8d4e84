#pragma once

#include "apps/cli/options.h"
#include "apps/weir/offset_moves.h"
#include "apps/weir/record_text.h"

#include <weir/log/embedded_log.h>

#include <cstdint>
#include <functional>
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

struct TopicAlterOptions {
  std::string name;
  std::optional<std::int32_t> partitions;
  bool force = false;
  std::vector<std::string> config;         // "k=v"
  std::vector<std::string> delete_config;  // "k"
};
int topic_alter(const CommonOptions& common, const TopicAlterOptions& options);

struct DeleteRecordsOptions {
  std::string name;
  std::int32_t partition = 0;
  std::int64_t before = -1;  // -1: up to the high watermark
};
int topic_delete_records(const CommonOptions& common, const DeleteRecordsOptions& options);
int topic_compact(const CommonOptions& common, const std::string& name);

struct ProduceOptions {
  std::string topic;
  bool parse_key = false;
  bool parse_partition = false;
  std::string key_separator = "\t";
  std::optional<std::string> null_marker;
  std::vector<std::string> headers;  // "name=value", of every record
  std::optional<std::int32_t> partition;
  std::optional<std::string> acks;
  std::optional<std::string> compression;
  std::vector<std::string> config;  // producer settings, "k=v"
};
int produce(const CommonOptions& common, const ProduceOptions& options);

struct ConsumeOptions {
  std::string topic;
  std::optional<std::int32_t> partition;
  std::optional<std::int64_t> offset;
  std::optional<std::string> time;
  bool latest = false;
  std::string group;  // empty: none, nothing is committed
  std::optional<std::uint64_t> max_messages;
  bool follow = false;
  std::string isolation_level = "read_uncommitted";
  RecordFormat format;
};
int consume(const CommonOptions& common, const ConsumeOptions& options);

struct ReplayOptions {
  std::string from_dir;
  std::string topic;  // empty: the only one
  std::string to;     // empty: printed
  std::optional<std::int32_t> partition;
  std::optional<std::string> from_time;
  bool uncommitted = false;
  RecordFormat format;
};
int replay(const CommonOptions& common, const ReplayOptions& options);

int group_list(const CommonOptions& common);
struct GroupDescribeOptions {
  bool members = false;  // state and members instead of offsets
};
int group_describe(const CommonOptions& common, const std::string& group,
                   const GroupDescribeOptions& options);
int group_delete(const CommonOptions& common, const std::string& group);
struct GroupResetOptions {
  std::string group;
  std::vector<std::string> topics;
  std::vector<std::int32_t> partitions;  // empty: all
  OffsetTargetOptions target;
  bool execute = false;
};
int group_reset(const CommonOptions& common, const GroupResetOptions& options);

int app_list(const CommonOptions& common);
int app_describe(const CommonOptions& common, const std::string& application);
struct AppResetOptions {
  std::string application;
  OffsetTargetOptions target;  // of the input topics; to the earliest without one
  bool execute = false;
};
int app_reset(const CommonOptions& common, const AppResetOptions& options);

struct DlqOptions {
  std::string topic;  // of dead letters
  std::optional<std::string> session;
  std::optional<std::string> reason;
  std::int32_t partition = 0;      // show
  std::int64_t offset = 0;         // show
  std::uint32_t redrives_max = 3;  // redrive
  bool execute = false;            // redrive
};
int dlq_list(const CommonOptions& common, const DlqOptions& options);
int dlq_show(const CommonOptions& common, const DlqOptions& options);
int dlq_redrive(const CommonOptions& common, const DlqOptions& options);

// Settings of every kind when `kind` is empty.
int config_list(const CommonOptions& common, const std::string& kind);

struct StateOptions {
  std::string application;
  std::string store;
  std::optional<std::string> key;   // get
  std::optional<std::string> from;  // scan
  std::optional<std::string> to;
};
int state_get(const CommonOptions& common, const StateOptions& options);
int state_scan(const CommonOptions& common, const StateOptions& options);

struct LogDumpOptions {
  std::string path;
  bool skip_records = false;
  // At most one; else by the folder's topic.
  bool offsets_decoder = false;
  bool transaction_log_decoder = false;
  bool cluster_metadata_decoder = false;
  bool no_decoder = false;
};
int log_dump(const CommonOptions& common, const LogDumpOptions& options);
int log_verify(const CommonOptions& common, const std::vector<std::string>& paths);
// Of --data when `directory` is empty.
int log_seal(const CommonOptions& common, const std::string& directory);
int log_recover(const CommonOptions& common, const std::string& directory);
int version(const CommonOptions& common);

enum class Access {
  kRead,    // beside a holder too
  kWrite,   // of a directory that exists
  kCreate,  // which is made if needed
};
// Opens the data directory, runs `command`, closes; reports what went wrong and returns the exit
// code.
int with_log(const CommonOptions& common, Access access,
             const std::function<Status(log::EmbeddedLog&)>& command);

inline constexpr const char* kProgram = "weir";

}  // namespace weir::cli
