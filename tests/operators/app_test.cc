#include "tests/operators/support/app_world.h"

#include <weir/runtime/executor.h>
#include <weir/runtime/logger.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::milliseconds;

const std::vector<std::string> kText = {"a b a",     "the cat and the dog", "b", "",
                                        "the end a", "cat cat cat",         "z"};

// Diagnostics as they are written, for tests that look for a line.
class LogLines {
 public:
  LogLines() {
    previous_ = set_log_sink([this](LogLevel, std::string_view line) {
      const std::lock_guard<std::mutex> lock(mutex_);
      text_.append(line).append("\n");
    });
  }
  ~LogLines() { set_log_sink(previous_); }
  std::string text() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
  LogSink previous_;
};

struct Shape {
  std::int64_t threads;
  std::int32_t partitions;
  std::int64_t cache_bytes;
  const char* mode;
};
std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.threads << " threads, " << shape.partitions << " partitions, cache "
             << shape.cache_bytes << ", " << shape.mode;
}

class AppOnMemory : public ::testing::TestWithParam<Shape> {};

TEST_P(AppOnMemory, CountsWordsThroughARepartitionTopic) {
  World world;
  world.make_topic("lines", GetParam().partitions);
  world.make_topic("word-counts", 2);
  world.produce_lines(kText);
  AppOptions options = world.options();
  options.num_stream_threads = GetParam().threads;
  options.statestore_cache_max_bytes = GetParam().cache_bytes;
  options.store_mode = GetParam().mode;
  const std::unique_ptr<App> app = world.make_app(word_count(), options);

  ASSERT_TRUE(app->start().ok());
  const Status drained = drain(world, *app);

  ASSERT_TRUE(drained.ok()) << drained.error().to_string();
  EXPECT_EQ(app->state(), AppState::kRunning);
  EXPECT_EQ(world.last_counts("word-counts"), count_words(kText));
  EXPECT_EQ(world.last_counts("wc-counts-changelog"), count_words(kText));
  EXPECT_TRUE(app->stop(Clock(1000)).ok());
  EXPECT_EQ(app->state(), AppState::kNotRunning);
}

INSTANTIATE_TEST_SUITE_P(Shapes, AppOnMemory,
                         ::testing::Values(Shape{1, 1, 0, "hot"}, Shape{1, 3, 10'485'760, "hot"},
                                           Shape{2, 3, 0, "hot"}, Shape{3, 4, 200, "hot"},
                                           Shape{4, 4, 10'485'760, "memory"},
                                           Shape{2, 2, 10'485'760, "direct"}));

TEST(App, CountsNothingTwiceAfterARestart) {
  World world;
  world.make_topic("lines", 2);
  world.make_topic("word-counts", 1);
  world.produce_lines(kText);
  {
    const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
    ASSERT_TRUE(app->start().ok());
    ASSERT_TRUE(drain(world, *app).ok());
    ASSERT_TRUE(app->stop(Clock(1000)).ok());
  }
  world.produce_lines(kText);
  std::vector<std::string> twice = kText;
  twice.insert(twice.end(), kText.begin(), kText.end());

  const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
  ASSERT_TRUE(app->start().ok());
  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_EQ(world.last_counts("word-counts"), count_words(twice));
}

TEST(App, ReplaysTheTopicUnderANewApplicationId) {
  World world;
  world.make_topic("lines", 2);
  world.make_topic("word-counts", 1);
  world.produce_lines(kText);
  for (const char* id : {"first", "second"}) {
    const std::unique_ptr<App> app = world.make_app(word_count(), world.options(id));
    ASSERT_TRUE(app->start().ok());
    ASSERT_TRUE(drain(world, *app).ok());
    ASSERT_TRUE(app->stop(Clock(1000)).ok());
  }

  EXPECT_EQ(world.last_counts("first-counts-changelog"), count_words(kText));
  EXPECT_EQ(world.last_counts("second-counts-changelog"), count_words(kText));
}

TEST(App, TwoApplicationsShareOneLogWithoutMeeting) {
  World world;
  world.make_topic("lines", 2);
  world.make_topic("word-counts", 1);
  const std::unique_ptr<App> one = world.make_app(word_count(), world.options("one"));
  const std::unique_ptr<App> two = world.make_app(word_count(), world.options("two"));
  ASSERT_TRUE(one->start().ok());
  ASSERT_TRUE(two->start().ok());
  world.produce_lines(kText);

  ASSERT_TRUE(drain(world, *one).ok());
  ASSERT_TRUE(drain(world, *two).ok());

  EXPECT_EQ(world.last_counts("one-counts-changelog"), count_words(kText));
  EXPECT_EQ(world.last_counts("two-counts-changelog"), count_words(kText));
}

