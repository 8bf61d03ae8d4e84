// Several consumers of one group over the embedded log.
#include "tests/log/client/consumer_world.h"
#include "tests/support/captured_log.h"
#include "tests/support/size_of_run.h"

#include <weir/runtime/rng.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <thread>

namespace weir::log {
namespace {

using testing::ConsumerWorld;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kLines;
using testing::Listener;
using testing::poll;
using testing::poll_error;
using ::testing::UnorderedElementsAre;
using testing::Values;
using weir::testing::CapturedLog;

TopicPartition at(const std::string& topic, std::int32_t partition) {
  return {topic, PartitionId(partition)};
}

std::vector<std::string> assigned(const Consumer& consumer) {
  std::vector<std::string> names;
  for (const TopicPartition& partition : consumer.assignment()) {
    names.push_back(partition.to_string());
  }
  std::ranges::sort(names);
  return names;
}

struct World : ConsumerWorld {
  World() : ConsumerWorld(Kind::kEmbedded) {}

  // Subscribed to the topics; nothing is committed but when partitions go.
  std::unique_ptr<Consumer> member(std::vector<std::string> topics = {"lines"},
                                   GroupListener* listener = nullptr,
                                   const std::vector<std::string>& assignors = {},
                                   const std::string& instance = "") {
    ConsumerOptions with = options("g", "earliest");
    with.auto_commit_interval = std::chrono::hours(1'000);
    if (!assignors.empty()) {
      with.assignors = assignors;
    }
    with.instance_id = instance;
    auto consumer = open(with);
    EXPECT_TRUE(consumer->subscribe(std::move(topics), listener).ok());
    return consumer;
  }
  // Everybody polls until the group is at rest; what they read.
  Values settle(const std::vector<Consumer*>& consumers) {
    Values all;
    for (int round = 0; round < 12; ++round) {
      for (Consumer* consumer : consumers) {
        const Values some = poll(*consumer);
        all.insert(all.end(), some.begin(), some.end());
      }
    }
    return all;
  }
  GroupDescription describe() { return log().admin().describe_group("g").value(); }
};

TEST(ConsumerGroup, MembersShareThePartitions) {
  World w;
  w.create("lines", 4);
  Listener heard;
  const auto first = w.member({"lines"}, &heard);
  w.settle({first.get()});
  EXPECT_THAT(assigned(*first), ElementsAre("lines-0", "lines-1", "lines-2", "lines-3"));
  EXPECT_THAT(heard.take(), ElementsAre("assigned lines-0 lines-1 lines-2 lines-3"));

  Listener heard_too;
  const auto second = w.member({"lines"}, &heard_too);
  w.settle({first.get(), second.get()});
  EXPECT_THAT(assigned(*first), ElementsAre("lines-0", "lines-1"));
  EXPECT_THAT(assigned(*second), ElementsAre("lines-2", "lines-3"));
  EXPECT_THAT(heard.take(), ElementsAre("revoked lines-2 lines-3")) << "and reads the rest on";
  EXPECT_THAT(heard_too.take(), ElementsAre("assigned lines-2 lines-3"));

  ASSERT_TRUE(first->close().ok());
  w.settle({second.get()});
  EXPECT_THAT(assigned(*second), ElementsAre("lines-0", "lines-1", "lines-2", "lines-3"));
  EXPECT_THAT(heard_too.take(), ElementsAre("assigned lines-0 lines-1"));
}

TEST(ConsumerGroup, MoreMembersThanPartitionsLeaveSomeIdle) {
  World w;
  w.create("lines", 2);
  std::vector<std::unique_ptr<Consumer>> members;
  std::vector<Consumer*> all;
  for (int i = 0; i < 4; ++i) {
    members.push_back(w.member());
    all.push_back(members.back().get());
  }
  w.settle(all);
  std::size_t total = 0;
  for (const auto& one : members) {
    EXPECT_LE(one->assignment().size(), 1U);
    total += one->assignment().size();
  }
  EXPECT_EQ(total, 2U);
}

TEST(ConsumerGroup, RangeRevokesEverythingFirst) {
  World w;
  w.create("lines", 3);
  w.create("words", 3);
  Listener heard;
  const auto first = w.member({"lines", "words"}, &heard, {"range"});
  w.settle({first.get()});
  const auto second = w.member({"lines", "words"}, nullptr, {"range"});
  w.settle({first.get(), second.get()});
  EXPECT_THAT(assigned(*first), ElementsAre("lines-0", "lines-1", "words-0", "words-1"));
  EXPECT_THAT(assigned(*second), ElementsAre("lines-2", "words-2"));
  EXPECT_THAT(heard.take(), ElementsAre("assigned lines-0 lines-1 lines-2 words-0 words-1 words-2",
                                        "revoked lines-0 lines-1 lines-2 words-0 words-1 words-2",
                                        "assigned lines-0 lines-1 words-0 words-1"));
  EXPECT_EQ(w.describe().assignor, "range");
}

TEST(ConsumerGroup, MembersThatShareNoStrategyAreTold) {
  World w;
  w.create();
  const auto first = w.member({"lines"}, nullptr, {"range"});
  w.settle({first.get()});
  const auto second = w.member({"lines"}, nullptr, {"roundrobin"});
  const auto refused = second->poll(Duration::zero());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kInvalidConfig);
  EXPECT_THAT(refused.error().message(), HasSubstr("partition.assignment.strategy"));
  const auto third = w.member({"lines"}, nullptr, {"roundrobin", "range"});
  w.settle({first.get(), third.get()});
  EXPECT_EQ(w.describe().assignor, "range");
}

TEST(ConsumerGroup, EachReadsOnlyItsTopics) {
  World w;
  w.create("lines", 2);
  w.create("words", 2);
  const auto first = w.member({"lines"});
  const auto second = w.member({"lines", "words"});
  w.settle({first.get(), second.get()});
  EXPECT_THAT(assigned(*first), ElementsAre("lines-0", "lines-1"));
  EXPECT_THAT(assigned(*second), ElementsAre("words-0", "words-1"));

  ASSERT_TRUE(first->subscribe({"words"}).ok());
  w.settle({first.get(), second.get()});
  EXPECT_THAT(assigned(*first), ElementsAre("words-0", "words-1"));
  EXPECT_THAT(assigned(*second), ElementsAre("lines-0", "lines-1"));
}

TEST(ConsumerGroup, NewPartitionsAndTopicsAreSharedOut) {
  World w;
  w.create("lines", 2);
  const auto first = w.member({"lines", "later"});
  const auto second = w.member({"lines", "later"});
  w.settle({first.get(), second.get()});
  ASSERT_TRUE(w.log().admin().grow_topic("lines", 4).ok());
  w.create("later", 2);
  w.settle({first.get(), second.get()});
  EXPECT_EQ(first->assignment().size(), 3U);
  EXPECT_EQ(second->assignment().size(), 3U);
  ASSERT_TRUE(w.log().admin().delete_topic("lines").ok());
  w.settle({first.get(), second.get()});
  EXPECT_EQ(first->assignment().size(), 1U);
  EXPECT_EQ(second->assignment().size(), 1U);
  w.create("lines", 2);
  w.settle({first.get(), second.get()});
  EXPECT_EQ(first->assignment().size(), 2U);
  EXPECT_EQ(second->assignment().size(), 2U);
}

TEST(ConsumerGroup, WhoDoesNotPollLosesItsPartitionsAndCommitsNothingAnyMore) {
  World w;
  w.create("lines", 2);
  w.send({"a"}, at("lines", 0));
  w.send({"b"}, at("lines", 1));
  Listener heard;
  const auto slow = w.member({"lines"}, &heard);
  const auto good = w.member({"lines"});
  const Values read = w.settle({slow.get(), good.get()});
  EXPECT_THAT(read, UnorderedElementsAre("a", "b"));
  const auto own = slow->assignment();
  ASSERT_EQ(own.size(), 1U);
  w.send({"c"}, own[0]);
  EXPECT_EQ(poll(*slow), (Values{"c"}));
  heard.take();

  CapturedLog captured;
  w.clock().advance(std::chrono::minutes(4));
  poll(*good);
  w.clock().advance(std::chrono::minutes(2));  // slow: 6, good: 2
  const Values again = w.settle({good.get()});
  EXPECT_EQ(good->assignment().size(), 2U);
  EXPECT_EQ(again, (Values{"c"})) << "slow did not commit it";
  EXPECT_THAT(captured.text(), HasSubstr("max.poll.interval.ms"));

  const Status late = slow->commit({{own[0], {Offset(2), {}, ""}}});
  EXPECT_EQ(late.error().code(), Errc::kFenced) << late.error().to_string();
  EXPECT_EQ(w.committed("g", own[0]), 1);
  w.settle({slow.get(), good.get()});
  EXPECT_THAT(heard.take(),
              ElementsAre("lost " + own[0].to_string(), ::testing::StartsWith("assigned lines-")));
}

TEST(ConsumerGroup, AStaticMemberComesBackToItsPartitionsUnnoticed) {
  World w;
  w.create("lines", 4);
  Listener heard;
  const auto other = w.member({"lines"}, &heard, {}, "other");
  auto one = w.member({"lines"}, nullptr, {}, "one");
  w.settle({other.get(), one.get()});
  const auto before = assigned(*one);
  const std::int32_t generation = w.describe().generation;
  heard.take();
  ASSERT_TRUE(one->close().ok());
  w.clock().advance(std::chrono::seconds(30));
  w.settle({other.get()});
  one = w.member({"lines"}, nullptr, {}, "one");
  w.settle({other.get(), one.get()});

  EXPECT_EQ(assigned(*one), before);
  EXPECT_EQ(w.describe().generation, generation);
  EXPECT_THAT(heard.take(), IsEmpty());

  ASSERT_TRUE(one->close().ok());
  w.clock().advance(std::chrono::seconds(46));
  w.settle({other.get()});
  EXPECT_EQ(other->assignment().size(), 4U) << "session.timeout.ms has passed";
}

TEST(ConsumerGroup, AStaticMembersNamesakeTakesItsPlace) {
  World w;
  w.create("lines", 2);
  Listener heard;
  const auto first = w.member({"lines"}, &heard, {}, "one");
  w.settle({first.get()});
  const auto second = w.member({"lines"}, nullptr, {}, "one");
  w.settle({second.get()});
  EXPECT_EQ(second->assignment().size(), 2U);
  EXPECT_EQ(first->commit({{kLines, {Offset(0), {}, ""}}}).error().code(), Errc::kFenced);
  EXPECT_EQ(poll_error(*first), Errc::kFenced);
  EXPECT_THAT(heard.take(), ElementsAre("assigned lines-0 lines-1", "lost lines-0 lines-1"));
  EXPECT_EQ(poll_error(*first), Errc::kFenced) << "as long as it is open";
  w.settle({second.get()});
  EXPECT_EQ(second->assignment().size(), 2U);
}

TEST(ConsumerGroup, OnlyMembersCommitWhileThereAreSome) {
  World w;
  w.create();
  auto tool = w.open("g", "earliest");
  ASSERT_TRUE(tool->assign({kLines}).ok());
  EXPECT_TRUE(tool->commit({{kLines, {Offset(0), {}, ""}}}).ok()) << "the group is empty";
  EXPECT_EQ(tool->group_metadata()->generation, -1);
  const auto member = w.member();
  w.settle({member.get()});
  const Status refused = tool->commit({{kLines, {Offset(0), {}, ""}}});
  EXPECT_EQ(refused.error().code(), Errc::kFenced);
  EXPECT_THAT(refused.error().message(), HasSubstr("group g"));
  EXPECT_TRUE(member->commit({{kLines, {Offset(0), {}, ""}}}).ok());
  const GroupMetadata metadata = member->group_metadata().value();
  EXPECT_EQ(metadata.group_id, "g");
  EXPECT_EQ(metadata.generation, w.describe().generation);
  EXPECT_EQ(metadata.member_id, w.describe().members[0].member_id);
  ASSERT_TRUE(member->close().ok());
  EXPECT_TRUE(tool->commit({{kLines, {Offset(0), {}, ""}}}).ok());
}

TEST(ConsumerGroup, WhoSubscribedDoesNotPassForASimpleConsumer) {
  World w;
  w.create();
  const auto member = w.member();
  EXPECT_EQ(member->commit({{kLines, {Offset(0), {}, ""}}}).error().code(), Errc::kFenced)
      << "not joined yet";
  w.settle({member.get()});
  w.clock().advance(std::chrono::minutes(6));
  EXPECT_EQ(member->commit({{kLines, {Offset(0), {}, ""}}}).error().code(), Errc::kFenced);
}

// Between the join of the last member and the leader's assignment.
TEST(ConsumerGroup, WhoKeepsItsPartitionsCommitsWhileTheGroupRebalances) {
  for (const char* strategy : {"cooperative-sticky", "range"}) {
    SCOPED_TRACE(strategy);
    World w;
    w.create("lines", 4);
    const auto leader = w.member({"lines"}, nullptr, {strategy});
    w.settle({leader.get()});
    const auto follower = w.member({"lines"}, nullptr, {strategy});
    w.settle({leader.get(), follower.get()});
    const auto third = w.member({"lines"}, nullptr, {strategy});
    poll(*third);
    poll(*leader);
    poll(*follower);
    ASSERT_EQ(w.describe().state, "CompletingRebalance");
    const ConsumerOffsets first{{at("lines", 0), {Offset(0), {}, ""}}};
    const ConsumerOffsets last{{at("lines", 3), {Offset(0), {}, ""}}};
    if (std::string(strategy) == "range") {
      EXPECT_THAT(leader->assignment(), IsEmpty());
      EXPECT_EQ(leader->commit(first).error().code(), Errc::kTimedOut);
    } else {
      EXPECT_TRUE(leader->commit(first).ok());
      EXPECT_EQ(leader->commit(last).error().code(), Errc::kTimedOut) << "it has another's";
      EXPECT_TRUE(follower->commit(last).ok());
    }
    w.settle({leader.get(), follower.get(), third.get()});
    EXPECT_TRUE(third->commit({{third->assignment().at(0), {Offset(0), {}, ""}}}).ok());
  }
}

TEST(ConsumerGroup, MembersOfAProcessThatIsGoneHoldNobodyUp) {
  for (const bool power : {false, true}) {
    World w;
    w.create("lines", 2);
    w.send({"a"});
    {
      auto first = w.member();
      auto second = w.member();
      w.settle({first.get(), second.get()});
      w.send({"b"});
      power ? w.fixture().files->power_cut() : w.fixture().files->process_crash();
    }
    w.fixture().log.reset();
    w.fixture().open();
    const auto next = w.member();
    EXPECT_EQ(poll(*next), (Values{"b"})) << "a was committed when a partition moved";
    EXPECT_EQ(next->assignment().size(), 2U);
    EXPECT_EQ(w.describe().members.size(), 1U);
  }
}

std::uint64_t used_bytes(weir::testing::LogFixture& f) {
  const auto space = f.files->disk_space(".").value();
  return space.capacity_bytes - space.available_bytes;
}

TEST(ConsumerGroup, AFullDiskKeepsNobodyOut) {
  World w;
  w.create();
  w.send({"a"});
  w.commit("g", 0);
  w.fixture().files->set_capacity(used_bytes(w.fixture()));
  const auto member = w.member();
  EXPECT_EQ(w.settle({member.get()}), (Values{"a"})) << "the reserve is for that";
}

TEST(ConsumerGroup, AFullDiskWithoutAReserveIsToldAndGotOver) {
  World w;
  weir::testing::LogFixture& f = w.fixture();
  f.close();
  EmbeddedLogOptions options = f.options();
  options.disk_reserve_bytes = 0;
  f.log = EmbeddedLog::open("data", options).value();
  w.create();
  w.send({"a"});
  f.files->set_capacity(used_bytes(f));
  const auto member = w.member();
  const auto refused = member->poll(Duration::zero());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kNoSpace) << refused.error().to_string();
  f.files->set_capacity(UINT64_MAX);
  EXPECT_EQ(w.settle({member.get()}), (Values{"a"}));
}

// --- Nothing is lost, nothing doubled

class Rebalances : public ::testing::TestWithParam<const char*> {};

// Consumers come and go; offsets are committed only when partitions go.
TEST_P(Rebalances, GiveEveryRecordOnce) {
  const int seeds = weir::testing::rounds(5, 60);
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(static_cast<std::uint64_t>(seed));
    World w;
    w.create("lines", 5);
    w.create("words", 3);
    std::vector<std::unique_ptr<Consumer>> members;
    std::map<std::string, int> seen;
    int sent = 0;
    const auto read = [&](Consumer& consumer) {
      for (const std::string& value : poll(consumer)) {
        ++seen[value];
      }
    };
    for (int step = 0; step < 250; ++step) {
      const std::uint64_t what = rng.below(20);
      if (what == 0 && members.size() < 5) {
        members.push_back(w.member({"lines", "words"}, nullptr, {GetParam()}));
      } else if (what == 1 && members.size() > 1) {
        const auto gone = members.begin() + static_cast<std::ptrdiff_t>(rng.below(members.size()));
        ASSERT_TRUE((*gone)->close().ok());
        members.erase(gone);
      } else if (what == 2 && !members.empty()) {
        Consumer& changes = *members[rng.below(members.size())];
        ASSERT_TRUE(
            changes.subscribe(rng.chance(1, 2) ? Values{"lines"} : Values{"lines", "words"}).ok());
      } else if (what < 6) {
        const auto partition = static_cast<std::int32_t>(rng.below(8));
        w.send({std::to_string(sent++)},
               partition < 5 ? at("lines", partition) : at("words", partition - 5));
      } else if (!members.empty()) {
        read(*members[rng.below(members.size())]);
      }
      // No partition has two readers.
      std::set<TopicPartition> owned;
      for (const auto& one : members) {
        for (const TopicPartition& partition : one->assignment()) {
          ASSERT_TRUE(owned.insert(partition).second) << partition.to_string();
        }
      }
    }
    members.push_back(w.member({"lines", "words"}, nullptr, {GetParam()}));
    for (int round = 0; round < 40; ++round) {
      for (const auto& one : members) {
        read(*one);
      }
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(sent));
    for (const auto& [value, times] : seen) {
      EXPECT_EQ(times, 1) << value;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Rebalances,
                         ::testing::Values("range", "roundrobin", "cooperative-sticky"),
                         [](const auto& name) {
                           std::string text = name.param;
                           std::erase(text, '-');
                           return text;
                         });

// G2, G3 over power cuts: what was acknowledged is committed, by whoever was the owner, and the
// group goes on at once.
TEST_P(Rebalances, KeepAcknowledgedCommitsOverPowerCuts) {
  const int seeds = weir::testing::rounds(3, 100);
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(static_cast<std::uint64_t>(seed));
    World w;
    w.create("lines", 4);
    std::map<TopicPartition, std::int64_t> acknowledged;
    std::int32_t generation = 0;
    std::vector<std::unique_ptr<Consumer>> members;
    const auto check = [&] {
      for (const auto& [partition, offset] : acknowledged) {
        ASSERT_EQ(w.committed("g", partition), offset) << partition.to_string();
      }
    };
    for (int step = 0; step < 150; ++step) {
      const std::uint64_t what = rng.below(30);
      if (what == 0) {
        members.clear();
        w.fixture().cut_power();
        w.fixture().open();
        check();
      } else if (what < 3 && members.size() < 4) {
        ConsumerOptions with = w.options("g", "earliest");
        with.auto_commit = false;
        with.assignors = {GetParam()};
        members.push_back(w.open(with));
        ASSERT_TRUE(members.back()->subscribe({"lines"}).ok());
      } else if (what == 3 && members.size() > 1) {
        members.erase(members.begin() + static_cast<std::ptrdiff_t>(rng.below(members.size())));
      } else if (what < 10) {
        w.send({"x"}, at("lines", static_cast<std::int32_t>(rng.below(4))));
      } else if (!members.empty()) {
        Consumer& one = *members[rng.below(members.size())];
        poll(one);
        ConsumerOffsets positions;
        for (const TopicPartition& partition : one.assignment()) {
          if (const auto position = one.position(partition); position.ok()) {
            positions[partition] = {*position, kNoLeaderEpoch, ""};
          }
        }
        if (!positions.empty() && rng.chance(1, 2) && one.commit(positions).ok()) {
          const std::int32_t now = one.group_metadata()->generation;
          ASSERT_GE(now, generation) << "a commit of an old generation";
          generation = now;
          for (const auto& [partition, committed] : positions) {
            acknowledged[partition] = committed.offset.value();
          }
          check();
        }
      }
    }
  }
}

// On threads, with the log's own timers.
TEST(ConsumerGroup, ThreadsShareAndHandOver) {
  weir::testing::LogFixture f;
  EmbeddedLogOptions options = f.options();
  options.clock = nullptr;
  options.background = true;
  options.scrub_bytes_per_second = 0;
  f.log = EmbeddedLog::open("data", options).value();
  f.create("lines", 8);
  constexpr int kRecords = 800;
  constexpr int kThreads = 4;
  std::atomic<int> seen{0};
  std::array<std::atomic<int>, kRecords> times{};
  const auto run = [&](int index) {
    ConsumerOptions with;
    with.group_id = "g";
    with.auto_offset_reset = "earliest";
    with.poll_records_max = 7;
    auto consumer = Consumer::open(*f.log, with).value();
    EXPECT_TRUE(consumer->subscribe({"lines"}).ok());
    int own = 0;
    // Some leave before the end.
    const int enough = index == 0 ? kRecords : 60 * index;
    while (seen.load() < kRecords && (own < enough || index == 0)) {
      const auto records = consumer->poll(std::chrono::milliseconds(20));
      if (!records.ok()) {
        ADD_FAILURE() << records.error().to_string();
        break;
      }
      for (const auto& [partition, record] : *records) {
        ++times[static_cast<std::size_t>(std::stoi(std::string(record.value.view())))];
        ++seen;
        ++own;
      }
    }
    EXPECT_TRUE(consumer->close().ok());
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back(run, i);
  }
  for (int i = 0; i < kRecords; ++i) {
    f.send("lines", {std::to_string(i)}, i % 8);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (int i = 0; i < kRecords; ++i) {
    EXPECT_EQ(times[static_cast<std::size_t>(i)].load(), 1) << i;
  }
}

// --- An assignor of one's own

// Gives everything to the member whose user data is the largest number, and tells everybody.
class Greedy : public GroupAssignor {
 public:
  std::string name() const override { return "greedy"; }
  bool is_cooperative() const override { return false; }
  std::map<std::string, Assigned> assign(const std::map<std::string, std::int32_t>& topics,
                                         const std::vector<Member>& members) override {
    std::map<std::string, Assigned> result;
    std::string best;
    std::string best_data;
    for (const Member& member : members) {
      if (member.user_data >= best_data) {
        best = member.member_id;
        best_data = member.user_data;
      }
    }
    for (const Member& member : members) {
      result[member.member_id].user_data = "best is " + best_data;
    }
    for (const auto& [topic, count] : topics) {
      for (std::int32_t i = 0; i < count; ++i) {
        result[broken ? "stranger" : best].partitions.push_back({topic, PartitionId(i)});
      }
    }
    return result;
  }
  bool broken = false;
};

TEST(ConsumerGroup, CarriesUserDataToAnAssignorOfOnesOwn) {
  World w;
  w.create("lines", 2);
  Greedy greedy;
  GroupOptions options;
  options.assignor = &greedy;
  const auto one = w.log().make_group_member("g", options).value();
  const auto two = w.log().make_group_member("g", options).value();
  Listener heard_one;
  Listener heard_two;
  ASSERT_TRUE(one->join({"lines"}, "1", heard_one).ok());
  ASSERT_TRUE(two->join({"lines"}, "2", heard_two).ok());
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(one->poll().ok());
    ASSERT_TRUE(two->poll().ok());
  }
  EXPECT_EQ(one->assigned_user_data(), "best is 2");
  EXPECT_EQ(two->assigned_user_data(), "best is 2");
  EXPECT_THAT(heard_one.take(), ElementsAre("assigned lines-0 lines-1", "revoked lines-0 lines-1"));
  EXPECT_THAT(heard_two.take(), ElementsAre("assigned lines-0 lines-1"));

  greedy.broken = true;
  ASSERT_TRUE(two->leave().ok());
  const Status refused = one->poll();
  EXPECT_EQ(refused.error().code(), Errc::kInvalidArgument);
  EXPECT_THAT(refused.error().message(), HasSubstr("stranger"));
  greedy.broken = false;
  ASSERT_TRUE(one->poll().ok());
  EXPECT_THAT(heard_one.take(), ElementsAre("assigned lines-0 lines-1"));
}

// --- As a tool sees it

TEST(ConsumerGroup, IsDescribedWithItsMembers) {
  World w;
  w.create("lines", 2);
  EXPECT_EQ(w.log().admin().describe_group("g").error().code(), Errc::kNotFound);
  const auto one = w.member({"lines"}, nullptr, {}, "one");
  w.settle({one.get()});
  const auto reader = w.fixture().open_one(true);
  for (Admin* admin : {&w.log().admin(), &reader->admin()}) {
    const GroupDescription group = admin->describe_group("g").value();
    EXPECT_EQ(group.state, "Stable");
    EXPECT_EQ(group.protocol_type, "consumer");
    EXPECT_EQ(group.assignor, "cooperative-sticky");
    EXPECT_EQ(group.generation, 1);
    ASSERT_EQ(group.members.size(), 1U);
    EXPECT_EQ(group.members[0].instance_id, "one");
    EXPECT_EQ(group.members[0].client_id, "weir");
    EXPECT_THAT(group.members[0].partitions, ElementsAre(at("lines", 0), at("lines", 1)));
    EXPECT_THAT(admin->list_groups().value(), ElementsAre("g")) << "also without offsets";
  }
}

TEST(ConsumerGroup, IsNotDeletedWhileItHasMembers) {
  World w;
  w.create("lines", 2);
  w.create("words");
  w.commit("g", 1);
  const std::pair<TopicPartition, CommittedOffset> other{at("words", 0), {Offset(0), {}, ""}};
  ASSERT_TRUE(w.log().make_group("g").value()->commit({&other, 1}).ok());
  auto one = w.member();
  w.settle({one.get()});
  Admin& admin = w.log().admin();
  EXPECT_EQ(admin.delete_group("g").error().code(), Errc::kLocked);
  const TopicPartition both[] = {at("words", 0), at("lines", 0)};
  const Status refused = admin.delete_group_offsets("g", both);
  EXPECT_EQ(refused.error().code(), Errc::kLocked);
  EXPECT_THAT(refused.error().message(), HasSubstr("topic lines"));
  EXPECT_EQ(admin.group_offsets("g")->size(), 2U) << "all or nothing";
  ASSERT_TRUE(admin.delete_group_offsets("g", {both, 1}).ok()) << "nobody subscribes to words";
  ASSERT_TRUE(one->close().ok());
  one.reset();  // before its log
  ASSERT_TRUE(admin.delete_group("g").ok());
  EXPECT_EQ(admin.delete_group("g").error().code(), Errc::kNotFound);
  EXPECT_THAT(admin.list_groups().value(), IsEmpty());
  w.fixture().cut_power();
  w.fixture().open();
  EXPECT_THAT(w.log().admin().list_groups().value(), IsEmpty());
  EXPECT_EQ(w.log().admin().describe_group("g").error().code(), Errc::kNotFound);
  // And begins anew.
  const auto again = w.member();
  w.settle({again.get()});
  EXPECT_EQ(w.describe().generation, 1);
}

TEST(ConsumerGroup, OffsetsThatNobodyUsesExpireAloud) {
  World w;
  w.create("lines", 1);
  w.send({"a"});
  {
    const auto one = w.member();
    EXPECT_EQ(w.settle({one.get()}), (Values{"a"}));
    EXPECT_TRUE(one->commit().ok());
    w.clock().advance(std::chrono::hours(24 * 30));
    EXPECT_EQ(w.fixture().log->expire_offsets().value(), 0U) << "it has a member";
    w.settle({one.get()});
    ASSERT_TRUE(one->close().ok());
  }
  w.clock().advance(std::chrono::hours(24 * 7) - std::chrono::minutes(1));
  EXPECT_EQ(w.fixture().log->expire_offsets().value(), 0U);
  w.clock().advance(std::chrono::minutes(1));
  CapturedLog captured;
  EXPECT_EQ(w.fixture().log->expire_offsets().value(), 1U);
  EXPECT_THAT(captured.text(), HasSubstr("committed offsets expired and were deleted group=g"));
  EXPECT_EQ(w.committed("g"), -1);
  EXPECT_EQ(w.log().admin().describe_group("g").error().code(), Errc::kNotFound);
  w.fixture().cut_power();
  w.fixture().open();
  EXPECT_EQ(w.committed("g"), -1);
}

TEST(ConsumerGroup, OffsetsOfASimpleConsumerExpireOnlyWhenItIsGone) {
  World w;
  w.create("lines", 2);
  auto simple = w.log().make_group("g").value();
  const std::pair<TopicPartition, CommittedOffset> idle{at("lines", 0), {Offset(0), {}, ""}};
  const std::pair<TopicPartition, CommittedOffset> busy{at("lines", 1), {Offset(0), {}, ""}};
  ASSERT_TRUE(simple->commit({&idle, 1}).ok());
  w.clock().advance(std::chrono::hours(24 * 8));
  EXPECT_EQ(w.fixture().log->expire_offsets().value(), 0U) << "it is open";
  ASSERT_TRUE(simple->commit({&busy, 1}).ok());
  simple.reset();
  EXPECT_EQ(w.fixture().log->expire_offsets().value(), 0U) << "the group is in use";
  w.clock().advance(std::chrono::hours(24 * 7));
  EXPECT_EQ(w.fixture().log->expire_offsets().value(), 2U);
}

}  // namespace
}  // namespace weir::log
