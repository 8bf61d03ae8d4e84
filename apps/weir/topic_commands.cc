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
  return with_log(common, Access::kCreate, [&](log::EmbeddedLog& log) -> Status {
    WEIR_TRY_ASSIGN(const TopicDescription made,
                    log.admin().create_topic({options.name, options.partitions, *config}));
    Output out;
    out.line(common.format == Format::kJson ? topic_json(made, std::to_string(made.partitions))
                                            : fmt::format("Created topic {}.", made.name));
    return {};
  });
}

int topic_list(const CommonOptions& common) {
  return with_log(common, Access::kRead, [&](log::EmbeddedLog& log) -> Status {
    WEIR_TRY_ASSIGN(const std::vector<TopicDescription> topics, log.admin().list_topics());
    Output out;
    for (const TopicDescription& topic : topics) {
      out.line(common.format == Format::kJson ? topic_json(topic, std::to_string(topic.partitions))
                                              : topic.name);
    }
    return {};
  });
}

int topic_describe(const CommonOptions& common, const std::string& name) {
  return with_log(common, Access::kRead, [&](log::EmbeddedLog& log) -> Status {
    Admin& admin = log.admin();
    std::vector<TopicDescription> topics;
    if (name.empty()) {
      WEIR_TRY_ASSIGN(topics, admin.list_topics());
    } else {
      WEIR_TRY_ASSIGN(TopicDescription one, admin.describe_topic(name));
      topics.push_back(std::move(one));
    }
    Output out;
    for (const TopicDescription& topic : topics) {
      WEIR_TRY(describe_one(admin, topic, common.format, out));
    }
    return {};
  });
}

int topic_alter(const CommonOptions& common, const TopicAlterOptions& options) {
  Result<std::map<std::string, std::string>> config = parse_pairs(options.config);
  if (!config.ok()) {
    return report(kProgram, config.error());
  }
  if (!options.partitions && config->empty() && options.delete_config.empty()) {
    return report(kProgram, Error(Errc::kInvalidArgument,
                                  "nothing is to be changed; give --partitions, --config or "
                                  "--delete-config"));
  }
  return with_log(common, Access::kWrite, [&](log::EmbeddedLog& log) -> Status {
    Admin& admin = log.admin();
    if (!config->empty() || !options.delete_config.empty()) {
      WEIR_TRY(admin.alter_topic(options.name, *config, options.delete_config));
    }
    if (options.partitions) {
      WEIR_TRY(admin.grow_topic(options.name, *options.partitions,
                                options.force ? OrderedGrowth::kForce : OrderedGrowth::kRefuse));
    }
    WEIR_TRY_ASSIGN(const TopicDescription topic, admin.describe_topic(options.name));
    Output out;
    out.line(common.format == Format::kJson
                 ? topic_json(topic, std::to_string(topic.partitions))
                 : fmt::format("Altered topic {}: PartitionCount: {}\tConfigs: {}", topic.name,
                               topic.partitions, config_text(topic.config)));
    return {};
  });
}

int topic_delete_records(const CommonOptions& common, const DeleteRecordsOptions& options) {
  if (options.before < kNoOffset.value()) {
    return report(
        kProgram,
        Error(Errc::kInvalidArgument,
              fmt::format("--before {} is no offset; give 0 or more, or -1 for everything "
                          "up to the high watermark",
                          options.before)));
  }
  return with_log(common, Access::kWrite, [&](log::EmbeddedLog& log) -> Status {
    const TopicPartition partition{options.name, PartitionId(options.partition)};
    WEIR_TRY(log.admin().delete_records(partition, Offset(options.before)));
    WEIR_TRY_ASSIGN(const PartitionOffsets at, log.admin().offsets(partition));
    Output out;
    out.line(common.format == Format::kJson
                 ? fmt::format(R"({{"topic":{},"partition":{},"logStartOffset":{}}})",
                               json_string(options.name), options.partition, at.log_start.value())
                 : fmt::format("Deleted records of {} before offset {}.", partition.to_string(),
                               at.log_start.value()));
    return {};
  });
}

int topic_compact(const CommonOptions& common, const std::string& name) {
  return with_log(common, Access::kWrite, [&](log::EmbeddedLog& log) -> Status {
    WEIR_TRY(log.compact_topic(name));
    const log::CleanerProgress done = log.cleaner_progress();
    Output out;
    out.line(common.format == Format::kJson
                 ? fmt::format(R"({{"topic":{},"records":{},"bytesRead":{},"bytesWritten":{}}})",
                               json_string(name), done.records_compacted, done.bytes_read,
                               done.bytes_written)
                 : fmt::format("Compacted topic {}: {} records removed, {} of {} bytes are left.",
                               name, done.records_compacted, done.bytes_written, done.bytes_read));
    return {};
  });
}

int topic_delete(const CommonOptions& common, const std::string& name) {
  return with_log(common, Access::kWrite, [&](log::EmbeddedLog& log) -> Status {
    WEIR_TRY(log.admin().delete_topic(name));
    Output out;
    out.line(common.format == Format::kJson
                 ? fmt::format(R"({{"topic":{},"deleted":true}})", json_string(name))
                 : fmt::format("Deleted topic {}.", name));
    return {};
  });
}

}  // namespace weir::cli
