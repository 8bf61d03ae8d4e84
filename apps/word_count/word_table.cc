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
  table->log_ = &log;
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
  WEIR_TRY_ASSIGN(const std::vector<log::Consumer::Batch> batches,
                  consumer_->poll(Duration::zero()));
  for (const log::Consumer::Batch& batch : batches) {
    for (const RecordView& record : batch.block.records) {
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
            fmt::format("{} offset {}", batch.partition->to_string(), record.offset.value()));
      }
      counts_[word] = *count;
    }
  }
  return !batches.empty();
}

Status WordTable::update_to_end() {
  std::vector<Offset> ends;
  for (const TopicPartition& partition : partitions_) {
    WEIR_TRY_ASSIGN(const PartitionOffsets at, log_->admin().offsets(partition));
    ends.push_back(at.high_watermark);
  }
  const auto behind = [&] {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (consumer_->position(partitions_[i]) < ends[i]) {
        return true;
      }
    }
    return false;
  };
  while (behind()) {
    WEIR_TRY(update().status());
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
