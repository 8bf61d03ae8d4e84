#include <weir/log/embedded_log.h>
#include <weir/operators/app.h>
#include <weir/operators/stream_builder.h>

#include <iostream>
#include <iterator>
#include <semaphore>
#include <sstream>

constexpr weir::Topic<std::string, std::string> kLines{"lines"};
constexpr weir::Topic<std::string, std::int64_t> kWordCounts{"word-counts"};
constexpr weir::KvStore<std::string, std::int64_t> kCounts{"counts"};

int main() {
  weir::StreamBuilder builder;
  builder.from(kLines)
      .flat_map_values([](const std::string& line) {
        std::istringstream words(line);
        return std::vector<std::string>(std::istream_iterator<std::string>(words), {});
      })
      .group_by([](const std::string& word) { return word; })
      .count(kCounts)
      .to_stream()
      .to(kWordCounts);

  const auto log = weir::log::EmbeddedLog::open("weir-data").value();
  const auto executor = weir::make_asio_executor(1);
  weir::App app(std::move(builder).build(),
                {.application_id = "my-count", .state_dir = log->state_directory()}, *log,
                {weir::system_clock(), weir::posix_file_system(), *executor});
  if (const weir::Status started = app.start(); !started.ok()) {
    std::cerr << started.error().message() << '\n';
    return 1;
  }
  std::counting_semaphore stopped(0);
  const auto signals = weir::watch_termination_signals([&](int) { stopped.release(); });
  stopped.acquire();  // Ctrl-C
  return app.stop(std::chrono::seconds(10)).ok() ? 0 : 1;
}
