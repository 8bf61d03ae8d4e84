#include "log/client/offset_reset.h"

#include <weir/log/consumer.h>
#include <weir/log/settings.h>

#include <array>
#include <chrono>

namespace weir::log {
namespace {

struct ConsumerSettings {
  std::string group_id;
  std::string auto_offset_reset = "latest";
  bool enable_auto_commit = true;
  std::int64_t auto_commit_interval_ms = 5'000;
  std::int64_t max_poll_records = 500;
  std::string isolation_level = "read_uncommitted";
  std::int64_t fetch_max_bytes = 64 << 10;
  std::int64_t max_partition_fetch_bytes = 1 << 20;
  bool check_crcs = true;
};

using P = Property<ConsumerSettings>;
const std::array kProperties{
    P{.name = "group.id",
      .member = &ConsumerSettings::group_id,
      .doc = "Group of the committed offsets."},
    P{.name = "auto.offset.reset",
      .member = &ConsumerSettings::auto_offset_reset,
      .doc = "Where to start without a committed offset: earliest, latest, none, "
             "by_duration:PnDTnHnMn.nS."},
    P{.name = "enable.auto.commit",
      .member = &ConsumerSettings::enable_auto_commit,
      .doc = "Commit what poll() gave when it is called again, and at close."},
    P{.name = "auto.commit.interval.ms",
      .member = &ConsumerSettings::auto_commit_interval_ms,
      .min = 0,
      .max = INT32_MAX,
      .doc = "Time between automatic commits."},
    P{.name = "max.poll.records",
      .member = &ConsumerSettings::max_poll_records,
      .min = 1,
      .max = INT32_MAX,
      .doc = "Records that one poll returns at most."},
    P{.name = "isolation.level",
      .member = &ConsumerSettings::isolation_level,
      .one_of = "read_uncommitted,read_committed",
      .doc = "Whether records of open and aborted transactions are read."},
    P{.name = "fetch.max.bytes",
      .member = &ConsumerSettings::fetch_max_bytes,
      .min = 1,
      .max = INT32_MAX,
      .doc = "Bytes that one fetch returns at most, about."},
    P{.name = "max.partition.fetch.bytes",
      .member = &ConsumerSettings::max_partition_fetch_bytes,
      .min = 1,
      .max = INT32_MAX,
      .doc = "The same for one partition."},
    P{.name = "check.crcs",
      .member = &ConsumerSettings::check_crcs,
      .doc = "Verify batches read from disk."},
};

}  // namespace

Result<ConsumerOptions> ConsumerOptions::parse(const std::map<std::string, std::string>& settings) {
  std::vector<std::string> problems;
  if (const auto reset = settings.find("auto.offset.reset"); reset != settings.end()) {
    if (const auto parsed = OffsetReset::parse(reset->second); !parsed.ok()) {
      problems.push_back(parsed.error().message());
    }
  }
  const Result<ConsumerSettings> read =
      parse_settings<ConsumerSettings>("consumer", kProperties, settings);
  if (!read.ok()) {
    problems.insert(problems.begin(), read.error().message());
  } else if (read->group_id.empty() && settings.contains("enable.auto.commit") &&
             read->enable_auto_commit) {
    problems.emplace_back("enable.auto.commit=true needs a group.id to commit for");
  }
  if (!problems.empty()) {
    std::string text;
    for (const std::string& problem : problems) {
      text += (text.empty() ? "" : "\n") + problem;
    }
    return Error(Errc::kInvalidConfig, std::move(text));
  }
  ConsumerOptions options;
  options.group_id = read->group_id;
  options.auto_offset_reset = read->auto_offset_reset;
  options.auto_commit = read->enable_auto_commit;
  options.auto_commit_interval = std::chrono::milliseconds(read->auto_commit_interval_ms);
  options.poll_records_max = static_cast<std::size_t>(read->max_poll_records);
  options.isolation_level = read->isolation_level == "read_committed"
                                ? IsolationLevel::kReadCommitted
                                : IsolationLevel::kReadUncommitted;
  options.poll_bytes_max = static_cast<std::size_t>(read->fetch_max_bytes);
  options.partition_bytes_max = static_cast<std::size_t>(read->max_partition_fetch_bytes);
  options.check_crcs = read->check_crcs;
  return options;
}

std::vector<SettingDescription> consumer_settings() {
  return describe_settings<ConsumerSettings>(kProperties);
}

}  // namespace weir::log
