#include "tests/streams_cases/functions.h"
#include "tests/streams_cases/topologies.h"

#include <fmt/format.h>

#include <array>

// table.*, tagg

namespace weir::streams_cases {

namespace {

using LongTable = Table<Text, MaybeLong>;
constexpr Topic<MaybeText, Long> kLongs{"in"};
constexpr KvStore<Text, Long> kTab{"tab"};
constexpr KvStore<Text, Long> kResult{"result"};

bool is_even(Long value) {
  return value % 2 == 0;
}
MaybeLong times_ten_but_seven(Long value) {
  return value == 7 ? std::nullopt : MaybeLong(value * 10);
}

// What each op does to its table. `materialized`: the result is kept.
LongTable apply(std::string_view op, const LongTable& table, bool materialized) {
  if (op == "table.filter") {
    return materialized ? table.filter(is_even, kResult) : table.filter(is_even);
  }
  if (op == "table.filterNot") {
    return materialized ? table.filter_not(is_even, kResult) : table.filter_not(is_even);
  }
  if (op == "table.mapValues") {
    return materialized ? table.map_values(times_ten_but_seven, kResult)
                        : table.map_values(times_ten_but_seven);
  }
  return table;  // table.source, table.toTable
}

LongTable to_table(StreamBuilder& builder, const Description& description, StoreName name) {
  const auto table_of = [name](const auto& stream) {
    return name == StoreName::kGenerated ? stream.to_table() : stream.to_table(kTab);
  };
  const auto in = builder.from(Topic<MaybeText, MaybeLong>{"in"});
  if (!description.params.flag("rekey")) {
    return table_of(in);
  }
  return table_of(in.select_key([](const MaybeText& key, const MaybeLong& value) {
    return value.has_value() ? MaybeText("m" + std::to_string(*value % 3)) : key;
  }));
}

// Asks for old values: everything under one key.
void attach_sum(const LongTable& table) {
  table.group_by([](const Text&, Long value) { return std::pair(Text("all"), value); })
      .named("re")
      .aggregate(
          KvStore<Text, Long>{"sum"}, [] { return Long(0); },
          [](Long value, Long sum) { return sum + value; },
          [](Long value, Long sum) { return sum - value; })
      .to_stream()
      .to(Topic<Text, Long>{"sum"});
}

Result<Topology> build_table(const Description& description) {
  const Params& params = description.params;
  const bool is_to_table = description.op == "table.toTable";
  StreamBuilder builder(description.builder);
  WEIR_TRY_ASSIGN(const StoreName name,
                  store_name(params, "store", is_to_table ? "rocksdb" : "none"));
  LongTable table = is_to_table                     ? to_table(builder, description, name)
                    : name == StoreName::kGenerated ? builder.table_from(kLongs)
                                                    : builder.table_from(kLongs, kTab);
  table = apply(description.op, table, params.flag("materialized"));
  const std::string down = params.text("down", "none");
  if (down == "sum") {
    attach_sum(table);
  } else if (down != "none") {
    return unknown(fmt::format("down '{}'", down));
  }
  if (params.flag("keyMapper")) {
    table.to_stream()
        .select_key([](const Text& key, const MaybeLong&) { return key + "!"; })
        .to(Topic<Text, Long>{"out"});
  } else {
    table.to_stream().to(Topic<Text, Long>{"out"});
  }
  return std::move(builder).build();
}

// The re-grouped table and its aggregation, which `aggregate(grouped, store)` makes.
template <class A, class Mapper, class Aggregate>
Result<Topology> regrouped(const Description& description, Mapper mapper, Aggregate aggregate) {
  StreamBuilder builder(description.builder);
  const Topic<MaybeText, Text> in{"in"};
  WEIR_TRY_ASSIGN(const StoreName source, store_name(description.params, "source"));
  WEIR_TRY_ASSIGN(const StoreName result, store_name(description.params, "store"));
  const auto table = source == StoreName::kGenerated
                         ? builder.table_from(in)
                         : builder.table_from(in, KvStore<Text, Text>{"src"});
  const KvStore<Text, A> store{result == StoreName::kGenerated ? "" : "agg-store"};
  aggregate(table.group_by(mapper).named("re"), store).to_stream().to(Topic<Text, A>{"out"});
  return std::move(builder).build();
}

Result<Topology> build_tagg(const Description& description) {
  WEIR_TRY(description.params.refuse({"suppress"}));
  const std::string f = description.params.text("f", "");
  if (f == "concat") {
    return regrouped<Text>(description, group_and_text, [](const auto& grouped, auto store) {
      return grouped.aggregate(
          store, [] { return Text("0"); },
          [](const Text& value, const Text& aggregate) { return aggregate + "+" + value; },
          [](const Text& value, const Text& aggregate) { return aggregate + "-" + value; });
    });
  }
  const auto of_numbers = [&description](auto aggregate) {
    return regrouped<Long>(description, group_and_number, aggregate);
  };
  const auto add = [](Long value, Long sum) { return sum + value; };
  if (f == "count") {
    return of_numbers([](const auto& grouped, auto store) { return grouped.count(store); });
  }
  if (f == "reduce-sum") {
    return of_numbers([](const auto& grouped, auto store) {
      return grouped.reduce(
          store, [](Long sum, Long value) { return sum + value; },
          [](Long sum, Long value) { return sum - value; });
    });
  }
  if (f == "reduce-poly") {
    return of_numbers([](const auto& grouped, auto store) {
      return grouped.reduce(
          store, [](Long sum, Long value) { return poly(sum, value); },
          [](Long sum, Long value) { return poly_sub(sum, value); });
    });
  }
  if (f == "poly") {
    return of_numbers([](const auto& grouped, auto store) {
      return grouped.aggregate(
          store, [] { return Long(1); },
          [](const Text&, Long value, Long sum) { return poly(sum, value); },
          [](const Text&, Long value, Long sum) { return poly_sub(sum, value); });
    });
  }
  if (f == "sum-null-at-0") {
    return of_numbers([add](const auto& grouped, auto store) {
      return grouped.aggregate(
          store, [] { return Long(0); }, add,
          [](Long value, Long sum) {
            return sum == value ? std::nullopt : MaybeLong(sum - value);
          });
    });
  }
  return unknown(fmt::format("f '{}'", f));
}

constexpr std::array kOps{
    OpBuilder{"table.source", build_table},    OpBuilder{"table.toTable", build_table},
    OpBuilder{"table.filter", build_table},    OpBuilder{"table.filterNot", build_table},
    OpBuilder{"table.mapValues", build_table}, OpBuilder{"tagg", build_tagg},
};

}  // namespace

std::span<const OpBuilder> table_topologies() {
  return kOps;
}

}  // namespace weir::streams_cases
