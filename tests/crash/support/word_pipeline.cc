#include "tests/crash/support/word_pipeline.h"

#include <fmt/core.h>

#include <charconv>
#include <utility>

namespace weir::crash {

std::string line_of(std::int64_t number) {
  return fmt::format("{} a{} b{} c{}", number, number % 5, number * 31 % 97, number * 17 % 293);
}

std::optional<std::int64_t> number_of(std::string_view line) {
  std::int64_t number = 0;
  const char* end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data(), end, number);
  if (error != std::errc() || line != line_of(number)) {
    return std::nullopt;
  }
  return number;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (std::size_t begin = line.find(' '); begin != std::string::npos;) {
    const std::size_t end = line.find(' ', begin + 1);
    words.push_back(line.substr(begin + 1, end == std::string::npos ? end : end - begin - 1));
    begin = end;
  }
  return words;
}

Topology word_pipeline() {
  StreamBuilder builder;
  builder.from(Topic<std::string, std::string>::named(kLinesTopic))
      .flat_map_values([](const std::string& line) { return words_of(line); })
      .group_by([](const std::string& word) { return word; })
      .count(KvStore<std::string, std::int64_t>{kStoreName})
      .to_stream()
      .to(Topic<std::string, std::int64_t>::named(kCountsTopic));
  return std::move(builder).build();
}

Status make_topics(Admin& admin) {
  const TopicSpec specs[] = {
      {kLinesTopic, kPartitions, {{"segment.bytes", "8192"}}},
      {kCountsTopic, 1, {{"segment.bytes", "16384"}}},
      {kRepartitionTopic,
       kPartitions,
       {{"cleanup.policy", "delete"}, {"retention.ms", "-1"}, {"segment.bytes", "12288"}}},
      {kChangelogTopic, kPartitions, {{"cleanup.policy", "compact"}, {"segment.bytes", "12288"}}},
  };
  for (const TopicSpec& spec : specs) {
    const Result<TopicDescription> made = admin.create_topic(spec);
    if (!made.ok() && made.error().code() != Errc::kTopicExists) {
      return made.status();
    }
  }
  return {};
}

}  // namespace weir::crash
