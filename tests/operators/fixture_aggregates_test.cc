#include "tests/operators/support/stream_cases.h"

#include <weir/operators/stream_builder.h>

#include <gtest/gtest.h>

#include <charconv>
#include <optional>
#include <string>

namespace weir::test {
namespace {

using Text = std::string;
using MaybeText = std::optional<std::string>;

inline constexpr Topic<MaybeText, MaybeText> kIn{"in"};
inline constexpr Topic<Text, Text> kOut{"out"};
inline constexpr Topic<Text, std::int64_t> kLongOut{"out"};
inline constexpr KvStore<Text, Text> kStore{"agg-store"};
inline constexpr KvStore<Text, std::int64_t> kCountStore{"agg-store"};

// The functions of the fixtures' README.
Text concat(const Text& aggregate, const Text& value) {
  return aggregate + "+" + value;
}
std::optional<Text> concat_delete_on_x(const Text& aggregate, const Text& value) {
  return value == "X" ? std::nullopt : std::optional<Text>(concat(aggregate, value));
}
// group: first
MaybeText first_character(const MaybeText& value) {
  return !value.has_value() || value->empty() ? std::nullopt
                                              : std::optional<Text>(value->substr(0, 1));
}

Topology count_topology(bool by_first) {
  StreamBuilder builder({.require_names = false});
  const auto in = builder.from(kIn);
  if (by_first) {
    in.group_by(first_character).named("g").count(kCountStore).to_stream().to(kLongOut);
  } else {
    in.group_by_key().count(kCountStore).to_stream().to(kLongOut);
  }
  return std::move(builder).build();
}

template <class F>
Topology reduce_topology(bool by_first, F function) {
  StreamBuilder builder({.require_names = false});
  const auto in = builder.from(kIn);
  if (by_first) {
    in.group_by(first_character).named("g").reduce(kStore, function).to_stream().to(kOut);
  } else {
    in.group_by_key().reduce(kStore, function).to_stream().to(kOut);
  }
  return std::move(builder).build();
}

struct AggregateCase {
  const char* name;
  bool by_first;
  bool deletes;
  std::size_t cache_bytes;
};
std::ostream& operator<<(std::ostream& out, const AggregateCase& c) {
  return out << c.name;
}

class RecordedCount : public ::testing::TestWithParam<AggregateCase> {};

TEST_P(RecordedCount, GivesKafkasResults) {
  const AggregateCase& param = GetParam();
  testing::TopologyTestDriver driver(count_topology(param.by_first),
                                     {.cache_bytes_max = param.cache_bytes});

  replay(find_stream_case(load_stream_cases("aggregates.jsonl"), param.name), driver);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, RecordedCount,
                         ::testing::Values(AggregateCase{"agg-count-rocksdb", false, false, 0},
                                           AggregateCase{"agg-count-memory", false, false, 0},
                                           AggregateCase{"agg-count-cache", false, false,
                                                         10'485'760},
                                           AggregateCase{"agg-count-groupby", true, false, 0},
                                           AggregateCase{"agg-negative-ts", false, false, 0}));

class RecordedReduce : public ::testing::TestWithParam<AggregateCase> {};

TEST_P(RecordedReduce, GivesKafkasResults) {
  const AggregateCase& param = GetParam();
  testing::TopologyTestDriver driver(param.deletes
                                         ? reduce_topology(param.by_first, concat_delete_on_x)
                                         : reduce_topology(param.by_first, concat),
                                     {.cache_bytes_max = param.cache_bytes});

  replay(find_stream_case(load_stream_cases("aggregates.jsonl"), param.name), driver);
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, RecordedReduce,
    ::testing::Values(AggregateCase{"agg-reduce-concat-rocksdb", false, false, 0},
                      AggregateCase{"agg-reduce-concat-memory", false, false, 0},
                      AggregateCase{"agg-reduce-concat-cache", false, false, 10'485'760},
                      AggregateCase{"agg-reduce-concat-groupby", true, false, 0},
                      AggregateCase{"agg-reduce-concat-delete-rocksdb", false, true, 0},
                      AggregateCase{"agg-reduce-concat-delete-memory", false, true, 0}));

// Numbers are texts in these cases' input and longs in their functions.
Topology long_topology(std::int64_t (*function)(const std::int64_t&, const std::int64_t&)) {
  StreamBuilder builder;
  builder.from(Topic<MaybeText, std::optional<std::int64_t>>{"in"})
      .group_by_key()
      .reduce(kCountStore, function)
      .to_stream()
      .to(kLongOut);
  return std::move(builder).build();
}

TEST(RecordedLongReduce, GivesKafkasPolynomials) {
  testing::TopologyTestDriver driver(
      long_topology([](const std::int64_t& aggregate, const std::int64_t& value) {
        return (aggregate * 31 + value) % 1'000'003;
      }));

  replay(find_stream_case(load_stream_cases("aggregates.jsonl"), "agg-reduce-poly"), driver);
}

TEST(RecordedLongReduce, GivesKafkasMaxima) {
  testing::TopologyTestDriver driver(
      long_topology([](const std::int64_t& aggregate, const std::int64_t& value) {
        return std::max(aggregate, value);
      }));

  replay(find_stream_case(load_stream_cases("aggregates.jsonl"), "agg-reduce-max"), driver);
}

// Java's split(regex) on \W+ of the lower-cased text: a leading separator gives an empty first
// word, trailing empty words are left out, the empty text is one empty word.
std::vector<Text> java_words(const Text& line) {
  std::vector<Text> words(1);
  bool in_separator = false;
  for (const char c : line) {
    const bool is_word =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!is_word) {
      in_separator = true;
      continue;
    }
    if (in_separator) {
      words.emplace_back();
      in_separator = false;
    }
    words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return words;
}

Topology word_count() {
  StreamBuilder builder;
  builder.from(Topic<Text, Text>{"lines"})
      .flat_map_values(java_words)
      .group_by([](const Text& word) { return word; })
      .count(KvStore<Text, std::int64_t>{"counts-store"})
      .to_stream()
      .to(Topic<Text, std::int64_t>{"word-counts"});
  return std::move(builder).build();
}

class RecordedWordCount : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordedWordCount, GivesKafkasResults) {
  const bool caches = std::string(GetParam()) == "word-count-cache";
  testing::TopologyTestDriver driver(word_count(), {.cache_bytes_max = caches ? 10'485'760U : 0U});

  replay(find_stream_case(load_stream_cases("words.jsonl"), GetParam()), driver);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, RecordedWordCount,
                         ::testing::Values("word-count-docs", "word-count-more",
                                           "word-count-cache"));

}  // namespace
}  // namespace weir::test
