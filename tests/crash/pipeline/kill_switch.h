#pragma once

#include <weir/runtime/thread_annotations.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::crash {

// A named moment at which the process may be killed.
enum class Point {
  kAppend,            // a write to a partition's .log
  kRoll,              // a new .log is made
  kSync,              // a durable write of the write-ahead log
  kFlush,             // a sync of a partition's .log, or of the disk, by a checkpoint of the log
  kCheckpointFile,    // a checkpoint file of the log takes the place of the one before
  kChangelogWritten,  // commit: changelog handed to the sink, sink not flushed
  kSinkFlushed,       // commit: results and changelog durable, offsets not committed
  kOffsetsCommitted,  // commit: offsets durable, stores not promoted
  kPromoted,          // commit: done
  kSstBuild,          // a write to a table file of a checkpoint
  kIngest,            // a table file becomes part of the database: rename, manifest
  kOldRemoved,        // a table file that a compaction replaced is removed
  kClose,             // any change of the disk while application and log are closed
  kSwap,              // a segment's files are renamed: what compaction wrote, what it replaced
  kSegmentRemoved,    // a file of a segment that was compacted or given up is removed
};
inline constexpr std::size_t kPoints = 15;
inline constexpr std::size_t kPipelinePoints = 13;  // the first of them: of a pipeline
std::string_view point_name(Point point);
std::optional<Point> find_point(std::string_view name);

// Where in an operation the kill comes.
enum class Moment { kBefore, kWithin, kAfter };
inline constexpr int kMoments = 3;

// Kills this process (SIGKILL) at the n-th time that `point` is passed after it was armed by an
// acknowledgement and a commit. Threading: thread-safe.
class KillSwitch {
 public:
  struct Plan {
    std::optional<Point> point;  // nullopt: never
    std::uint64_t nth = 0;       // from 0
    Moment moment = Moment::kBefore;
  };
  explicit KillSwitch(Plan plan) : plan_(plan) {}

  void saw_acknowledgement() { acknowledged_ = true; }
  void saw_commit() { committed_ = true; }
  bool is_armed() const { return acknowledged_ && committed_; }
  void begin_close() { closing_ = true; }
  std::uint64_t operations_of_close() const { return close_operations_; }

  // True once: the caller must die() at the planned moment of what it is about to do. Every change
  // of the disk passes with its point, or nullopt when it has none.
  bool is_due(std::optional<Point> point, bool changes_disk);
  Moment moment() const { return plan_.moment; }
  // Says so on stdout first.
  [[noreturn]] void die() const;

 private:
  const Plan plan_;
  std::atomic<bool> acknowledged_{false};
  std::atomic<bool> committed_{false};
  std::atomic<bool> closing_{false};
  std::atomic<std::uint64_t> passed_{0};
  std::atomic<std::uint64_t> close_operations_{0};
};

// As the words of a command line; no point when there is none of that name.
KillSwitch::Plan plan_of(const std::string& point, const std::string& nth,
                         const std::string& moment);

// One whole line on stdout in one write, so that a kill never leaves half of it.
void report(std::string_view line);

}  // namespace weir::crash
