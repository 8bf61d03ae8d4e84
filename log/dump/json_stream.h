#pragma once

#include "log/dump/dump_output.h"

#include <nlohmann/json.hpp>

#include <string_view>

namespace weir::log {

// Writes one JSON value piece by piece. The caller opens and closes in pairs.
// Threading: confined to its owner. Ownership: borrows `out`.
class JsonStream {
 public:
  using Json = nlohmann::ordered_json;

  explicit JsonStream(DumpOutput& out) : out_(out) {}

  void open(std::string_view bracket) {
    separate();
    out_.text(bracket);
    needs_comma_ = false;
  }
  void close(std::string_view bracket) {
    out_.text(bracket);
    needs_comma_ = true;
  }
  // A field's name; its value follows.
  void key(std::string_view name) {
    value(Json(std::string(name)));
    out_.text(":");
    needs_comma_ = false;
  }
  // What is no UTF-8 in a text becomes U+FFFD.
  void value(const Json& json) {
    separate();
    out_.text(json.dump(-1, ' ', false, Json::error_handler_t::replace));
    needs_comma_ = true;
  }

 private:
  void separate() {
    if (needs_comma_) {
      out_.text(",");
    }
  }

  DumpOutput& out_;
  bool needs_comma_ = false;
};

}  // namespace weir::log
