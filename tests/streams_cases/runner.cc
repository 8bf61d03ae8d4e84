#include "tests/streams_cases/runner.h"

#include "operators/plan/plan.h"
#include "tests/streams_cases/stores.h"
#include "tests/streams_cases/topologies.h"
#include "tests/streams_cases/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace weir::streams_cases {

namespace {

// Where internal records were not recorded, those of this topic still are.
constexpr std::string_view kDeadLetterTopic = "dlq";
// Recorded by its first line only.
constexpr std::string_view kErrorText = "(text of the error)";
constexpr std::size_t kHeadersAt = 4;  // in a record's line

bool is_error_text(std::string_view header) {
  return header == "__streams.errors.exception" || header == "__streams.errors.message" ||
         header == "__streams.errors.stacktrace";
}
constexpr std::size_t kShownBytesMax = 4000;

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kShownBytesMax) {
    text = fmt::format("{}... ({} bytes)", text.substr(0, kShownBytesMax), text.size());
  }
  return text;
}

Json headers_of(const testing::RawTestRecord& record) {
  Json headers = Json::array();
  for (const auto& [name, value] : record.headers) {
    if (!value.has_value()) {
      headers.push_back({text_of(name), nullptr});
      continue;
    }
    headers.push_back({text_of(name), is_error_text(name) ? Json(kErrorText) : text_of(*value)});
  }
  return headers;
}

// Records of a case file: what Java says of an error is not what C++ says.
Json without_error_texts(Json records) {
  for (Json& record : records) {
    if (record.size() <= kHeadersAt) {
      continue;
    }
    for (Json& header : record[kHeadersAt]) {
      if (is_error_text(header.at(0).get_ref<const std::string&>()) && !header.at(1).is_null()) {
        header[1] = kErrorText;
      }
    }
  }
  return records;
}

// [topic,key,value,timestamp(,headers)]
Json line_of(const testing::RawTestRecord& record, Json key, Json value) {
  Json line = {record.topic, std::move(key), std::move(value),
               record.timestamp == kNoTimestamp ? Json(nullptr) : Json(record.timestamp)};
  if (!record.headers.empty()) {
    line.push_back(headers_of(record));
  }
  return line;
}

// Kafka writes a changelog while it processes, we do at the commit: between topics there is no
// order.
Json by_topic(Json records) {
  std::stable_sort(records.begin(), records.end(),
                   [](const Json& a, const Json& b) { return a.at(0) < b.at(0); });
  return records;
}

class CaseRun {
 public:
  explicit CaseRun(const Case& c) : case_(c) {}

  CaseResult run() {
    if (const std::optional<std::string> serde = unknown_serde(); serde.has_value()) {
      return {Outcome::kSkipped, fmt::format("unknown serde '{}'", *serde)};
    }
    Result<Built> built = build_topology(*case_.topology);
    if (!built.ok()) {
      const bool skipped = built.error().code() == Errc::kUnsupported;
      return {skipped ? Outcome::kSkipped : Outcome::kFailed, built.error().message()};
    }
    topology_.emplace(std::move(built->topology));
    if (const std::optional<CaseResult> done = check_topology(); done.has_value()) {
      return *done;
    }
    driver_.emplace(*topology_, std::move(built->driver));
    for (std::size_t i = 0; i < case_.events.size(); ++i) {
      play(case_.events[i]);
      if (!mismatches_.empty()) {
        return failed(fmt::format("event {}: {}", i + 1, shown(case_.events[i].stimulus())));
      }
    }
    check_end();
    if (!mismatches_.empty()) {
      return failed("end");
    }
    return skipped_.empty() ? passed() : CaseResult{Outcome::kSkipped, skipped_};
  }

 private:
  CaseResult passed() const {
    return {case_.difference.empty() ? Outcome::kPassed : Outcome::kDifferent, case_.difference};
  }
  CaseResult failed(std::string_view where) const {
    return {Outcome::kFailed, fmt::format("  {}\n{}", where, mismatches_)};
  }
  void mismatch(std::string_view what, std::string_view expected, std::string_view got) {
    mismatches_ +=
        fmt::format("    {0} expected: {1}\n    {0} got:      {2}\n", what, expected, got);
  }
  void compare(std::string_view what, const Json& expected, const Json& got) {
    if (expected != got) {
      mismatch(what, shown(expected), shown(got));
    }
  }

