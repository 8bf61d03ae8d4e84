#include "tests/crash/killed_process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace weir::crash {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

KilledProcess::KilledProcess(const std::string& name, const std::vector<std::string>& arguments,
                             const std::string& diagnostics) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, diagnostics.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  std::string program = std::string(WEIR_BIN_DIR) + "/" + name;
  std::vector<std::string> words = arguments;
  std::vector<char*> argv = {program.data()};
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ), 0)
      << "cannot start " << program;
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  reports_ = ends[0];
}

KilledProcess::~KilledProcess() {
  if (pid_ > 0) {
    kill();
    wait();
  }
  ::close(reports_);
}

KilledProcess::Pause KilledProcess::read(milliseconds timeout, const Line& line,
                                         const std::function<bool()>& stop) {
  const auto deadline = steady_clock::now() + timeout;
  std::array<char, 16384> bytes;
  for (;;) {
    if (stop && stop()) {
      return Pause::kStopped;
    }
    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()).count();
    if (left <= 0) {
      return Pause::kTimedOut;
    }
    pollfd waiting{reports_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(left)) <= 0) {
      continue;
    }
    const ssize_t got = ::read(reports_, bytes.data(), bytes.size());
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return Pause::kEnded;
    }
    take(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)), line);
  }
}

void KilledProcess::take(const char* bytes, std::size_t size, const Line& line) {
  partial_.append(bytes, size);
  std::size_t begin = 0;
  for (std::size_t end = partial_.find('\n'); end != std::string::npos;
       end = partial_.find('\n', begin)) {
    line(std::string_view(partial_).substr(begin, end - begin));
    begin = end + 1;
  }
  partial_.erase(0, begin);
}

void KilledProcess::kill() {
  ::kill(pid_, SIGKILL);
}

int KilledProcess::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

}  // namespace weir::crash
