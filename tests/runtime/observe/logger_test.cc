#include "runtime/observe/line_limiter.h"
#include "tests/runtime/observe/capture.h"

#include <weir/runtime/logger.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::LogCapture;
using ::testing::Pair;

// A formatter that fails, as a user's may.
struct Unprintable {};

}  // namespace
}  // namespace weir

template <>
struct fmt::formatter<weir::Unprintable> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  auto format(const weir::Unprintable& /*value*/, format_context& context) const
      -> decltype(context.out()) {
    throw std::runtime_error("cannot print");
  }
};

namespace weir {
namespace {

TEST(Logger, GivesFormattedLinesToTheSink) {
  LogCapture capture;

  WEIR_WARN("isr shrank partition={} lag_ms={}", "orders-1", 17);

  EXPECT_THAT(capture.lines(),
              ElementsAre(Pair(LogLevel::kWarn, "isr shrank partition=orders-1 lag_ms=17")));
}

TEST(Logger, DropsLinesBelowTheLevelWithoutEvaluatingThem) {
  LogCapture capture;
  int evaluated = 0;

  WEIR_DEBUG("below the default level n={}", ++evaluated);
  set_log_level(LogLevel::kError);
  WEIR_WARN("below kError n={}", ++evaluated);
  set_log_level(LogLevel::kOff);
  WEIR_ERROR("below kOff n={}", ++evaluated);
  set_log_level(LogLevel::kInfo);

  EXPECT_THAT(capture.lines(), IsEmpty());
  EXPECT_EQ(evaluated, 0);
}

TEST(Logger, KeepsOneLineOneLine) {
  LogCapture capture;

  WEIR_INFO("peer said text=\"{}\"", "a\nERROR forged\r");

  EXPECT_EQ(capture.lines().at(0).second, "peer said text=\"a\\nERROR forged\\r\"");
}

TEST(Logger, CutsLinesWithoutEnd) {
  LogCapture capture;

  WEIR_INFO("{}", std::string(20'000, 'x'));

  EXPECT_EQ(capture.lines().at(0).second, std::string(16'384, 'x') + "... cut_bytes=3616");
}

TEST(Logger, SaysSoWhenAnArgumentCannotBeFormatted) {
  LogCapture capture;

  WEIR_INFO("value={}", Unprintable());

  EXPECT_EQ(capture.lines().at(0).second,
            "line could not be formatted format=\"value={}\" cause=\"cannot print\"");
}

TEST(Logger, WritesStderrByDefault) {
  LogSink previous = set_log_sink(nullptr);
  ::testing::internal::CaptureStderr();

  WEIR_ERROR("disk is full path={}", "/data");

  const std::string written = ::testing::internal::GetCapturedStderr();
  set_log_sink(std::move(previous));
  EXPECT_THAT(written, ::testing::MatchesRegex("ERROR [0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+"
                                               "\\.[0-9][0-9][0-9]Z disk is full path=/data\n"));
}

TEST(Logger, LinesOfASinkGoToStderr) {
  ::testing::internal::CaptureStderr();
  LogSink previous =
      set_log_sink([](LogLevel, std::string_view) { WEIR_ERROR("written by the sink"); });

  WEIR_INFO("starts the sink");

  set_log_sink(std::move(previous));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("Z written by the sink\n"));
}

TEST(Logger, SurvivesASinkThatThrows) {
  ::testing::internal::CaptureStderr();
  LogSink previous =
      set_log_sink([](LogLevel, std::string_view) { throw std::runtime_error("broken sink"); });

  WEIR_INFO("first of a broken sink");
  WEIR_INFO("second of a broken sink");

  set_log_sink(std::move(previous));
  const std::string written = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(written, ::testing::HasSubstr("first of a broken sink"));
  EXPECT_THAT(written, ::testing::HasSubstr("second of a broken sink"));
}

TEST(Logger, CallsTheSinkOneAtATimeFromManyThreads) {
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  int lines = 0;  // not atomic: the sink is never entered twice
  LogSink previous = set_log_sink([&](LogLevel, std::string_view) {
    overlaps += inside.fetch_add(1) == 0 ? 0 : 1;
    ++lines;
    inside.fetch_sub(1);
  });

  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        WEIR_INFO("concurrent thread={} line={}", t, i);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  set_log_sink(std::move(previous));
  EXPECT_EQ(lines, 800);
  EXPECT_EQ(overlaps.load(), 0);
}

using internal::LineLimiter;

std::vector<std::string> admit(LineLimiter& limiter, const std::string& text, Duration at) {
  std::vector<std::string> lines;
  for (const LineLimiter::Line& line : limiter.admit(LogLevel::kInfo, text, MonotonicTime(at))) {
    lines.push_back(line.text);
  }
  return lines;
}

TEST(LineLimiter, WritesFiveCopiesInTenSecondsAndThenTheCount) {
  LineLimiter limiter;
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(admit(limiter, "a", std::chrono::seconds(i)), ElementsAre("a"));
  }
  EXPECT_THAT(admit(limiter, "a", std::chrono::seconds(4)),
              ElementsAre("a repeats=counted_for_10s"));
  for (int i = 0; i < 7; ++i) {
    EXPECT_THAT(admit(limiter, "a", std::chrono::seconds(9)), IsEmpty());
  }

  EXPECT_THAT(admit(limiter, "a", std::chrono::seconds(10)), ElementsAre("a suppressed=7"));
  EXPECT_THAT(admit(limiter, "a", std::chrono::seconds(11)), ElementsAre("a"));
}

TEST(LineLimiter, CountsLinesByLevelAndText) {
  LineLimiter limiter;
  for (int i = 0; i < 5; ++i) {
    admit(limiter, "a", Duration(0));
  }

  EXPECT_THAT(admit(limiter, "a", Duration(0)), IsEmpty());
  EXPECT_THAT(admit(limiter, "b", Duration(0)), ElementsAre("b"));
  EXPECT_EQ(limiter.admit(LogLevel::kError, "a", MonotonicTime(0)).size(), 1U);
}

TEST(LineLimiter, WritesTheCountOfALineThatIsPushedOut) {
  LineLimiter limiter;
  for (int i = 0; i < 8; ++i) {
    admit(limiter, "flood", Duration(0));
  }
  for (std::size_t i = 1; i < LineLimiter::kLines; ++i) {
    EXPECT_EQ(admit(limiter, "other " + std::to_string(i), Duration(1)).size(), 1U);
  }

  EXPECT_THAT(admit(limiter, "last", Duration(2)), ElementsAre("flood suppressed=3", "last"));
  EXPECT_THAT(admit(limiter, "flood", Duration(3)), ElementsAre("flood"));
}

}  // namespace
}  // namespace weir