  std::optional<std::string> unknown_serde() const {
    for (const TopicSerdes* side : {&case_.topology->in, &case_.topology->out}) {
      for (const auto& [topic, serdes] : *side) {
        for (const std::string& serde : {serdes.key, serdes.value}) {
          if (!is_known_serde(serde)) {
            return serde;
          }
        }
      }
    }
    return std::nullopt;
  }

  // A result when the case ends here: refused, or wrong.
  std::optional<CaseResult> check_topology() {
    const Status& status = topology_->status();
    if (case_.build_throws || case_.end.start_throws) {
      if (!status.ok()) {
        return passed();
      }
      mismatch("build", "a refusal", "a topology");
      return failed("topology");
    }
    if (!status.ok()) {
      mismatch("build", "a topology", status.error().to_string());
      return failed("topology");
    }
    compare_describe();
    std::set<std::string, std::less<>> read;
    for (const internal::SubTopology& part : topology_->plan().sub_topologies) {
      read.insert(part.source_topics.begin(), part.source_topics.end());
    }
    for (const auto& [topic, serdes] : case_.topology->in) {
      if (!read.contains(topic)) {
        mismatch("in", topic, "the topology does not read it");
      }
    }
    return mismatches_.empty() ? std::nullopt : std::optional(failed("topology"));
  }

  // Texts of many lines are compared line by line: the first one that differs is what one looks
  // for.
  void compare_describe() {
    const std::string& expected = case_.topology->describe;
    const std::string got = topology_->describe();
    if (expected == got) {
      return;
    }
    const auto at = std::mismatch(expected.begin(), expected.end(), got.begin(), got.end());
    const auto common = static_cast<std::size_t>(at.first - expected.begin());
    const std::size_t newline = expected.rfind('\n', common == 0 ? 0 : common - 1);
    const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
    const auto line_at = [begin](const std::string& text) {
      return text.substr(begin, text.find('\n', begin) - begin);
    };
    mismatch(fmt::format("describe line {}",
                         std::count(expected.begin(),
                                    expected.begin() + static_cast<std::ptrdiff_t>(begin), '\n') +
                             1),
             line_at(expected), line_at(got));
  }

  void play(const Event& event) {
    const std::uint64_t dropped = driver_->dropped();
    const Status done =
        event.advance_ms.has_value()
            ? driver_->advance_wall_clock(std::chrono::milliseconds(*event.advance_ms))
            : pipe(event.input);
    if (event.throws != !done.ok()) {
      mismatch("throws", event.throws ? "an error" : "none",
               done.ok() ? "none" : done.error().to_string());
    }
    if (!done.ok()) {
      return;
    }
    compare_written(event);
    compare("d", event.dropped, driver_->dropped() - dropped);
  }

  Status pipe(const Json& input) {
    const auto& topic = input[0].get_ref<const std::string&>();
    const auto serdes = case_.topology->in.find(topic);
    if (serdes == case_.topology->in.end()) {
      return Error(Errc::kInvalidArgument, fmt::format("the case has no input topic {}", topic));
    }
    WEIR_TRY_ASSIGN(const MaybeBytes key, encode(input[1], serdes->second.key));
    WEIR_TRY_ASSIGN(const MaybeBytes value, encode(input[2], serdes->second.value));
    Headers headers;
    if (input.size() > 4) {
      for (const Json& header : input[4]) {
        const MaybeBytes text =
            header.at(1).is_null() ? MaybeBytes() : MaybeBytes(header.at(1).get<std::string>());
        headers.add(header.at(0).get_ref<const std::string&>(), view(text));
      }
    }
    return driver_->pipe_bytes(topic, {.key = view(key),
                                       .value = view(value),
                                       .timestamp = input[3].get<Timestamp>(),
                                       .headers = headers.view()});
  }
  static NullableBytes view(const MaybeBytes& bytes) {
    return bytes.has_value() ? NullableBytes(ByteView(*bytes)) : NullableBytes();
  }

