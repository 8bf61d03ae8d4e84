#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// Metric handles that cost nothing when nobody reads: a counter is one plain add into its owner's
// cache line, a gauge is a function that runs only when the registry is read.

namespace weir {

// Written by one thread at a time, read by any: no locked instruction.
class Counter {
 public:
  void add(std::uint64_t n) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  alignas(64) std::atomic<std::uint64_t> value_{0};
};

struct MetricSample {
  std::string name;    // weir_<part>_<noun>_<unit>
  std::string labels;  // key="value",... ; may be empty
  double value = 0;
};

// Threading: thread-safe.
class MetricsRegistry {
 public:
  using Read = std::function<double()>;
  // Unregisters when destroyed; after that `read` is not called any more.
  class Handle {
   public:
    Handle() = default;
    Handle(MetricsRegistry* registry, std::uint64_t id) : registry_(registry), id_(id) {}
    Handle(Handle&& other) noexcept;
    Handle& operator=(Handle&& other) noexcept;
    ~Handle();

   private:
    MetricsRegistry* registry_ = nullptr;
    std::uint64_t id_ = 0;
  };

  MetricsRegistry();
  ~MetricsRegistry();
  [[nodiscard]] Handle add(std::string name, std::string labels, Read read);
  [[nodiscard]] Handle add(std::string name, std::string labels, const Counter& counter);
  // Sorted by name, then labels.
  std::vector<MetricSample> read() const;
  // Prometheus text exposition format 0.0.4.
  std::string prometheus_text() const;

 private:
  struct State;
  void remove(std::uint64_t id);
  std::unique_ptr<State> state_;
};

}  // namespace weir
