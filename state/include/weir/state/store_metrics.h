#pragma once

#include <weir/runtime/metrics.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::state {

// Figures of one store partition. Threading: written by the store's thread, read by any.
struct StoreMetrics {
  Counter loads;              // misses that asked the checkpoint
  Counter evictions;          // clean entries that left the hot tier
  Counter changelog_records;  // records handed to the sink
  Counter promotes;           // commit scopes
  Counter checkpoints;        // ingested ones
  Counter checkpoint_failures;
  std::atomic<std::int64_t> open_iterators{0};
  std::atomic<std::uint64_t> entries{0};
  std::atomic<std::uint64_t> bytes{0};

  // weir_store_..., `labels` as in MetricsRegistry::add. The handles must go before the store.
  std::vector<MetricsRegistry::Handle> register_in(MetricsRegistry& registry,
                                                   const std::string& labels) const;
};

}  // namespace weir::state
