#pragma once

#include <string>
#include <string_view>

namespace weir::cli {

enum class Format { kText, kJson };

// Buffered stdout: data only; everything else goes to stderr. Threading: confined to its owner.
class Output {
 public:
  Output() = default;
  ~Output() { flush(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(std::string_view text) {
    buffer_.append(text);
    if (buffer_.size() >= kBufferBytes) {
      flush();
    }
  }
  void line(std::string_view text) {
    write(text);
    write("\n");
  }
  // False once the reader is gone (a closed pipe): the program ends quietly, as tools do.
  bool flush();
  bool broken() const { return broken_; }

 private:
  static constexpr std::size_t kBufferBytes = 64U << 10U;
  std::string buffer_;
  bool broken_ = false;
};

bool stdout_is_terminal();
bool stderr_is_terminal();

}  // namespace weir::cli
