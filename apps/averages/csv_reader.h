#pragma once

#include <weir/runtime/result.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::averages {

struct CsvRecord {
  std::uint64_t line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
  std::string error;  // not empty: the record cannot be read, and why
};

// Cuts text into records as RFC 4180 says: fields between commas; quoted ones may hold commas, line
// ends and, doubled, quotes. Beyond it: a line may end in LF alone, blanks around a field do not
// count, empty lines are no records, a byte-order mark at the very start is left out.
//
// Threading: confined to its owner.
// Bounds:    a record has at most kRecordBytesMax; a longer one is an error, up to its line's end.
class CsvReader {
 public:
  static constexpr std::size_t kRecordBytesMax = 64U << 10U;

  // The record is valid during the call. An error of it ends feed() and finish().
  using Take = std::function<Status(const CsvRecord&)>;
  explicit CsvReader(Take take) : take_(std::move(take)) {}

  Status feed(std::string_view chunk);
  // The text has ended.
  Status finish();

 private:
  enum class State {
    kFieldStart,
    kPlain,
    kQuoted,
    kBehindQuote,  // an end of the field, or the first of a doubled quote
    kBroken,       // up to the end of the line
  };
  Status put(char byte);
  bool is_mark(char byte);
  void put_in_quotes(char byte);
  void put_behind_quote(char byte);
  void put_plain(char byte);
  void fail(std::string_view why);
  void end_field();
  Status end_record();

  const Take take_;
  State state_ = State::kFieldStart;
  CsvRecord record_{.line = 1, .fields = {}, .error = {}};
  std::string field_;
  std::size_t field_count_ = 0;  // of record_.fields, whose strings are used again
  bool quoted_ = false;          // the present field
  std::size_t bytes_ = 0;        // of the record
  std::uint64_t line_ = 1;
  std::size_t mark_ = 0;  // bytes of the byte-order mark seen
  bool at_start_ = true;
};

}  // namespace weir::averages
