#pragma once

#include "apps/cli/stream_program.h"
#include "apps/cli/topic_reader.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace weir::word_count {

// The latest count of each word, read from the output topic. Threading: confined to its owner.
class WordTable : public cli::ResultTable {
 public:
  // Reads `topic` from its start.
  static Result<std::unique_ptr<cli::ResultTable>> open(Backend& log, const std::string& topic);
  explicit WordTable(std::unique_ptr<cli::TopicReader> reader) : reader_(std::move(reader)) {}

  Result<bool> update() override;
  Status update_to_end() override;
  // Count, tab, word; by count descending, then bytes ascending.
  std::string text(std::optional<std::size_t> top, cli::Format format) const override;

 private:
  Status take(const RecordView& record);

  const std::unique_ptr<cli::TopicReader> reader_;
  std::unordered_map<std::string, std::int64_t> counts_;
};

}  // namespace weir::word_count
