#pragma once

#include "apps/cli/latest_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace weir::word_count {

// The latest count of each word.
class WordTable : public cli::LatestTable<std::unordered_map<std::string, std::int64_t>> {
 public:
  using LatestTable::LatestTable;

  // Count, tab, word; by count descending, then bytes ascending.
  std::string text(std::optional<std::size_t> top, cli::Format format) const override;
};

}  // namespace weir::word_count
