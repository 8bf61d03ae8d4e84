#include "log/client/topic_partitioner.h"

#include <weir/runtime/assert.h>
#include <weir/runtime/murmur2.h>

#include <algorithm>

namespace weir::log {

bool TopicPartitioner::is_sticky(const NullableBytes& key) const {
  return options_.kind == Kind::kDefault && (key.is_null() || options_.ignore_keys);
}

PartitionId TopicPartitioner::choose(const NullableBytes& key, std::int32_t count, Rng& rng) {
  WEIR_ASSERT(count > 0);
  if (count == 1) {
    return PartitionId(0);
  }
  if (options_.kind == Kind::kRoundRobin) {
    return PartitionId(static_cast<std::int32_t>(next_++ % static_cast<std::uint32_t>(count)));
  }
  if (!is_sticky(key)) {
    return partition_for_key(key.view(), count);
  }
  if (sticky_ < 0) {
    sticky_ = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(count)));
    sticky_bytes_ = 0;
  }
  return PartitionId(sticky_);
}

void TopicPartitioner::appended(const NullableBytes& key, PartitionId partition, std::int64_t bytes,
                                OpenBatch open) {
  if (!is_sticky(key) || partition != PartitionId(sticky_)) {
    return;
  }
  sticky_bytes_ += bytes;
  const std::int64_t batch = std::max<std::int64_t>(options_.batch_bytes, 1);
  if (sticky_bytes_ >= 2 * batch || (sticky_bytes_ >= batch && open == OpenBatch::kFull)) {
    sticky_ = -1;
  }
}

void TopicPartitioner::sent(PartitionId partition) {
  if (partition == PartitionId(sticky_) &&
      sticky_bytes_ >= std::max<std::int64_t>(options_.batch_bytes, 1)) {
    sticky_ = -1;
  }
}

}  // namespace weir::log
