#include "apps/cli/columns.h"

#include <algorithm>

namespace weir::cli {

void Columns::print(Output& out) const {
  if (rows_.size() == 1) {
    return;
  }
  const auto cell = [](const std::string& text) {
    return text.empty() ? std::string_view("-") : std::string_view(text);
  };
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], cell(row[i]).size());
    }
  }
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      line += cell(row[i]);
      if (i + 1 < widths.size()) {
        line.append(widths[i] - cell(row[i]).size() + 2, ' ');
      }
    }
    out.line(line);
  }
}

}  // namespace weir::cli
