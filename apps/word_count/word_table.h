#pragma once

#include "apps/cli/output.h"

#include <weir/log/consumer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace weir::word_count {

// The latest count of each word, read from the output topic. Threading: confined to its owner.
class WordTable {
 public:
  // Reads `topic` from its start.
  static Result<std::unique_ptr<WordTable>> open(Backend& log, const std::string& topic);

  // Takes what is there. True when something changed.
  Result<bool> update();
  // Reads up to the end as of now.
  Status update_to_end();
  // Count, tab, word; by count descending, then bytes ascending. `top`: at most so many lines.
  std::string text(std::optional<std::size_t> top, cli::Format format) const;

 private:
  std::vector<TopicPartition> partitions_;
  std::unique_ptr<log::Consumer> consumer_;
  std::unordered_map<std::string, std::int64_t> counts_;
};

}  // namespace weir::word_count
