#pragma once

#include <weir/runtime/backend.h>
#include <weir/runtime/session_engine.h>
#include <weir/runtime/thread_annotations.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// What the sessions job runs engines on: messages in memory, a group of one, and the ideal lanes
// that bound every engine (shared rules: README.md).

namespace weir::bench {

struct Message {
  std::uint32_t session = 0;
  std::uint32_t number = 0;  // in its session, from 0
  Duration arrival{};        // since the start; ignored by engines in real time
  Duration backoff{};        // after its first attempt; 0: it does not fail
};

struct Traffic {
  std::vector<Message> messages;  // by arrival
  std::uint32_t sessions = 0;
};

struct TrafficShape {
  std::uint64_t messages = 0;
  std::uint32_t sessions = 0;
  std::uint32_t failing_per_cent = 0;
  Duration backoff_mean{};  // uniform in [0.5, 1.5] of it
  double rate = 0;          // messages a second, evenly spaced; 0: all at the start
};

// Sessions, failures and back-offs are drawn from a fixed seed.
Traffic make_traffic(const TrafficShape& shape, std::uint64_t seed);

struct Latencies {
  double per_second = 0;
  double p50_ms = 0;
  double p99_ms = 0;
};
// From arrivals to completions.
Latencies latencies(const std::vector<Duration>& times, Duration span);

// What lanes of no cost at all give: a message starts when it has arrived and the one before it in
// its session is done; a failed one is done its back-off later. No engine is faster on this draw.
Latencies ideal_lanes(const Traffic& traffic);

// Gives one partition's messages in blocks, as their time comes. Threading: as RecordSource.
class PreloadedSource : public RecordSource {
 public:
  // `clock`: null when all are there at once. Outlives nothing: borrows both.
  PreloadedSource(const Traffic& traffic, const Clock* clock);

  Status assign(std::vector<TopicPartition> partitions) override;
  Status seek(std::uint32_t assignment, Offset offset) override;
  Offset position(std::uint32_t assignment) const override;
  void pause(std::uint32_t assignment) override;
  void resume(std::uint32_t assignment) override;
  Result<std::vector<RecordBlock>> poll(Duration timeout) override;
  void wakeup() override;

  // When the next message arrives; nullopt: none is left.
  std::optional<MonotonicTime> next_arrival() const;

 private:
  static constexpr std::size_t kBlockRecords = 4'096;

  const Traffic& traffic_;
  const Clock* clock_;
  Mutex mutex_;
  CondVar condition_;
  bool is_woken_ WEIR_GUARDED_BY(mutex_) = false;
  MonotonicTime start_{};
  std::vector<std::string> keys_;
  std::size_t next_ = 0;
  bool is_assigned_ = false;
  bool is_paused_ = false;
};

// The only member of its group; commits go nowhere.
class LoneGroup : public Group {
 public:
  Status join(std::vector<std::string> topics, std::string user_data,
              GroupListener& listener) override;
  Status poll() override;
  Status leave() override { return {}; }
  Status commit(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) override;
  Result<std::vector<std::optional<CommittedOffset>>> committed(
      std::span<const TopicPartition> partitions) override;
  GroupMetadata metadata() const override { return {"bench", 1, "m"}; }
  Offset last_commit() const { return last_commit_; }

 private:
  GroupListener* listener_ = nullptr;  // until it has been told
  Offset last_commit_;
};

}  // namespace weir::bench