TEST(App, RefusesASecondInstanceOfItsStateDirectory) {
  World world;
  world.make_topic("lines", 1);
  world.make_topic("word-counts", 1);
  const std::unique_ptr<App> first = world.make_app(word_count(), world.options());
  const std::unique_ptr<App> second = world.make_app(word_count(), world.options());
  ASSERT_TRUE(first->start().ok());

  const Status started = second->start();

  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().code(), Errc::kLocked);
  EXPECT_THAT(started.error().message(), HasSubstr("application wc in process"));
  EXPECT_EQ(second->state(), AppState::kNotRunning);
}

TEST(App, NamesAnOutputTopicThatDoesNotExist) {
  World world;
  world.make_topic("lines", 1);
  const std::unique_ptr<App> app = world.make_app(word_count(), world.options());

  const Status started = app->start();

  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().code(), Errc::kUnknownTopic);
  EXPECT_THAT(started.error().message(), HasSubstr("word-counts"));
}

TEST(App, ReturnsTheTopologysMistakes) {
  World world;
  StreamBuilder builder;
  const std::unique_ptr<App> app = world.make_app(std::move(builder).build(), world.options());

  EXPECT_EQ(app->start().error().code(), Errc::kInvalidArgument);
}

// ---- input topics that come and go -------------------------------------------------------------

TEST(App, WaitsForAnInputTopicThatIsMadeLater) {
  World world;
  world.make_topic("word-counts", 1);
  const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
  ASSERT_TRUE(app->start().ok());
  ASSERT_EQ(step_until(world, *app, [] { return false; }, 30).error().code(), Errc::kTimedOut);
  EXPECT_EQ(app->state(), AppState::kRebalancing);

  world.make_topic("lines", 3);
  world.produce_lines(kText);
  ASSERT_TRUE(step_until(world, *app, [&] { return app->state() == AppState::kRunning; }).ok());
  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_EQ(world.last_counts("word-counts"), count_words(kText));
}

TEST(App, KeepsItsStateWhileTheInputIsGoneAndReadsTheNewOneFromItsStart) {
  World world;
  world.make_topic("lines", 2);
  world.make_topic("word-counts", 1);
  world.produce_lines(kText);
  const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
  ASSERT_TRUE(app->start().ok());
  ASSERT_TRUE(drain(world, *app).ok());

  ASSERT_TRUE(world.memory.admin().delete_topic("lines").ok());
  ASSERT_TRUE(step_until(world, *app, [&] { return app->state() == AppState::kRebalancing; }).ok());
  world.make_topic("lines", 3);
  world.produce_lines({"a again"});
  ASSERT_TRUE(step_until(world, *app, [&] { return app->state() == AppState::kRunning; }).ok());
  ASSERT_TRUE(drain(world, *app).ok());

  std::vector<std::string> all = kText;
  all.emplace_back("a again");
  EXPECT_EQ(world.last_counts("word-counts"), count_words(all));
}

TEST(App, NoticesAtItsStartThatTheInputWasMadeAnew) {
  World world;
  world.make_topic("lines", 2);
  world.make_topic("word-counts", 1);
  world.produce_lines(kText);
  AppOptions options = world.options();
  options.auto_offset_reset = "latest";
  {
    AppOptions first = options;
    first.auto_offset_reset = "earliest";
    const std::unique_ptr<App> app = world.make_app(word_count(), first);
    ASSERT_TRUE(app->start().ok());
    ASSERT_TRUE(drain(world, *app).ok());
    ASSERT_TRUE(app->stop(Clock(1000)).ok());
  }
  ASSERT_TRUE(world.memory.admin().delete_topic("lines").ok());
  world.make_topic("lines", 2);
  world.produce_lines({"a again"});

  // Read from its start whatever the policy for new inputs says.
  const std::unique_ptr<App> app = world.make_app(word_count(), options);
  ASSERT_TRUE(app->start().ok());
  ASSERT_TRUE(drain(world, *app).ok());

  std::vector<std::string> all = kText;
  all.emplace_back("a again");
  EXPECT_EQ(world.last_counts("word-counts"), count_words(all));
}

// ---- offsets that are gone (N39) ---------------------------------------------------------------

