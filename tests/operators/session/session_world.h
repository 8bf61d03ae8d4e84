#pragma once

#include <weir/operators/session.h>
#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_backend.h>

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::testing {

// A session processor without threads on a log in memory, with time by hand.
class SessionWorld {
 public:
  explicit SessionWorld(std::int32_t partitions = 2) {
    EXPECT_TRUE(backend.admin().create_topic({"chat", partitions, {}}).ok());
    EXPECT_TRUE(backend.admin().create_topic({"replies", 2, {}}).ok());
    options.group = "bots";
    options.topics = {"chat"};
    options.outputs = {"replies"};
    options.lanes.has_threads = false;
    options.lanes.commit_interval = std::chrono::milliseconds(20);
    sink_ = std::move(backend.make_sink({})).value();
    chat_ = std::move(sink_->open_topic("chat")).value();
  }

  void open(SessionHandler handler) {
    Result<std::unique_ptr<SessionProcessor>> opened =
        SessionProcessor::open(backend, clock, options, std::move(handler));
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    processor = std::move(opened).value();
  }
  void send(const std::string& session, const std::string& value, HeadersView headers = {},
            std::int32_t partition = 0) {
    const RecordRef record{
        .key = ByteView(session), .value = ByteView(value), .timestamp = 77, .headers = headers};
    ASSERT_TRUE(sink_->send(chat_.handle, PartitionId(partition), {&record, 1}).ok());
    ASSERT_TRUE(sink_->flush().ok());
  }
  // Rounds of 5 ms each, until nothing is left to do or an error.
  Status run(int rounds = 60) {
    for (int i = 0; i < rounds; ++i) {
      WEIR_TRY(processor->run_once(Duration::zero()));
      clock.advance(std::chrono::milliseconds(5));
    }
    return {};
  }
  void run_ok(int rounds = 60) {
    const Status status = run(rounds);
    ASSERT_TRUE(status.ok()) << status.error().to_string();
  }
  void close() {
    const Status closed =
        processor->close(SessionEngine::Close::kDrainQueued, std::chrono::seconds(30));
    ASSERT_TRUE(closed.ok()) << closed.error().to_string();
    processor.reset();
  }
  std::vector<std::string> values(const std::string& topic) const {
    std::vector<std::string> all;
    for (const auto& record : records(topic)) {
      all.push_back(record.value.value_or("(null)"));
    }
    return all;
  }
  std::vector<MemoryBackend::OwnedRecord> records(const std::string& topic) const {
    std::vector<MemoryBackend::OwnedRecord> all;
    for (std::int32_t i = 0; i < 2; ++i) {
      for (auto& record : backend.records({topic, PartitionId(i)})) {
        all.push_back(std::move(record));
      }
    }
    return all;
  }
  // Next offset to read of partition 0; 0: nothing committed.
  std::int64_t committed(std::int32_t partition = 0) {
    const auto offsets = backend.admin().group_offsets("bots");
    for (const auto& [at, offset] : offsets.value()) {
      if (at == TopicPartition{"chat", PartitionId(partition)}) {
        return offset.offset.value();
      }
    }
    return 0;
  }

  ManualClock clock;
  MemoryBackend backend{clock};
  SessionProcessorOptions options;
  std::unique_ptr<SessionProcessor> processor;

 private:
  std::unique_ptr<RecordSink> sink_;
  SinkTopicInfo chat_;
};

// Appends the value to the session's text and answers with the whole of it.
inline Outcome append(const SessionRecord& record, SessionContext& context) {
  Result<std::optional<std::string>> text = context.get_as<std::string>("text");
  if (!text.ok()) {
    return Outcome::retry(std::move(text).error());
  }
  const std::string all = text->value_or("") + std::string(record.record.value.view_or_empty());
  if (Status put = context.put_as("text", all); !put.ok()) {
    return Outcome::retry(std::move(put).error());
  }
  const RecordRef reply{.key = record.session, .value = ByteView(all), .headers = {}};
  if (Status sent = context.emit(0, reply); !sent.ok()) {
    return Outcome::dead(std::move(sent).error());
  }
  return Outcome::ok();
}

inline Error broken(const std::string& what = "the model is down") {
  return {Errc::kTimedOut, what};
}

inline std::string header(const MemoryBackend::OwnedRecord& record, std::string_view name) {
  const std::optional<NullableBytes> value = record.headers.view().last(name);
  return value.has_value() ? std::string(value->view_or_empty()) : "(absent)";
}

}  // namespace weir::testing
