#include <weir/runtime/metrics.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

namespace weir {
namespace {

std::string lines_of(const std::vector<MetricSample>& samples) {
  std::string text;
  for (const MetricSample& sample : samples) {
    text += sample.name + "{" + sample.labels + "}=" + std::to_string(sample.value) + "\n";
  }
  return text;
}

TEST(MetricsRegistry, ReadsSortedByNameThenLabels) {
  MetricsRegistry registry;
  Counter counter;
  const auto b2 = registry.add("weir_b", "partition=\"2\"", [] { return 2.5; });
  const auto b1 = registry.add("weir_b", "partition=\"1\"", [] { return 1.0; });
  const auto a = registry.add("weir_a_total", "", counter);
  counter.add(3);
  counter.add(4);

  EXPECT_EQ(lines_of(registry.read()),
            "weir_a_total{}=7.000000\nweir_b{partition=\"1\"}=1.000000\n"
            "weir_b{partition=\"2\"}=2.500000\n");
}

TEST(MetricsRegistry, ForgetsAMetricWithItsHandle) {
  MetricsRegistry registry;
  int reads = 0;
  {
    const auto handle = registry.add("weir_a", "", [&reads] { return ++reads; });
    EXPECT_EQ(registry.read().size(), 1U);
  }

  EXPECT_TRUE(registry.read().empty());
  EXPECT_EQ(reads, 1);
}

TEST(MetricsRegistry, HandlesMoveTheirRegistration) {
  MetricsRegistry registry;
  auto first = registry.add("weir_a", "", [] { return 1.0; });
  auto second = registry.add("weir_b", "", [] { return 2.0; });

  MetricsRegistry::Handle moved(std::move(first));
  EXPECT_EQ(registry.read().size(), 2U);
  moved = std::move(second);
  EXPECT_EQ(lines_of(registry.read()), "weir_b{}=2.000000\n");
  moved = MetricsRegistry::Handle();
  EXPECT_TRUE(registry.read().empty());
}

TEST(MetricsRegistry, AddsUpCountersOfSeveralThreadsUnderOneName) {
  MetricsRegistry registry;
  Counter one;
  Counter two;
  const auto first = registry.add("weir_records_total", "", one);
  const auto second = registry.add("weir_records_total", "", two);
  one.add(5);
  two.add(6);

  EXPECT_EQ(lines_of(registry.read()), "weir_records_total{}=11.000000\n");
}

// Worked by hand from the text exposition format 0.0.4.
TEST(MetricsRegistry, PrintsPrometheusText) {
  MetricsRegistry registry;
  Counter counter;
  counter.add(12);
  const auto total =
      registry.add("weir_log_appends_total", "topic=\"orders\",partition=\"0\"", counter);
  const auto other =
      registry.add("weir_log_appends_total", "topic=\"orders\",partition=\"1\"", counter);
  const auto gauge = registry.add("weir_log_bytes", "", [] { return 1.5; });

  EXPECT_EQ(registry.prometheus_text(),
            "# TYPE weir_log_appends_total counter\n"
            "weir_log_appends_total{topic=\"orders\",partition=\"0\"} 12\n"
            "weir_log_appends_total{topic=\"orders\",partition=\"1\"} 12\n"
            "# TYPE weir_log_bytes gauge\n"
            "weir_log_bytes 1.5\n");
}

TEST(MetricsRegistry, EscapesLabelValuesAndNames) {
  MetricsRegistry registry;
  const auto escaped = registry.add(
      "weir.disk-free", "path=\"C:\\data\",why=\"say \"hi\", then\nleave\"", [] { return 1.0; });
  const auto digit = registry.add("9lives", "", [] { return 2.0; });

  EXPECT_EQ(registry.prometheus_text(),
            "# TYPE _9lives gauge\n_9lives 2\n"
            "# TYPE weir_disk_free gauge\n"
            "weir_disk_free{path=\"C:\\\\data\",why=\"say \\\"hi\\\", then\\nleave\"} 1\n");
}

TEST(MetricsRegistry, PrintsValuesThatAreNoNumbers) {
  MetricsRegistry registry;
  const auto a = registry.add("a", "", [] { return std::numeric_limits<double>::quiet_NaN(); });
  const auto b = registry.add("b", "", [] { return std::numeric_limits<double>::infinity(); });
  const auto c = registry.add("c", "", [] { return -std::numeric_limits<double>::infinity(); });

  EXPECT_EQ(registry.prometheus_text(),
            "# TYPE a gauge\na NaN\n# TYPE b gauge\nb +Inf\n# TYPE c gauge\nc -Inf\n");
}

// What a gauge reads dies right after its handle. Run under ASan and TSan.
TEST(MetricsRegistry, NeverReadsAGaugeWhoseHandleIsGone) {
  MetricsRegistry registry;
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load()) {
      EXPECT_FALSE(registry.prometheus_text().starts_with("error"));
    }
  });

  for (int i = 0; i < 2000; ++i) {
    auto value = std::make_unique<double>(i);
    const auto handle = registry.add("weir_short_lived", "", [&value] { return *value; });
  }

  stop.store(true);
  reader.join();
  EXPECT_TRUE(registry.read().empty());
}

TEST(Counter, StandsAloneOnItsCacheLine) {
  EXPECT_EQ(sizeof(Counter), 64U);
  EXPECT_EQ(alignof(Counter), 64U);
}

}  // namespace
}  // namespace weir
