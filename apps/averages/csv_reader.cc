#include "apps/averages/csv_reader.h"

#include <fmt/core.h>

namespace weir::averages {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_blank(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\r';
}

}  // namespace

Status CsvReader::feed(std::string_view chunk) {
  for (const char byte : chunk) {
    if (at_start_ && is_mark(byte)) {
      continue;
    }
    WEIR_TRY(put(byte));
  }
  return {};
}

// Whether the byte belongs to the mark; what only looked like one is text.
bool CsvReader::is_mark(char byte) {
  if (byte == kByteOrderMark[mark_]) {
    ++mark_;
    at_start_ = mark_ < kByteOrderMark.size();
    return true;
  }
  at_start_ = false;
  for (std::size_t i = 0; i < mark_; ++i) {
    put_plain(kByteOrderMark[i]);
  }
  return false;
}

Status CsvReader::put(char byte) {
  if (byte == '\n') {
    ++line_;
  }
  if (++bytes_ > kRecordBytesMax && state_ != State::kBroken) {
    fail(fmt::format("has more than {} bytes; is a quote not closed?", kRecordBytesMax));
  }
  if (state_ == State::kQuoted) {
    put_in_quotes(byte);
    return {};
  }
  if (byte == '\n') {
    return end_record();
  }
  switch (state_) {
    case State::kBehindQuote:
      put_behind_quote(byte);
      break;
    case State::kFieldStart:
    case State::kPlain:
      put_plain(byte);
      break;
    default:
      break;
  }
  return {};
}

void CsvReader::put_in_quotes(char byte) {
  if (byte == '"') {
    state_ = State::kBehindQuote;
  } else {
    field_.push_back(byte);
  }
}

void CsvReader::put_behind_quote(char byte) {
  if (byte == '"') {
    field_.push_back(byte);
    state_ = State::kQuoted;
  } else if (byte == ',') {
    end_field();
  } else if (!is_blank(byte)) {
    fail("has text behind a closing quote; a quote inside a field is doubled");
  }
}

void CsvReader::put_plain(char byte) {
  if (byte == ',') {
    end_field();
  } else if (byte == '"' && state_ == State::kFieldStart) {
    quoted_ = true;
    state_ = State::kQuoted;
  } else if (byte == '"') {
    fail("has a quote inside a field that does not begin with one");
  } else if (state_ == State::kPlain || !is_blank(byte)) {
    state_ = State::kPlain;
    field_.push_back(byte);
  }
}

void CsvReader::fail(std::string_view why) {
  record_.error = why;
  state_ = State::kBroken;
}

void CsvReader::end_field() {
  if (!quoted_) {
    while (!field_.empty() && is_blank(field_.back())) {
      field_.pop_back();
    }
  }
  if (field_count_ == record_.fields.size()) {
    record_.fields.emplace_back();
  }
  std::swap(record_.fields[field_count_++], field_);
  field_.clear();
  quoted_ = false;
  state_ = State::kFieldStart;
}

Status CsvReader::end_record() {
  const bool is_empty = field_count_ == 0 && field_.empty() && !quoted_ && record_.error.empty();
  Status taken;
  if (!is_empty) {
    end_field();
    record_.fields.resize(field_count_);
    taken = take_(record_);
  }
  record_.line = line_;
  record_.error.clear();
  field_count_ = 0;
  field_.clear();
  quoted_ = false;
  bytes_ = 0;
  state_ = State::kFieldStart;
  return taken;
}

Status CsvReader::finish() {
  if (state_ == State::kQuoted) {
    fail("has a quote that is not closed");
  }
  return end_record();
}

}  // namespace weir::averages
