#pragma once

#include <weir/runtime/backend.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace weir::cli {

// Reads a topic from its start, all partitions. Threading: confined to its owner.
class TopicReader {
 public:
  // `log` outlives the reader. Errors: kUnknownTopic.
  static Result<std::unique_ptr<TopicReader>> open(Backend& log, const std::string& topic);

  using Take = std::function<Status(const RecordView&)>;
  // Gives what is there, without waiting. True when there was something. An error of `take` gets
  // partition and offset in front.
  Result<bool> update(const Take& take);
  // Reads up to the end as of now.
  Status update_to_end(const Take& take);

 private:
  explicit TopicReader(Backend& log) : log_(log) {}

  Backend& log_;
  std::vector<TopicPartition> partitions_;
  std::unique_ptr<RecordSource> source_;
};

}  // namespace weir::cli
