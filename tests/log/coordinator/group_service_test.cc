// The driver of the group coordinator, over the offsets topic of a directory on a disk in memory.
#include "log/coordinator/group_service.h"

#include "log/broker/log_directory.h"

#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace weir::log {
namespace {

class ServiceWorld {
 public:
  ServiceWorld() {
    open();
    EXPECT_TRUE(directory->create_topic({"t", 2, {}}).ok());
  }
  void open() {
    LogDirectoryOptions options;
    options.files = &files;
    options.clock = &clock;
    options.seed = ++seed_;
    options.offsets_partitions = 1;
    options.groups.groups.initial_delay_ms = 0;
    options.groups.groups.member_id_seed = seed_;
    options.wal.file_bytes_min = 32U << 10U;
    options.wal.file_bytes_max = 64U << 10U;
    options.wal.total_bytes_max = 256U << 10U;
    auto opened = LogDirectory::open("data", options);
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().to_string());
    directory = std::move(*opened);
  }
  void cut_power() {
    files.power_cut();
    directory.reset();
    open();
  }
  GroupService& service() { return directory->groups(); }

  static JoinGroupRequest request(const std::string& host) {
    JoinGroupRequest ask;
    ask.group = "g";
    ask.client_id = "c";
    ask.client_host = host;
    ask.rebalance_timeout_ms = 60'000;
    ask.protocols = {{"p", "m"}};
    ask.requires_known_id = false;
    return ask;
  }
  // A group of one member: its id.
  std::string stable(const std::string& host = "/elsewhere") {
    std::optional<JoinGroupAnswer> joined;
    EXPECT_TRUE(service()
                    .join(request(host), [&](const JoinGroupAnswer& answer) { joined = answer; })
                    .ok());
    EXPECT_TRUE(joined.has_value());
    EXPECT_TRUE(sync(*joined).has_value());
    return joined->member_id;
  }
  std::optional<SyncGroupAnswer> sync(const JoinGroupAnswer& joined) {
    SyncGroupRequest ask;
    ask.group = "g";
    ask.generation = joined.generation;
    ask.member_id = joined.member_id;
    ask.assignments = {{joined.member_id, "all"}};
    std::optional<SyncGroupAnswer> synced;
    EXPECT_TRUE(service().sync(ask, [&](const SyncGroupAnswer& answer) { synced = answer; }).ok());
    return synced;
  }
  std::vector<std::pair<TopicPartition, CommittedOffset>> offset(std::int64_t at) {
    return {{{"t", PartitionId(0)}, {Offset(at), {}, ""}}};
  }
  std::int64_t committed() {
    const TopicPartition one{"t", PartitionId(0)};
    const auto found = directory->offsets().committed("g", {&one, 1}).value()[0];
    return found ? found->offset.value() : -1;
  }

  testing::MemoryFileSystem files{};
  testing::ManualClock clock;
  std::unique_ptr<LogDirectory> directory;

 private:
  std::uint64_t seed_ = 0;
};

TEST(GroupService, AnswersWhatIsDurableAndLoadsItAgain) {
  ServiceWorld w;
  const std::string member = w.stable();
  EXPECT_TRUE(w.service().commit({"g", 1, member, {}}, w.offset(7)).ok());
  w.cut_power();
  const GroupSnapshot at = w.service().describe("g").value();
  EXPECT_EQ(at.state, GroupState::kStable);
  EXPECT_EQ(at.generation, 1);
  ASSERT_EQ(at.members.size(), 1U);
  EXPECT_EQ(at.members[0].member_id, member);
  EXPECT_EQ(at.members[0].assignment, "all");
  EXPECT_EQ(w.service().heartbeat({"g", 1, member, {}}).value(), GroupError::kNone);
  EXPECT_EQ(w.committed(), 7);
  EXPECT_TRUE(w.service().commit({"g", 1, member, {}}, w.offset(8)).ok());
  // A member elsewhere that is silent.
  w.clock.advance(std::chrono::seconds(46));
  EXPECT_GT(w.service().tick(), Duration::zero());
  EXPECT_EQ(w.service().describe("g")->state, GroupState::kEmpty);
  w.cut_power();
  EXPECT_EQ(w.service().describe("g")->state, GroupState::kEmpty);
  EXPECT_EQ(w.service().describe("g")->generation, 2);
  EXPECT_EQ(w.committed(), 8);
}

TEST(GroupService, MembersOfTheProcessBeforeAreGone) {
  ServiceWorld w;
  w.stable(std::string(kInProcessHost));
  w.cut_power();
  const GroupSnapshot at = w.service().describe("g").value();
  EXPECT_EQ(at.state, GroupState::kEmpty);
  EXPECT_EQ(at.generation, 2) << "and a generation of theirs is over";
}

