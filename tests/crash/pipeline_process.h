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

// A running crash_pipeline. Its diagnostics are appended to a file.
class PipelineProcess {
 public:
  using Line = std::function<void(std::string_view)>;

  PipelineProcess(const std::vector<std::string>& arguments, const std::string& diagnostics);
  ~PipelineProcess();
  PipelineProcess(const PipelineProcess&) = delete;
  PipelineProcess& operator=(const PipelineProcess&) = delete;

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
