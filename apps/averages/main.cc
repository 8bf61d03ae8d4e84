// Averages prices: quotes of a CSV text go to a topic, each symbol's sum and number are kept in a
// store, and the averages go to a topic from which the table on the screen is made.
#include "apps/averages/average_table.h"
#include "apps/averages/pipeline.h"
#include "apps/averages/quote_feeder.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/stream_program.h"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <map>

namespace weir::averages {
namespace {

constexpr const char* kProgram = "averages";

// Quotes carry their own dates: history must neither be deleted for its age nor be cut into a
// segment a week.
const TopicConfig kQuotesConfig{{"retention.ms", "-1"}, {"segment.ms", "3155760000000000"}};
const TopicConfig kAveragesConfig{{"cleanup.policy", "compact"}};

int run(int argc, char** argv) {
  cli::StreamOptions options;
  options.application_id = "averages";
  options.input = "quotes";
  options.output = "averages";
  QuoteFeeder::Options quotes;
  CLI::App app("Average price of each symbol, over the history of its quotes and what comes",
               kProgram);
  cli::add_stream_options(app, options, "symbols");
  app.add_option("--quotes", quotes.path,
                 "CSV file of symbol, date, price to send to the input topic first, - for stdin")
      ->type_name("FILE|-")
      ->excludes("--from-dir");
  app.add_flag("--follow", quotes.follow, "Go on with lines that are appended to the file later")
      ->needs("--quotes")
      ->excludes("--until-end");
  app.add_option(
         "--bad-lines", quotes.bad_lines,
         "Lines that are no quotes: name each and end with exit code 1, only count them, or "
         "stop at the first (default report)")
      ->type_name("report|skip|stop")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, BadLines>{{"report", BadLines::kReport},
                                                                  {"skip", BadLines::kSkip},
                                                                  {"stop", BadLines::kStop}})
              .description(""));
  app.footer(
      "A date is 2026-03-01 or 2026-03-01T12:30:15Z and becomes the record's timestamp. Sums are\n"
      "exact decimals.\n"
      "Examples:\n  averages --quotes quotes.csv --until-end\n"
      "  averages --quotes quotes.csv --follow\n"
      "  averages --application-id again --until-end      # all of the topic's history anew");
  int code = 0;
  if (!cli::parse(app, argc, argv, options.common, &code)) {
    return code;
  }
  quotes.quiet = options.common.quiet;
  cli::StreamProgram program{.name = kProgram,
                             .topology = average_prices(options.input, options.output),
                             .input_config = kQuotesConfig,
                             .output_config = kAveragesConfig,
                             .open_feeder = {},
                             .open_table = [&options](Backend& log) {
                               return AverageTable::open<AverageTable>(log, options.output);
                             }};
  if (!quotes.path.empty()) {
    program.open_feeder = [&quotes](log::EmbeddedLog& log) {
      return QuoteFeeder::open(log.admin(), quotes);
    };
  }
  return cli::run_stream_program(std::move(program), options);
}

}  // namespace
}  // namespace weir::averages

int main(int argc, char** argv) {
  return weir::averages::run(argc, argv);
}
