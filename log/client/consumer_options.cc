#include "log/client/assignors.h"
#include "log/client/offset_reset.h"

#include <weir/log/consumer.h>
#include <weir/log/settings.h>

#include <fmt/core.h>

#include <array>
#include <chrono>
#include <utility>

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
  std::string assignors{"cooperative-sticky"};
  std::string instance_id;
  std::string client_id;
  std::int64_t session_timeout_ms = 45'000;
  std::int64_t max_poll_interval_ms = 300'000;
};

// "range, cooperative-sticky" in its parts.
std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + ",") {
    if (c == ',') {
      if (!part.empty()) {
        parts.push_back(std::exchange(part, {}));
      }
    } else if (c != ' ') {
      part.push_back(c);
    }
  }
  return parts;
}

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
    P{.name = "partition.assignment.strategy",
      .member = &ConsumerSettings::assignors,
      .doc = "How a group shares out partitions, the best first: range, roundrobin, "
             "cooperative-sticky."},
    P{.name = "group.instance.id",
      .member = &ConsumerSettings::instance_id,
      .doc = "Makes it a static member, which keeps its partitions over a restart."},
    P{.name = "client.id",
      .member = &ConsumerSettings::client_id,
      .doc = "Name in the descriptions of groups."},
    P{.name = "session.timeout.ms",
      .member = &ConsumerSettings::session_timeout_ms,
      .min = 1,
      .max = INT32_MAX,
      .doc = "How long a member's place is kept that is not heard of."},
    P{.name = "max.poll.interval.ms",
      .member = &ConsumerSettings::max_poll_interval_ms,
      .min = 1,
      .max = INT32_MAX,
      .doc = "A member that does not poll for so long loses its partitions."},
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
  if (read.ok()) {
    const std::vector<std::string> names = split_list(read->assignors);
    if (names.empty()) {
      problems.emplace_back("partition.assignment.strategy is empty; use cooperative-sticky");
    }
    for (const std::string& name : names) {
      if (!parse_assignment_strategy(name)) {
        problems.push_back(fmt::format(
            "partition.assignment.strategy={}: unknown; there are range, roundrobin and "
            "cooperative-sticky",
            name));
      }
    }
  }
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
  options.assignors = split_list(read->assignors);
  options.instance_id = read->instance_id;
  options.client_id = read->client_id;
  options.session_timeout = std::chrono::milliseconds(read->session_timeout_ms);
  options.max_poll_interval = std::chrono::milliseconds(read->max_poll_interval_ms);
  return options;
}

std::vector<SettingDescription> consumer_settings() {
  return describe_settings<ConsumerSettings>(kProperties);
}

}  // namespace weir::log
