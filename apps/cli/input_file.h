#pragma once

#include <weir/runtime/result.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace weir::cli {

// A file, or stdin, that is read in chunks until its end or until stop().
//
// Threading: read() on one thread; stop() from any.
class InputFile {
 public:
  static constexpr std::size_t kChunkBytes = 256U << 10U;

  enum class AtEnd {
    kEnd,
    kWait,  // for what is appended later, as `tail -f`; a pipe that was closed ends all the same
  };
  // `path`: a file, or "-" for stdin. `what` names it in messages ("text").
  // Errors: kNotFound, kIo.
  static Result<std::unique_ptr<InputFile>> open(const std::string& path, std::string_view what,
                                                 AtEnd at_end = AtEnd::kEnd);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // The next bytes, valid until the next call; empty at the end or after stop(). Blocks.
  // Errors: kIo.
  Result<std::string_view> read();
  void stop();
  // "stdin" or the path.
  const std::string& name() const { return name_; }

 private:
  InputFile(int descriptor, int stop_event, std::string name, bool waits_at_end);
  // True to go on, false after stop(). `timeout_ms`: -1 until something is there.
  Result<bool> wait(int timeout_ms, bool for_input) const;

  const int descriptor_;
  const int stop_event_;
  const std::string name_;
  const bool waits_at_end_;
  std::string buffer_;
};

}  // namespace weir::cli
