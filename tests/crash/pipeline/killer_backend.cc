#include "tests/crash/pipeline/killer_backend.h"

#include <fmt/core.h>

#include <set>
#include <utility>

namespace weir::crash {
namespace {

// A stream thread's sink, group and source belong to it alone: what it does behind a commit is
// known by the thread.
thread_local bool has_committed = false;

void pass(KillSwitch& kill, Point point) {
  if (kill.is_due(point, false)) {
    kill.die();
  }
}

class KillerSink final : public RecordSink {
 public:
  KillerSink(std::unique_ptr<RecordSink> inner, KillSwitch& kill)
      : inner_(std::move(inner)), kill_(kill) {}

  Result<SinkTopicInfo> open_topic(const std::string& name) override {
    WEIR_TRY_ASSIGN(const SinkTopicInfo info, inner_->open_topic(name));
    if (name.ends_with("-changelog")) {
      changelogs_.insert(info.handle);
    }
    return info;
  }
  Status send(SinkTopic topic, PartitionId partition, std::span<const RecordRef> records) override {
    has_changelog_ = has_changelog_ || changelogs_.contains(topic);
    return inner_->send(topic, partition, records);
  }
  Result<std::vector<FlushedPartition>> flush() override {
    const bool is_commit = std::exchange(has_changelog_, false);
    if (is_commit) {
      pass(kill_, Point::kChangelogWritten);
    }
    auto flushed = inner_->flush();
    if (is_commit && flushed.ok()) {
      pass(kill_, Point::kSinkFlushed);
    }
    return flushed;
  }
  Status begin() override { return inner_->begin(); }
  Status send_offsets(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets,
                      const GroupMetadata& group) override {
    return inner_->send_offsets(offsets, group);
  }
  Result<TransactionOutcome> end(bool commit) override { return inner_->end(commit); }

 private:
  std::unique_ptr<RecordSink> inner_;
  KillSwitch& kill_;
  std::set<SinkTopic> changelogs_;
  bool has_changelog_ = false;
};

class KillerSource final : public RecordSource {
 public:
  KillerSource(std::unique_ptr<RecordSource> inner, KillSwitch& kill)
      : inner_(std::move(inner)), kill_(kill) {}

  Status assign(std::vector<TopicPartition> partitions) override {
    return inner_->assign(std::move(partitions));
  }
  Status seek(std::uint32_t assignment, Offset offset) override {
    return inner_->seek(assignment, offset);
  }
  Offset position(std::uint32_t assignment) const override { return inner_->position(assignment); }
  void pause(std::uint32_t assignment) override { inner_->pause(assignment); }
  void resume(std::uint32_t assignment) override { inner_->resume(assignment); }
  Result<std::vector<RecordBlock>> poll(Duration timeout) override {
    if (std::exchange(has_committed, false)) {
      pass(kill_, Point::kPromoted);
    }
    return inner_->poll(timeout);
  }
  void wakeup() override { inner_->wakeup(); }

 private:
  std::unique_ptr<RecordSource> inner_;
  KillSwitch& kill_;
};

class KillerGroup final : public Group {
 public:
  KillerGroup(std::unique_ptr<Group> inner, KillSwitch& kill)
      : inner_(std::move(inner)), kill_(kill) {}

  Status join(std::vector<std::string> topics, std::string user_data,
              GroupListener& listener) override {
    return inner_->join(std::move(topics), std::move(user_data), listener);
  }
  Status poll() override { return inner_->poll(); }
  Status leave() override { return inner_->leave(); }
  Status commit(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) override {
    WEIR_TRY(inner_->commit(offsets));
    for (const auto& [partition, committed] : offsets) {
      report(fmt::format("commit {} {} {}", partition.topic, partition.partition.value(),
                         committed.offset.value()));
    }
    kill_.saw_commit();
    has_committed = true;
    pass(kill_, Point::kOffsetsCommitted);
    return {};
  }
  Result<std::vector<std::optional<CommittedOffset>>> committed(
      std::span<const TopicPartition> partitions) override {
    return inner_->committed(partitions);
  }
  GroupMetadata metadata() const override { return inner_->metadata(); }

 private:
  std::unique_ptr<Group> inner_;
  KillSwitch& kill_;
};

}  // namespace

Result<std::unique_ptr<RecordSource>> KillerBackend::make_source(const SourceOptions& options) {
  WEIR_TRY_ASSIGN(std::unique_ptr<RecordSource> inner, inner_.make_source(options));
  return std::unique_ptr<RecordSource>(std::make_unique<KillerSource>(std::move(inner), kill_));
}

Result<std::unique_ptr<RecordSink>> KillerBackend::make_sink(const SinkOptions& options) {
  WEIR_TRY_ASSIGN(std::unique_ptr<RecordSink> inner, inner_.make_sink(options));
  return std::unique_ptr<RecordSink>(std::make_unique<KillerSink>(std::move(inner), kill_));
}

Result<std::unique_ptr<Group>> KillerBackend::make_group(const std::string& group_id) {
  WEIR_TRY_ASSIGN(std::unique_ptr<Group> inner, inner_.make_group(group_id));
  return std::unique_ptr<Group>(std::make_unique<KillerGroup>(std::move(inner), kill_));
}

}  // namespace weir::crash
