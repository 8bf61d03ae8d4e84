#pragma once

#include <weir/runtime/backend.h>
#include <weir/state/checkpoint_store.h>

#include <optional>
#include <string>

namespace weir::state {

// What Admin tells about a changelog partition. nullopt or zero: the backend cannot tell.
struct ChangelogFacts {
  bool exists = true;
  Uuid topic_id;
  Offset log_start;
  // Exactly once: the last stable offset; else the high watermark.
  Offset readable_end;
  // Admin::epoch_end_offset of the checkpoint's leader epoch.
  std::optional<Offset> epoch_end;
  // Admin::tombstone_horizon.
  std::optional<Offset> tombstone_horizon;
  // delete.retention.ms of the changelog.
  std::int64_t delete_retention_ms = 86'400'000;
  // Wall clock.
  Timestamp now = kNoTimestamp;
};

enum class CheckpointVerdict {
  kValid,          // go on from its next offset
  kNoCheckpoint,   // nothing was checkpointed: restore from the log's start
  kRebuild,        // clear the store and restore from the log's start
  kChangelogLost,  // a rebuild would lose state: write the checkpoint into the (new) changelog
};

struct CheckpointDecision {
  CheckpointVerdict verdict = CheckpointVerdict::kValid;
  // For people; empty when valid.
  std::string reason;
};

// Whether a checkpoint and the tail of its changelog give the state again (DESIGN D5, Restore).
// Pure.
CheckpointDecision judge_checkpoint(const std::optional<StorePosition>& position,
                                    const ChangelogFacts& changelog);

// Asks Admin for the facts. Errors: Admin's, but an unknown topic is the fact `exists == false`.
Result<ChangelogFacts> changelog_facts(Admin& admin, const TopicPartition& changelog,
                                       const std::optional<StorePosition>& position,
                                       bool exactly_once, Timestamp now);

}  // namespace weir::state
