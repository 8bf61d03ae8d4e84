#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::bench {

// A figure a line on stdout: job, metric, value, unit, ratio, against; separated by tabs, or one
// JSON object a line with these names. `ratio` is value / against and absent when nothing of this
// run is behind `against`. Threading: confined to one thread.
class Report {
 public:
  explicit Report(bool json) : json_(json) {}
  void line(std::string_view job, std::string_view metric, double value, std::string_view unit,
            std::optional<double> ratio = {}, std::string_view against = {});

 private:
  bool json_;
};

}  // namespace weir::bench
