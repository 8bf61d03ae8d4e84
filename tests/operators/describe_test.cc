#include "operators/plan/plan.h"
#include "tests/operators/support/stream_cases.h"

#include <weir/operators/stream_builder.h>

#include <gtest/gtest.h>

#include <string>

namespace weir::test {
namespace {

using Text = std::string;

template <class V = Text>
Topic<Text, V> topic(const char* name) {
  return {name};
}
KvStore<Text, std::int64_t> counts(const char* name) {
  return {name};
}
KvStore<Text, Text> texts(const char* name) {
  return {name};
}

bool all(const Text&) {
  return true;
}
Text same(const Text& value) {
  return value;
}
std::pair<Text, Text> pair_of(const Text& key, const Text& value) {
  return {key, value};
}
std::vector<Text> one(const Text& value) {
  return {value};
}
Text join(const Text& a, const Text& b) {
  return a + b;
}

void source_sink(StreamBuilder& b) {
  b.from(topic("in")).to(topic("out"));
}
void source_two_topics(StreamBuilder& b) {
  b.from({topic("in1"), topic("in2")}).to(topic("out"));
}
void source_same_topic_twice(StreamBuilder& b) {
  b.from(topic("in")).filter(all).to(topic("a"));
  b.from(topic("in")).map_values(same).to(topic("b"));
}
void source_named(StreamBuilder& b) {
  b.from(topic("in")).named("src").to(topic("out"), "snk");
}
void two_groups(StreamBuilder& b) {
  b.from(topic("a")).to(topic("x"));
  b.from(topic("b")).to(topic("y"));
}
void unused_stream(StreamBuilder& b) {
  b.from(topic("a"));
  b.from(topic("b")).to(topic("y"));
}
void repartition(StreamBuilder& b) {
  b.from(topic("in")).repartition().to(topic("out"));
}
void repartition_named(StreamBuilder& b) {
  b.from(topic("in")).repartition({.name = "rp", .partitions = 7}).to(topic("out"));
}
void group_by_count(StreamBuilder& b) {
  b.from(topic("in")).group_by(same).count().to_stream().to(topic<std::int64_t>("out"));
}
void group_by_count_grouped_name(StreamBuilder& b) {
  b.from(topic("in")).group_by(same).named("g").count().to_stream().to(topic<std::int64_t>("out"));
}
void group_by_count_store_name(StreamBuilder& b) {
  b.from(topic("in")).group_by(same).count(counts("st")).to_stream().to(topic<std::int64_t>("out"));
}
void group_by_count_both_names(StreamBuilder& b) {
  b.from(topic("in"))
      .group_by(same)
      .named("g")
      .count(counts("st"))
      .named("c")
      .to_stream()
      .named("ts")
      .to(topic<std::int64_t>("out"));
}
void group_by_key_count(StreamBuilder& b) {
  b.from(topic("in")).group_by_key().count().to_stream().to(topic<std::int64_t>("out"));
}
void map_group_by_key_reduce(StreamBuilder& b) {
  b.from(topic("in")).map(pair_of).group_by_key().reduce(join).to_stream().to(topic("out"));
}
void merge_repartitions_stores(StreamBuilder& b) {
  const auto s = b.from(topic("in")).map(pair_of);
  s.map_values(same).group_by_key().count(counts("c1")).to_stream().to(topic<std::int64_t>("c"));
  s.filter(all).group_by_key().reduce(texts("r1"), join).to_stream().to(topic("r"));
}
void two_groups_of_one_grouped(StreamBuilder& b) {
  const auto g = b.from(topic("in")).group_by(same);
  g.count().to_stream().to(topic<std::int64_t>("c"));
  g.reduce(join).to_stream().to(topic("r"));
}
void two_groups_of_one_grouped_named(StreamBuilder& b) {
  const auto g = b.from(topic("in")).group_by(same).named("g");
  g.count().to_stream().to(topic<std::int64_t>("c"));
  g.reduce(join).to_stream().to(topic("r"));
}
void word_count(StreamBuilder& b) {
  b.from(topic("lines"))
      .flat_map_values(one)
      .group_by(same)
      .count(counts("counts-store"))
      .to_stream()
      .to(topic<std::int64_t>("word-counts"));
}

struct Described {
  const char* name;
  void (*build)(StreamBuilder& builder);
};
std::ostream& operator<<(std::ostream& out, const Described& described) {
  return out << described.name;
}

Json find_description(const std::string& name) {
  for (const Json& line : load_json_lines("describe.jsonl")) {
    if (line.value("describe", "") == name) {
      return line;
    }
  }
  ADD_FAILURE() << "describe.jsonl has no " << name;
  return {};
}

// Topics as the file lists them: by sub-topology, with the application id "app".
std::vector<Text> on_log(const internal::Plan& plan, const std::vector<Text>& topics) {
  std::vector<Text> names;
  for (const Text& topic : topics) {
    names.push_back(internal::topic_on_log(plan, "app", topic));
  }
  std::sort(names.begin(), names.end());
  return names;
}

class RecordedDescription : public ::testing::TestWithParam<Described> {};

TEST_P(RecordedDescription, IsKafkasText) {
  const Json expected = find_description(GetParam().name);
  StreamBuilder builder({.require_names = false});
  GetParam().build(builder);
  const Topology topology = std::move(builder).build();

  ASSERT_TRUE(topology.status().ok()) << topology.status().error().to_string();
  EXPECT_EQ(topology.describe(), expected["none"].get<Text>());

  const internal::Plan& plan = topology.plan();
  ASSERT_EQ(plan.sub_topologies.size(), expected["none_internal"].size());
  for (std::size_t i = 0; i < plan.sub_topologies.size(); ++i) {
    const Json& sub = expected["none_internal"][i];
    EXPECT_EQ(Json(on_log(plan, plan.sub_topologies[i].source_topics)), sub["sources"]);
    EXPECT_EQ(Json(on_log(plan, plan.sub_topologies[i].sink_topics)), sub["sinks"]);
    EXPECT_EQ(plan.sub_topologies[i].stores.size(), sub["changelog"].size());
    for (const Text& store : plan.sub_topologies[i].stores) {
      EXPECT_TRUE(sub["changelog"].contains("app-" + internal::changelog_name(store))) << store;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, RecordedDescription,
    ::testing::Values(Described{"source-sink", source_sink},
                      Described{"source-two-topics", source_two_topics},
                      Described{"source-same-topic-twice", source_same_topic_twice},
                      Described{"source-named", source_named}, Described{"two-groups", two_groups},
                      Described{"unused-stream", unused_stream},
                      Described{"repartition", repartition},
                      Described{"repartition-named", repartition_named},
                      Described{"groupBy-count", group_by_count},
                      Described{"groupBy-count-grouped-name", group_by_count_grouped_name},
                      Described{"groupBy-count-store-name", group_by_count_store_name},
                      Described{"groupBy-count-both-names", group_by_count_both_names},
                      Described{"groupByKey-count", group_by_key_count},
                      Described{"map-groupByKey-reduce", map_group_by_key_reduce},
                      Described{"merge-repartitions-stores", merge_repartitions_stores},
                      Described{"two-groups-of-one-grouped", two_groups_of_one_grouped},
                      Described{"two-groups-of-one-grouped-named", two_groups_of_one_grouped_named},
                      Described{"word-count", word_count}));

Status status_of(void (*build)(StreamBuilder& builder)) {
  StreamBuilder builder;
  build(builder);
  return std::move(builder).build().status();
}

TEST(StreamBuilder, RefusesGeneratedStoreNamesUnlessTheyAreAllowed) {
  const Status status = status_of(group_by_key_count);

  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("KSTREAM-AGGREGATE-STATE-STORE-0000000001"), Text::npos);
}

TEST(StreamBuilder, ReportsEveryMistakeAtOnce) {
  const Status status = status_of([](StreamBuilder& b) {
    b.from(topic("a b")).to(topic(".."));
    b.from(topic("in")).group_by_key().count(counts("s")).to_stream();
    b.from(topic("in2")).group_by_key().count(counts("s")).to_stream();
  });

  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("'a b'"), Text::npos);
  EXPECT_NE(status.error().message().find("'..'"), Text::npos);
  EXPECT_NE(status.error().message().find("store 's' is used by two operators"), Text::npos);
}

TEST(StreamBuilder, RefusesATopicThatIsReadWithTwoTypes) {
  const Status status = status_of([](StreamBuilder& b) {
    b.from(topic("in")).to(topic("a"));
    b.from(topic<std::int64_t>("in")).to(topic<std::int64_t>("b"));
  });

  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("two different types"), Text::npos);
}

TEST(StreamBuilder, RefusesATopologyThatReadsNothing) {
  EXPECT_FALSE(status_of([](StreamBuilder&) {}).ok());
}

TEST(Topic, KeepsNamesOfRunTimeOnce) {
  const Topic<Text, Text> a = Topic<Text, Text>::named(std::string("orders-") + "7");
  const Topic<Text, Text> b = Topic<Text, Text>::named("orders-7");

  EXPECT_EQ(a.name, "orders-7");
  EXPECT_EQ(a.name.data(), b.name.data());
}

}  // namespace
}  // namespace weir::test
