#include "tests/operators/support/stream_cases.h"

#include <weir/runtime/endian.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace weir::test {

namespace {

std::string to_hex(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return hex;
}

std::string encode(const Json& value, const std::string& serde) {
  if (serde == "long") {
    char bytes[8];
    store_be(bytes, value.get<std::int64_t>());
    return std::string(bytes, sizeof(bytes));
  }
  return value.get<std::string>();
}

Json decode(const std::optional<std::string>& bytes, const std::string& serde) {
  if (!bytes.has_value()) {
    return nullptr;
  }
  if (serde == "long") {
    return load_be<std::int64_t>(bytes->data());
  }
  return *bytes;
}

void append_headers(const testing::RawTestRecord& record, Json& out) {
  if (record.headers.empty()) {
    return;
  }
  Json headers = Json::array();
  for (const auto& [name, value] : record.headers) {
    headers.push_back({name, value.has_value() ? Json(*value) : Json(nullptr)});
  }
  out.push_back(std::move(headers));
}

// Splits what was written as the file does: `o` the topics of `out`, `x` all others in hex.
void split(const std::vector<testing::RawTestRecord>& written, const Json& topology, Json& o,
           Json& x) {
  for (const testing::RawTestRecord& record : written) {
    const auto known = topology["out"].find(record.topic);
    Json line;
    if (known != topology["out"].end()) {
      line = {record.topic, decode(record.key, (*known)[0]), decode(record.value, (*known)[1]),
              record.timestamp};
      append_headers(record, line);
      o.push_back(std::move(line));
    } else {
      line = {record.topic, record.key.has_value() ? Json(to_hex(*record.key)) : Json(nullptr),
              record.value.has_value() ? Json(to_hex(*record.value)) : Json(nullptr),
              record.timestamp};
      append_headers(record, line);
      x.push_back(std::move(line));
    }
  }
}

Status pipe(const Json& input, const Json& topology, testing::TopologyTestDriver& driver) {
  const Json& serdes = topology["in"][input[0].get<std::string>()];
  std::string key;
  std::string value;
  RecordRef record;
  record.timestamp = input[3];
  if (!input[1].is_null()) {
    key = encode(input[1], serdes[0]);
    record.key = ByteView(key);
  }
  if (!input[2].is_null()) {
    value = encode(input[2], serdes[1]);
    record.value = ByteView(value);
  }
  Headers headers;
  if (input.size() > 4) {
    for (const Json& header : input[4]) {
      const std::string text = header[1].is_null() ? "" : header[1].get<std::string>();
      headers.add(header[0].get<std::string>(),
                  header[1].is_null() ? NullableBytes() : NullableBytes(ByteView(text)));
    }
  }
  record.headers = headers.view();
  return driver.pipe_bytes(input[0].get<std::string>(), record);
}

void check_stores(const StreamCase& stream_case, testing::TopologyTestDriver& driver) {
  if (!stream_case.end.contains("stores")) {
    return;
  }
  for (const auto& [name, store] : stream_case.end["stores"].items()) {
    if (store["kind"] != "timestamped-kv") {
      continue;
    }
    const std::string value_serde = stream_case.topology["out"].begin().value()[1];
    Json rows = Json::array();
    for (const auto& row : driver.rows(name)) {
      rows.push_back({row.key, decode(row.value, value_serde), row.timestamp});
    }
    EXPECT_EQ(rows, store["rows"]) << stream_case.name << " store " << name;
  }
}

}  // namespace

std::vector<Json> load_json_lines(const std::string& file) {
  const std::string path = std::string(WEIR_TEST_DATA) + "/streams/" + file;
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::vector<Json> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(Json::parse(line));
  }
  return lines;
}

std::vector<StreamCase> load_stream_cases(const std::string& file) {
  std::vector<StreamCase> cases;
  std::map<std::string, Json> topologies;
  for (Json& line : load_json_lines(file)) {
    if (line.contains("topology")) {
      topologies[line["topology"]] = line;
    } else if (line.contains("case") && line.contains("t")) {
      cases.push_back({line["case"], topologies[line["t"]], {}, {}});
    } else if (line.contains("i") || line.contains("adv")) {
      cases.back().events.push_back(std::move(line));
    } else if (line.contains("end")) {
      cases.back().end = std::move(line);
    }
  }
  return cases;
}

StreamCase find_stream_case(const std::vector<StreamCase>& cases, const std::string& name) {
  const auto found =
      std::find_if(cases.begin(), cases.end(), [&](const StreamCase& c) { return c.name == name; });
  EXPECT_NE(found, cases.end()) << name;
  return found == cases.end() ? StreamCase() : *found;
}

void replay(const StreamCase& stream_case, testing::TopologyTestDriver& driver) {
  ASSERT_FALSE(stream_case.events.empty()) << stream_case.name;
  for (const Json& event : stream_case.events) {
    const std::uint64_t dropped = driver.dropped();
    const Status piped = pipe(event["i"], stream_case.topology, driver);
    if (event.contains("throws")) {
      EXPECT_FALSE(piped.ok()) << stream_case.name << " " << event;
      return;
    }
    ASSERT_TRUE(piped.ok()) << stream_case.name << " " << event << piped.error().to_string();
    Json o = Json::array();
    Json x = Json::array();
    split(driver.take_written(), stream_case.topology, o, x);
    EXPECT_EQ(o, event["o"]) << stream_case.name << " " << event;
    if (event.contains("x")) {
      EXPECT_EQ(x, event["x"]) << stream_case.name << " " << event;
    }
    EXPECT_EQ(driver.dropped() - dropped, event.value("d", std::uint64_t{0}))
        << stream_case.name << " " << event;
  }
  check_stores(stream_case, driver);
}

}  // namespace weir::test
