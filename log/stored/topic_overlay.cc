#include <weir/log/stored_log.h>

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

// read_topics_from(): two backends that look like one.

namespace weir::log {
namespace {

constexpr std::size_t kNameBytesMax = 249;  // org.apache.kafka.common.internals.Topic

// A topic that is read from the folder, and the empty one that its offsets are committed for.
struct Borrowed {
  std::string stand_in;
  std::int32_t partitions = 0;
};
using BorrowedTopics = std::map<std::string, Borrowed>;

std::string stand_in_name(const TopicDescription& topic) {
  const std::string tail = ".from-" + topic.id.to_string();
  return topic.name.substr(0, kNameBytesMax - tail.size()) + tail;
}

TopicPartition to_stand_in(const BorrowedTopics& topics, const TopicPartition& partition) {
  const auto found = topics.find(partition.topic);
  return found == topics.end() ? partition
                               : TopicPartition{found->second.stand_in, partition.partition};
}

TopicPartition from_stand_in(const BorrowedTopics& topics, const TopicPartition& partition) {
  for (const auto& [name, borrowed] : topics) {
    if (borrowed.stand_in == partition.topic) {
      return {name, partition.partition};
    }
  }
  return partition;
}

std::vector<PartitionOffset> to_stand_ins(const BorrowedTopics& topics,
                                          std::span<const PartitionOffset> offsets) {
  std::vector<PartitionOffset> result;
  result.reserve(offsets.size());
  for (const auto& [partition, offset] : offsets) {
    result.emplace_back(to_stand_in(topics, partition), offset);
  }
  return result;
}

std::vector<TopicPartition> to_stand_ins(const BorrowedTopics& topics,
                                         std::span<const TopicPartition> partitions) {
  std::vector<TopicPartition> result;
  result.reserve(partitions.size());
  for (const TopicPartition& partition : partitions) {
    result.push_back(to_stand_in(topics, partition));
  }
  return result;
}

class OverlayAdmin final : public Admin {
 public:
  OverlayAdmin(const BorrowedTopics& topics, Admin& stored, Admin& own)
      : topics_(topics), stored_(stored), own_(own) {}

  Result<TopicDescription> create_topic(const TopicSpec& spec) override {
    return of(spec.name).create_topic(spec);
  }
  Result<std::vector<TopicDescription>> list_topics() override {
    WEIR_TRY_ASSIGN(std::vector<TopicDescription> topics, own_.list_topics());
    std::erase_if(topics,
                  [this](const TopicDescription& topic) { return is_borrowed(topic.name); });
    for (const auto& [name, borrowed] : topics_) {
      WEIR_TRY_ASSIGN(TopicDescription description, stored_.describe_topic(name));
      topics.push_back(std::move(description));
    }
    std::ranges::sort(topics, {}, &TopicDescription::name);
    return topics;
  }
  Result<TopicDescription> describe_topic(const std::string& name) override {
    return of(name).describe_topic(name);
  }
  Status delete_topic(const std::string& name) override { return of(name).delete_topic(name); }
  Result<PartitionOffsets> offsets(const TopicPartition& partition) override {
    return of(partition.topic).offsets(partition);
  }
  Result<std::optional<Offset>> offset_for_time(const TopicPartition& partition,
                                                Timestamp time) override {
    return of(partition.topic).offset_for_time(partition, time);
  }
  Result<std::optional<Offset>> epoch_end_offset(const TopicPartition& partition,
                                                 LeaderEpoch epoch) override {
    return of(partition.topic).epoch_end_offset(partition, epoch);
  }
  Result<std::optional<Offset>> tombstone_horizon(const TopicPartition& partition) override {
    return of(partition.topic).tombstone_horizon(partition);
  }
  Status delete_records(const TopicPartition& partition, Offset before) override {
    return of(partition.topic).delete_records(partition, before);
  }
  Status grow_topic(const std::string& name, std::int32_t partitions,
                    OrderedGrowth ordered) override {
    return of(name).grow_topic(name, partitions, ordered);
  }
  Status alter_topic(const std::string& name, const TopicConfig& set,
                     const std::vector<std::string>& remove) override {
    return of(name).alter_topic(name, set, remove);
  }
  Result<std::vector<TopicSetting>> topic_settings(const std::string& name) override {
    return of(name).topic_settings(name);
  }
  Result<std::vector<std::string>> list_groups() override { return own_.list_groups(); }
  Result<std::vector<PartitionOffset>> group_offsets(const std::string& group) override {
    WEIR_TRY_ASSIGN(std::vector<PartitionOffset> offsets, own_.group_offsets(group));
    std::erase_if(
        offsets, [this](const PartitionOffset& offset) { return is_borrowed(offset.first.topic); });
    for (auto& [partition, offset] : offsets) {
      partition = from_stand_in(topics_, partition);
    }
    std::ranges::sort(offsets, {}, &PartitionOffset::first);
    return offsets;
  }
  Status delete_group_offsets(const std::string& group,
                              std::span<const TopicPartition> partitions) override {
    return own_.delete_group_offsets(group, to_stand_ins(topics_, partitions));
  }
  Result<GroupDescription> describe_group(const std::string& group) override {
    WEIR_TRY_ASSIGN(GroupDescription found, own_.describe_group(group));
    for (GroupMemberDescription& member : found.members) {
      for (TopicPartition& partition : member.partitions) {
        partition = from_stand_in(topics_, partition);
      }
    }
    return found;
  }
  Status delete_group(const std::string& group) override { return own_.delete_group(group); }

