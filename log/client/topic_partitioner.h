#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/types.h>

#include <cstdint>

namespace weir::log {

// What an append left in the partition's open batch.
enum class OpenBatch { kTakesMore, kFull };

// Chooses partitions of one topic for records that name none. A pure core.
//
// Without a key (or with partitioner.ignore.keys) it is sticky and uniform by bytes, Kafka's
// KIP-794 with partitioner.adaptive.partitioning.enable=false: a partition is left once batch.size
// bytes went there and no half-filled batch would stay behind, at the latest after twice
// batch.size; the next is drawn at random, with equal chances, and may be the same.
//
// Threading: confined to its owner.
class TopicPartitioner {
 public:
  enum class Kind { kDefault, kRoundRobin };
  struct Options {
    Kind kind = Kind::kDefault;
    bool ignore_keys = false;
    std::int64_t batch_bytes = 16'384;  // 0 counts as 1
  };

  explicit TopicPartitioner(const Options& options) : options_(options) {}

  // Requires: count > 0.
  PartitionId choose(const NullableBytes& key, std::int32_t count, Rng& rng);
  // The record that was chosen for took `bytes` in `partition`.
  void appended(const NullableBytes& key, PartitionId partition, std::int64_t bytes,
                OpenBatch open);
  // The partition's open batch was sent without a record in the next one.
  void sent(PartitionId partition);

 private:
  bool is_sticky(const NullableBytes& key) const;

  Options options_;
  std::uint32_t next_ = 0;    // round robin
  std::int32_t sticky_ = -1;  // -1: to be drawn
  std::int64_t sticky_bytes_ = 0;
};

}  // namespace weir::log
