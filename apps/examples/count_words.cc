#include <weir/log/embedded_log.h>
#include <weir/operators/app.h>
#include <weir/operators/stream_builder.h>

#include <iostream>
#include <iterator>
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
  const weir::AppOptions options{.application_id = "my-count", .state_dir = log->state_directory()};
  const weir::Status done = weir::run_until_signal(std::move(builder).build(), options, *log);
  std::cerr << (done.ok() ? "" : done.error().message() + "\n");
  return done.ok() ? 0 : 1;
}
