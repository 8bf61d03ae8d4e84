#pragma once

#include <weir/runtime/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace weir::crash {

// A running program of this folder that is going to be killed. Its diagnostics are appended to a
// file.
class KilledProcess {
 public:
  using Line = std::function<void(std::string_view)>;

  KilledProcess(const std::string& program, const std::vector<std::string>& arguments,
                const std::string& diagnostics);
  ~KilledProcess();
  KilledProcess(const KilledProcess&) = delete;
  KilledProcess& operator=(const KilledProcess&) = delete;

  enum class Pause { kEnded, kTimedOut, kStopped };
  // Gives each whole line that it reports to `line`, until the process closes its end, the time
  // has passed, or `stop` says so.
  Pause read(std::chrono::milliseconds timeout, const Line& line,
             const std::function<bool()>& stop = {});
  void kill();
  // The status of waitpid().
  int wait();

 private:
  void take(const char* bytes, std::size_t size, const Line& line);

  pid_t pid_ = -1;
  int reports_ = -1;
  std::string partial_;
};

}  // namespace weir::crash
