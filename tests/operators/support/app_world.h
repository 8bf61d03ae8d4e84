#pragma once

#include <weir/operators/app.h>
#include <weir/operators/stream_builder.h>
#include <weir/runtime/backend.h>
#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/manual_executor.h>
#include <weir/runtime/testing/memory_backend.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::test {

using Counts = std::map<std::string, std::int64_t>;

inline constexpr Topic<std::string, std::string> kLines{"lines"};
inline constexpr Topic<std::string, std::int64_t> kWordCounts{"word-counts"};
inline constexpr KvStore<std::string, std::int64_t> kCounts{"counts"};

std::vector<std::string> split_words(const std::string& line);
// lines -> words -> group -> counts -> word-counts
Topology word_count();
// What word_count() must give for these lines.
Counts count_words(const std::vector<std::string>& lines);

// A log, a disk and a clock in memory, on which applications come and go.
struct World {
  World();

  void make_topic(const std::string& name, std::int32_t partitions);
  // Round robin over partitions, without key.
  void produce_lines(const std::vector<std::string>& lines, Timestamp timestamp = 1000);
  void produce(const std::string& topic, std::int32_t partition,
               const std::vector<RecordRef>& records);
  // Last value of each key in a topic of longs; tombstones remove.
  Counts last_counts(const std::string& topic) const;
  std::int32_t partitions(const std::string& topic) const;

  AppOptions options(const std::string& application_id = "wc") const;
  std::unique_ptr<App> make_app(Topology topology, const AppOptions& app_options);

  testing::ManualClock clock;
  testing::MemoryBackend memory;
  testing::MemoryFileSystem files;
  testing::ManualExecutor executor;
  Backend* backend = &memory;  // tests may put a faulty one in front
  std::size_t next_line = 0;
};

// Steps the application, letting 10 ms pass each time, until `done` or an error.
Status step_until(World& world, App& app, const std::function<bool()>& done, int steps_max = 3000);
// Until all that stands in the inputs now is committed.
Status drain(World& world, App& app);

// Backend whose calls fail from a given one on, as a log does whose process dies: what was done
// before stays.
class DyingBackend final : public Backend {
 public:
  explicit DyingBackend(Backend& inner) : inner_(inner) {}

  // The call number `call` (from 0, of those that write or read) and all later ones fail.
  void die_at(std::uint64_t call) { dies_at_ = call; }
  std::uint64_t calls() const { return calls_; }
  bool is_dead() const { return calls_ > dies_at_; }
  // Counts one call; kIo once dead.
  Status count_call();

  Admin& admin() override { return inner_.admin(); }
  Result<std::unique_ptr<RecordSource>> make_source(const SourceOptions& options) override;
  Result<std::unique_ptr<RecordSink>> make_sink(const SinkOptions& options) override;
  Result<std::unique_ptr<Group>> make_group(const std::string& group_id) override;

 private:
  Backend& inner_;
  std::uint64_t calls_ = 0;
  std::uint64_t dies_at_ = UINT64_MAX;
};

}  // namespace weir::test