 private:
  bool is_borrowed(const std::string& topic) const { return topics_.contains(topic); }
  Admin& of(const std::string& topic) { return is_borrowed(topic) ? stored_ : own_; }

  const BorrowedTopics& topics_;
  Admin& stored_;
  Admin& own_;
};

// Two sources; an assignment's index says in which it is and under which index.
class OverlaySource final : public RecordSource {
 public:
  OverlaySource(const BorrowedTopics& topics, std::unique_ptr<RecordSource> stored,
                std::unique_ptr<RecordSource> own)
      : topics_(topics), stored_{std::move(stored), {}}, own_{std::move(own), {}} {}

  Status assign(std::vector<TopicPartition> partitions) override {
    places_.clear();
    std::vector<TopicPartition> names[2];
    stored_.outer.clear();
    own_.outer.clear();
    for (std::uint32_t i = 0; i < partitions.size(); ++i) {
      const bool is_stored = topics_.contains(partitions[i].topic);
      Half& half = is_stored ? stored_ : own_;
      places_.push_back({&half, static_cast<std::uint32_t>(half.outer.size())});
      half.outer.push_back(i);
      names[is_stored ? 0 : 1].push_back(std::move(partitions[i]));
    }
    WEIR_TRY(stored_.source->assign(std::move(names[0])));
    return own_.source->assign(std::move(names[1]));
  }
  Status seek(std::uint32_t assignment, Offset offset) override {
    if (assignment >= places_.size()) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("cannot seek assignment {} of {}", assignment, places_.size()));
    }
    const Place& place = places_[assignment];
    return place.half->source->seek(place.inner, offset);
  }
  Offset position(std::uint32_t assignment) const override {
    return assignment < places_.size()
               ? places_[assignment].half->source->position(places_[assignment].inner)
               : kNoOffset;
  }
  void pause(std::uint32_t assignment) override {
    if (assignment < places_.size()) {
      places_[assignment].half->source->pause(places_[assignment].inner);
    }
  }
  void resume(std::uint32_t assignment) override {
    if (assignment < places_.size()) {
      places_[assignment].half->source->resume(places_[assignment].inner);
    }
  }
  // Only `own` can get more, so a wait is its wait.
  Result<std::vector<RecordBlock>> poll(Duration timeout) override {
    std::vector<RecordBlock> blocks;
    WEIR_TRY(poll_half(stored_, Duration::zero(), blocks));
    WEIR_TRY(poll_half(own_, blocks.empty() ? timeout : Duration::zero(), blocks));
    return blocks;
  }
  void wakeup() override { own_.source->wakeup(); }

 private:
  struct Half {
    std::unique_ptr<RecordSource> source;
    std::vector<std::uint32_t> outer;  // its index -> the caller's
  };
  struct Place {
    Half* half = nullptr;
    std::uint32_t inner = 0;
  };

  static Status poll_half(Half& half, Duration timeout, std::vector<RecordBlock>& blocks) {
    WEIR_TRY_ASSIGN(std::vector<RecordBlock> polled, half.source->poll(timeout));
    for (RecordBlock& block : polled) {
      block.assignment = half.outer[block.assignment];
      blocks.push_back(std::move(block));
    }
    return {};
  }

  const BorrowedTopics& topics_;
  Half stored_;
  Half own_;
  std::vector<Place> places_;
};

class OverlaySink final : public RecordSink {
 public:
  OverlaySink(const BorrowedTopics& topics, std::unique_ptr<RecordSink> own)
      : topics_(topics), own_(std::move(own)) {}

  Result<SinkTopicInfo> open_topic(const std::string& name) override {
    if (topics_.contains(name)) {
      return Error(Errc::kReadOnly,
                   fmt::format("cannot write to topic {}: it is read from a folder", name));
    }
    return own_->open_topic(name);
  }
  Status send(SinkTopic topic, PartitionId partition, std::span<const RecordRef> records) override {
    return own_->send(topic, partition, records);
  }
  Result<std::vector<FlushedPartition>> flush() override { return own_->flush(); }
  Status begin() override { return own_->begin(); }
  Status send_offsets(std::span<const PartitionOffset> offsets,
                      const GroupMetadata& group) override {
    return own_->send_offsets(to_stand_ins(topics_, offsets), group);
  }
  Result<TransactionOutcome> end(bool commit) override { return own_->end(commit); }

