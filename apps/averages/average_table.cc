#include "apps/averages/average_table.h"

#include "apps/cli/json_text.h"

#include <fmt/core.h>

namespace weir::averages {

std::string AverageTable::text(std::optional<std::size_t> top, cli::Format format) const {
  std::string text;
  std::size_t shown = 0;
  for (const auto& [symbol, average] : rows()) {
    if (top && shown++ >= *top) {
      break;
    }
    text += format == cli::Format::kJson
                ? fmt::format("{{\"symbol\":{},\"average\":{},\"count\":{}}}\n",
                              cli::json_bytes(ByteView(symbol)), average.average, average.count)
                : fmt::format("{}\t{}\t{}\n", symbol, average.average, average.count);
  }
  return text;
}

}  // namespace weir::averages
