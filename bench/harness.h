#pragma once

#include <weir/runtime/result.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// How a figure is made (rules: README.md): a case is measured in rounds, each of which runs every
// contender once in turn, so that what else the machine does meets all of them alike.

namespace weir::bench {

// One execution of one contender. What lies between start() and stop() counts; both may be called
// several times and add up.
// Threading: confined to the caller; the CPU time is that of all threads of the process.
class Run {
 public:
  // `folder` exists and is empty. `counting`: under callgrind, where time means nothing.
  Run(std::uint64_t items, std::string folder, bool counting)
      : items_(items), folder_(std::move(folder)), counting_(counting) {}

  std::uint64_t items() const { return items_; }
  const std::string& folder() const { return folder_; }
  bool counting() const { return counting_; }
  void start();
  void stop();
  // A figure beside the costs, of the last run. `unit` as it is printed.
  void note(std::string name, double value, std::string unit);

  double cpu_ns() const { return cpu_ns_; }
  double wall_ns() const { return wall_ns_; }
  // Highest resident memory of the process since start(); 0: unknown.
  std::uint64_t peak_rss_bytes() const { return peak_rss_bytes_; }
  struct Note {
    std::string name;
    double value;
    std::string unit;
  };
  const std::vector<Note>& notes() const { return notes_; }

 private:
  const std::uint64_t items_;
  const std::string folder_;
  const bool counting_;
  std::int64_t cpu_started_ = 0;
  std::int64_t wall_started_ = 0;
  double cpu_ns_ = 0;
  double wall_ns_ = 0;
  std::uint64_t peak_rss_bytes_ = 0;
  std::vector<Note> notes_;
};

// Fails when the result of the run is not what it must be: an error is never a figure.
using Contest = std::function<Status(Run&)>;

struct Contender {
  std::string name;
  Contest run;
  double share = 1;  // of the case's items: slow baselines get fewer
};

// A figure that was not measured here. Printed, never divided by.
struct Elsewhere {
  std::string name;
  double cpu_ns = 0;
  std::string source;
};

struct Case {
  std::string name;           // "20k.memory"; unique in its job
  std::string unit;           // what is counted: "record", "word"
  std::uint64_t items = 0;    // of a run
  std::uint64_t counted = 0;  // of the larger of the two runs under callgrind
  int rounds = 5;
  std::optional<double> budget_ns;
  std::vector<Contender> contenders;  // Weir first, then what it is compared with
  std::vector<Elsewhere> elsewhere;
  bool show_rss = false;
  // Thousands of files a run. They are removed behind the last one: for minutes after it deleted
  // many, ext4 takes a thousand times longer to make a file.
  bool many_files = false;
};

struct Job {
  std::string name;
  std::string about;
  std::vector<Case> (*cases)();
};

// ok, or an error that says what was wrong.
Status expect(bool condition, const std::string& what);
Status expect_equal(std::uint64_t is, std::uint64_t must_be, const std::string& what);

}  // namespace weir::bench