 private:
  const BorrowedTopics& topics_;
  std::unique_ptr<RecordSink> own_;
};

// Stand-ins have as many partitions as the topics they stand for, so the group of `own` gives out
// the right ones.
class OverlayGroup final : public Group, private GroupListener {
 public:
  OverlayGroup(const BorrowedTopics& topics, std::unique_ptr<Group> own)
      : topics_(topics), own_(std::move(own)) {}

  Status join(std::vector<std::string> topics, std::string user_data,
              GroupListener& listener) override {
    for (std::string& topic : topics) {
      topic = to_stand_in(topics_, {topic, PartitionId(0)}).topic;
    }
    listener_ = &listener;
    return own_->join(std::move(topics), std::move(user_data), *this);
  }
  Status poll() override { return own_->poll(); }
  Status leave() override { return own_->leave(); }
  Status commit(std::span<const PartitionOffset> offsets) override {
    return own_->commit(to_stand_ins(topics_, offsets));
  }
  Result<std::vector<std::optional<CommittedOffset>>> committed(
      std::span<const TopicPartition> partitions) override {
    return own_->committed(to_stand_ins(topics_, partitions));
  }
  GroupMetadata metadata() const override { return own_->metadata(); }
  std::string assigned_user_data() const override { return own_->assigned_user_data(); }
  void set_waker(std::function<void()> waker) override { own_->set_waker(std::move(waker)); }

 private:
  std::vector<TopicPartition> outer(std::span<const TopicPartition> partitions) const {
    std::vector<TopicPartition> result;
    for (const TopicPartition& partition : partitions) {
      result.push_back(from_stand_in(topics_, partition));
    }
    return result;
  }
  void on_assigned(std::span<const TopicPartition> partitions) override {
    listener_->on_assigned(outer(partitions));
  }
  void on_revoked(std::span<const TopicPartition> partitions) override {
    listener_->on_revoked(outer(partitions));
  }
  void on_lost(std::span<const TopicPartition> partitions) override {
    listener_->on_lost(outer(partitions));
  }

  const BorrowedTopics& topics_;
  std::unique_ptr<Group> own_;
  GroupListener* listener_ = nullptr;  // not null once joined
};

class Overlay final : public Backend {
 public:
  Overlay(BorrowedTopics topics, StoredLog& stored, Backend& own)
      : topics_(std::move(topics)),
        stored_(stored),
        own_(own),
        admin_(topics_, stored.admin(), own.admin()) {}

  Admin& admin() override { return admin_; }
  Result<std::unique_ptr<RecordSource>> make_source(const SourceOptions& options) override {
    WEIR_TRY_ASSIGN(std::unique_ptr<RecordSource> stored, stored_.make_source(options));
    WEIR_TRY_ASSIGN(std::unique_ptr<RecordSource> own, own_.make_source(options));
    return std::unique_ptr<RecordSource>(
        std::make_unique<OverlaySource>(topics_, std::move(stored), std::move(own)));
  }
  Result<std::unique_ptr<RecordSink>> make_sink(const SinkOptions& options) override {
    WEIR_TRY_ASSIGN(std::unique_ptr<RecordSink> own, own_.make_sink(options));
    return std::unique_ptr<RecordSink>(std::make_unique<OverlaySink>(topics_, std::move(own)));
  }
  Result<std::unique_ptr<Group>> make_group(const std::string& group_id) override {
    return make_group_member(group_id, {});
  }
  Result<std::unique_ptr<Group>> make_group_member(const std::string& group_id,
                                                   const GroupOptions& options) override {
    if (options.assignor != nullptr) {
      return Error(Errc::kUnsupported,
                   "groups over topics that are read from a folder have no assignor of one's own");
    }
    for (const auto& [name, borrowed] : topics_) {
      const Result<TopicDescription> made =
          own_.admin().create_topic({borrowed.stand_in, borrowed.partitions, {}});
      if (!made.ok() && made.error().code() != Errc::kTopicExists) {
        return Error(made.error())
            .with_context(fmt::format("make a stand-in for the offsets of topic {}", name));
      }
    }
    WEIR_TRY_ASSIGN(std::unique_ptr<Group> own, own_.make_group_member(group_id, options));
    return std::unique_ptr<Group>(std::make_unique<OverlayGroup>(topics_, std::move(own)));
  }

 private:
  const BorrowedTopics topics_;
  StoredLog& stored_;
  Backend& own_;
  OverlayAdmin admin_;
};

}  // namespace

Result<std::unique_ptr<Backend>> read_topics_from(StoredLog& stored,
                                                  std::vector<std::string> topics, Backend& own) {
  BorrowedTopics borrowed;
  for (const std::string& name : topics) {
    WEIR_TRY_ASSIGN(const TopicDescription topic, stored.admin().describe_topic(name));
    borrowed[name] = {stand_in_name(topic), topic.partitions};
  }
  return std::unique_ptr<Backend>(std::make_unique<Overlay>(std::move(borrowed), stored, own));
}

}  // namespace weir::log
