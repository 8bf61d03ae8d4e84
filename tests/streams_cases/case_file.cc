#include "tests/streams_cases/case_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>

namespace weir::streams_cases {

namespace {

constexpr std::string_view kFormat = "weir-streams-cases/1";

Error wrong(std::string text) {
  return {Errc::kCorrupt, std::move(text)};
}

// The format is strict: a field that nobody reads would be an expectation that nobody checks.
Status check_fields(const Json& line, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : line.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return wrong(fmt::format("unknown field '{}'", name));
    }
  }
  return {};
}

TopicSerdes topic_serdes(const Json& object) {
  TopicSerdes serdes;
  for (const auto& [topic, pair] : object.items()) {
    serdes[topic] = {pair.at(0), pair.at(1)};
  }
  return serdes;
}

Status check_record(const Json& record) {
  if (!record.is_array() || record.size() < 4 || record.size() > 5 || !record[0].is_string() ||
      !(record[3].is_number_integer() || record[3].is_null())) {
    return wrong(
        fmt::format("{} is no record: [topic,key,value,timestamp] or with a list of headers behind",
                    record.dump()));
  }
  return {};
}

Status check_records(const Json& records) {
  if (!records.is_array()) {
    return wrong(fmt::format("{} is no list of records", records.dump()));
  }
  for (const Json& record : records) {
    WEIR_TRY(check_record(record));
  }
  return {};
}

Result<Event> parse_event(const Json& line, int number) {
  WEIR_TRY(check_fields(line, {"i", "adv", "o", "x", "d", "throws", "u"}));
  Event event;
  event.line = number;
  if (line.contains("adv")) {
    event.advance_ms = line["adv"].get<std::int64_t>();
  } else {
    event.input = line.at("i");
    WEIR_TRY(check_record(event.input));
    event.input.at(3).get<std::int64_t>();  // an input has a timestamp
  }
  event.outputs = line.at("o");
  event.internal = line.value("x", Json::array());
  WEIR_TRY(check_records(event.outputs));
  WEIR_TRY(check_records(event.internal));
  event.dropped = line.value("d", std::uint64_t{0});
  event.throws = line.contains("throws");
  return event;
}

Result<End> parse_end(const Json& line, int number) {
  WEIR_TRY(check_fields(line, {"end", "dropped", "stores", "topics", "start_throws"}));
  End end;
  end.line = number;
  end.start_throws = line.contains("start_throws");
  end.dropped = end.start_throws ? 0 : line.at("dropped").get<std::uint64_t>();
  for (const char* name : {"stores", "topics"}) {
    if (line.contains(name)) {
      (name == std::string_view("stores") ? end.stores : end.topics) = line[name];
    }
  }
  return end;
}

