#pragma once

#include "apps/averages/pipeline.h"
#include "apps/cli/stream_program.h"
#include "apps/cli/topic_reader.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace weir::averages {

// The latest average of each symbol, read from the output topic. Threading: confined to its owner.
class AverageTable : public cli::ResultTable {
 public:
  // Reads `topic` from its start.
  static Result<std::unique_ptr<cli::ResultTable>> open(Backend& log, const std::string& topic);
  explicit AverageTable(std::unique_ptr<cli::TopicReader> reader) : reader_(std::move(reader)) {}

  Result<bool> update() override;
  Status update_to_end() override;
  // Symbol, tab, average, tab, number of quotes; in the order of the symbols' bytes.
  std::string text(std::optional<std::size_t> top, cli::Format format) const override;

 private:
  Status take(const RecordView& record);

  const std::unique_ptr<cli::TopicReader> reader_;
  std::map<std::string, Average> averages_;
};

}  // namespace weir::averages
