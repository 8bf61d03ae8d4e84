#include "apps/cli/data_directory.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/json_text.h"
#include "apps/weir/commands.h"

#include <fmt/core.h>

namespace weir::cli {
namespace {

std::string config_json(const TopicConfig& config) {
  std::string text = "{";
  for (const auto& [key, value] : config) {
    text +=
        fmt::format("{}{}:{}", text.size() == 1 ? "" : ",", json_string(key), json_string(value));
  }
  return text + "}";
}

std::string config_text(const TopicConfig& config) {
  std::string text;
  for (const auto& [key, value] : config) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  }
  return text.empty() ? "-" : text;
}

std::string topic_json(const TopicDescription& topic, const std::string& partitions) {
  return fmt::format(R"({{"topic":{},"id":{},"partitions":{},"internal":{},"config":{}}})",
                     json_string(topic.name), json_string(topic.id.to_string()), partitions,
                     topic.internal, config_json(topic.config));
}

Status describe_one(Admin& admin, const TopicDescription& topic, Format format, Output& out) {
  std::string partitions;
  std::string lines;
  for (std::int32_t i = 0; i < topic.partitions; ++i) {
    WEIR_TRY_ASSIGN(const PartitionOffsets at, admin.offsets({topic.name, PartitionId(i)}));
    partitions += fmt::format(
        R"({}{{"partition":{},"leaderEpoch":{},"logStartOffset":{},"highWatermark":{},"logEndOffset":{}}})",
        i == 0 ? "" : ",", i, at.leader_epoch.value(), at.log_start.value(),
        at.high_watermark.value(), at.log_end.value());
    lines += fmt::format(
        "  Partition: {}\tLeaderEpoch: {}\tLogStartOffset: {}\tHighWatermark: {}\tLogEndOffset: "
        "{}\n",
        i, at.leader_epoch.value(), at.log_start.value(), at.high_watermark.value(),
        at.log_end.value());
  }
  if (format == Format::kJson) {
    out.line(topic_json(topic, "[" + partitions + "]"));
  } else {
    out.write(fmt::format("Topic: {}\tTopicId: {}\tPartitionCount: {}\tConfigs: {}\n{}", topic.name,
                          topic.id.to_string(), topic.partitions, config_text(topic.config),
                          lines));
  }
  return {};
}

}  // namespace

int topic_create(const CommonOptions& common, const TopicCreateOptions& options) {
  Result<std::map<std::string, std::string>> config = parse_pairs(options.config);
  if (!config.ok()) {
    return report(kProgram, config.error());
  }
  auto log = open_for_writing(common.data);
  if (!log.ok()) {
    return report(kProgram, log.error());
  }
  Result<TopicDescription> made =
      (*log)->admin().create_topic({options.name, options.partitions, std::move(*config)});
  if (!made.ok()) {
    (*log)->close().ignore("nothing was written");
    return report(kProgram, made.error());
  }
  Output out;
  if (common.format == Format::kJson) {
    out.line(topic_json(*made, std::to_string(made->partitions)));
  } else {
    out.line(fmt::format("Created topic {}.", made->name));
  }
  const Status closed = (*log)->close();
  return closed.ok() ? kOk : report(kProgram, closed.error());
}

int topic_list(const CommonOptions& common) {
  auto log = open_for_reading(common.data);
  if (!log.ok()) {
    return report(kProgram, log.error());
  }
  Result<std::vector<TopicDescription>> topics = (*log)->admin().list_topics();
  if (!topics.ok()) {
    return report(kProgram, topics.error());
  }
  Output out;
  for (const TopicDescription& topic : *topics) {
    out.line(common.format == Format::kJson ? topic_json(topic, std::to_string(topic.partitions))
                                            : topic.name);
  }
  return kOk;
}

int topic_describe(const CommonOptions& common, const std::string& name) {
  auto log = open_for_reading(common.data);
  if (!log.ok()) {
    return report(kProgram, log.error());
  }
  Admin& admin = (*log)->admin();
  std::vector<TopicDescription> topics;
  if (name.empty()) {
    Result<std::vector<TopicDescription>> all = admin.list_topics();
    if (!all.ok()) {
      return report(kProgram, all.error());
    }
    topics = std::move(*all);
  } else {
    Result<TopicDescription> one = admin.describe_topic(name);
    if (!one.ok()) {
      return report(kProgram, one.error());
    }
    topics.push_back(std::move(*one));
  }
  Output out;
  for (const TopicDescription& topic : topics) {
    if (Status described = describe_one(admin, topic, common.format, out); !described.ok()) {
      return report(kProgram, described.error());
    }
  }
  return kOk;
}

int topic_delete(const CommonOptions& common, const std::string& name) {
  auto log = open_for_writing(common.data);
  if (!log.ok()) {
    return report(kProgram, log.error());
  }
  const Status deleted = (*log)->admin().delete_topic(name);
  const Status closed = (*log)->close();
  for (const Status* status : {&deleted, &closed}) {
    if (!status->ok()) {
      return report(kProgram, status->error());
    }
  }
  Output out;
  if (common.format == Format::kJson) {
    out.line(fmt::format(R"({{"topic":{},"deleted":true}})", json_string(name)));
  } else {
    out.line(fmt::format("Deleted topic {}.", name));
  }
  return kOk;
}

}  // namespace weir::cli
