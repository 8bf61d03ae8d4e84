#pragma once

#include "tests/crash/pipeline/kill_switch.h"

#include <weir/runtime/rng.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::crash {

class KilledProcess;

// The words of a report.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}
  std::string text();
  std::int64_t number();  // -1: none
  TopicPartition partition();

 private:
  std::string_view rest_;
};

// kill -9 of a program on the real disk, in turn at one of some points and at any time, over and
// over on the same directory, which is checked after each. A failure fails the running test, and
// the folder then stays for a look.
class Killing {
 public:
  Killing(std::string program, std::vector<Point> points, std::uint64_t seed);
  virtual ~Killing();
  Killing(const Killing&) = delete;
  Killing& operator=(const Killing&) = delete;

  void run(int kills);
  // Once more, to the end that the program finds by itself.
  void run_to_end();
  bool has_hit_every_point() const { return hits_.size() == points_.size(); }
  void print_kills() const;

 protected:
  // What one process reported.
  struct Run {
    bool started = false;  // it said anything
    std::optional<Point> killed_at;
    std::optional<std::int64_t> closed;
  };

  // What the program is given behind its directory, seed and the words of a point.
  virtual std::string first_number() = 0;
  // How often a point is passed, at most, before it kills.
  virtual std::uint64_t passes(Point point) const = 0;
  virtual void take(const std::string& what, Words& words) = 0;
  virtual void check(const Run& run) = 0;

  std::string directory() const { return folder_ + "/data"; }
  std::int64_t changes_of_close() const { return changes_of_close_; }
  Rng& rng() { return rng_; }

 private:
  bool kill_at_point();
  bool kill_by_time();
  std::vector<std::string> arguments();
  void take_line(std::string_view line, Run& run);
  void finish(KilledProcess& process, const Run& run);

  const std::string program_;
  const std::vector<Point> points_;
  Rng rng_;
  std::string folder_;
  std::map<Point, int> hits_;
  std::size_t next_point_ = 0;
  int by_time_ = 0;
  std::int64_t changes_of_close_ = 60;
};

}  // namespace weir::crash
