#pragma once

#include <weir/runtime/backend.h>

#include <functional>
#include <string>
#include <unordered_set>

namespace weir::internal {

// Every record of a topic up to its end as of now, partition by partition.
Status read_to_end(Backend& log, const std::string& topic,
                   const std::function<Status(const TopicPartition&, const RecordView&)>& take);

// "<topic>.redriven", compacted: key "topic id/partition/offset" of a letter that was sent again.
std::string redriven_topic_of(const std::string& topic);
std::string redriven_key(const Uuid& topic_id, const TopicPartition& partition, Offset offset);

// Which letters of a topic were sent again. Immutable value.
// Bounds: about 60 bytes a letter that was.
class RedrivenLetters {
 public:
  // Errors: kUnknownTopic (`topic`; without its ".redriven" nothing was sent).
  static Result<RedrivenLetters> read(Backend& log, const std::string& topic);
  bool contains(const TopicPartition& partition, Offset offset) const;
  const Uuid& topic_id() const { return topic_id_; }

 private:
  Uuid topic_id_;
  std::unordered_set<std::string> keys_;
};

}  // namespace weir::internal
