#include "tests/streams_cases/functions.h"
#include "tests/streams_cases/topologies.h"

#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>

// err.*

namespace weir::streams_cases {

// Text that its serde refuses to write when it is "bad".
struct Picky {
  Text text;
};

}  // namespace weir::streams_cases

template <>
struct weir::Serde<weir::streams_cases::Picky> {
  static constexpr std::string_view kName = "string";
  static void write(const streams_cases::Picky& value, std::string& out) {
    if (value.text == "bad") {
      throw std::logic_error("picky");
    }
    out.append(value.text);
  }
  static Result<streams_cases::Picky> read(ByteView bytes) {
    return streams_cases::Picky{std::string(bytes)};
  }
};

namespace weir::streams_cases {

namespace {

constexpr Topic<MaybeText, MaybeText> kTexts{"in"};
constexpr Topic<MaybeText, MaybeText> kOut{"out"};

Text exclaimed(const MaybeText& value) {
  if (value == "boom") {
    throw std::logic_error("boom " + *value);
  }
  return printed(value) + "!";
}

Result<Topology> build_deser(const Description& description) {
  StreamBuilder builder(description.builder);
  builder.from(Topic<MaybeText, MaybeLong>{"in"}).to(Topic<MaybeText, MaybeLong>{"out"});
  return std::move(builder).build();
}

Result<Topology> build_deser_key(const Description& description) {
  StreamBuilder builder(description.builder);
  builder.from(Topic<MaybeLong, MaybeText>{"in"}).to(Topic<MaybeLong, MaybeText>{"out"});
  return std::move(builder).build();
}

Result<Topology> build_deser_table(const Description& description) {
  StreamBuilder builder(description.builder);
  builder.table_from(Topic<MaybeText, MaybeLong>{"in"}, KvStore<Text, Long>{"tab"})
      .to_stream()
      .to(Topic<MaybeText, MaybeLong>{"out"});
  return std::move(builder).build();
}

Result<Topology> build_map(const Description& description) {
  StreamBuilder builder(description.builder);
  const auto in = builder.from(kTexts);
  in.to(Topic<MaybeText, MaybeText>{"before"});
  in.map_values(exclaimed).named("m").to(kOut);
  return std::move(builder).build();
}

Result<Topology> build_flat(const Description& description) {
  StreamBuilder builder(description.builder);
  builder.from(kTexts)
      .flat_map_values([](const MaybeText& value) { return java_split_at_commas(*value); })
      .map_values([](const Text& value) { return exclaimed(value); })
      .named("m")
      .to(kOut);
  return std::move(builder).build();
}

Result<Topology> build_agg(const Description& description) {
  StreamBuilder builder(description.builder);
  builder.from(kTexts)
      .group_by_key()
      .aggregate(
          KvStore<Text, Text>{"st"}, [] { return Text("0"); },
          [](const Text& value, const Text& aggregate) {
            exclaimed(value);
            return concat(aggregate, value);
          })
      .to_stream()
      .to(kOut);
  return std::move(builder).build();
}

Result<Topology> build_repartition(const Description& description) {
  StreamBuilder builder(description.builder);
  builder.from(kTexts)
      .select_key([](const MaybeText& key, const MaybeText& value) {
        return value.has_value() ? MaybeText(value->substr(0, 1)) : key;
      })
      .repartition({.name = "rp"})
      .map_values(exclaimed)
      .named("m")
      .to(kOut);
  return std::move(builder).build();
}

class Punctuating final : public Processor<MaybeText, MaybeText> {
 public:
  void init(Context& context) override {
    context_ = &context;
    context.schedule(std::chrono::milliseconds(10), PunctuationType::kStreamTime,
                     [this](Timestamp time) {
                       context_->forward({"p", "before", time, {}});
                       if (time >= 20) {
                         throw std::logic_error("boom at " + std::to_string(time));
                       }
                       context_->forward({"p", "after", time, {}});
                     });
  }
  void process(const Record<MaybeText, MaybeText>& record) override { context_->forward(record); }

 private:
  Context* context_ = nullptr;
};
Result<Topology> build_punctuate(const Description& description) {
  StreamBuilder builder(description.builder);
  builder.from(kTexts).process([] { return std::make_unique<Punctuating>(); }).named("pp").to(kOut);
  return std::move(builder).build();
}

using MaybePicky = std::optional<Picky>;
MaybePicky picky(const MaybeText& value) {
  return value.has_value() ? MaybePicky(Picky{*value}) : std::nullopt;
}
// Serdes follow from the types: what Kafka gives one sink as a serializer is a type here.
Result<Topology> build_produce(const Description& description) {
  StreamBuilder builder(description.builder);
  const auto in = builder.from(kTexts);
  if (description.params.flag("key")) {
    in.select_key([](const MaybeText& key, const MaybeText&) {
        return picky(key);
      }).to(Topic<MaybePicky, MaybeText>{"out"}, "sink");
  } else {
    in.map_values(picky).to(Topic<MaybeText, MaybePicky>{"out"}, "sink");
  }
  in.to(Topic<MaybeText, MaybeText>{"after"});
  return std::move(builder).build();
}

constexpr std::array kOps{
    OpBuilder{"err.deser", build_deser},
    OpBuilder{"err.deserKey", build_deser_key},
    OpBuilder{"err.deserTable", build_deser_table},
    OpBuilder{"err.map", build_map},
    OpBuilder{"err.flat", build_flat},
    OpBuilder{"err.agg", build_agg},
    OpBuilder{"err.repartition", build_repartition},
    OpBuilder{"err.punctuate", build_punctuate},
    OpBuilder{"err.produce", build_produce},
};

}  // namespace

std::span<const OpBuilder> error_topologies() {
  return kOps;
}

}  // namespace weir::streams_cases
