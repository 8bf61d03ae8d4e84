#pragma once

#include "apps/cli/output.h"

#include <string>
#include <vector>

namespace weir::cli {

// Rows under a heading, each column as wide as its widest cell, two blanks between columns; an
// empty cell is "-". Bounds: keeps every row until print().
class Columns {
 public:
  explicit Columns(std::vector<std::string> heading) { rows_.push_back(std::move(heading)); }
  // Requires: as many cells as the heading has.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Nothing when there are no rows.
  void print(Output& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace weir::cli
