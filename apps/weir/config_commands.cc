#include "apps/cli/columns.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/json_text.h"
#include "apps/weir/commands.h"

#include <weir/log/settings.h>
#include <weir/operators/app.h>

#include <fmt/core.h>

#include <utility>

namespace weir::cli {

int config_list(const CommonOptions& common, const std::string& kind) {
  const std::pair<std::string_view, std::vector<SettingDescription>> all[] = {
      {"log", log::log_settings()},
      {"topic", log::topic_settings()},
      {"producer", log::producer_settings()},
      {"consumer", log::consumer_settings()},
      {"app", describe_settings<AppOptions>(app_properties())}};
  Columns columns({"KIND", "NAME", "DEFAULT", "RANGE", "MEANING"});
  Output out;
  for (const auto& [name, settings] : all) {
    if (!kind.empty() && kind != name) {
      continue;
    }
    for (const SettingDescription& setting : settings) {
      if (common.format == Format::kText) {
        columns.add(
            {std::string(name), setting.name, setting.default_value, setting.range, setting.doc});
      } else {
        out.line(fmt::format(R"({{"kind":"{}","name":{},"default":{},"range":{},"doc":{}}})", name,
                             json_string(setting.name), json_string(setting.default_value),
                             json_string(setting.range), json_string(setting.doc)));
      }
    }
  }
  columns.print(out);
  return kOk;
}

}  // namespace weir::cli
