#include "apps/cli/input_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace weir::cli {
namespace {

constexpr int kLookAgainMs = 200;  // whether a file has grown

std::string errno_text() {
  return std::generic_category().message(errno);
}

// Whether more can come behind the end: of a file, not of a pipe whose writers are gone.
bool can_grow(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

InputFile::InputFile(int descriptor, int stop_event, std::string name, bool waits_at_end)
    : descriptor_(descriptor),
      stop_event_(stop_event),
      name_(std::move(name)),
      waits_at_end_(waits_at_end),
      buffer_(kChunkBytes, '\0') {}

Result<std::unique_ptr<InputFile>> InputFile::open(const std::string& path, std::string_view what,
                                                   AtEnd at_end) {
  const bool standard_input = path == "-";
  const int descriptor = standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return Error(errno == ENOENT ? Errc::kNotFound : Errc::kIo,
                 fmt::format("cannot read the {} {}: {}; name a readable file, or - for stdin",
                             what, path, errno_text()));
  }
  const int stop_event = ::eventfd(0, EFD_CLOEXEC);
  if (stop_event < 0) {
    return Error(Errc::kIo, fmt::format("eventfd: {}", errno_text()));
  }
  return std::unique_ptr<InputFile>(new InputFile(descriptor, stop_event,
                                                  standard_input ? "stdin" : path,
                                                  at_end == AtEnd::kWait && can_grow(descriptor)));
}

InputFile::~InputFile() {
  if (descriptor_ != STDIN_FILENO) {
    ::close(descriptor_);
  }
  ::close(stop_event_);
}

void InputFile::stop() {
  const std::uint64_t one = 1;
  // An eventfd refuses only when its counter is full, and then it is readable already.
  [[maybe_unused]] const ssize_t written = ::write(stop_event_, &one, sizeof(one));
}

Result<bool> InputFile::wait(int timeout_ms, bool for_input) const {
  pollfd waits[] = {{stop_event_, POLLIN, 0}, {descriptor_, POLLIN, 0}};
  while (::poll(waits, for_input ? 2 : 1, timeout_ms) < 0) {
    if (errno != EINTR) {
      return Error(Errc::kIo, fmt::format("wait for {}: {}", name_, errno_text()));
    }
  }
  return waits[0].revents == 0;
}

Result<std::string_view> InputFile::read() {
  for (;;) {
    WEIR_TRY_ASSIGN(const bool go_on, wait(-1, true));
    if (!go_on) {
      return std::string_view();
    }
    const ssize_t got = ::read(descriptor_, buffer_.data(), buffer_.size());
    if (got > 0) {
      return std::string_view(buffer_).substr(0, static_cast<std::size_t>(got));
    }
    if (got < 0 && errno != EINTR) {
      return Error(Errc::kIo, fmt::format("{}: read input: {}", name_, errno_text()));
    }
    if (got == 0) {
      if (!waits_at_end_) {
        return std::string_view();
      }
      WEIR_TRY(wait(kLookAgainMs, false).status());
    }
  }
}

}  // namespace weir::cli
