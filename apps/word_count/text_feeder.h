#pragma once

#include <weir/log/producer.h>
#include <weir/runtime/result.h>

#include <cstdint>
#include <string>

namespace weir::word_count {

// Sends a text to a topic, a record a line. A byte-order mark at the very start is left out. A line
// that is longer than a record may be is cut between words, so that no count changes.
//
// Threading: run() on one thread; stop() from any.
// Bounds:    keeps at most about kLineBytesMax of the text in memory.
class TextFeeder {
 public:
  static constexpr std::size_t kLineBytesMax = 512U << 10U;
  static constexpr std::size_t kWordBytesMax = 256U << 10U;

  // `path`: a file, or "-" for stdin. Errors: kNotFound, kIo.
  static Result<std::unique_ptr<TextFeeder>> open(const std::string& path);
  ~TextFeeder();
  TextFeeder(const TextFeeder&) = delete;
  TextFeeder& operator=(const TextFeeder&) = delete;

  // Until the end of the text or stop(); returns when all of it is acknowledged.
  // Errors: kRecordTooLarge (a word of more than kWordBytesMax; what is before it was sent), kIo,
  // the log's.
  Status run(log::Producer& producer, const std::string& topic);
  void stop();
  std::uint64_t lines() const { return lines_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  TextFeeder(int descriptor, int stop_event, std::string name)
      : descriptor_(descriptor), stop_event_(stop_event), name_(std::move(name)) {}
  // False when stop() was called.
  Result<bool> wait_readable() const;
  Status take(std::string_view chunk);
  Status send_long_part();
  Status send(std::string_view line);
  Status check_words(std::string_view line) const;

  const int descriptor_;
  const int stop_event_;
  const std::string name_;
  log::Producer* producer_ = nullptr;
  std::string topic_;
  std::string line_;  // begun, not sent
  std::uint64_t lines_ = 0;
  std::uint64_t bytes_ = 0;
  bool at_start_ = true;
};

}  // namespace weir::word_count