// Counts one record, stops, deletes what was not read, adds "x x".
void lose_records(World& world) {
  world.make_topic("lines", 1);
  world.make_topic("word-counts", 1);
  world.produce_lines({"a"});
  const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
  ASSERT_TRUE(app->start().ok());
  ASSERT_TRUE(drain(world, *app).ok());
  ASSERT_TRUE(app->stop(Clock(1000)).ok());
  world.produce_lines({"gone", "gone", "gone"});
  ASSERT_TRUE(world.memory.admin().delete_records({"lines", PartitionId(0)}, Offset(4)).ok());
  world.produce_lines({"x", "x"});
}

TEST(App, SaysHowManyRecordsAreGoneAndGoesOnAtTheEarliest) {
  World world;
  lose_records(world);
  const LogLines lines;
  const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
  ASSERT_TRUE(app->start().ok());

  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_THAT(lines.text(), HasSubstr("missing=3"));
  const Counts expected = {{"a", 1}, {"x", 2}};
  EXPECT_EQ(world.last_counts("word-counts"), expected);
}

TEST(App, StopsWhenOffsetsAreGoneAndThePolicyIsNone) {
  World world;
  lose_records(world);
  AppOptions options = world.options();
  options.auto_offset_reset = "none";
  const std::unique_ptr<App> app = world.make_app(word_count(), options);
  ASSERT_TRUE(app->start().ok());

  const Status stepped = step_until(world, *app, [] { return false; }, 50);

  ASSERT_FALSE(stepped.ok());
  EXPECT_EQ(app->state(), AppState::kError);
  EXPECT_EQ(app->error().error().code(), Errc::kOffsetOutOfRange);
  EXPECT_THAT(app->error().error().message(), HasSubstr("lines-0"));
  EXPECT_THAT(app->error().error().message(), HasSubstr("app reset"));
}

TEST(App, ResetsWhileItRunsWhenRetentionOvertakesIt) {
  World world;
  world.make_topic("lines", 1);
  world.make_topic("word-counts", 1);
  const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
  ASSERT_TRUE(app->start().ok());
  world.produce_lines({"a"});
  ASSERT_TRUE(drain(world, *app).ok());
  const LogLines lines;
  world.produce_lines({"gone", "gone"});
  ASSERT_TRUE(world.memory.admin().delete_records({"lines", PartitionId(0)}, Offset(3)).ok());
  world.produce_lines({"x"});

  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_THAT(lines.text(), HasSubstr("missing=2"));
  const Counts expected = {{"a", 1}, {"x", 1}};
  EXPECT_EQ(world.last_counts("word-counts"), expected);
}

// ---- functions that throw ----------------------------------------------------------------------

TEST(App, StopsAtTheRecordAtWhichAFunctionThrewAndCommitsNothingOfIt) {
  World world;
  world.make_topic("lines", 1);
  world.make_topic("word-counts", 1);
  world.produce_lines({"good", "bad", "never"});
  StreamBuilder builder;
  builder.from(kLines)
      .map_values([](const std::string& line) -> std::int64_t {
        if (line == "bad") {
          throw std::runtime_error("cannot take it");
        }
        return 1;
      })
      .to(kWordCounts);
  const std::unique_ptr<App> app = world.make_app(std::move(builder).build(), world.options());
  ASSERT_TRUE(app->start().ok());

  const Status stepped = step_until(world, *app, [] { return false; }, 50);

  ASSERT_FALSE(stepped.ok());
  EXPECT_EQ(app->state(), AppState::kError);
  EXPECT_EQ(app->error().error().code(), Errc::kHandlerThrew);
  EXPECT_THAT(app->error().error().message(), HasSubstr("lines-0 offset 1"));
  EXPECT_THAT(app->error().error().message(), HasSubstr("cannot take it"));
  EXPECT_LE(app->committed_offsets().at({"lines", PartitionId(0)}), Offset(1));
  EXPECT_TRUE(app->stop(Clock(100)).ok());
  EXPECT_EQ(app->state(), AppState::kError);
}

// ---- stores and changelogs ---------------------------------------------------------------------

