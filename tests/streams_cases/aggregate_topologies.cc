#include "tests/streams_cases/functions.h"
#include "tests/streams_cases/topologies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// agg, words

namespace weir::streams_cases {

namespace {

template <class V>
using Grouped = GroupedStream<MaybeText, V>;

// group: key or first
template <class V>
Result<Grouped<V>> grouped(StreamBuilder& builder, const Description& description) {
  const Stream<MaybeText, V> in = builder.from(Topic<MaybeText, V>{"in"});
  const std::string group = description.params.text("group", "key");
  if (group == "key") {
    return in.group_by_key();
  }
  if (group != "first") {
    return unknown(fmt::format("group '{}'", group));
  }
  if constexpr (std::is_same_v<V, MaybeText>) {
    return in.group_by(first_character).named("g");
  } else {
    return in.group_by(first_digit).named("g");
  }
}

// The aggregation's topology, once `aggregate(grouped)` has made its table.
template <class V, class Aggregate>
Result<Topology> aggregation(const Description& description, Aggregate aggregate) {
  StreamBuilder builder(description.builder);
  WEIR_TRY_ASSIGN(const Grouped<V> input, grouped<V>(builder, description));
  aggregate(input);
  return std::move(builder).build();
}

Result<Topology> build_count(const Description& description) {
  WEIR_TRY_ASSIGN(const StoreName name, store_name(description.params, "store"));
  return aggregation<MaybeText>(description, [&](const Grouped<MaybeText>& input) {
    const Table<Text, Long> table = name == StoreName::kGenerated
                                        ? input.count()
                                        : input.count(KvStore<Text, Long>{"agg-store"});
    table.to_stream().to(Topic<Text, Long>{"out"});
  });
}

template <class V, class F>
Result<Topology> build_reduce(const Description& description, F function) {
  using Plain = internal::PlainOf<V>;
  WEIR_TRY_ASSIGN(const StoreName name, store_name(description.params, "store"));
  return aggregation<V>(description, [&](const Grouped<V>& input) {
    const auto table = name == StoreName::kGenerated
                           ? input.reduce(function)
                           : input.reduce(KvStore<Text, Plain>{"agg-store"}, function);
    table.to_stream().to(Topic<Text, Plain>{"out"});
  });
}

Result<Topology> build_reduce_concat(const Description& description) {
  const MaybeText delete_on = description.params.text("deleteOn");
  if (!delete_on.has_value()) {
    return build_reduce<MaybeText>(description, [](const Text& aggregate, const Text& value) {
      return concat(aggregate, value);
    });
  }
  return build_reduce<MaybeText>(
      description, [delete_on](const Text& aggregate, const Text& value) {
        return value == delete_on ? std::nullopt : MaybeText(concat(aggregate, value));
      });
}

template <class V, class A, class Init, class F>
Result<Topology> build_aggregate(const Description& description, Init init, F function) {
  WEIR_TRY_ASSIGN(const StoreName name, store_name(description.params, "store"));
  return aggregation<V>(description, [&](const Grouped<V>& input) {
    const KvStore<Text, A> store{name == StoreName::kGenerated ? "" : "agg-store"};
    input.aggregate(store, init, function).to_stream().to(Topic<Text, A>{"out"});
  });
}

Result<Topology> build_concat(const Description& description) {
  const MaybeText delete_on = description.params.text("deleteOn");
  return build_aggregate<MaybeText, Text>(
      description, [] { return Text("0"); },
      [delete_on](const Text& value, Text aggregate) {
        return value == delete_on ? std::nullopt : MaybeText(concat(aggregate, value));
      });
}

Result<Topology> build_agg(const Description& description) {
  WEIR_TRY(description.params.refuse({"window", "emit", "suppress", "retention", "chainFilter"}));
  const std::string f = description.params.text("f", "");
  if (f == "count") {
    return build_count(description);
  }
  if (f == "reduce-concat") {
    return build_reduce_concat(description);
  }
  if (f == "reduce-poly") {
    return build_reduce<MaybeLong>(description, [](const Long& aggregate, const Long& value) {
      return poly(aggregate, value);
    });
  }
  if (f == "reduce-max") {
    return build_reduce<MaybeLong>(description, [](const Long& aggregate, const Long& value) {
      return std::max(aggregate, value);
    });
  }
  if (f == "concat") {
    return build_concat(description);
  }
  if (f == "poly") {
    return build_aggregate<MaybeLong, Long>(
        description, [] { return Long(1); },
        [](const Text& /*key*/, Long value, Long aggregate) { return poly(aggregate, value); });
  }
  if (f == "sum") {
    return build_aggregate<MaybeLong, Long>(
        description, [] { return Long(0); },
        [](Long value, Long aggregate) { return aggregate + value; });
  }
  return unknown(fmt::format("f '{}'", f));
}

Result<Topology> build_words(const Description& description) {
  WEIR_TRY(description.params.refuse({"window"}));
  StreamBuilder builder(description.builder);
  builder.from(Topic<Text, Text>{"lines"})
      .flat_map_values(java_words)
      .group_by([](const Text& word) { return word; })
      .count(KvStore<Text, Long>{"counts-store"})
      .to_stream()
      .to(Topic<Text, Long>{"word-counts"});
  return std::move(builder).build();
}

constexpr std::array kOps{
    OpBuilder{"agg", build_agg},
    OpBuilder{"words", build_words},
};

}  // namespace

std::span<const OpBuilder> aggregate_topologies() {
  return kOps;
}

}  // namespace weir::streams_cases
