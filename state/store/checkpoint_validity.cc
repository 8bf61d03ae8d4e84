#include <weir/state/checkpoint_validity.h>

#include <fmt/core.h>

#include <charconv>

namespace weir::state {
namespace {

CheckpointDecision lost(std::string reason) {
  return {.verdict = CheckpointVerdict::kChangelogLost, .reason = std::move(reason)};
}

CheckpointDecision rebuild(std::string reason) {
  return {.verdict = CheckpointVerdict::kRebuild, .reason = std::move(reason)};
}

// Whether records behind the position may lack a delete that the store has not seen.
std::optional<std::string> missed_tombstones(const StorePosition& position,
                                             const ChangelogFacts& changelog) {
  if (changelog.tombstone_horizon.has_value()) {
    if (*changelog.tombstone_horizon <= position.next_offset) {
      return std::nullopt;
    }
    return fmt::format(
        "tombstones below offset {} may have been cleaned away, the checkpoint "
        "stands at {}",
        changelog.tombstone_horizon->value(), position.next_offset.value());
  }
  if (position.time == kNoTimestamp) {
    return std::string(
        "the checkpoint has no time and the log cannot tell which tombstones it "
        "cleaned away");
  }
  const std::int64_t age_ms = changelog.now - position.time;
  if (age_ms <= changelog.delete_retention_ms) {
    return std::nullopt;
  }
  return fmt::format(
      "the checkpoint is {} ms old, delete.retention.ms is {}: tombstones behind it "
      "may have been cleaned away",
      age_ms, changelog.delete_retention_ms);
}

}  // namespace

CheckpointDecision judge_checkpoint(const std::optional<StorePosition>& position,
                                    const ChangelogFacts& changelog) {
  if (!position.has_value()) {
    return {.verdict = CheckpointVerdict::kNoCheckpoint, .reason = "there is no checkpoint"};
  }
  const Offset next = position->next_offset;
  if (!changelog.exists) {
    return lost("the changelog is gone");
  }
  const bool knows_ids = !position->changelog_topic_id.is_zero() && !changelog.topic_id.is_zero();
  if (knows_ids && position->changelog_topic_id != changelog.topic_id) {
    return lost(fmt::format("the changelog was made anew: its topic id was {} and is {}",
                            position->changelog_topic_id.to_string(),
                            changelog.topic_id.to_string()));
  }
  if (!knows_ids && changelog.readable_end == Offset(0) && next > Offset(0)) {
    return lost(
        fmt::format("the changelog never held a record, the checkpoint stands at {}: it "
                    "was made anew",
                    next.value()));
  }
  if (position->leader_epoch != kNoLeaderEpoch && changelog.epoch_end.has_value() &&
      *changelog.epoch_end < next) {
    return rebuild(
        fmt::format("the changelog was cut: leader epoch {} ends at offset {}, the "
                    "checkpoint stands at {}",
                    position->leader_epoch.value(), changelog.epoch_end->value(), next.value()));
  }
  if (next < changelog.log_start) {
    return rebuild(fmt::format("the changelog starts at offset {}, the checkpoint stands at {}",
                               changelog.log_start.value(), next.value()));
  }
  if (next > changelog.readable_end) {
    return rebuild(fmt::format("the changelog ends at offset {}, the checkpoint stands at {}",
                               changelog.readable_end.value(), next.value()));
  }
  if (std::optional<std::string> missed = missed_tombstones(*position, changelog)) {
    return rebuild(*std::move(missed));
  }
  return {};
}

Result<ChangelogFacts> changelog_facts(Admin& admin, const TopicPartition& changelog,
                                       const std::optional<StorePosition>& position,
                                       bool exactly_once, Timestamp now) {
  ChangelogFacts facts;
  facts.now = now;
  Result<TopicDescription> topic = admin.describe_topic(changelog.topic);
  if (!topic.ok()) {
    if (topic.error().code() != Errc::kUnknownTopic) {
      return topic.error();
    }
    facts.exists = false;
    return facts;
  }
  facts.topic_id = topic->id;
  if (const auto found = topic->config.find("delete.retention.ms"); found != topic->config.end()) {
    const std::string& text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), facts.delete_retention_ms);
  }
  WEIR_TRY_ASSIGN(const PartitionOffsets offsets, admin.offsets(changelog));
  facts.log_start = offsets.log_start;
  facts.readable_end = exactly_once ? offsets.last_stable : offsets.high_watermark;
  if (position.has_value() && position->leader_epoch != kNoLeaderEpoch) {
    WEIR_TRY_ASSIGN(facts.epoch_end, admin.epoch_end_offset(changelog, position->leader_epoch));
  }
  WEIR_TRY_ASSIGN(facts.tombstone_horizon, admin.tombstone_horizon(changelog));
  return facts;
}

}  // namespace weir::state