TEST(App, MakesALostChangelogAgainFromTheCheckpoint) {
  World world;
  world.make_topic("lines", 2);
  world.make_topic("word-counts", 1);
  world.produce_lines(kText);
  {
    const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
    ASSERT_TRUE(app->start().ok());
    ASSERT_TRUE(drain(world, *app).ok());
    ASSERT_TRUE(app->stop(Clock(1000)).ok());
  }
  ASSERT_TRUE(world.memory.admin().delete_topic("wc-counts-changelog").ok());
  world.produce_lines({"a"});
  const LogLines lines;
  {
    const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
    ASSERT_TRUE(app->start().ok());
    ASSERT_TRUE(drain(world, *app).ok());
  }  // a crash: without stop()

  EXPECT_THAT(lines.text(), HasSubstr("changelog is made again from the checkpoint"));
  std::vector<std::string> all = kText;
  all.emplace_back("a");
  EXPECT_EQ(world.last_counts("word-counts"), count_words(all));
  EXPECT_EQ(world.last_counts("wc-counts-changelog"), count_words(all));

  // The next start must not take the old checkpoint for newer than the changelog.
  world.produce_lines({"a"});
  all.emplace_back("a");
  const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
  ASSERT_TRUE(app->start().ok());
  ASSERT_TRUE(drain(world, *app).ok());
  EXPECT_EQ(world.last_counts("word-counts"), count_words(all));
}

TEST(App, RestoresFromTheChangelogAloneWhenTheStateDirectoryIsGone) {
  World world;
  world.make_topic("lines", 2);
  world.make_topic("word-counts", 1);
  world.produce_lines(kText);
  {
    const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
    ASSERT_TRUE(app->start().ok());
    ASSERT_TRUE(drain(world, *app).ok());
    ASSERT_TRUE(app->stop(Clock(1000)).ok());
  }
  ASSERT_TRUE(remove_tree(world.files, "/state").ok());
  world.produce_lines({"a"});

  const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
  ASSERT_TRUE(app->start().ok());
  ASSERT_TRUE(drain(world, *app).ok());

  std::vector<std::string> all = kText;
  all.emplace_back("a");
  EXPECT_EQ(world.last_counts("word-counts"), count_words(all));
}

TEST(App, SurvivesThatItsChangelogIsDeletedWhileItRuns) {
  World world;
  world.make_topic("lines", 1);
  world.make_topic("word-counts", 1);
  world.produce_lines(kText);
  const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
  ASSERT_TRUE(app->start().ok());
  ASSERT_TRUE(drain(world, *app).ok());

  ASSERT_TRUE(world.memory.admin().delete_topic("wc-counts-changelog").ok());
  world.produce_lines({"a"});
  const Status drained = drain(world, *app);

  ASSERT_TRUE(drained.ok()) << drained.error().to_string();
  Counts expected = count_words(kText);
  ++expected["a"];
  const Counts counted = world.last_counts("word-counts");
  for (const auto& [word, count] : expected) {
    EXPECT_GE(counted.at(word), count) << word;
  }
}

TEST(App, EmptiesRepartitionTopicsUpToTheCommit) {
  World world;
  world.make_topic("lines", 1);
  world.make_topic("word-counts", 1);
  world.produce_lines(kText);
  AppOptions options = world.options();
  options.repartition_purge_interval_ms = 50;
  const std::unique_ptr<App> app = world.make_app(word_count(), options);
  ASSERT_TRUE(app->start().ok());
  ASSERT_TRUE(drain(world, *app).ok());
  world.produce_lines({"one more"});
  ASSERT_TRUE(drain(world, *app).ok());
  world.produce_lines({"and more"});
  ASSERT_TRUE(drain(world, *app).ok());

  const PartitionOffsets offsets =
      world.memory.admin().offsets({"wc-counts-repartition", PartitionId(0)}).value();
  EXPECT_GT(offsets.log_start, Offset(0));
}

// ---- threads, deadlines, errors of the log -----------------------------------------------------

class AppThreads : public ::testing::TestWithParam<int> {};

TEST_P(AppThreads, CountWordsTogether) {
  testing::MemoryBackend memory(system_clock());
  testing::MemoryFileSystem files;
  const std::unique_ptr<Executor> executor = make_asio_executor(1);
  World world;
  ASSERT_TRUE(memory.admin().create_topic({"lines", 4, {}}).ok());
  ASSERT_TRUE(memory.admin().create_topic({"word-counts", 1, {}}).ok());
  AppOptions options = world.options();
  options.manual_stepping = false;
  options.num_stream_threads = GetParam();
  options.commit_interval_ms = 5;
  App app(word_count(), options, memory, {system_clock(), files, *executor});
  ASSERT_TRUE(app.start().ok());
  std::vector<std::string> lines;
  for (int i = 0; i < 2000; ++i) {
    lines.push_back("w" + std::to_string(i % 97) + " w" + std::to_string(i % 7));
  }
  const std::unique_ptr<RecordSink> sink =
      memory.make_sink({.client_id = "test", .transactional_id = {}}).value();
  const SinkTopicInfo info = sink->open_topic("lines").value();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const RecordRef record{.key = {}, .value = ByteView(lines[i]), .timestamp = 1, .headers = {}};
    ASSERT_TRUE(
        sink->send(info.handle, PartitionId(static_cast<std::int32_t>(i % 4)), {&record, 1}).ok());
  }
  ASSERT_TRUE(sink->flush().ok());

  const std::unique_ptr<DrainWatch> watch = app.watch_drain().value();
  while (!watch->done().value()) {
    std::this_thread::yield();
  }

  EXPECT_TRUE(app.stop(std::chrono::seconds(60)).ok());
  Counts counts;
  for (const auto& record : memory.records({"word-counts", PartitionId(0)})) {
    counts[record.key.value()] = load_be<std::int64_t>(record.value->data());
  }
  EXPECT_EQ(counts, count_words(lines));
}

