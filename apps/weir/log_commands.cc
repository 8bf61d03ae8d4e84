#include "apps/cli/exit_codes.h"
#include "apps/cli/json_text.h"
#include "apps/weir/commands.h"

#include <weir/log/log_dump.h>

#include <fmt/core.h>

namespace weir::cli {

int log_dump(const CommonOptions& common, const std::string& path) {
  Output out;
  log::DumpOptions options;
  options.json = common.format == Format::kJson;
  const Status dumped = log::dump_log(posix_file_system(), path, options,
                                      [&out](std::string_view text) { out.write(text); });
  out.flush();
  return dumped.ok() ? kOk : report(kProgram, dumped.error());
}

int version(const CommonOptions& common) {
  Output out;
  if (common.format == Format::kJson) {
    out.line(fmt::format(R"({{"version":{}}})", json_string(WEIR_VERSION)));
  } else {
    out.line(fmt::format("weir {}", WEIR_VERSION));
  }
  return kOk;
}

}  // namespace weir::cli