TEST(GroupService, AssignmentsWaitForTheCommitsOfTheGenerationBefore) {
  ServiceWorld w;
  const std::string member = w.stable();
  std::optional<GroupService::CommitPermit> permit =
      w.service().begin_commit({"g", 1, member, {}}, GroupService::CommitKind::kPlain).value();
  // The group is made anew by its leader, on another thread: that needs a record.
  std::atomic<bool> answered{false};
  std::atomic<bool> began{false};
  std::thread leader([&] {
    JoinGroupRequest again = ServiceWorld::request("/elsewhere");
    again.member_id = member;
    JoinGroupAnswer joined;
    EXPECT_TRUE(
        w.service().join(again, [&](const JoinGroupAnswer& answer) { joined = answer; }).ok());
    EXPECT_EQ(joined.generation, 2);
    began = true;
    EXPECT_TRUE(w.sync(joined).has_value());
    answered = true;
  });
  while (!began) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(answered);
  EXPECT_TRUE(w.directory->offsets().commit("g", w.offset(5)).ok());
  EXPECT_FALSE(answered);
  permit.reset();
  leader.join();
  EXPECT_TRUE(answered);
  EXPECT_EQ(w.service().commit({"g", 1, member, {}}, w.offset(9)).error().code(), Errc::kFenced);
  EXPECT_EQ(w.committed(), 5);
}

TEST(GroupService, RefusesCommitsByKind) {
  ServiceWorld w;
  const GroupIdentity simple{"g", -1, "", {}};
  EXPECT_TRUE(w.service().commit(simple, w.offset(1)).ok());
  EXPECT_EQ(w.service().describe("g")->state, GroupState::kEmpty);
  w.stable();
  EXPECT_EQ(w.service().commit(simple, w.offset(2)).error().code(), Errc::kFenced);
  EXPECT_TRUE(w.service().begin_commit(simple, GroupService::CommitKind::kTransactional).ok());
  EXPECT_EQ(w.committed(), 1);
  // The first record of the group stays the first: the simple commit wrote none over it.
  w.cut_power();
  EXPECT_EQ(w.service().describe("g")->state, GroupState::kStable);
}

TEST(GroupService, ARecordThatCannotBeWrittenIsTold) {
  ServiceWorld w;
  std::optional<JoinGroupAnswer> joined;
  ASSERT_TRUE(w.service()
                  .join(ServiceWorld::request("/h"),
                        [&](const JoinGroupAnswer& answer) { joined = answer; })
                  .ok());
  EXPECT_TRUE(w.service().last_append("g").ok());
  w.files.set_fault([](testing::MemoryFileSystem::Operation operation, const std::string& path) {
    return operation == testing::MemoryFileSystem::Operation::kWrite &&
                   path.find("__consumer_offsets") != std::string::npos
               ? Status(Error(Errc::kNoSpace, "no room"))
               : Status();
  });
  const auto synced = w.sync(*joined);
  ASSERT_TRUE(synced.has_value());
  EXPECT_EQ(synced->error, GroupError::kCoordinatorNotAvailable);
  EXPECT_EQ(w.service().last_append("g").error().code(), Errc::kNoSpace);
  w.files.set_fault({});
  JoinGroupRequest again = ServiceWorld::request("/h");
  again.member_id = joined->member_id;
  ASSERT_TRUE(
      w.service().join(again, [&](const JoinGroupAnswer& answer) { joined = answer; }).ok());
  EXPECT_EQ(w.sync(*joined)->error, GroupError::kNone);
  EXPECT_TRUE(w.service().last_append("g").ok());
}

// A disk that is full once, so that the reserve makes room: the batch is the same, with its offset.
TEST(GroupService, ARecordIsWrittenFromTheReserve) {
  ServiceWorld w;
  std::optional<JoinGroupAnswer> joined;
  ASSERT_TRUE(w.service()
                  .join(ServiceWorld::request("/h"),
                        [&](const JoinGroupAnswer& answer) { joined = answer; })
                  .ok());
  bool full = true;
  w.files.set_fault([&](testing::MemoryFileSystem::Operation operation, const std::string& path) {
    return operation == testing::MemoryFileSystem::Operation::kWrite &&
                   path.find("__consumer_offsets") != std::string::npos &&
                   std::exchange(full, false)
               ? Status(Error(Errc::kNoSpace, "no room"))
               : Status();
  });
  EXPECT_EQ(w.sync(*joined)->error, GroupError::kNone);
  EXPECT_FALSE(full);
  w.cut_power();
  EXPECT_EQ(w.service().describe("g")->state, GroupState::kStable);
}

TEST(GroupService, TellsWhenItIsDueEarlier) {
  ServiceWorld w;
  int earlier = 0;
  w.service().set_timer([&] { ++earlier; });
  EXPECT_EQ(w.service().tick(), std::chrono::hours(1));
  w.stable();
  EXPECT_GT(earlier, 0);
  EXPECT_EQ(w.service().tick(), std::chrono::seconds(45)) << "the session";
}

}  // namespace
}  // namespace weir::log
