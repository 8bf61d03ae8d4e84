#include "tests/operators/support/stream_cases.h"

#include <weir/operators/stream_builder.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weir::test {
namespace {

using Text = std::string;
using MaybeText = std::optional<std::string>;

inline constexpr Topic<MaybeText, MaybeText> kIn{"in"};
inline constexpr Topic<MaybeText, MaybeText> kOut{"out"};
inline constexpr Topic<MaybeText, MaybeText> kOut2{"out2"};

using Input = Stream<MaybeText, MaybeText>;

// The functions of the fixtures' generator, Stateless.java.
bool is_null_or_starts_with_a(const MaybeText& value) {
  return !value.has_value() || value->starts_with('a');
}
Text printed(const MaybeText& value) {
  return value.value_or("null");
}
Text upper(Text text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return text;
}
std::vector<Text> split_at_commas(const Text& text, bool keep_trailing_empty) {
  std::vector<Text> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  while (!keep_trailing_empty && parts.size() > 1 && parts.back().empty()) {
    parts.pop_back();
  }
  return parts;
}
MaybeText first_character(const MaybeText& value) {
  return !value.has_value() || value->empty() ? std::nullopt : MaybeText(value->substr(0, 1));
}

void pass(const Input& in) {
  in.to(kOut);
}
void filter(const Input& in) {
  in.filter(is_null_or_starts_with_a).to(kOut);
}
void filter_not(const Input& in) {
  in.filter([](const MaybeText& value) { return !is_null_or_starts_with_a(value); }).to(kOut);
}
void map(const Input& in) {
  in.map([](const MaybeText& key, const MaybeText& value) {
      return std::pair(value, key);
    }).to(kOut);
}
void map_values(const Input& in) {
  in.map_values([](const MaybeText& value) {
      if (!value.has_value()) {
        return MaybeText("was-null");
      }
      return *value == "gone" ? std::nullopt : MaybeText(upper(*value));
    }).to(kOut);
}
void map_values_with_key(const Input& in) {
  in.map_values([](const MaybeText& key, const MaybeText& value) {
      return printed(key) + "/" + printed(value);
    }).to(kOut);
}
void flat_map_values(const Input& in) {
  in.flat_map_values([](const MaybeText& value) {
      return value.has_value() ? split_at_commas(*value, true) : std::vector<Text>();
    }).to(kOut);
}
void flat_map_values_null(const Input& in) {
  in.flat_map_values([](const MaybeText& key, const MaybeText& value) {
      return std::vector<MaybeText>{value, std::nullopt, key};
    }).to(kOut);
}
void fanout(const Input& in) {
  in.filter(is_null_or_starts_with_a).to(kOut);
  in.map_values([](const MaybeText& value) { return "m" + printed(value); }).to(kOut2);
  in.flat_map_values([](const MaybeText&) { return std::vector<Text>{"x", "y"}; }).to(kOut);
}
// selectKey(f) is map to (f, value).
void chain(const Input& in) {
  in.filter([](const MaybeText& value) { return value.has_value(); })
      .flat_map_values([](const MaybeText& value) { return split_at_commas(*value, false); })
      .map([](const MaybeText&, const Text& value) { return std::pair(value, value); })
      .map_values([](const Text& value) { return value + value; })
      .filter([](const Text& value) { return !value.empty(); })
      .to(kOut);
}
void repartition(const Input& in) {
  in.map([](const MaybeText&, const MaybeText& value) {
      return std::pair(first_character(value), value);
    })
      .repartition({.name = "rp"})
      .to(kOut);
}
void repartition_same(const Input& in) {
  in.repartition().to(kOut);
}

struct StatelessCase {
  const char* name;
  void (*build)(const Input& in);
};
std::ostream& operator<<(std::ostream& out, const StatelessCase& c) {
  return out << c.name;
}

class RecordedStateless : public ::testing::TestWithParam<StatelessCase> {};

TEST_P(RecordedStateless, GivesKafkasResults) {
  StreamBuilder builder({.require_names = false});
  GetParam().build(builder.from(kIn));
  testing::TopologyTestDriver driver(std::move(builder).build());

  replay(find_stream_case(load_stream_cases("stateless.jsonl"), GetParam().name), driver);
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, RecordedStateless,
    ::testing::Values(
        StatelessCase{"stateless-pass", pass}, StatelessCase{"stateless-filter", filter},
        StatelessCase{"stateless-filterNot", filter_not}, StatelessCase{"stateless-map", map},
        StatelessCase{"stateless-mapValues", map_values},
        StatelessCase{"stateless-mapValuesWithKey", map_values_with_key},
        StatelessCase{"stateless-flatMapValues", flat_map_values},
        StatelessCase{"stateless-flatMapValuesNull", flat_map_values_null},
        StatelessCase{"stateless-fanout", fanout}, StatelessCase{"stateless-chain", chain},
        StatelessCase{"stateless-repartition", repartition},
        StatelessCase{"stateless-repartitionSame", repartition_same},
        StatelessCase{"stateless-negative-ts-default", pass}));

}  // namespace
}  // namespace weir::test
