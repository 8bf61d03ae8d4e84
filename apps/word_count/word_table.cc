#include "apps/word_count/word_table.h"

#include "apps/cli/json_text.h"

#include <weir/state/serde.h>

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace weir::word_count {

Result<std::unique_ptr<cli::ResultTable>> WordTable::open(Backend& log, const std::string& topic) {
  WEIR_TRY_ASSIGN(std::unique_ptr<cli::TopicReader> reader, cli::TopicReader::open(log, topic));
  return std::unique_ptr<cli::ResultTable>(std::make_unique<WordTable>(std::move(reader)));
}

Status WordTable::take(const RecordView& record) {
  if (record.key.is_null()) {
    return {};
  }
  const std::string word(record.key.view());
  if (record.value.is_null()) {
    counts_.erase(word);
    return {};
  }
  WEIR_TRY_ASSIGN(counts_[word], Serde<std::int64_t>::read(record.value.view()));
  return {};
}

Result<bool> WordTable::update() {
  return reader_->update([this](const RecordView& record) { return take(record); });
}

Status WordTable::update_to_end() {
  return reader_->update_to_end([this](const RecordView& record) { return take(record); });
}

std::string WordTable::text(std::optional<std::size_t> top, cli::Format format) const {
  std::vector<std::pair<std::int64_t, std::string_view>> rows;
  rows.reserve(counts_.size());
  for (const auto& [word, count] : counts_) {
    rows.emplace_back(count, word);
  }
  const auto earlier = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  };
  const std::size_t shown = std::min(rows.size(), top.value_or(rows.size()));
  std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shown), rows.end(),
                    earlier);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [count, word] = rows[i];
    text += format == cli::Format::kJson
                ? fmt::format("{{\"word\":{},\"count\":{}}}\n", cli::json_bytes(word), count)
                : fmt::format("{}\t{}\n", count, word);
  }
  return text;
}

}  // namespace weir::word_count
