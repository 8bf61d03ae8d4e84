#pragma once

#include <weir/runtime/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::cli {

// Reads a descriptor line by line in bounded memory: a line is never kept beyond `line_bytes_max`.
// Threading: confined to its owner.
class LineReader {
 public:
  LineReader(int descriptor, std::size_t line_bytes_max);

  struct Line {
    std::string_view text;     // without '\n'; valid until the next call; cut at line_bytes_max
    std::uint64_t number = 0;  // from 1
    std::uint64_t size = 0;    // whole size, also of a line that was cut
    bool too_long = false;     // text is only its beginning
  };
  // nullopt at the end. Blocks. Errors: kIo; kClosed after stop().
  Result<std::optional<Line>> next();

 private:
  Result<std::size_t> fill();

  const int descriptor_;
  const std::size_t line_bytes_max_;
  std::string buffer_;
  std::size_t begin_ = 0;  // unread part of buffer_
  std::uint64_t number_ = 0;
  bool at_end_ = false;
};

}  // namespace weir::cli
