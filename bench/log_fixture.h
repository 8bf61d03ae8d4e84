#pragma once

#include <weir/log/embedded_log.h>
#include <weir/runtime/backend.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

// A log in a run's folder, and the loops that every job over it needs.

namespace weir::bench {

inline constexpr std::size_t kBatchBytes = 64U << 10U;

Result<std::unique_ptr<log::EmbeddedLog>> open_log(const std::string& folder,
                                                   std::size_t tail_cache_bytes = 4U << 20U);
// One partition. `durability`: memory or fsync.
Status make_topic(Admin& admin, const std::string& name, const std::string& durability,
                  std::int32_t partitions = 1);
Result<std::unique_ptr<RecordSink>> open_sink(Backend& log);
// Reads partition 0 of `topic` from its start.
Result<std::unique_ptr<RecordSource>> open_source(Backend& log, const std::string& topic);

// Polls until `records` were seen. Errors: those of the blocks, a gap in the offsets, kTimedOut.
Status read_records(RecordSource& source, std::uint64_t records,
                    const std::function<void(const RecordBlock&)>& take);

// Takes everything and keeps nothing: a log that costs nothing.
class NullSink final : public RecordSink {
 public:
  Result<SinkTopicInfo> open_topic(const std::string& /*name*/) override {
    return SinkTopicInfo{topics_++, 1, {}};
  }
  Status send(SinkTopic /*topic*/, PartitionId /*partition*/,
              std::span<const RecordRef> records) override {
    sent_ += records.size();
    return {};
  }
  Result<std::vector<FlushedPartition>> flush() override { return std::vector<FlushedPartition>(); }
  Status begin() override { return Error(Errc::kUnsupported, "no transactions"); }
  Status send_offsets(std::span<const std::pair<TopicPartition, CommittedOffset>> /*offsets*/,
                      const GroupMetadata& /*group*/) override {
    return Error(Errc::kUnsupported, "no transactions");
  }
  Result<TransactionOutcome> end(bool /*commit*/) override {
    return Error(Errc::kUnsupported, "no transactions");
  }
  std::uint64_t sent() const { return sent_; }

 private:
  SinkTopic topics_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace weir::bench
