#include "tests/streams_cases/functions.h"
#include "tests/streams_cases/topologies.h"

#include <array>
#include <stdexcept>

// stateless.*

namespace weir::streams_cases {

namespace {

inline constexpr Topic<MaybeText, MaybeText> kIn{"in"};
inline constexpr Topic<MaybeText, MaybeText> kOut{"out"};
inline constexpr Topic<MaybeText, MaybeText> kOut2{"out2"};

using Input = Stream<MaybeText, MaybeText>;

void pass(const Input& in) {
  in.to(kOut);
}

void filter(const Input& in) {
  in.filter(is_null_or_starts_with_a).to(kOut);
}

void filter_not(const Input& in) {
  in.filter([](const MaybeText& value) { return !is_null_or_starts_with_a(value); }).to(kOut);
}

// Kafka refuses a null pair. Ours are never null, so the function itself does.
std::pair<MaybeText, MaybeText> swapped(const MaybeText& key, const MaybeText& value) {
  if (value == "NULLPAIR") {
    throw std::invalid_argument("the pair is null");
  }
  return {value, key};
}
void map(const Input& in) {
  in.map(swapped).to(kOut);
}

void map_values(const Input& in) {
  in.map_values([](const MaybeText& value) -> MaybeText {
      if (!value.has_value()) {
        return "was-null";
      }
      return *value == "gone" ? std::nullopt : MaybeText(upper_case(*value));
    }).to(kOut);
}

void map_values_with_key(const Input& in) {
  in.map_values([](const MaybeText& key, const MaybeText& value) {
      return printed(key) + "/" + printed(value);
    }).to(kOut);
}

void flat_map_values(const Input& in) {
  in.flat_map_values([](const MaybeText& value) {
      return value.has_value() ? split_at_commas(*value) : std::vector<Text>();
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

void repartition_same(const Input& in) {
  in.repartition().to(kOut);
}

// Makes the topology of an op that reads `in` alone and has no parameters.
template <void (*Attach)(const Input& in)>
Result<Topology> build(const Description& description) {
  StreamBuilder builder(description.builder);
  Attach(builder.from(kIn));
  return std::move(builder).build();
}

constexpr std::array kOps{
    OpBuilder{"stateless.pass", build<pass>},
    OpBuilder{"stateless.filter", build<filter>},
    OpBuilder{"stateless.filterNot", build<filter_not>},
    OpBuilder{"stateless.map", build<map>},
    OpBuilder{"stateless.mapValues", build<map_values>},
    OpBuilder{"stateless.mapValuesWithKey", build<map_values_with_key>},
    OpBuilder{"stateless.flatMapValues", build<flat_map_values>},
    OpBuilder{"stateless.flatMapValuesNull", build<flat_map_values_null>},
    OpBuilder{"stateless.fanout", build<fanout>},
    OpBuilder{"stateless.repartitionSame", build<repartition_same>},
};

}  // namespace

std::span<const OpBuilder> stateless_topologies() {
  return kOps;
}

}  // namespace weir::streams_cases
