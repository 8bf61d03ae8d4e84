#include "apps/cli/output.h"

#include <cerrno>
#include <unistd.h>

namespace weir::cli {

bool Output::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && !broken_) {
    const ssize_t written = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      broken_ = true;
    }
  }
  buffer_.clear();
  return !broken_;
}

bool stdout_is_terminal() {
  return ::isatty(STDOUT_FILENO) != 0;
}
bool stderr_is_terminal() {
  return ::isatty(STDERR_FILENO) != 0;
}

}  // namespace weir::cli
