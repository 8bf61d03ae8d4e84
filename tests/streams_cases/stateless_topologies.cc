#include "tests/streams_cases/functions.h"
#include "tests/streams_cases/topologies.h"

#include <array>
#include <map>
#include <memory>
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

void flat_map(const Input& in) {
  in.flat_map([](const MaybeText& key, const MaybeText& value) {
      std::vector<std::pair<MaybeText, MaybeText>> pairs;
      if (value.has_value()) {
        for (const Text& part : split_at_commas(*value)) {
          pairs.emplace_back(part.empty() ? std::nullopt : MaybeText(part), key);
        }
      }
      return pairs;
    }).to(kOut);
}

void select_key(const Input& in) {
  in.select_key(first_character).to(kOut);
}

void peek(const Input& in) {
  in.peek([](const MaybeText&) {}).to(kOut);
}

void chain(const Input& in) {
  in.filter([](const MaybeText& value) { return value.has_value(); })
      .flat_map_values([](const MaybeText& value) { return java_split_at_commas(*value); })
      .select_key([](const Text& value) { return value; })
      .map_values([](const Text& value) { return value + value; })
      .filter_not([](const Text& value) { return value.empty(); })
      .peek([](const Text&) {})
      .to(kOut);
}

void repartition(const Input& in) {
  in.select_key(first_character).repartition({.name = "rp"}).to(kOut);
}

class CopyHeaders final : public FixedKeyProcessor<MaybeText, MaybeText> {
 public:
  void init(Context& context) override { context_ = &context; }
  void process(const FixedKeyRecord<MaybeText, MaybeText>& record) override {
    FixedKeyRecord<MaybeText, MaybeText> copy = record;
    copy.headers.add("added", ByteView("1"));
    ++copy.timestamp;
    context_->forward(copy);
  }

 private:
  Context* context_ = nullptr;
};
void copy_headers(const Input& in) {
  in.process_values([] { return std::make_unique<CopyHeaders>(); }).to(kOut);
}

// The name that Kafka's describe() shows.
struct TopicBy {
  Text (*choose)(const MaybeText& value, const RecordContext& context);
  Text operator()(const MaybeText& /*key*/, const MaybeText& value,
                  const RecordContext& context) const {
    return choose(value, context);
  }
};
void extractor(const Input& in) {
  in.to(TopicBy{[](const MaybeText& value, const RecordContext&) {
    return "out-" + (value.has_value() ? value->substr(0, 1) : Text("null"));
  }});
}
void extractor_context(const Input& in) {
  in.to(TopicBy{[](const MaybeText&, const RecordContext& context) {
    return Text(context.topic) + (context.headers.last("copy").has_value() ? "-copy" : "-none");
  }});
}

bool starts_with_a(const MaybeText& value) {
  return value.has_value() && value->starts_with("a");
}
void split_with_function(const Input& in) {
  auto branches = in.split();
  branches.branch(starts_with_a)
      .map_values([](const MaybeText& value) { return "A:" + printed(value); })
      .to(Topic<MaybeText, MaybeText>{"out-a"});
  branches.default_branch().to(Topic<MaybeText, MaybeText>{"out-rest"});
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

Result<Topology> build_split(const Description& description) {
  StreamBuilder builder(description.builder);
  auto branches = builder.from(kIn).split("b-");
  // In the order of their names, as the sinks were attached.
  std::map<Text, Input> made;
  made.emplace("b-a", branches.branch(starts_with_a, "a"));
  made.emplace("b-2", branches.branch([](const MaybeText& value) {
    return value.has_value() && value->find('b') != Text::npos;
  }));
  made.emplace(
      "b-key",
      branches.branch([](const MaybeText& key, const MaybeText&) { return key == "a"; }, "key"));
  if (description.params.flag("defaultBranch")) {
    made.emplace("b-0", branches.default_branch());
  }
  for (const auto& [name, branch] : made) {
    branch.to(Topic<MaybeText, MaybeText>::named("out-" + name));
  }
  return std::move(builder).build();
}

Result<Topology> build_merge(const Description& description) {
  StreamBuilder builder(description.builder);
  const auto marked = [](const char* mark) {
    return [mark](const MaybeText& value) { return MaybeText(mark + printed(value)); };
  };
  const Input first = builder.from(kIn).map_values(marked("1"));
  const Input second = builder.from(Topic<MaybeText, MaybeText>{"in2"}).map_values(marked("2"));
  const Input both = first.merge(second);
  both.merge(builder.from(Topic<MaybeText, MaybeText>{"in3"})).to(kOut);
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
    OpBuilder{"stateless.flatMap", build<flat_map>},
    OpBuilder{"stateless.selectKey", build<select_key>},
    OpBuilder{"stateless.peek", build<peek>},
    OpBuilder{"stateless.chain", build<chain>},
    OpBuilder{"stateless.repartition", build<repartition>},
    OpBuilder{"stateless.copyHeaders", build<copy_headers>},
    OpBuilder{"stateless.extractor", build<extractor>},
    OpBuilder{"stateless.extractorContext", build<extractor_context>},
    OpBuilder{"stateless.splitWithFunction", build<split_with_function>},
    OpBuilder{"stateless.split", build_split},
    OpBuilder{"stateless.merge", build_merge},
};

}  // namespace

std::span<const OpBuilder> stateless_topologies() {
  return kOps;
}

}  // namespace weir::streams_cases
