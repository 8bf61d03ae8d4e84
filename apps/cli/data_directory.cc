#include "apps/cli/data_directory.h"

namespace weir::cli {

Result<std::unique_ptr<log::EmbeddedLog>> open_for_reading(const std::string& data) {
  log::EmbeddedLogOptions options;
  options.read_only = true;
  return log::EmbeddedLog::open(data, options);
}

Result<std::unique_ptr<log::EmbeddedLog>> open_for_writing(const std::string& data) {
  return log::EmbeddedLog::open(data);
}

}  // namespace weir::cli
