// Counts words: a text goes to a topic, is split and counted in a store, and the counts go to a
// topic from which the table on the screen is made.
#include "apps/cli/exit_codes.h"
#include "apps/cli/stream_program.h"
#include "apps/word_count/pipeline.h"
#include "apps/word_count/text_feeder.h"
#include "apps/word_count/word_table.h"

#include <CLI/CLI.hpp>

namespace weir::word_count {
namespace {

constexpr const char* kProgram = "word_count";

int run(int argc, char** argv) {
  cli::StreamOptions options;
  options.application_id = "word-count";
  options.input = "lines";
  options.output = "word-counts";
  std::string text;
  CLI::App app("Counts the words of a text, or of what a topic holds and gets", kProgram);
  cli::add_stream_options(app, options, "words");
  app.add_option("--text", text, "File to send to the input topic first, - for stdin")
      ->type_name("FILE|-")
      ->excludes("--from-dir");
  app.footer(
      "Examples:\n  word_count --text /usr/share/common-licenses/GPL-3 --until-end --top 10\n"
      "  tail -f access.log | word_count --text -");
  int code = 0;
  if (!cli::parse(app, argc, argv, options.common, &code)) {
    return code;
  }
  cli::StreamProgram program{.name = kProgram,
                             .topology = count_words(options.input, options.output),
                             .input_config = {},
                             .output_config = {},
                             .open_feeder = {},
                             .open_table = [&options](Backend& log) {
                               return WordTable::open<WordTable>(log, options.output);
                             }};
  if (!text.empty()) {
    program.open_feeder = [&text](log::EmbeddedLog&) { return TextFeeder::open(text); };
  }
  return cli::run_stream_program(std::move(program), options);
}

}  // namespace
}  // namespace weir::word_count

int main(int argc, char** argv) {
  return weir::word_count::run(argc, argv);
}
