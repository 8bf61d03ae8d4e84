#pragma once

#include "operators/session/session_partition.h"

#include <weir/runtime/lanes.h>
#include <weir/state/key_value_store.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::internal {

// Effects of a worker's attempts (the port EffectScope): state in the partition's store, outputs in
// a sink. flush() makes durable what was promoted: outputs, then changelogs.
//
// Threading: confined to the worker's.
// Bounds:    outputs wait in the sink's buffer; a full one blocks, then the attempt is tried again.
class SessionEffects {
 public:
  struct Output {
    std::uint32_t topic = 0;  // index
    PartitionId partition;
    std::optional<std::string> key;
    std::optional<std::string> value;
    Timestamp timestamp = kNoTimestamp;
    Headers headers;
  };

  class Scope {
   public:
    Result<NullableBytes> get(ByteView name);
    Status put(ByteView name, NullableBytes value);
    Status emit(std::uint32_t output, const RecordRef& record);
    const SessionPartition& partition() const { return *partition_; }
    // The effects of this record, or of a later one of its session, are in the store already.
    Result<bool> is_applied();

   private:
    friend class SessionEffects;
    Scope(const SessionEffects* effects, SessionPartition* partition, const Attempt& attempt);
    ByteView key_of(char kind, ByteView name);
    Status mark_applied();

    const SessionEffects* effects_;
    SessionPartition* partition_;
    const RecordView* record_;
    NullableBytes session_;
    std::optional<state::AttemptScope> state_;
    std::vector<Output> outputs_;
    std::string key_;  // session's part first; reused
    std::size_t prefix_ = 0;
    bool is_applied_ = false;  // the mark is not set back
  };

  // `partitions` outlives it. `outputs` are topics of `sink`.
  SessionEffects(std::unique_ptr<RecordSink> sink, std::vector<SinkTopicInfo> outputs,
                 const SessionPartitions& partitions, const Clock& clock, bool skips_applied);

  Scope begin_attempt(const Attempt& attempt);
  // Kept by an attempt that may outlive the hand-over of its partition.
  std::shared_ptr<SessionPartition>& partition(std::uint32_t number);
  // Errors: those of the store, then nothing was written; kRecordTooLarge, kTimedOut, others of the
  // sink: outputs may be written again by the next attempt. kFenced: the partition was given up.
  Status promote(Scope scope);
  void discard(Scope scope);

  // Durable when ok. An error stays: what the sink lost cannot be told, so no later flush may say
  // that all is durable.
  Status flush();
  std::uint64_t outputs_promoted() const { return outputs_promoted_; }

 private:
  void forget_retired();
  Status send_outputs(const Scope& scope);
  Status flush_all();
  Status write_changelogs();
  Status promote_stores(const std::vector<FlushedPartition>& flushed);

  std::unique_ptr<RecordSink> sink_;
  std::vector<SinkTopicInfo> outputs_;
  const SessionPartitions& partitions_;
  const Clock& clock_;
  bool skips_applied_;
  std::vector<std::shared_ptr<SessionPartition>> cached_;  // by number
  bool has_outputs_ = false;                               // since the last flush
  std::uint64_t outputs_promoted_ = 0;
  Status failed_;
};
static_assert(EffectScope<SessionEffects>);

}  // namespace weir::internal