// Calls `take(line, number)` for each line of the file; its errors get "file:line: " in front.
template <class Take>
Status for_each_line(FileSystem& files, const std::string& path, Take take) {
  WEIR_TRY_ASSIGN(const std::string text, read_file(files, path));
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    ++number;
    Status taken;
    try {  // nlohmann-json reports by exceptions: bad JSON, a missing field, another type
      const Json line = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                    text.begin() + static_cast<std::ptrdiff_t>(end));
      taken = line.is_object() ? take(line, number) : wrong("the line is no JSON object");
    } catch (const Json::exception& exception) {
      taken = wrong(exception.what());
    }
    if (!taken.ok()) {
      return std::move(taken).error().with_context(fmt::format("{}:{}", path, number));
    }
    begin = end + 1;
  }
  return {};
}

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  Status take(const Json& line, int number) {
    if (number == 1) {
      return take_head(line);
    }
    if (line.contains("topology")) {
      return take_topology(line);
    }
    if (line.contains("case")) {
      return take_case(line, number);
    }
    if (line.contains("i") || line.contains("adv")) {
      WEIR_TRY(inside_case("an event"));
      if (!file_.cases.back().events.empty() && file_.cases.back().events.back().throws) {
        return wrong("a case ends with the event that throws");
      }
      WEIR_TRY_ASSIGN(Event event, parse_event(line, number));
      file_.cases.back().events.push_back(std::move(event));
      return {};
    }
    if (line.contains("end")) {
      return take_end(line, number);
    }
    return take_other(line, number);
  }

  Result<CaseFile> finish() && {
    if (open_) {
      return wrong(fmt::format("{}: case '{}' has no end line", file_.cases.back().place,
                               file_.cases.back().name));
    }
    return std::move(file_);
  }

 private:
  static Status take_head(const Json& line) {
    WEIR_TRY(check_fields(line, {"format", "group", "kafka", "about"}));
    const std::string format = line.value("format", "");
    if (format != kFormat) {
      return wrong(fmt::format("the first line gives no format '{}'", kFormat));
    }
    return {};
  }

  Status take_topology(const Json& line) {
    WEIR_TRY(check_fields(line, {"topology", "op", "params", "config", "in", "out", "describe"}));
    auto row = std::make_shared<TopologyRow>(TopologyRow{
        line.at("op"), line.at("params"), line.at("config"), topic_serdes(line.at("in")),
        topic_serdes(line.at("out")), line.at("describe")});
    if (row->describe.starts_with('=')) {
      WEIR_TRY_ASSIGN(const auto same, topology(row->describe.substr(1)));
      row->describe = same->describe;
    }
    topologies_[line["topology"]] = std::move(row);
    return {};
  }

  Result<std::shared_ptr<const TopologyRow>> topology(const std::string& id) const {
    const auto found = topologies_.find(id);
    if (found == topologies_.end()) {
      return wrong(fmt::format("topology '{}' stands in no line before", id));
    }
    return found->second;
  }

  Status take_case(const Json& line, int number) {
    WEIR_TRY(check_fields(
        line, {"case", "rules", "t", "seed", "note", "op", "params", "config", "build_throws"}));
    if (open_) {
      return wrong(fmt::format("case '{}' has no end line", file_.cases.back().name));
    }
    Case c;
    c.name = line["case"];
    c.place = fmt::format("{}:{}", path_, number);
    c.build_throws = line.contains("build_throws");
    if (c.build_throws) {
      c.topology = std::make_shared<TopologyRow>(
          TopologyRow{line.at("op"), line.at("params"), line.at("config"), {}, {}, {}});
    } else {
      WEIR_TRY_ASSIGN(c.topology, topology(line.at("t")));
    }
    if (!names_.insert(c.name).second) {
      return wrong(fmt::format("case '{}' is there twice", c.name));
    }
    open_ = !c.build_throws;
    file_.cases.push_back(std::move(c));
    return {};
  }

  Status take_end(const Json& line, int number) {
    WEIR_TRY(inside_case("an end"));
    if (line["end"] != file_.cases.back().name) {
      return wrong(fmt::format("the end of '{}' stands in case '{}'", line["end"].dump(),
                               file_.cases.back().name));
    }
    WEIR_TRY_ASSIGN(file_.cases.back().end, parse_end(line, number));
    open_ = false;
    return {};
  }

  Status take_other(const Json& line, int number) {
    if (line.contains("describe") && line.contains("dsl")) {
      ++file_.described_in_words;
      return {};
    }
    if (line.contains("bytes")) {
      WEIR_TRY(
          check_fields(line, {"bytes", "input", "hex", "rules", "text", "int32", "partition_of"}));
      BytesRow row{fmt::format("{}:{}", path_, number), line["bytes"], line.at("input"), {}};
      if (line.contains("hex")) {
        row.hex = line["hex"];
      }
      file_.bytes.push_back(std::move(row));
      return {};
    }
    return wrong(
        "the line is of no known kind (topology, case, event i or adv, end, describe, bytes)");
  }

  Status inside_case(std::string_view what) const {
    return open_ ? Status() : wrong(fmt::format("{} stands outside of a case", what));
  }

  std::string path_;
  CaseFile file_;
  std::map<std::string, std::shared_ptr<const TopologyRow>> topologies_;
  std::set<std::string> names_;
  bool open_ = false;
};

