#include "apps/word_count/text_feeder.h"

#include "apps/word_count/words.h"

#include <fmt/core.h>

namespace weir::word_count {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

Result<std::unique_ptr<cli::Feeder>> TextFeeder::open(const std::string& path) {
  WEIR_TRY_ASSIGN(std::unique_ptr<cli::InputFile> file, cli::InputFile::open(path, "text"));
  return std::unique_ptr<cli::Feeder>(std::make_unique<TextFeeder>(std::move(file)));
}

Status TextFeeder::run(log::Producer& producer, const std::string& topic) {
  producer_ = &producer;
  topic_ = topic;
  for (;;) {
    WEIR_TRY_ASSIGN(const std::string_view chunk, file_->read());
    if (chunk.empty()) {
      break;
    }
    WEIR_TRY(take(chunk));
  }
  if (!line_.empty()) {
    WEIR_TRY(send(line_));
    line_.clear();
  }
  return producer.flush();
}

Status TextFeeder::take(std::string_view chunk) {
  while (!chunk.empty()) {
    const std::size_t end = chunk.find('\n');
    line_.append(chunk.substr(0, end));
    if (at_start_ && line_.size() < kByteOrderMark.size() && end == std::string_view::npos) {
      return {};
    }
    if (at_start_ && line_.starts_with(kByteOrderMark)) {
      line_.erase(0, kByteOrderMark.size());
    }
    at_start_ = false;
    while (line_.size() > kLineBytesMax) {
      WEIR_TRY(send_long_part());
    }
    if (end == std::string_view::npos) {
      return {};
    }
    WEIR_TRY(send(line_));
    ++lines_;
    line_.clear();
    chunk.remove_prefix(end + 1);
  }
  return {};
}

// Sends the beginning of a long line, up to the last border between words that fits.
Status TextFeeder::send_long_part() {
  std::size_t cut = kLineBytesMax;
  while (cut > 0 && is_word_byte(line_[cut - 1]) && is_word_byte(line_[cut])) {
    --cut;
  }
  if (cut == 0) {
    return check_words(line_);
  }
  WEIR_TRY(send(std::string_view(line_).substr(0, cut)));
  line_.erase(0, cut);
  return {};
}

Status TextFeeder::check_words(std::string_view line) const {
  std::size_t run = 0;
  for (const char byte : line) {
    run = is_word_byte(byte) ? run + 1 : 0;
    if (run > kWordBytesMax) {
      return Error(
          Errc::kRecordTooLarge,
          fmt::format(
              "{} has a word of more than {} bytes behind line {}; that is the longest word that "
              "can be counted, break it up",
              file_->name(), kWordBytesMax, lines_));
    }
  }
  return {};
}

Status TextFeeder::send(std::string_view line) {
  if (line.size() > kWordBytesMax) {
    WEIR_TRY(check_words(line));
  }
  log::ProducerRecord record;
  record.topic = topic_;
  record.value = line;
  return producer_->send(record);
}

}  // namespace weir::word_count
