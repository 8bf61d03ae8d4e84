#pragma once

#include "apps/cli/options.h"

#include <weir/log/embedded_log.h>

#include <optional>
#include <string>
#include <vector>

namespace weir::cli {

// One line of `group describe`.
struct GroupLag {
  TopicPartition partition;
  CommittedOffset committed;
  Offset end;  // high watermark
  std::int64_t lag() const;
};

Result<std::vector<GroupLag>> group_lags(Admin& admin, const std::string& group);
// As text: GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG METADATA.
void print_group_lags(Output& out, const std::string& group, const std::vector<GroupLag>& lags);
// One object.
std::string group_lag_json(const std::string& group, const GroupLag& lag);

// Whether a tool may move the group's offsets: not where an application of that name runs, or keeps
// what it read in stores, which would no longer fit. Errors: kLocked, kInvalidArgument, both with
// the next step; kCorrupt (its plan).
Status check_group_may_move(log::EmbeddedLog& log, const std::string& group);

}  // namespace weir::cli
