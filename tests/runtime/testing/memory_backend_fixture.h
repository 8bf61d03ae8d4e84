#pragma once

#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_backend.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::testing {

using OffsetsToCommit = std::vector<std::pair<TopicPartition, CommittedOffset>>;

inline constexpr Timestamp kNow = 1'700'000'000'000;

inline RecordRef record(ByteView key, ByteView value, Timestamp timestamp = kNoTimestamp) {
  RecordRef made;
  made.key = key;
  made.value = value;
  made.timestamp = timestamp;
  return made;
}

inline TopicPartition at(const std::string& topic, std::int32_t partition) {
  return {topic, PartitionId(partition)};
}

// A backend with what a test needs around it.
class MemoryBackendFixture {
 public:
  explicit MemoryBackendFixture(SourceOptions source_options = {}, SinkOptions sink_options = {}) {
    source_ = backend.make_source(source_options).value();
    sink_ = backend.make_sink(sink_options).value();
  }

  Uuid create(const std::string& topic, std::int32_t partitions = 1, TopicConfig config = {}) {
    return backend.admin().create_topic({topic, partitions, std::move(config)}).value().id;
  }
  SinkTopic open(const std::string& topic) { return sink_->open_topic(topic).value().handle; }
  Status send(SinkTopic topic, std::int32_t partition, std::vector<RecordRef> records) {
    return sink_->send(topic, PartitionId(partition), records);
  }
  // Keys a, b, ... one send each.
  void fill(const std::string& topic, std::int32_t partition, const std::string& keys) {
    const SinkTopic handle = open(topic);
    for (const char& key : keys) {
      ASSERT_TRUE(send(handle, partition, {record(ByteView(&key, 1), "v")}).ok());
    }
  }
  void read_from(std::vector<TopicPartition> partitions, Offset offset = Offset(0)) {
    const auto count = static_cast<std::uint32_t>(partitions.size());
    ASSERT_TRUE(source_->assign(std::move(partitions)).ok());
    for (std::uint32_t i = 0; i < count; ++i) {
      ASSERT_TRUE(source_->seek(i, offset).ok());
    }
  }
  std::vector<RecordBlock> poll() { return source_->poll(Duration(0)).value(); }
  // "assignment:key@offset" of what one poll returns.
  std::vector<std::string> poll_keys() {
    std::vector<std::string> keys;
    for (const RecordBlock& block : poll()) {
      for (const RecordView& view : block.records) {
        keys.push_back(std::to_string(block.assignment) + ":" + std::string(view.key.view()) + "@" +
                       std::to_string(view.offset.value()));
      }
    }
    return keys;
  }
  // "key@offset" of everything in the partition.
  std::vector<std::string> stored(const TopicPartition& partition) {
    std::vector<std::string> keys;
    for (const MemoryBackend::OwnedRecord& owned : backend.records(partition)) {
      keys.push_back(owned.key.value_or("null") + "@" + std::to_string(owned.offset.value()));
    }
    return keys;
  }
  RecordSource& source() { return *source_; }
  RecordSink& sink() { return *sink_; }

  ManualClock clock{kNow};
  MemoryBackend backend{clock};

 private:
  std::unique_ptr<RecordSource> source_;
  std::unique_ptr<RecordSink> sink_;
};

inline SinkOptions transactional(const std::string& id = "app-0") {
  SinkOptions options;
  options.transactional_id = id;
  return options;
}

inline std::string flushed_text(const Result<std::vector<FlushedPartition>>& flushed) {
  std::string text;
  for (const FlushedPartition& partition : flushed.value()) {
    text += std::to_string(partition.topic) + "/" + std::to_string(partition.partition.value()) +
            " end " + std::to_string(partition.end_offset.value()) + " epoch " +
            std::to_string(partition.leader_epoch.value()) + "\n";
  }
  return text;
}

}  // namespace weir::testing
