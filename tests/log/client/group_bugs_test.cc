// Bugs of other logs' consumer groups (reference R 4.3, K 4), each as a test of ours; the table is
// in tests/log/README.md.
#include "tests/log/client/consumer_world.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

namespace weir::log {
namespace {

using testing::ConsumerWorld;
using testing::kLines;
using testing::poll;
using testing::poll_all;
using testing::poll_error;
using testing::Values;
using FileFault = weir::testing::MemoryFileSystem;

std::unique_ptr<Consumer> member(ConsumerWorld& world, const std::string& reset = "earliest") {
  ConsumerOptions options = world.options("g", reset);
  options.auto_commit = false;
  auto consumer = world.open(options);
  EXPECT_TRUE(consumer->subscribe({"lines"}).ok());
  return consumer;
}

// R 63 (Bufstream 0.1.0), K 51: offsets were answered as "none" before they were loaded, and
// readers began at 0 again.
TEST(GroupBugs, OffsetsThatCannotBeReadAreNoAnswerInsteadOfNone) {
  ConsumerWorld world(ConsumerWorld::Kind::kEmbedded);
  world.create();
  world.send({"a", "b", "c"});
  world.commit("g", 2);
  world.fixture().close();
  world.fixture().open();
  world.fixture().files->set_fault([](FileFault::Operation operation, const std::string& path) {
    return operation == FileFault::Operation::kRead &&
                   path.find("__consumer_offsets") != std::string::npos
               ? Status(Error(Errc::kIo, "cannot be read"))
               : Status();
  });
  const auto consumer = member(world);
  EXPECT_EQ(poll_error(*consumer), Errc::kIo);
  EXPECT_EQ(poll_error(*consumer), Errc::kIo);
  EXPECT_EQ(consumer->committed(kLines).error().code(), Errc::kIo);
  world.fixture().files->set_fault({});
  EXPECT_EQ(poll_all(*consumer), (Values{"c"}));
}

// R 63: acknowledged commits were lost, and committed offsets went back. A commit that is under way
// when its member loses the partition must be seen by the next owner, or be refused.
TEST(GroupBugs, ACommitUnderWayIsSeenByTheNextOwner) {
  ConsumerWorld world(ConsumerWorld::Kind::kEmbedded);
  world.create();
  world.send({"a", "b"});
  world.commit("g", 0);
  const auto old_owner = member(world);
  EXPECT_EQ(poll_all(*old_owner), (Values{"a", "b"}));
  world.fixture().files->hold_submits(true);
  std::atomic<bool> on_its_way{false};
  world.fixture().files->set_fault([&](FileFault::Operation operation, const std::string& path) {
    if (operation == FileFault::Operation::kWrite &&
        path.find("__consumer_offsets") != std::string::npos) {
      on_its_way = true;
    }
    return Status();
  });
  bool committed = false;
  ASSERT_TRUE(old_owner
                  ->commit_async([&](const ConsumerOffsets&, const Status& result) {
                    committed = result.ok();
                  })
                  .ok());
  std::atomic<bool> done{false};
  Values read;
  std::thread next([&] {
    // The old owner is thrown out with its commit on the way to the disk.
    while (world.fixture().files->run_submitted() == 0) {
    }
    world.fixture().files->hold_submits(false);
    world.fixture().files->run_submitted();
    done = true;
  });
  while (!on_its_way) {
  }
  world.clock().advance(std::chrono::minutes(6));
  const auto new_owner = member(world);
  read = poll_all(*new_owner);
  next.join();
  EXPECT_TRUE(done);
  EXPECT_EQ(read, Values{}) << "what was committed is not read again";
  EXPECT_EQ(world.committed("g"), 2);
  ASSERT_TRUE(old_owner->close().ok());
  EXPECT_TRUE(committed);
}

// K 24 (redpanda#22749, #3898): members expired while the coordinator owed them an answer.
TEST(GroupBugs, WaitingForOthersCostsNobodyItsPlace) {
  ConsumerWorld world(ConsumerWorld::Kind::kEmbedded);
  world.create("lines", 2);
  const auto first = member(world);
  poll(*first);
  const auto second = member(world);
  poll(*second);  // parked until the first joins again
  for (int i = 0; i < 10; ++i) {
    world.clock().advance(std::chrono::seconds(29));  // below max.poll.interval.ms in all
    poll(*second);
  }
  for (int i = 0; i < 4; ++i) {
    poll(*first);
    poll(*second);
  }
  EXPECT_EQ(first->assignment().size(), 1U);
  EXPECT_EQ(second->assignment().size(), 1U);
}

// K 24 (redpanda#3300): an id that was given out and never used held the group up for ever.
TEST(GroupBugs, AConsumerThatIsGoneBeforeItsAnswerHoldsNobodyUp) {
  ConsumerWorld world(ConsumerWorld::Kind::kEmbedded);
  world.create("lines", 2);
  const auto first = member(world);
  poll(*first);
  auto second = member(world);
  poll(*second);
  second.reset();  // its join is parked
  poll(*first);
  poll(*first);
  EXPECT_EQ(first->assignment().size(), 2U);
  EXPECT_EQ(world.log().admin().describe_group("g")->members.size(), 1U);
}

}  // namespace
}  // namespace weir::log
