#pragma once

#include <weir/runtime/bytes.h>

#include <fmt/format.h>

#include <functional>
#include <iterator>
#include <string>
#include <string_view>

namespace weir::log {

// Gathers text and hands it on in pieces.
// Threading: confined to its owner. Ownership: borrows `write`.
// Bounds:    64 KiB and the largest single text.
class DumpOutput {
 public:
  explicit DumpOutput(const std::function<void(std::string_view)>& write) : write_(write) {}

  void text(std::string_view text) {
    buffer_ += text;
    flush_full();
  }
  template <class... Values>
  void format(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Values>(values)...);
    flush_full();
  }
  // Bytes for people: printable UTF-8 as it is, each other byte as \xNN.
  void printable(ByteView bytes);
  // Hands on what is left.
  void flush();

 private:
  void flush_full() {
    if (buffer_.size() >= kFlushBytes) {
      flush();
    }
  }

  static constexpr std::size_t kFlushBytes = 64U << 10U;
  const std::function<void(std::string_view)>& write_;
  std::string buffer_;
};

}  // namespace weir::log
