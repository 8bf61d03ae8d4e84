#include "apps/word_count/text_feeder.h"

#include "apps/cli/line_reader.h"
#include "apps/word_count/words.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace weir::word_count {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

Result<std::unique_ptr<TextFeeder>> TextFeeder::open(const std::string& path) {
  const bool standard_input = path == "-";
  const int descriptor = standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return Error(errno == ENOENT ? Errc::kNotFound : Errc::kIo,
                 fmt::format("cannot read the text {}: {}; name a readable file, or - for stdin",
                             path, std::generic_category().message(errno)));
  }
  const int stop_event = ::eventfd(0, EFD_CLOEXEC);
  if (stop_event < 0) {
    return Error(Errc::kIo, fmt::format("eventfd: {}", std::generic_category().message(errno)));
  }
  return std::unique_ptr<TextFeeder>(
      new TextFeeder(descriptor, stop_event, standard_input ? "stdin" : path));
}

TextFeeder::~TextFeeder() {
  if (descriptor_ != STDIN_FILENO) {
    ::close(descriptor_);
  }
  ::close(stop_event_);
}

void TextFeeder::stop() {
  const std::uint64_t one = 1;
  // An eventfd refuses only when its counter is full, and then it is readable already.
  [[maybe_unused]] const ssize_t written = ::write(stop_event_, &one, sizeof(one));
}

Result<bool> TextFeeder::wait_readable() const {
  pollfd waits[] = {{descriptor_, POLLIN, 0}, {stop_event_, POLLIN, 0}};
  while (::poll(waits, 2, -1) < 0) {
    if (errno != EINTR) {
      return Error(Errc::kIo,
                   fmt::format("wait for {}: {}", name_, std::generic_category().message(errno)));
    }
  }
  return waits[1].revents == 0;
}

Status TextFeeder::run(log::Producer& producer, const std::string& topic) {
  producer_ = &producer;
  topic_ = topic;
  cli::LineReader reader(descriptor_, kLineBytesMax);
  for (;;) {
    WEIR_TRY_ASSIGN(const bool go_on, wait_readable());
    if (!go_on) {
      break;
    }
    Result<std::string_view> chunk = reader.next_chunk();
    if (!chunk.ok()) {
      return std::move(chunk).error().with_context(name_);
    }
    if (chunk->empty()) {
      break;
    }
    WEIR_TRY(take(*chunk));
  }
  if (!line_.empty()) {
    WEIR_TRY(send(line_));
    line_.clear();
  }
  return producer.flush();
}

Status TextFeeder::take(std::string_view chunk) {
  bytes_ += chunk.size();
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
              name_, kWordBytesMax, lines_));
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
