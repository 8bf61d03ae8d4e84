#include "apps/averages/average_table.h"

#include "apps/cli/json_text.h"

#include <fmt/core.h>

namespace weir::averages {

Result<std::unique_ptr<cli::ResultTable>> AverageTable::open(Backend& log,
                                                             const std::string& topic) {
  WEIR_TRY_ASSIGN(std::unique_ptr<cli::TopicReader> reader, cli::TopicReader::open(log, topic));
  return std::unique_ptr<cli::ResultTable>(std::make_unique<AverageTable>(std::move(reader)));
}

Status AverageTable::take(const RecordView& record) {
  if (record.key.is_null()) {
    return {};
  }
  const std::string symbol(record.key.view());
  if (record.value.is_null()) {
    averages_.erase(symbol);
    return {};
  }
  WEIR_TRY_ASSIGN(averages_[symbol], Serde<Average>::read(record.value.view()));
  return {};
}

Result<bool> AverageTable::update() {
  return reader_->update([this](const RecordView& record) { return take(record); });
}

Status AverageTable::update_to_end() {
  return reader_->update_to_end([this](const RecordView& record) { return take(record); });
}

std::string AverageTable::text(std::optional<std::size_t> top, cli::Format format) const {
  std::string text;
  std::size_t shown = 0;
  for (const auto& [symbol, average] : averages_) {
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
