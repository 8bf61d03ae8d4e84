#pragma once

#include <weir/runtime/file_system.h>
#include <weir/runtime/result.h>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Files of recorded cases, format "weir-streams-cases/1" (tests/data/streams/README.md).

namespace weir::streams_cases {

using Json = nlohmann::json;

struct SerdePair {
  std::string key;
  std::string value;
};
using TopicSerdes = std::map<std::string, SerdePair>;

// What to build.
struct TopologyRow {
  std::string op;
  Json params;
  Json config;
  TopicSerdes in;
  TopicSerdes out;
  std::string describe;  // "=T1" is resolved
};

struct Event {
  int line = 0;
  std::optional<std::int64_t> advance_ms;  // else a record
  Json input;                              // [topic,key,value,timestamp(,headers)]
  Json outputs;
  Json internal;  // empty where there were none or none were recorded
  std::uint64_t dropped = 0;
  bool throws = false;

  // As in the file, without what came out.
  Json stimulus() const {
    return advance_ms.has_value() ? Json{{"adv", *advance_ms}} : Json{{"i", input}};
  }
  Json expectation() const {
    return Json{{"o", outputs}, {"x", internal}, {"d", dropped}, {"throws", throws}};
  }
};

struct End {
  int line = 0;
  std::uint64_t dropped = 0;
  std::optional<Json> stores;
  std::optional<Json> topics;  // present: internal records were recorded too
  bool start_throws = false;
};

struct Case {
  std::string name;
  std::string place;                            // "file:line"
  std::shared_ptr<const TopologyRow> topology;  // shared by the cases of a file
  std::vector<Event> events;
  End end;
  bool build_throws = false;  // Kafka refuses the topology; no events, no end
  // Not empty: events and end are ours, not Kafka's, for this reason (Difference).
  std::string difference;
};

// A value and its bytes: {"bytes":what,"input":..,"hex":..}.
struct BytesRow {
  std::string place;
  std::string what;
  Json input;
  std::optional<Json> hex;  // absent: the row is about something else than bytes
};

struct CaseFile {
  std::vector<Case> cases;
  std::vector<BytesRow> bytes;
  // Lines that describe a topology in words: no program can build those.
  std::size_t described_in_words = 0;
};

// Errors: kNotFound, kIo; kCorrupt: "file:line: what is wrong".
Result<CaseFile> read_case_file(FileSystem& files, const std::string& path);

// A case where we deliberately do not do what Kafka does:
//   {"case":name,"reason":text,"events":[event lines],"end":end line}
// with the whole list of events; their inputs are Kafka's, up to where ours ends. A topology that
// we alone refuse: {"case":name,"reason":text,"build_throws":[[code,message]]}. "describe" as well
// where our text differs.
struct Difference {
  std::string place;
  std::string reason;
  std::vector<Event> events;
  End end;
  bool build_throws = false;
  std::optional<std::string> describe;
};
using Differences = std::map<std::string, Difference>;

// By case. An absent file is an empty list. Errors: as read_case_file.
Result<Differences> read_differences(FileSystem& files, const std::string& path);
// Replaces what `c` expects. Errors: kInvalidArgument (the inputs are others, or nothing differs).
Status apply(const Difference& difference, Case& c);

}  // namespace weir::streams_cases
