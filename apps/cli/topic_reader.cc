#include "apps/cli/topic_reader.h"

#include <fmt/core.h>

namespace weir::cli {

Result<std::unique_ptr<TopicReader>> TopicReader::open(Backend& log, const std::string& topic) {
  std::unique_ptr<TopicReader> reader(new TopicReader(log));
  WEIR_TRY_ASSIGN(const TopicDescription description, log.admin().describe_topic(topic));
  for (std::int32_t i = 0; i < description.partitions; ++i) {
    reader->partitions_.push_back({topic, PartitionId(i)});
  }
  WEIR_TRY_ASSIGN(reader->source_, log.make_source({}));
  WEIR_TRY(reader->source_->assign(reader->partitions_));
  for (std::uint32_t i = 0; i < reader->partitions_.size(); ++i) {
    WEIR_TRY_ASSIGN(const PartitionOffsets at, log.admin().offsets(reader->partitions_[i]));
    WEIR_TRY(reader->source_->seek(i, at.log_start));
  }
  return reader;
}

Result<bool> TopicReader::update(const Take& take) {
  WEIR_TRY_ASSIGN(const std::vector<RecordBlock> blocks, source_->poll(Duration::zero()));
  for (const RecordBlock& block : blocks) {
    WEIR_TRY(block.status);
    for (const RecordView& record : block.records) {
      Status taken = take(record);
      if (!taken.ok()) {
        return std::move(taken).error().with_context(fmt::format(
            "{} offset {}", partitions_[block.assignment].to_string(), record.offset.value()));
      }
    }
  }
  return !blocks.empty();
}

Status TopicReader::update_to_end(const Take& take) {
  std::vector<Offset> ends;
  for (const TopicPartition& partition : partitions_) {
    WEIR_TRY_ASSIGN(const PartitionOffsets at, log_.admin().offsets(partition));
    ends.push_back(at.high_watermark);
  }
  for (std::uint32_t i = 0; i < ends.size();) {
    if (source_->position(i) >= ends[i]) {
      ++i;
    } else {
      WEIR_TRY(update(take).status());
    }
  }
  return {};
}

}  // namespace weir::cli
