#include "operators/plan/recorded_plan.h"

#include <weir/operators/application_state.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A state directory with the application "words", which reads lines and, as a table, words-names.
struct StateDir {
  StateDir() {
    internal::RecordedPlan plan;
    plan.application_id = "words";
    plan.sub_topologies = {
        {{"lines", "words-names"}, {"words-counts-repartition"}, {"names"}, 2},
        {{"words-counts-repartition", "words-more-repartition"}, {"out"}, {"counts"}, 3}};
    plan.stores = {{"names", "string", "string", "words-names"},
                   {"counts", "string", "long", "words-counts-changelog"}};
    plan.source_topics = {{"lines", {}, 2}, {"words-names", {}, 2}};
    write("words", internal::encode_recorded_plan(plan));
  }
  void write(const std::string& id, const std::string& plan) {
    EXPECT_TRUE(files->create_directories("state/" + id).ok());
    EXPECT_TRUE(replace_file(*files, "state/" + id + "/plan.binpb", plan).ok());
  }
  ApplicationFolder words{"state", "words"};
  std::unique_ptr<testing::MemoryFileSystem> files =
      std::make_unique<testing::MemoryFileSystem>(testing::MemoryFileSystem::Options{});
};

TEST(ApplicationState, ListsFoldersThatHaveAPlan) {
  StateDir f;
  f.write("another", "damaged, but a plan");
  ASSERT_TRUE(f.files->create_directories("state/no-application").ok());
  EXPECT_THAT(list_applications(*f.files, "state").value(), ElementsAre("another", "words"));
  EXPECT_THAT(list_applications(*f.files, "elsewhere").value(), IsEmpty());
}

TEST(ApplicationState, ReadsThePlan) {
  StateDir f;
  const ApplicationPlan plan = read_application_plan(*f.files, f.words).value();
  EXPECT_EQ(plan.application_id, "words");
  ASSERT_EQ(plan.sub_topologies.size(), 2U);
  EXPECT_EQ(plan.sub_topologies[1].tasks, 3);
  EXPECT_THAT(plan.sub_topologies[1].sink_topics, ElementsAre("out"));
  ASSERT_EQ(plan.stores.size(), 2U);
  EXPECT_EQ(plan.stores[1].value_serde, "long");
  EXPECT_THAT(plan.input_topics, ElementsAre("lines", "words-names"));
}

TEST(ApplicationState, KnowsItsInternalTopicsAndNeverTakesAnInputForOne) {
  StateDir f;
  EXPECT_THAT(
      read_application_plan(*f.files, f.words).value().internal_topics(),
      ElementsAre("words-counts-changelog", "words-counts-repartition", "words-more-repartition"));
}

TEST(ApplicationState, NamesWhatThereIsAndWhatIsDamaged) {
  StateDir f;
  const Result<ApplicationPlan> near = read_application_plan(*f.files, {"state", "word"});
  EXPECT_EQ(near.error().code(), Errc::kNotFound);
  EXPECT_THAT(near.error().message(), HasSubstr("did you mean words?"));
  EXPECT_THAT(read_application_plan(*f.files, {"state", "quotes"}).error().message(),
              HasSubstr("there are: words"));
  EXPECT_EQ(read_application_plan(*f.files, {"state", ""}).error().code(), Errc::kNotFound);
  f.write("broken", "\xFF\xFF\xFF");
  const Result<ApplicationPlan> broken = read_application_plan(*f.files, {"state", "broken"});
  EXPECT_EQ(broken.error().code(), Errc::kCorrupt);
  EXPECT_THAT(broken.error().message(), HasSubstr("state/broken/plan.binpb"));
}

TEST(ApplicationState, TellsWhoRunsAnApplicationAndKeepsItFromStarting) {
  StateDir f;
  EXPECT_EQ(application_holder(*f.files, f.words).value(), std::nullopt);
  auto running = f.files->lock("state/words/lock", "application words in process 7").value();
  EXPECT_EQ(application_holder(*f.files, f.words).value(), "application words in process 7");
  const auto refused = lock_application(*f.files, f.words, "a tool");
  EXPECT_EQ(refused.error().code(), Errc::kLocked);
  EXPECT_THAT(refused.error().message(), HasSubstr("in process 7"));
  running.reset();
  EXPECT_EQ(application_holder(*f.files, f.words).value(), std::nullopt);
  const auto lock = lock_application(*f.files, f.words, "a tool").value();
  EXPECT_EQ(f.files->lock("state/words/lock", "x").error().code(), Errc::kLocked);
  EXPECT_EQ(lock_application(*f.files, {"state", "word"}, "a tool").error().code(),
            Errc::kNotFound);
}

TEST(ApplicationState, IsRemovedForGoodAndAlone) {
  StateDir f;
  f.write("words-2", "other");
  ASSERT_TRUE(f.files->create_directories("state/words/rocksdb").ok());
  ASSERT_TRUE(replace_file(*f.files, "state/words/rocksdb/000001.sst", "x").ok());
  ASSERT_TRUE(f.files->sync_directory("state").ok());

  auto lock = lock_application(*f.files, f.words, "a tool").value();
  ASSERT_TRUE(remove_application_state(*f.files, f.words).ok());
  lock.reset();
  f.files->power_cut();

  EXPECT_FALSE(path_exists(*f.files, "state/words"));
  EXPECT_THAT(list_applications(*f.files, "state").value(), ElementsAre("words-2"));
}

}  // namespace
}  // namespace weir
