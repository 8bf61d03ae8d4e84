#include "tests/streams_cases/functions.h"
#include "tests/streams_cases/topologies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>

// papi.*

namespace weir::streams_cases {

namespace {

constexpr Topic<MaybeText, MaybeText> kIn{"in"};
constexpr Topic<MaybeText, MaybeText> kOut{"out"};

using TextRecord = Record<MaybeText, MaybeText>;
using Context = ProcessorContext<MaybeText, MaybeText>;
using Input = Stream<MaybeText, MaybeText>;

// A processor of two functions, as the recorded ones are.
class Proc final : public Processor<MaybeText, MaybeText> {
 public:
  using Init = std::function<void(Context&)>;
  using Body = std::function<void(const TextRecord&, Context&)>;
  Proc(Init init, Body body) : init_(std::move(init)), body_(std::move(body)) {}
  void init(Context& context) override {
    context_ = &context;
    if (init_) {
      init_(context);
    }
  }
  void process(const TextRecord& record) override { body_(record, *context_); }

 private:
  Init init_;
  Body body_;
  Context* context_ = nullptr;
};
auto supply(Proc::Init init, Proc::Body body) {
  return [init, body] { return std::make_unique<Proc>(init, body); };
}
auto supply(Proc::Body body) {
  return supply({}, std::move(body));
}

TextRecord with_value(const TextRecord& record, Text value) {
  return {record.key, std::move(value), record.timestamp, record.headers};
}
Text meta_of(Context& context) {
  const RecordContext record = context.record_context();
  return fmt::format("{}/{}/{}", record.topic.empty() ? "null" : record.topic,
                     record.partition.value(), record.offset.value());
}
void fire(Context& context, const Text& name, Timestamp time) {
  context.forward({name,
                   fmt::format("at={} stream={} wall={} meta={}", time, context.stream_time(),
                               context.wall_clock_time(), meta_of(context)),
                   time,
                   {}});
}
PunctuationType type_of(const Text& name) {
  return name == "wall" ? PunctuationType::kWallClockTime : PunctuationType::kStreamTime;
}
void pass(const TextRecord& record, Context& context) {
  context.forward(record);
}

// in -> p -> o, named as recorded.
template <class Supply, class... Stores>
Result<Topology> single(const Description& description, Supply supplier, Stores... stores) {
  StreamBuilder builder(description.builder);
  builder.from(kIn).named("s").process(std::move(supplier), stores...).named("p").to(kOut, "o");
  return std::move(builder).build();
}

struct Schedule {
  Text name;
  PunctuationType type;
  Duration interval;
  std::optional<Timestamp> start;
  std::optional<std::int64_t> cancel_after;
};
void schedule(Context& context, const Schedule& what) {
  struct Timer {
    Punctuation punctuation;
    std::int64_t fired = 0;
  };
  auto timer = std::make_shared<Timer>();
  timer->punctuation = context.schedule(
      what.interval, what.type,
      [&context, timer, what](Timestamp time) {
        ++timer->fired;
        fire(context, what.name, time);
        if (what.cancel_after == timer->fired) {
          timer->punctuation.cancel();
        }
      },
      what.start);
}

Result<Topology> build_punctuate(const Description& description) {
  std::vector<Schedule> schedules;
  for (const Params& params : description.params.objects("schedules")) {
    schedules.push_back({params.text("name", ""), type_of(params.text("type", "")),
                         std::chrono::milliseconds(params.number("interval").value_or(1)),
                         params.number("start"), params.number("cancelAfter")});
  }
  const auto init = [schedules](Context& context) {
    for (const Schedule& what : schedules) {
      schedule(context, what);
    }
  };
  return single(description, supply(init, pass));
}

Result<Topology> build_schedule_in_process(const Description& description) {
  return single(description, supply([](const TextRecord& record, Context& context) {
                  if (record.value.has_value() && record.value->starts_with("sched:")) {
                    // sched:type:interval:name
                    const Text rest = record.value->substr(6);
                    const std::size_t first = rest.find(':');
                    const std::size_t second = rest.find(':', first + 1);
                    const auto interval =
                        std::chrono::milliseconds(std::stoll(rest.substr(first + 1)));
                    schedule(context, {rest.substr(second + 1), type_of(rest.substr(0, first)),
                                       interval, std::nullopt, std::nullopt});
                  }
                  context.forward(record);
                }));
}

Result<Topology> build_children(const Description& description) {
  StreamBuilder builder(description.builder);
  const Input p = builder.from(kIn)
                      .named("s")
                      .process(supply([](const TextRecord& record, Context& context) {
                        const Text value = printed(record.value);
                        const std::map<char, Text> child{{'a', "c1"}, {'b', "c2"}, {'x', "nobody"}};
                        if (const auto found = child.find(value.front()); found != child.end()) {
                          context.forward(record, found->second);
                        } else {
                          context.forward(record);
                        }
                      }))
                      .named("p");
  const auto attach = [&p](const Text& name, Timestamp later) {
    const Input child = p.process(supply([name, later](const TextRecord& record, Context& context) {
                           TextRecord changed =
                               with_value(record, name + ":" + printed(record.value));
                           changed.timestamp += later;
                           context.forward(changed);
                         })).named(name);
    child.to(Topic<MaybeText, MaybeText>::named("out-" + name), "o" + name);
    child.to(kOut, "o" + name + "-all");
  };
  attach("c1", 100);
  attach("c2", 200);
  return std::move(builder).build();
}

Result<Topology> build_context(const Description& description) {
  return single(
      description, supply([](const TextRecord& record, Context& context) {
        context.forward(with_value(
            record,
            fmt::format("{} ts={} stream={} wall={} meta={} task={} app={}", printed(record.value),
                        record.timestamp, context.stream_time(), context.wall_clock_time(),
                        meta_of(context), context.task_id(), context.application_id())));
      }));
}

Result<Topology> build_headers(const Description& description) {
  StreamBuilder builder(description.builder);
  builder.from(kIn)
      .named("s")
      .process(supply([](const TextRecord& record, Context& context) {
        context.forward(with_value(record, "1"), "q");
        TextRecord changed = with_value(record, "2");
        changed.headers.remove("a");
        changed.headers.add("new", ByteView("n"));
        context.forward(changed, "q");
        context.forward(with_value(record, "3"), "q");
        changed = with_value(record, "4");
        changed.headers.add("mutated", ByteView("m"));
        context.forward(changed, "q");
        context.forward({record.key, "5", record.timestamp, {}}, "q");
      }))
      .named("p")
      .process(supply([](const TextRecord& record, Context& context) {
        TextRecord changed = record;
        changed.headers.add("q", ByteView(*record.value));
        context.forward(changed);
      }))
      .named("q")
      .to(kOut, "o");
  return std::move(builder).build();
}

constexpr KvStore<Text, Long> kStore{"st"};
constexpr KvStore<Text, Text> kTexts{"st"};
using LongStore = KeyValueStoreView<Text, Long>;

Text listed(LongStore& store, const Text& what) {
  std::vector<Text> entries;
  const auto add = [&](const Text& key, Long value, Timestamp) {
    entries.push_back(fmt::format("{}={} ", key, value));
  };
  if (what == "range") {
    store.for_each_in("a", "c", add);
  } else if (what == "prefix") {
    store.for_each_with_prefix("a", add);
  } else {
    store.for_each(add);
    std::reverse(entries.begin(), entries.end());
  }
  Text text = fmt::format("{}", fmt::join(entries, ""));
  if (what == "range") {
    std::size_t count = 0;
    store.for_each([&](const Text&, Long, Timestamp) { ++count; });
    text += fmt::format("n={}", count);
  }
  return text;
}

Text kv_answer(LongStore& store, const TextRecord& record) {
  const Text key = *record.key;
  const auto text = [](const MaybeLong& value) {
    return value.has_value() ? std::to_string(*value) : Text("null");
  };
  if (!record.value.has_value()) {
    return "deleted " + text(store.erase(key));
  }
  if (*record.value == "range" || *record.value == "reverse" || *record.value == "prefix") {
    return listed(store, *record.value);
  }
  if (*record.value == "putIfAbsent") {
    return "was " + text(store.put_if_absent(key, 100));
  }
  store.put(key, store.get(key).value_or(0) + 1);
  return "count " + text(store.get(key));
}

Result<Topology> build_store(const Description& description) {
  const Text kind = description.params.text("kind", "");
  if (kind == "kv" || kind == "kv-memory") {
    return single(description, supply([](const TextRecord& record, Context& context) {
                    LongStore store = context.store(kStore);
                    context.forward(with_value(record, kv_answer(store, record)));
                  }),
                  kStore);
  }
  if (kind == "timestamped") {
    return single(
        description, supply([](const TextRecord& record, Context& context) {
          LongStore store = context.store(kStore);
          const auto was = store.get_with_timestamp(*record.key);
          store.put(*record.key, was.has_value() ? was->value + 1 : 1);
          context.forward(with_value(
              record, was.has_value() ? fmt::format("was {}@{}", was->value, was->timestamp)
                                      : Text("was none")));
        }),
        kStore);
  }
  return not_supported(fmt::format("store kind {}", kind));
}

Result<Topology> build_unconnected(const Description& description) {
  StreamBuilder builder(description.builder);
  const Input in = builder.from(kIn).named("s");
  in.process(supply([](const TextRecord& record, Context& context) {
      context.forward(with_value(record, context.store(kTexts) ? "store" : "no store"));
    }))
      .named("p")
      .to(kOut, "o");
  in.process(supply([](const TextRecord&, Context&) {}), kTexts).named("q");
  return std::move(builder).build();
}

Result<Topology> build_deferred(const Description& description) {
  const auto interval =
      std::chrono::milliseconds(description.params.number("interval").value_or(10));
  const PunctuationType type = type_of(description.params.text("type", "stream"));
  const auto init = [interval, type](Context& context) {
    context.schedule(interval, type, [&context](Timestamp time) {
      KeyValueStoreView<Text, Text> store = context.store(kTexts);
      std::vector<std::pair<Text, Text>> all;
      store.for_each(
          [&](const Text& key, const Text& value, Timestamp) { all.emplace_back(key, value); });
      for (const auto& [key, value] : all) {
        context.forward({key, value, time, {}});
        store.erase(key);
      }
    });
  };
  const auto body = [](const TextRecord& record, Context& context) {
    KeyValueStoreView<Text, Text> store = context.store(kTexts);
    if (record.value.has_value()) {
      store.put(*record.key, *record.value);
    } else {
      store.erase(*record.key);
    }
  };
  return single(description, supply(init, body), kTexts);
}

constexpr std::array kOps{
    OpBuilder{"papi.punctuate", build_punctuate},
    OpBuilder{"papi.scheduleInProcess", build_schedule_in_process},
    OpBuilder{"papi.children", build_children},
    OpBuilder{"papi.context", build_context},
    OpBuilder{"papi.headers", build_headers},
    OpBuilder{"papi.store", build_store},
    OpBuilder{"papi.unconnected", build_unconnected},
    OpBuilder{"papi.deferred", build_deferred},
};

}  // namespace

std::span<const OpBuilder> processor_topologies() {
  return kOps;
}

}  // namespace weir::streams_cases