  // Splits what was written as the file does: `o` the topics of `out`, `x` all others as hex.
  void compare_written(const Event& event) {
    Json outputs = Json::array();
    Json internal = Json::array();
    for (const testing::RawTestRecord& record : driver_->take_written()) {
      written_topics_.insert(record.topic);
      const auto out = case_.topology->out.find(record.topic);
      if (out != case_.topology->out.end()) {
        outputs.push_back(line_of(record, decode(record.key, out->second.key),
                                  decode(record.value, out->second.value)));
      } else if (records_internal() || record.topic == kDeadLetterTopic) {
        internal.push_back(line_of(record, hex_or_null(record.key), hex_or_null(record.value)));
      }
    }
    compare("o", event.outputs, outputs);
    compare("x", by_topic(without_error_texts(event.internal)), by_topic(std::move(internal)));
  }
  bool records_internal() const { return case_.end.topics.has_value(); }

  void check_end() {
    compare("dropped", case_.end.dropped, driver_->dropped());
    if (case_.end.topics.has_value()) {
      compare("topics", sorted_rows(*case_.end.topics), Json(written_topics_));
    }
    if (case_.end.stores.has_value()) {
      check_stores(*case_.end.stores);
    }
  }

  void check_stores(const Json& expected) {
    const std::vector<std::string> names = store_names(*topology_);
    for (const std::string& name : names) {
      if (!expected.contains(name)) {
        mismatch(fmt::format("store {}", name), "no such store", "a store");
      }
    }
    for (const auto& [name, store] : expected.items()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        mismatch(fmt::format("store {}", name), "a store", "no such store");
        continue;
      }
      const Result<Json> rows = store_rows(*driver_, *topology_, name, store.at("kind"));
      if (rows.ok()) {
        compare(fmt::format("store {}", name), sorted_rows(store.at("rows")), *rows);
      } else if (rows.error().code() == Errc::kUnsupported) {
        skipped_ = rows.error().message();
      } else {
        mismatch(fmt::format("store {}", name), "rows", rows.error().to_string());
      }
    }
  }

  const Case& case_;
  std::optional<Topology> topology_;
  std::optional<testing::TopologyTestDriver> driver_;
  std::set<std::string> written_topics_;
  std::string mismatches_;
  std::string skipped_;
};

// The serde of a row's "what", empty when there is none.
std::string serde_of(const BytesRow& row) {
  constexpr std::string_view kSerde = "serde ";
  if (row.what == "windowed key, session") {
    return "sessionwindowed:string";
  }
  if (row.what == "windowed key, time") {
    return fmt::format("timewindowed:string:{}", row.input.at("end").get<std::int64_t>() -
                                                     row.input.at("start").get<std::int64_t>());
  }
  return row.what.starts_with(kSerde) ? row.what.substr(kSerde.size()) : "";
}

CaseResult compare_bytes(const BytesRow& row) {
  const std::string serde = serde_of(row);
  if (!row.hex.has_value() || !is_known_serde(serde)) {
    return {Outcome::kSkipped, fmt::format("unknown bytes of '{}'", row.what)};
  }
  const Result<MaybeBytes> encoded = encode(row.input, serde);
  if (!encoded.ok()) {
    return {Outcome::kFailed, "  " + encoded.error().message() + "\n"};
  }
  if (hex_or_null(*encoded) != *row.hex) {
    return {Outcome::kFailed, fmt::format("    hex expected: {}\n    hex got:      {}\n",
                                          shown(*row.hex), shown(hex_or_null(*encoded)))};
  }
  // Texts stand for numbers in these rows, so the way back is compared by its bytes.
  const Json decoded = decode(*encoded, serde);
  const Result<MaybeBytes> again = encode(decoded, serde);
  if (!again.ok() || *again != *encoded) {
    return {Outcome::kFailed, fmt::format("    input expected: {}\n    input got:      {}\n",
                                          shown(row.input), shown(decoded))};
  }
  return {};
}

}  // namespace

CaseResult run_case(const Case& c) {
  try {  // a record whose fields have other types than the format's
    return CaseRun(c).run();
  } catch (const Json::exception& exception) {
    return {Outcome::kFailed, fmt::format("  {}\n", exception.what())};
  }
}

CaseResult check_bytes(const BytesRow& row) {
  try {
    return compare_bytes(row);
  } catch (const Json::exception& exception) {
    return {Outcome::kFailed, fmt::format("  {}\n", exception.what())};
  }
}

}  // namespace weir::streams_cases
