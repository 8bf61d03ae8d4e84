#pragma once

#include <weir/runtime/backend.h>
#include <weir/state/checkpoint_store.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::state::testing {

// A changelog partition as a vector: index = offset.
class ChangelogSink final : public RecordSink {
 public:
  struct Record {
    std::string key;
    std::optional<std::string> value;
    Timestamp timestamp = kNoTimestamp;
    friend bool operator==(const Record&, const Record&) = default;
  };
  using State = std::map<std::string, std::pair<std::string, Timestamp>>;

  Result<SinkTopicInfo> open_topic(const std::string& /*name*/) override {
    return SinkTopicInfo{.handle = 0, .partitions = 1, .id = {}};
  }
  Status send(SinkTopic /*topic*/, PartitionId /*partition*/,
              std::span<const RecordRef> records) override {
    ++sends;
    for (const RecordRef& record : records) {
      if (fail_after.has_value() && (*fail_after)-- == 0) {
        fail_after.reset();
        return Error(Errc::kIo, "sink failed on request");
      }
      log.push_back({.key = std::string(record.key.view()),
                     .value = record.value.to_owned(),
                     .timestamp = record.timestamp});
    }
    return {};
  }
  Result<std::vector<FlushedPartition>> flush() override { return std::vector<FlushedPartition>(); }
  Status begin() override { return {}; }
  Status send_offsets(std::span<const std::pair<TopicPartition, CommittedOffset>> /*offsets*/,
                      const GroupMetadata& /*group*/) override {
    return {};
  }
  Result<TransactionOutcome> end(bool /*commit*/) override {
    return TransactionOutcome::kCommitted;
  }

  // What reading the whole log gives.
  State fold() const {
    State state;
    for (const Record& record : log) {
      if (record.value.has_value()) {
        state[record.key] = {*record.value, record.timestamp};
      } else {
        state.erase(record.key);
      }
    }
    return state;
  }

  // Records [from, to), as a source would give them.
  std::vector<RecordView> views(std::size_t from, std::size_t to) const {
    std::vector<RecordView> records;
    for (std::size_t i = from; i < to; ++i) {
      RecordView view;
      view.key = ByteView(log[i].key);
      view.value = log[i].value ? NullableBytes(ByteView(*log[i].value)) : NullableBytes();
      view.offset = Offset(static_cast<std::int64_t>(i));
      view.timestamp = log[i].timestamp;
      records.push_back(view);
    }
    return records;
  }

  std::vector<Record> log;
  std::optional<int> fail_after;  // records that still get through
  int sends = 0;
};

inline StorePosition position_at(std::size_t offset) {
  StorePosition position;
  position.changelog_topic_id.bytes[15] = 7;
  position.next_offset = Offset(static_cast<std::int64_t>(offset));
  position.leader_epoch = LeaderEpoch(3);
  return position;
}

}  // namespace weir::state::testing
