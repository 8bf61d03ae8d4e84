#include "apps/cli/data_directory.h"
#include "apps/cli/exit_codes.h"
#include "apps/weir/commands.h"

namespace weir::cli {

namespace {

Result<std::unique_ptr<log::EmbeddedLog>> open(const std::string& data, Access access) {
  switch (access) {
    case Access::kRead:
      return open_for_reading(data);
    case Access::kWrite:
      return open_existing(data);
    case Access::kCreate:
      break;
  }
  return open_for_writing(data);
}

}  // namespace

int with_log(const CommonOptions& common, Access access,
             const std::function<Status(log::EmbeddedLog&)>& command) {
  auto log = open(common.data, access);
  if (!log.ok()) {
    return report(kProgram, log.error());
  }
  const Status done = command(**log);
  const Status closed = (*log)->close();
  for (const Status* status : {&done, &closed}) {
    if (!status->ok()) {
      return report(kProgram, status->error());
    }
  }
  return kOk;
}

}  // namespace weir::cli
