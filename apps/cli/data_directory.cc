#include "apps/cli/data_directory.h"

#include <weir/runtime/file_system.h>

#include <fmt/core.h>

namespace weir::cli {

Result<std::unique_ptr<log::EmbeddedLog>> open_for_reading(const std::string& data) {
  log::EmbeddedLogOptions options;
  options.read_only = true;
  return log::EmbeddedLog::open(data, options);
}

Result<std::unique_ptr<log::EmbeddedLog>> open_existing(const std::string& data) {
  if (!path_exists(posix_file_system(), join_path(data, "log/meta.properties"))) {
    return Error(Errc::kNotFound,
                 fmt::format("{} is no Weir data directory (it has no log/meta.properties); name "
                             "one with --data, or begin one with: weir topic create TOPIC",
                             data));
  }
  return open_for_writing(data);
}

Result<std::unique_ptr<log::EmbeddedLog>> open_for_writing(const std::string& data) {
  return log::EmbeddedLog::open(data);
}

}  // namespace weir::cli
