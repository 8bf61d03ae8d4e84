#include "apps/averages/quote_feeder.h"

#include "apps/averages/price.h"
#include "apps/cli/iso_time.h"

#include <weir/runtime/clock.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace weir::averages {
namespace {

constexpr const char* kProgram = "averages";

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    const auto lower = [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    };
    return lower(x) == lower(y);
  });
}

}  // namespace

QuoteFeeder::QuoteFeeder(Admin& admin, const Options& options, std::unique_ptr<cli::InputFile> file)
    : admin_(admin), options_(options), file_(std::move(file)) {}

Result<std::unique_ptr<cli::Feeder>> QuoteFeeder::open(Admin& admin, const Options& options) {
  WEIR_TRY_ASSIGN(std::unique_ptr<cli::InputFile> file,
                  cli::InputFile::open(
                      options.path, "quotes",
                      options.follow ? cli::InputFile::AtEnd::kWait : cli::InputFile::AtEnd::kEnd));
  return std::unique_ptr<cli::Feeder>(
      std::make_unique<QuoteFeeder>(admin, options, std::move(file)));
}

Status QuoteFeeder::run(log::Producer& producer, const std::string& topic) {
  producer_ = &producer;
  topic_ = topic;
  WEIR_TRY(read_limits());
  CsvReader reader([this](const CsvRecord& record) { return take(record); });
  Status read;
  for (;;) {
    WEIR_TRY_ASSIGN(const std::string_view chunk, file_->read());
    read = chunk.empty() ? reader.finish() : reader.feed(chunk);
    if (chunk.empty() || !read.ok()) {
      break;
    }
  }
  Status flushed = producer.flush();
  if (!options_.quiet) {
    say_totals();
  }
  return read.ok() ? flushed : read;
}

Status QuoteFeeder::read_limits() {
  WEIR_TRY_ASSIGN(const std::vector<TopicSetting> settings, admin_.topic_settings(topic_));
  for (const TopicSetting& setting : settings) {
    std::int64_t* const limit = setting.name == "message.timestamp.before.max.ms"  ? &before_max_ms_
                                : setting.name == "message.timestamp.after.max.ms" ? &after_max_ms_
                                                                                   : nullptr;
    if (limit != nullptr) {
      std::from_chars(setting.value.data(), setting.value.data() + setting.value.size(), *limit);
    }
  }
  return {};
}

Status QuoteFeeder::take(const CsvRecord& record) {
  if (std::exchange(first_, false) && take_header(record)) {
    return {};
  }
  Result<Quote> quote = parse(record);
  if (!quote.ok()) {
    return refuse(record.line, quote.error().message());
  }
  log::ProducerRecord out;
  out.topic = topic_;
  out.key = quote->symbol;
  out.value = quote->price;
  out.timestamp = quote->time;
  WEIR_TRY(producer_->send(out));
  ++sent_;
  return {};
}

bool QuoteFeeder::take_header(const CsvRecord& record) {
  constexpr std::array<std::string_view, 3> kNames{"symbol", "date", "price"};
  Columns columns;
  const std::array<std::size_t*, 3> places{&columns.symbol, &columns.date, &columns.price};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const auto found = std::ranges::find_if(record.fields, [&](const std::string& field) {
      return equals_ignoring_case(field, kNames[i]);
    });
    if (found == record.fields.end()) {
      return false;
    }
    *places[i] = static_cast<std::size_t>(found - record.fields.begin());
  }
  columns.count = record.fields.size();
  columns_ = columns;
  return true;
}

Result<Timestamp> QuoteFeeder::parse_date(const std::string& text) const {
  WEIR_TRY_ASSIGN(const Timestamp time, cli::parse_iso_time(text));
  if (time < 0) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("the date {} is before 1970, where the log's times begin", text));
  }
  const Timestamp now = system_clock().now();
  if (time - now > after_max_ms_) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("the date {} lies further ahead than topic {} allows "
                             "(message.timestamp.after.max.ms={})",
                             text, topic_, after_max_ms_));
  }
  if (now - time > before_max_ms_) {
    return Error(Errc::kInvalidArgument, fmt::format("the date {} is older than topic {} allows "
                                                     "(message.timestamp.before.max.ms={})",
                                                     text, topic_, before_max_ms_));
  }
  return time;
}

Result<QuoteFeeder::Quote> QuoteFeeder::parse(const CsvRecord& record) const {
  if (!record.error.empty()) {
    return Error(Errc::kInvalidArgument, fmt::format("it {}", record.error));
  }
  if (record.fields.size() != columns_.count) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("it has {} fields instead of {} (symbol, date, price; a first line "
                             "with these names may put them in another order)",
                             record.fields.size(), columns_.count));
  }
  Quote quote;
  quote.symbol = record.fields[columns_.symbol];
  if (quote.symbol.empty()) {
    return Error(Errc::kInvalidArgument, "its symbol is empty");
  }
  WEIR_TRY_ASSIGN(quote.time, parse_date(record.fields[columns_.date]));
  quote.price = record.fields[columns_.price];
  WEIR_TRY(parse_price(quote.price).status());
  return quote;
}

Status QuoteFeeder::refuse(std::uint64_t line, const std::string& why) {
  ++bad_;
  if (options_.bad_lines == BadLines::kStop) {
    return Error(
        Errc::kInvalidRecord,
        fmt::format("{} line {} is no quote: {}; correct it, or choose another --bad-lines",
                    file_->name(), line, why));
  }
  if (options_.bad_lines == BadLines::kReport && bad_ <= kBadLinesNamed) {
    fmt::print(stderr, "{}: {} line {} is no quote: {}\n", kProgram, file_->name(), line, why);
    if (bad_ == kBadLinesNamed) {
      fmt::print(stderr, "{}: further bad lines are only counted\n", kProgram);
    }
  }
  return {};
}

void QuoteFeeder::say_totals() const {
  fmt::print(stderr, "{}: {} quotes sent to topic {}, {} bad lines\n", kProgram, sent_, topic_,
             bad_);
}

}  // namespace weir::averages
