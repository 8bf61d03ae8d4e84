#pragma once

#include "apps/averages/csv_reader.h"
#include "apps/cli/input_file.h"
#include "apps/cli/stream_program.h"

#include <weir/runtime/backend.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace weir::averages {

// What becomes of lines that are no quotes. They are counted in any case.
enum class BadLines {
  kReport,  // each is named; the program ends with exit code 1
  kSkip,    // only their number is said
  kStop,    // the first one ends the program; what is before it was sent
};

// Sends quotes "symbol, date, price" of a CSV text to a topic: key symbol, value price as it is
// written, timestamp date. The first line may be a header that names the three columns, in any
// order and among others.
//
// Threading: run() on one thread; stop() from any.
// Bounds:    names at most kBadLinesNamed bad lines, the rest only by number.
class QuoteFeeder : public cli::Feeder {
 public:
  static constexpr std::uint64_t kBadLinesNamed = 20;

  struct Options {
    std::string path;  // or "-"
    BadLines bad_lines = BadLines::kReport;
    bool follow = false;  // go on with what is appended to the file
    bool quiet = false;
  };
  // `admin` outlives the feeder. Errors: kNotFound, kIo.
  static Result<std::unique_ptr<cli::Feeder>> open(Admin& admin, const Options& options);
  QuoteFeeder(Admin& admin, const Options& options, std::unique_ptr<cli::InputFile> file);

  // Errors: kInvalidRecord (BadLines::kStop), kIo, the log's.
  Status run(log::Producer& producer, const std::string& topic) override;
  void stop() override { file_->stop(); }
  bool refused() const override { return bad_ > 0 && options_.bad_lines == BadLines::kReport; }

 private:
  struct Columns {
    std::size_t symbol = 0;
    std::size_t date = 1;
    std::size_t price = 2;
    std::size_t count = 3;
  };
  struct Quote {
    std::string_view symbol;
    std::string_view price;
    Timestamp time = kNoTimestamp;
  };
  Status read_limits();
  Status take(const CsvRecord& record);
  bool take_header(const CsvRecord& record);
  Result<Quote> parse(const CsvRecord& record) const;
  Result<Timestamp> parse_date(const std::string& text) const;
  Status refuse(std::uint64_t line, const std::string& why);
  void say_totals() const;

  Admin& admin_;
  const Options options_;
  const std::unique_ptr<cli::InputFile> file_;
  log::Producer* producer_ = nullptr;
  std::string topic_;
  // message.timestamp.before.max.ms and .after.max.ms of the topic: what the log would refuse is
  // refused here, by its line.
  std::int64_t before_max_ms_ = INT64_MAX;
  std::int64_t after_max_ms_ = INT64_MAX;
  bool first_ = true;
  Columns columns_;
  std::uint64_t sent_ = 0;
  std::uint64_t bad_ = 0;
};

}  // namespace weir::averages
