#include "operators/app/restorer.h"

#include <weir/runtime/logger.h>
#include <weir/state/checkpoint_validity.h>

#include <fmt/core.h>

#include <utility>

namespace weir::internal {

Restorer::Restorer(Backend& backend, RecordSink& sink, const Clock& clock)
    : backend_(backend), sink_(sink), clock_(clock) {}

Status Restorer::prepare(TaskStore& store) {
  WEIR_TRY_ASSIGN(const std::optional<state::StorePosition> position,
                  store.store->checkpoint_position());
  WEIR_TRY_ASSIGN(
      const state::ChangelogFacts facts,
      state::changelog_facts(backend_.admin(), store.changelog, position, false, clock_.now()));
  const state::CheckpointDecision decision = state::judge_checkpoint(position, facts);
  Part part{.store = &store,
            .topic_id = facts.topic_id,
            .start = facts.log_start,
            .end = facts.readable_end};
  switch (decision.verdict) {
    case state::CheckpointVerdict::kValid:
      WEIR_TRY(store.store->warm());
      part.start = position->next_offset;
      part.epoch = position->leader_epoch;
      break;
    case state::CheckpointVerdict::kNoCheckpoint:
      break;
    case state::CheckpointVerdict::kRebuild:
      WEIR_WARN("store is rebuilt from its changelog store={} partition={} reason=\"{}\"",
                store.name, store.changelog.partition.value(), decision.reason);
      WEIR_TRY(store.store->clear());
      break;
    case state::CheckpointVerdict::kChangelogLost:
      return rewrite(store, facts.topic_id, decision.reason);
  }
  parts_.push_back(part);
  return {};
}

Status Restorer::rewrite(TaskStore& store, Uuid topic_id, const std::string& reason) {
  WEIR_WARN("changelog is made again from the checkpoint store={} partition={} reason=\"{}\"",
            store.name, store.changelog.partition.value(), reason);
  WEIR_TRY(store.store->warm());
  WEIR_TRY(store.store->rewrite_changelog(sink_, store.changelog_topic.handle,
                                          store.changelog.partition));
  WEIR_TRY_ASSIGN(const std::vector<FlushedPartition> flushed, sink_.flush());
  state::StorePosition position{topic_id, Offset(0), kNoLeaderEpoch, clock_.now()};
  for (const FlushedPartition& end : flushed) {
    if (end.topic == store.changelog_topic.handle && end.partition == store.changelog.partition) {
      position.next_offset = end.end_offset;
      position.leader_epoch = end.leader_epoch;
    }
  }
  WEIR_TRY(store.store->finish_restore(position));
  // Before anything is processed: a crash later must not take the old checkpoint for the newer
  // state and write it over the changelog once more.
  WEIR_TRY(store.store->begin_checkpoint());
  return store.store->wait_checkpoint();
}

Status Restorer::begin() {
  WEIR_TRY_ASSIGN(source_, backend_.make_source({}));
  std::vector<TopicPartition> partitions;
  partitions.reserve(parts_.size());
  for (const Part& part : parts_) {
    partitions.push_back(part.store->changelog);
  }
  WEIR_TRY(source_->assign(std::move(partitions)));
  left_ = parts_.size();
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    if (part.start >= part.end) {
      WEIR_TRY(finish(part, part.start, part.epoch));
      source_->pause(i);
    }
    WEIR_TRY(source_->seek(i, part.start));
  }
  return {};
}

Status Restorer::finish(Part& part, Offset position, LeaderEpoch epoch) {
  if (!part.done) {
    part.done = true;
    --left_;
  }
  return part.store->store->finish_restore({part.topic_id, position, epoch, clock_.now()});
}

Status Restorer::apply(Part& part, const RecordBlock& block) {
  if (!block.status.ok()) {
    return Error(block.status.error())
        .with_context(fmt::format("restore store {} from {}", part.store->name,
                                  part.store->changelog.to_string()));
  }
  WEIR_TRY(part.store->store->restore(
      block.records, {part.topic_id, block.next_offset, block.leader_epoch, clock_.now()}));
  restored_ += block.records.size();
  if (block.next_offset >= part.end) {
    source_->pause(block.assignment);
    return finish(part, block.next_offset, block.leader_epoch);
  }
  return {};
}

Result<bool> Restorer::step(Duration timeout) {
  if (left_ == 0) {
    return true;
  }
  WEIR_TRY_ASSIGN(const std::vector<RecordBlock> blocks, source_->poll(timeout));
  for (const RecordBlock& block : blocks) {
    // A poll may bring more of a partition than the end that was asked for; nobody else writes it,
    // so the rest belongs to the state too.
    WEIR_TRY(apply(parts_[block.assignment], block));
  }
  return left_ == 0;
}

}  // namespace weir::internal
