#include "apps/word_count/word_table.h"

#include "apps/cli/json_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace weir::word_count {

std::string WordTable::text(std::optional<std::size_t> top, cli::Format format) const {
  std::vector<std::pair<std::int64_t, std::string_view>> sorted;
  sorted.reserve(rows().size());
  for (const auto& [word, count] : rows()) {
    sorted.emplace_back(count, word);
  }
  const auto earlier = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  };
  const std::size_t shown = std::min(sorted.size(), top.value_or(sorted.size()));
  std::partial_sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(shown),
                    sorted.end(), earlier);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [count, word] = sorted[i];
    text += format == cli::Format::kJson
                ? fmt::format("{{\"word\":{},\"count\":{}}}\n", cli::json_bytes(word), count)
                : fmt::format("{}\t{}\n", count, word);
  }
  return text;
}

}  // namespace weir::word_count
