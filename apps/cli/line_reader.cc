#include "apps/cli/line_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <unistd.h>

namespace weir::cli {
namespace {

constexpr std::size_t kReadBytes = 256U << 10U;

}  // namespace

LineReader::LineReader(int descriptor, std::size_t line_bytes_max)
    : descriptor_(descriptor), line_bytes_max_(line_bytes_max) {}

// Appends what one read gives; 0 at the end.
Result<std::size_t> LineReader::fill() {
  if (at_end_) {
    return std::size_t{0};
  }
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t old = buffer_.size();
  buffer_.resize(old + kReadBytes);
  ssize_t got = -1;
  do {
    got = ::read(descriptor_, buffer_.data() + old, kReadBytes);
  } while (got < 0 && errno == EINTR);
  buffer_.resize(old + (got > 0 ? static_cast<std::size_t>(got) : 0));
  if (got < 0) {
    return Error(Errc::kIo, fmt::format("read input: {}", std::generic_category().message(errno)));
  }
  at_end_ = got == 0;
  return static_cast<std::size_t>(got);
}

Result<std::optional<LineReader::Line>> LineReader::next() {
  std::size_t searched = 0;
  for (;;) {
    const std::size_t found = buffer_.find('\n', begin_ + searched);
    if (found != std::string::npos) {
      const std::size_t size = found - begin_;
      Line line{std::string_view(buffer_).substr(begin_, std::min(size, line_bytes_max_)),
                ++number_, size, size > line_bytes_max_};
      begin_ = found + 1;
      return std::optional<Line>(line);
    }
    searched = buffer_.size() - begin_;
    if (searched > line_bytes_max_) {
      break;
    }
    WEIR_TRY_ASSIGN(const std::size_t got, fill());
    if (got == 0) {
      if (searched == 0) {
        return std::optional<Line>();
      }
      Line line{std::string_view(buffer_).substr(begin_, searched), ++number_, searched, false};
      begin_ = buffer_.size();
      return std::optional<Line>(line);
    }
  }
  // Too long: count the rest, keep only the beginning.
  const std::string head = buffer_.substr(begin_, line_bytes_max_);
  std::uint64_t size = buffer_.size() - begin_;
  begin_ = buffer_.size();
  for (;;) {
    WEIR_TRY_ASSIGN(const std::size_t got, fill());
    const std::size_t end = buffer_.find('\n', begin_);
    if (end != std::string::npos) {
      size += end - begin_;
      begin_ = end + 1;
      break;
    }
    size += buffer_.size() - begin_;
    begin_ = buffer_.size();
    if (got == 0) {
      break;
    }
  }
  buffer_.insert(0, head);
  begin_ += head.size();
  return std::optional<Line>(
      Line{std::string_view(buffer_).substr(0, head.size()), ++number_, size, true});
}

}  // namespace weir::cli
