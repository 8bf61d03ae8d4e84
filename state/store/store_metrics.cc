#include <weir/state/store_metrics.h>

namespace weir::state {

std::vector<MetricsRegistry::Handle> StoreMetrics::register_in(MetricsRegistry& registry,
                                                               const std::string& labels) const {
  std::vector<MetricsRegistry::Handle> handles;
  const auto add = [&](const char* name, const Counter& counter) {
    handles.push_back(registry.add(name, labels, counter));
  };
  add("weir_store_loads_total", loads);
  add("weir_store_evictions_total", evictions);
  add("weir_store_changelog_records_total", changelog_records);
  add("weir_store_promotes_total", promotes);
  add("weir_store_checkpoints_total", checkpoints);
  add("weir_store_checkpoint_failures_total", checkpoint_failures);
  handles.push_back(registry.add("weir_store_open_iterators", labels, [this] {
    return static_cast<double>(open_iterators.load(std::memory_order_relaxed));
  }));
  handles.push_back(registry.add("weir_store_entries", labels, [this] {
    return static_cast<double>(entries.load(std::memory_order_relaxed));
  }));
  handles.push_back(registry.add("weir_store_memory_bytes", labels, [this] {
    return static_cast<double>(bytes.load(std::memory_order_relaxed));
  }));
  return handles;
}

}  // namespace weir::state
