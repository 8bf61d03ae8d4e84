#pragma once

#include "apps/cli/input_file.h"
#include "apps/cli/stream_program.h"

#include <weir/log/producer.h>
#include <weir/runtime/result.h>

#include <cstdint>
#include <memory>
#include <string>

namespace weir::word_count {

// Sends a text to a topic, a record a line. A byte-order mark at the very start is left out. A line
// that is longer than a record may be is cut between words, so that no count changes.
//
// Threading: run() on one thread; stop() from any.
// Bounds:    keeps at most about kLineBytesMax of the text in memory.
class TextFeeder : public cli::Feeder {
 public:
  static constexpr std::size_t kLineBytesMax = 512U << 10U;
  static constexpr std::size_t kWordBytesMax = 256U << 10U;

  // `path`: a file, or "-" for stdin. Errors: kNotFound, kIo.
  static Result<std::unique_ptr<cli::Feeder>> open(const std::string& path);
  explicit TextFeeder(std::unique_ptr<cli::InputFile> file) : file_(std::move(file)) {}

  // Errors: kRecordTooLarge (a word of more than kWordBytesMax; what is before it was sent), kIo,
  // the log's.
  Status run(log::Producer& producer, const std::string& topic) override;
  void stop() override { file_->stop(); }

 private:
  Status take(std::string_view chunk);
  Status send_long_part();
  Status send(std::string_view line);
  Status check_words(std::string_view line) const;

  const std::unique_ptr<cli::InputFile> file_;
  log::Producer* producer_ = nullptr;
  std::string topic_;
  std::string line_;  // begun, not sent
  std::uint64_t lines_ = 0;
  bool at_start_ = true;
};

}  // namespace weir::word_count
