#pragma once

#include "operators/session/dead_letter_headers.h"
#include "operators/session/session_partition.h"

#include <weir/operators/session.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weir::internal {

// The dead-letter topic of a topic: the option, else "<topic>.dlq".
std::string dead_letter_topic_of(const SessionProcessorOptions& options, const std::string& topic);

// Writes dead letters: one session always to one partition, acknowledged by all before it is
// answered. What was not written stays pending: the lane waits and tries again.
//
// Threading: confined to a worker's thread; a write waits for the log.
// Bounds:    a record that the topic refuses for its size goes without its value, with
//            value.omitted=true and its coordinates; then also without its key and headers. Heads
//            of quarantined sessions are remembered for as many sessions as may be in quarantine;
//            after a restart they are unknown.
class DeadLetterWriter {
 public:
  using Answer = std::function<void(RunId letter, bool ok)>;

  // Borrows all but the sink.
  DeadLetterWriter(std::unique_ptr<RecordSink> sink, const SessionProcessorOptions& options,
                   const SessionPartitions& partitions, const Clock& clock);
  // Answers each letter once. Returns how many were written.
  std::size_t write(std::span<const DeadLetter> letters, const Answer& answer);

 private:
  Status send(const DeadLetter& letter);
  Result<SinkTopicInfo> topic_of(const std::string& source);
  std::string_view quarantine_head(const DeadLetter& letter, const std::string& event_id);
  Timestamp wall_time(MonotonicTime time) const;

  std::unique_ptr<RecordSink> sink_;
  const SessionProcessorOptions& options_;
  const SessionPartitions& partitions_;
  const Clock& clock_;
  std::map<std::string, SinkTopicInfo> topics_;          // by source topic
  std::map<std::string, std::string> quarantine_heads_;  // event id, by session
};

}  // namespace weir::internal
