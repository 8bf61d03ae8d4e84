#pragma once

#include "apps/averages/pipeline.h"
#include "apps/cli/latest_table.h"

#include <map>
#include <optional>
#include <string>

namespace weir::averages {

// The latest average of each symbol.
class AverageTable : public cli::LatestTable<std::map<std::string, Average>> {
 public:
  using LatestTable::LatestTable;

  // Symbol, tab, average, tab, number of quotes; in the order of the symbols' bytes.
  std::string text(std::optional<std::size_t> top, cli::Format format) const override;
};

}  // namespace weir::averages