Status take_difference(const Json& line, std::string place, Differences& differences) {
  WEIR_TRY(check_fields(line, {"case", "reason", "events", "end", "build_throws", "describe"}));
  Difference difference;
  difference.place = std::move(place);
  difference.reason = line.at("reason");
  if (difference.reason.empty()) {
    return wrong("a difference needs a reason");
  }
  if (line.contains("describe")) {
    difference.describe = line["describe"];
  }
  difference.build_throws = line.contains("build_throws");
  if (!difference.build_throws) {
    for (const Json& event : line.at("events")) {
      WEIR_TRY_ASSIGN(Event parsed, parse_event(event, 0));
      difference.events.push_back(std::move(parsed));
    }
    WEIR_TRY_ASSIGN(difference.end, parse_end(line.at("end"), 0));
  }
  if (!differences.emplace(line.at("case"), std::move(difference)).second) {
    return wrong(fmt::format("case {} is there twice", line["case"].dump()));
  }
  return {};
}

Status check_inputs(const Difference& difference, const Case& c) {
  const auto wrong_inputs = [](std::string text) {
    return Error(Errc::kInvalidArgument, std::move(text));
  };
  if (difference.build_throws || c.build_throws) {
    return {};
  }
  const std::vector<Event>& ours = difference.events;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (i >= c.events.size() || ours[i].stimulus() != c.events[i].stimulus()) {
      return wrong_inputs(fmt::format("the recording's event {} has another input", i + 1));
    }
  }
  const bool ends_early = !ours.empty() && ours.back().throws;
  if (ours.size() < c.events.size() && !ends_early) {
    return wrong_inputs(
        fmt::format("event {} is missing and none before it throws", ours.size() + 1));
  }
  return {};
}

Json expectation(const std::vector<Event>& events, const End& end, bool build_throws) {
  Json lines = Json::array();
  for (const Event& event : events) {
    lines.push_back(event.expectation());
  }
  return {lines,
          end.dropped,
          end.stores.value_or(nullptr),
          end.topics.value_or(nullptr),
          end.start_throws,
          build_throws};
}

bool expects_the_same(const Difference& difference, const Case& c) {
  return expectation(difference.events, difference.end, difference.build_throws) ==
             expectation(c.events, c.end, c.build_throws) &&
         difference.describe.value_or(c.topology->describe) == c.topology->describe;
}

}  // namespace

Result<CaseFile> read_case_file(FileSystem& files, const std::string& path) {
  Reader reader(path);
  WEIR_TRY(for_each_line(files, path,
                         [&](const Json& line, int number) { return reader.take(line, number); }));
  return std::move(reader).finish();
}

Result<Differences> read_differences(FileSystem& files, const std::string& path) {
  Differences differences;
  const Result<FileInfo> info = files.info(path);
  if (!info.ok() && info.error().code() == Errc::kNotFound) {
    return differences;
  }
  WEIR_TRY(for_each_line(files, path, [&](const Json& line, int number) {
    return take_difference(line, fmt::format("{}:{}", path, number), differences);
  }));
  return differences;
}

Status apply(const Difference& difference, Case& c) {
  Status fits = check_inputs(difference, c);
  if (fits.ok() && expects_the_same(difference, c)) {
    fits = Error(Errc::kInvalidArgument, "nothing differs from the recording; take the line out");
  }
  if (!fits.ok()) {
    return std::move(fits).error().with_context(
        fmt::format("{}: case '{}'", difference.place, c.name));
  }
  c.events = difference.events;
  c.end = difference.end;
  c.build_throws = difference.build_throws;
  c.difference = difference.reason;
  if (difference.describe.has_value()) {
    auto topology = std::make_shared<TopologyRow>(*c.topology);
    topology->describe = *difference.describe;
    c.topology = std::move(topology);
  }
  return {};
}

}  // namespace weir::streams_cases
