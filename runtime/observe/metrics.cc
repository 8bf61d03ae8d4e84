#include <weir/runtime/assert.h>
#include <weir/runtime/metrics.h>
#include <weir/runtime/thread_annotations.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace weir {

namespace {

enum class Kind { kCounter, kGauge };

struct Metric {
  std::string name;
  std::string labels;
  Kind kind = Kind::kGauge;
  Mutex mutex;
  MetricsRegistry::Read read WEIR_GUARDED_BY(mutex);  // empty once unregistered
};

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_name_character(char c) {
  return is_name_start(c) || (c >= '0' && c <= '9');
}

// Characters that the format does not allow in a name become '_'.
std::string exposed_name(std::string_view name) {
  std::string exposed;
  for (const char c : name) {
    exposed += is_name_character(c) || c == ':' ? c : '_';
  }
  if (exposed.empty() || (exposed.front() >= '0' && exposed.front() <= '9')) {
    exposed.insert(exposed.begin(), '_');
  }
  return exposed;
}

// Whether `rest` is what may follow a label's value: the end, or `,name="`.
bool ends_value(std::string_view rest) {
  if (rest.empty()) {
    return true;
  }
  if (rest.size() < 2 || rest[0] != ',' || !is_name_start(rest[1])) {
    return false;
  }
  std::size_t i = 2;
  while (i < rest.size() && is_name_character(rest[i])) {
    ++i;
  }
  return rest.substr(i, 2) == "=\"";
}

// Labels arrive as key="value",... with raw values (a topic, a path, an error text). The quotes
// around a value stay; backslash, quote and newline inside it are escaped.
std::string exposed_labels(std::string_view labels) {
  std::string exposed;
  bool in_value = false;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const char c = labels[i];
    if (c == '"' && (!in_value || ends_value(labels.substr(i + 1)))) {
      in_value = !in_value;
      exposed += c;
    } else if (c == '"' || c == '\\') {
      exposed += '\\';
      exposed += c;
    } else if (c == '\n') {
      exposed += "\\n";
    } else {
      exposed += c;
    }
  }
  return exposed;
}

std::string exposed_value(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "+Inf" : "-Inf";
  }
  return fmt::format("{}", value);
}

struct KindSample {
  MetricSample sample;
  Kind kind;
};

}  // namespace

struct MetricsRegistry::State {
  mutable Mutex mutex;
  std::map<std::uint64_t, std::shared_ptr<Metric>> metrics WEIR_GUARDED_BY(mutex);
  std::uint64_t next_id WEIR_GUARDED_BY(mutex) = 1;

  std::uint64_t insert(std::string name, std::string labels, Kind kind, Read read) {
    auto metric = std::make_shared<Metric>();
    metric->name = std::move(name);
    metric->labels = std::move(labels);
    metric->kind = kind;
    {
      MutexLock metric_lock(metric->mutex);
      metric->read = std::move(read);
    }
    MutexLock lock(mutex);
    const std::uint64_t id = next_id++;
    metrics.emplace(id, std::move(metric));
    return id;
  }

  std::vector<KindSample> collect() const;
};

std::vector<KindSample> MetricsRegistry::State::collect() const {
  // shared_ptr: a metric may be unregistered while this reads the others.
  std::vector<std::shared_ptr<Metric>> present;
  {
    MutexLock lock(mutex);
    present.reserve(metrics.size());
    for (const auto& [id, metric] : metrics) {
      present.push_back(metric);
    }
  }
  std::vector<KindSample> samples;
  samples.reserve(present.size());
  for (const std::shared_ptr<Metric>& metric : present) {
    // The metric's own lock is held while its function runs: that is what lets the handle's
    // destructor promise that the function is not called any more. A function must not destroy its
    // own handle, nor take a lock that is held while handles are destroyed.
    MutexLock lock(metric->mutex);
    if (metric->read != nullptr) {
      samples.push_back({{metric->name, metric->labels, metric->read()}, metric->kind});
    }
  }
  std::sort(samples.begin(), samples.end(), [](const KindSample& a, const KindSample& b) {
    return std::tie(a.sample.name, a.sample.labels) < std::tie(b.sample.name, b.sample.labels);
  });
  // One counter per thread under one name is one metric for the reader.
  std::vector<KindSample> merged;
  for (KindSample& next : samples) {
    if (!merged.empty() && merged.back().sample.name == next.sample.name &&
        merged.back().sample.labels == next.sample.labels) {
      merged.back().sample.value += next.sample.value;
    } else {
      merged.push_back(std::move(next));
    }
  }
  return merged;
}

MetricsRegistry::Handle::Handle(Handle&& other) noexcept
    : registry_(std::exchange(other.registry_, nullptr)), id_(other.id_) {}

MetricsRegistry::Handle& MetricsRegistry::Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    if (registry_ != nullptr) {
      registry_->remove(id_);
    }
    registry_ = std::exchange(other.registry_, nullptr);
    id_ = other.id_;
  }
  return *this;
}

MetricsRegistry::Handle::~Handle() {
  if (registry_ != nullptr) {
    registry_->remove(id_);
  }
}

MetricsRegistry::MetricsRegistry() : state_(std::make_unique<State>()) {}

MetricsRegistry::~MetricsRegistry() = default;

MetricsRegistry::Handle MetricsRegistry::add(std::string name, std::string labels, Read read) {
  WEIR_ASSERT(read != nullptr);
  return {this, state_->insert(std::move(name), std::move(labels), Kind::kGauge, std::move(read))};
}

MetricsRegistry::Handle MetricsRegistry::add(std::string name, std::string labels,
                                             const Counter& counter) {
  return {this, state_->insert(std::move(name), std::move(labels), Kind::kCounter,
                               [&counter] { return static_cast<double>(counter.value()); })};
}

std::vector<MetricSample> MetricsRegistry::read() const {
  std::vector<MetricSample> samples;
  for (KindSample& collected : state_->collect()) {
    samples.push_back(std::move(collected.sample));
  }
  return samples;
}

std::string MetricsRegistry::prometheus_text() const {
  std::string text;
  std::string family;
  for (const KindSample& collected : state_->collect()) {
    const std::string name = exposed_name(collected.sample.name);
    if (name != family) {
      text += fmt::format("# TYPE {} {}\n", name,
                          collected.kind == Kind::kCounter ? "counter" : "gauge");
      family = name;
    }
    const std::string labels = exposed_labels(collected.sample.labels);
    text += labels.empty()
                ? fmt::format("{} {}\n", name, exposed_value(collected.sample.value))
                : fmt::format("{}{{{}}} {}\n", name, labels, exposed_value(collected.sample.value));
  }
  return text;
}

void MetricsRegistry::remove(std::uint64_t id) {
  std::shared_ptr<Metric> metric;
  {
    MutexLock lock(state_->mutex);
    const auto found = state_->metrics.find(id);
    if (found == state_->metrics.end()) {
      return;
    }
    metric = std::move(found->second);
    state_->metrics.erase(found);
  }
  MutexLock lock(metric->mutex);
  metric->read = nullptr;
}

}  // namespace weir
