#include "apps/word_count/word_table.h"

#include "apps/cli/json_text.h"

#include <weir/state/serde.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace weir::word_count {

Result<std::unique_ptr<WordTable>> WordTable::open(Backend& log, const std::string& topic) {
  auto table = std::make_unique<WordTable>();
  WEIR_TRY_ASSIGN(const TopicDescription description, log.admin().describe_topic(topic));
  for (std::int32_t i = 0; i < description.partitions; ++i) {
    table->partitions_.push_back({topic, PartitionId(i)});
  }
  log::ConsumerOptions options;
  options.auto_offset_reset = "earliest";
  WEIR_TRY_ASSIGN(table->consumer_, log::Consumer::open(log, options));
  WEIR_TRY(table->consumer_->assign(table->partitions_));
  return table;
}

Result<bool> WordTable::update() {
  WEIR_TRY_ASSIGN(const log::ConsumerRecords records, consumer_->poll(Duration::zero()));
  for (const auto& [partition, record] : records) {
    if (record.key.is_null()) {
      continue;
    }
    const std::string word(record.key.view());
    if (record.value.is_null()) {
      counts_.erase(word);
      continue;
    }
    Result<std::int64_t> count = Serde<std::int64_t>::read(record.value.view());
    if (!count.ok()) {
      return std::move(count).error().with_context(
          fmt::format("{} offset {}", partition.to_string(), record.offset.value()));
    }
    counts_[word] = *count;
  }
  return !records.empty();
}

Status WordTable::update_to_end() {
  WEIR_TRY_ASSIGN(const auto ends, consumer_->end_offsets(partitions_));
  for (const auto& [partition, end] : ends) {
    for (;;) {
      WEIR_TRY_ASSIGN(const Offset position, consumer_->position(partition));
      if (position >= end) {
        break;
      }
      WEIR_TRY(update().status());
    }
  }
  return {};
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
