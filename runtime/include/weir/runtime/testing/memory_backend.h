#pragma once

#include <weir/runtime/backend.h>
#include <weir/runtime/clock.h>

#include <memory>

namespace weir::testing {

// A log in memory behind the Backend port: topics, partitions, groups, offsets, back-pressure and
// faults, no files. For unit tests of operators and stores, and for pipelines that need no history.
//
// Threading: as the ports say.
class MemoryBackend : public Backend {
 public:
  // `clock` stamps records that have no timestamp; outlives the backend.
  explicit MemoryBackend(const Clock& clock);
  ~MemoryBackend() override;

  Admin& admin() override;
  Result<std::unique_ptr<RecordSource>> make_source(const SourceOptions& options) override;
  Result<std::unique_ptr<RecordSink>> make_sink(const SinkOptions& options) override;
  Result<std::unique_ptr<Group>> make_group(const std::string& group_id) override;

  // Faults, for tests. Each makes the next matching call fail once with `error`.
  enum class FaultPoint { kSend, kFlush, kCommit, kPoll };
  void fail_next(FaultPoint point, Error error);

  // Everything that a partition holds, from its log start, for assertions.
  struct OwnedRecord {
    std::optional<std::string> key;
    std::optional<std::string> value;
    Offset offset;
    Timestamp timestamp = kNoTimestamp;
    Headers headers;
  };
  std::vector<OwnedRecord> records(const TopicPartition& partition) const;

 private:
  struct State;
  class AdminImpl;
  std::unique_ptr<State> state_;
};

}  // namespace weir::testing