INSTANTIATE_TEST_SUITE_P(Threads, AppThreads, ::testing::Values(1, 2, 3, 4));

TEST(App, SkipsTheLastCheckpointWhenTheDeadlineHasPassed) {
  World world;
  world.make_topic("lines", 1);
  world.make_topic("word-counts", 1);
  world.produce_lines(kText);
  const LogLines lines;
  const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
  ASSERT_TRUE(app->start().ok());
  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_TRUE(app->stop(Duration(0)).ok());

  EXPECT_THAT(lines.text(), HasSubstr("deadline passed before store was checkpointed"));
  EXPECT_EQ(app->state(), AppState::kNotRunning);
}

TEST(App, CommitsWhatItProcessedWhenItIsStopped) {
  World world;
  world.make_topic("lines", 1);
  world.make_topic("word-counts", 1);
  AppOptions options = world.options();
  options.commit_interval_ms = 86'400'000;
  const std::unique_ptr<App> app = world.make_app(word_count(), options);
  ASSERT_TRUE(app->start().ok());
  world.produce_lines({"a", "b"});
  ASSERT_TRUE(step_until(world, *app, [&] {
                return !world.memory.records({"wc-counts-repartition", PartitionId(0)}).empty();
              }).ok());
  ASSERT_EQ(step_until(world, *app, [] { return false; }, 5).error().code(), Errc::kTimedOut);
  EXPECT_TRUE(world.last_counts("word-counts").empty());

  ASSERT_TRUE(app->stop(Clock(1000)).ok());

  const Counts expected = {{"a", 1}, {"b", 1}};
  EXPECT_EQ(world.last_counts("word-counts"), expected);
  EXPECT_EQ(app->committed_offsets().at({"lines", PartitionId(0)}), Offset(2));
}

TEST(App, EndsWithTheLogsErrorWhenItLastsLongerThanTaskTimeout) {
  World world;
  world.make_topic("lines", 1);
  world.make_topic("word-counts", 1);
  DyingBackend dying(world.memory);
  world.backend = &dying;
  AppOptions options = world.options();
  options.task_timeout_ms = 2000;
  const std::unique_ptr<App> app = world.make_app(word_count(), options);
  ASSERT_TRUE(app->start().ok());
  world.produce_lines({"a"});
  ASSERT_TRUE(drain(world, *app).ok());

  dying.die_at(dying.calls());
  const Status stepped = step_until(world, *app, [] { return false; }, 500);

  EXPECT_EQ(stepped.error().code(), Errc::kIo);
  EXPECT_EQ(app->state(), AppState::kError);
  EXPECT_THAT(app->error().error().message(), HasSubstr("task.timeout.ms=2000"));
}

TEST(App, ReportsUnknownSettingsAndBadValuesTogether) {
  const Result<AppOptions> parsed = AppOptions::parse(
      {{"application.idd", "x"}, {"num.stream.threads", "0"}, {"auto.offset.reset", "newest"}});

  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code(), Errc::kInvalidConfig);
  EXPECT_THAT(parsed.error().message(), HasSubstr("application.id"));
  EXPECT_THAT(parsed.error().message(), HasSubstr("num.stream.threads"));
  EXPECT_THAT(parsed.error().message(), HasSubstr("auto.offset.reset"));
}

TEST(App, PublishesMetrics) {
  World world;
  world.make_topic("lines", 1);
  world.make_topic("word-counts", 1);
  world.produce_lines(kText);
  const std::unique_ptr<App> app = world.make_app(word_count(), world.options());
  ASSERT_TRUE(app->start().ok());
  ASSERT_TRUE(drain(world, *app).ok());

  EXPECT_THAT(app->metrics().prometheus_text(),
              HasSubstr("weir_task_processed_records_total{task=\"0_0\"} 7"));
}

}  // namespace
}  // namespace weir::test
