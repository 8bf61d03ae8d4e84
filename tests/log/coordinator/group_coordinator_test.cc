// Cases worked out by hand from Kafka's rules (reference K 2.7, 2.8; GroupMetadataManager).
#include "tests/log/coordinator/group_world.h"

#include <gmock/gmock.h>

namespace weir::log::testing {
namespace {

using ::testing::ElementsAre;

TEST(GroupJoin, AFirstMemberOfANewGroupWaitsForTheInitialDelay) {
  GroupConfig config;
  config.initial_delay_ms = 3'000;
  GroupWorld w(config);

  const RequestToken first = w.join(GroupWorld::consumer());
  EXPECT_EQ(w.state(), GroupState::kPreparingRebalance);
  ASSERT_EQ(w.history.size(), 1U) << "a group's first record is one of generation 0";
  EXPECT_EQ(w.history[0].generation, 0);
  EXPECT_TRUE(w.history[0].members.empty());
  w.advance(2'999);
  EXPECT_FALSE(w.answered(first));
  const RequestToken second = w.join(GroupWorld::consumer());
  w.advance(1);
  EXPECT_FALSE(w.answered(first)) << "a member came, so the delay is prolonged";
  w.advance(2'999);
  EXPECT_FALSE(w.answered(first));
  w.advance(1);

  ASSERT_TRUE(w.answered(first));
  const JoinGroupAnswer& leader = w.joins[first];
  EXPECT_EQ(leader.error, GroupError::kNone);
  EXPECT_EQ(leader.generation, 1);
  EXPECT_EQ(leader.protocol, "range");
  EXPECT_EQ(leader.protocol_type, "consumer");
  EXPECT_EQ(leader.leader, leader.member_id);
  EXPECT_EQ(leader.members.size(), 2U);
  EXPECT_EQ(leader.members[0].metadata, GroupWorld::subscription({"t"}));
  const JoinGroupAnswer& follower = w.joins[second];
  EXPECT_EQ(follower.leader, leader.member_id);
  EXPECT_TRUE(follower.members.empty());
  EXPECT_EQ(w.state(), GroupState::kCompletingRebalance);
}

TEST(GroupJoin, TheInitialDelayEndsWithTheRebalanceTimeout) {
  GroupConfig config;
  config.initial_delay_ms = 3'000;
  GroupWorld w(config);
  JoinGroupRequest request = GroupWorld::consumer();
  request.rebalance_timeout_ms = 7'000;  // so: 3 s, 3 s, 1 s
  const RequestToken first = w.join(request);
  for (int i = 0; i < 6; ++i) {
    w.advance(1'000);
    EXPECT_FALSE(w.answered(first)) << i;
    w.join(request);
  }
  w.advance(1'000);
  EXPECT_TRUE(w.answered(first));
}

TEST(GroupJoin, RefusesWhatKafkaRefuses) {
  GroupWorld w;
  JoinGroupRequest request = GroupWorld::consumer("nobody");
  EXPECT_EQ(w.joins[w.join(request)].error, GroupError::kUnknownMemberId);
  request = GroupWorld::consumer();
  request.group.clear();
  EXPECT_EQ(w.joins[w.join(request)].error, GroupError::kInvalidGroupId);
  request = GroupWorld::consumer();
  request.session_timeout_ms = 5'999;
  EXPECT_EQ(w.joins[w.join(request)].error, GroupError::kInvalidSessionTimeout);
  request.session_timeout_ms = 1'800'001;
  EXPECT_EQ(w.joins[w.join(request)].error, GroupError::kInvalidSessionTimeout);
  request = GroupWorld::consumer();
  request.protocols.clear();
  EXPECT_EQ(w.joins[w.join(request)].error, GroupError::kInconsistentGroupProtocol);
  EXPECT_EQ(w.state(), GroupState::kDead) << "nothing was made";

  w.stable(1);
  request = GroupWorld::consumer();
  request.protocol_type = "connect";
  EXPECT_EQ(w.joins[w.join(request)].error, GroupError::kInconsistentGroupProtocol);
  request = GroupWorld::consumer();
  request.protocols = {{"roundrobin", "x"}};
  EXPECT_EQ(w.joins[w.join(request)].error, GroupError::kInconsistentGroupProtocol);
  EXPECT_EQ(w.joins[w.join(GroupWorld::consumer("nobody"))].error, GroupError::kUnknownMemberId);
  EXPECT_EQ(w.state(), GroupState::kStable);
}

TEST(GroupJoin, ANewMemberIsGivenAnIdFirst) {
  GroupWorld w;
  JoinGroupRequest request = GroupWorld::consumer();
  request.requires_known_id = true;
  const JoinGroupAnswer asked = w.joins[w.join(request)];
  EXPECT_EQ(asked.error, GroupError::kMemberIdRequired);
  EXPECT_EQ(asked.member_id.substr(0, 2), "c-");
  EXPECT_EQ(w.state(), GroupState::kEmpty);
  request.member_id = asked.member_id;
  const RequestToken token = w.join(request);
  w.advance(0);
  EXPECT_EQ(w.joins[token].error, GroupError::kNone);
  EXPECT_EQ(w.joins[token].member_id, asked.member_id);
}

TEST(GroupJoin, AnIdThatNobodyUsesIsForgottenAfterTheSessionTimeout) {
  GroupWorld w;
  const auto ids = w.stable(1);
  JoinGroupRequest request = GroupWorld::consumer();
  request.requires_known_id = true;
  request.session_timeout_ms = 10'000;
  const std::string pending = w.joins[w.join(request)].member_id;
  const RequestToken leader = w.join(GroupWorld::consumer(ids[0]));
  EXPECT_FALSE(w.answered(leader)) << "the one that has an id is waited for";
  w.advance(9'999);
  EXPECT_FALSE(w.answered(leader));
  w.advance(1);
  EXPECT_TRUE(w.answered(leader));
  request.member_id = pending;
  EXPECT_EQ(w.joins[w.join(request)].error, GroupError::kUnknownMemberId);
}

TEST(GroupJoin, TheProtocolIsVotedFor) {
  GroupWorld w;
  JoinGroupRequest one = GroupWorld::consumer();
  one.protocols = {{"a", ""}, {"b", ""}, {"c", ""}};
  JoinGroupRequest two = GroupWorld::consumer();
  two.protocols = {{"x", ""}, {"c", ""}, {"b", ""}};
  JoinGroupRequest three = two;
  std::vector<RequestToken> tokens = {w.join(one), w.join(two), w.join(three)};
  w.advance(0);
  // Shared are b and c; one votes b, the others c.
  for (const RequestToken token : tokens) {
    EXPECT_EQ(w.joins[token].protocol, "c");
  }
}

TEST(GroupJoin, AtATieTheLeaderIsFollowed) {
  GroupWorld w;
  JoinGroupRequest one = GroupWorld::consumer();
  one.protocols = {{"z", ""}, {"a", ""}};
  JoinGroupRequest two = GroupWorld::consumer();
  two.protocols = {{"a", ""}, {"z", ""}};
  const RequestToken first = w.join(one);
  w.join(two);
  w.advance(0);
  EXPECT_EQ(w.joins[first].protocol, "z");
}

TEST(GroupJoin, AFollowerWithoutChangeHearsTheGenerationAgainAndALeaderMakesANewOne) {
  GroupWorld w;
  const auto ids = w.stable(2);
  const std::string leader = w.snapshot().leader;
  const std::string follower = ids[0] == leader ? ids[1] : ids[0];
  const std::int32_t generation = w.snapshot().generation;

  const JoinGroupAnswer again = w.joins[w.join(GroupWorld::consumer(follower))];
  EXPECT_EQ(again.error, GroupError::kNone);
  EXPECT_EQ(again.generation, generation);
  EXPECT_EQ(w.state(), GroupState::kStable);

  const RequestToken forced = w.join(GroupWorld::consumer(leader));
  EXPECT_FALSE(w.answered(forced));
  EXPECT_EQ(w.state(), GroupState::kPreparingRebalance);
  const RequestToken other = w.join(GroupWorld::consumer(follower));
  EXPECT_EQ(w.joins[forced].generation, generation + 1);
  EXPECT_EQ(w.joins[other].generation, generation + 1);
}

TEST(GroupJoin, AChangedSubscriptionMakesARebalance) {
  GroupWorld w;
  const auto ids = w.stable(2);
  const std::string follower = w.snapshot().leader == ids[0] ? ids[1] : ids[0];
  JoinGroupRequest request = GroupWorld::consumer(follower);
  request.protocols[0].metadata = GroupWorld::subscription({"t", "u"});
  w.join(request);
  EXPECT_EQ(w.state(), GroupState::kPreparingRebalance);
}

TEST(GroupJoin, WhoMissedTheAnswerHearsItAgain) {
  GroupWorld w;
  const auto ids = w.joined(2);
  const GroupSnapshot at = w.snapshot();
  EXPECT_EQ(at.state, GroupState::kCompletingRebalance);
  for (const std::string& id : ids) {
    const JoinGroupAnswer again = w.joins[w.join(GroupWorld::consumer(id))];
    EXPECT_EQ(again.generation, at.generation);
    EXPECT_EQ(again.members.size(), id == at.leader ? 2U : 0U);
  }
  EXPECT_EQ(w.snapshot().generation, at.generation);
}

TEST(GroupJoin, WhoDoesNotRejoinInTimeIsRemoved) {
  GroupWorld w;
  const auto ids = w.stable(2);
  const RequestToken newcomer = w.join(GroupWorld::consumer());
  EXPECT_EQ(w.heartbeat(ids[0], w.snapshot().generation), GroupError::kRebalanceInProgress);
  const RequestToken first = w.join(GroupWorld::consumer(ids[0]));
  // Heartbeats keep the session, but not the place in the rebalance.
  for (int i = 0; i < 5; ++i) {
    w.advance(10'000);
    EXPECT_EQ(w.heartbeat(ids[1], w.snapshot().generation), GroupError::kRebalanceInProgress);
    EXPECT_FALSE(w.answered(first));
  }
  w.advance(10'000);
  EXPECT_TRUE(w.answered(first));
  EXPECT_TRUE(w.answered(newcomer));
  EXPECT_EQ(w.snapshot().members.size(), 2U);
  EXPECT_EQ(w.heartbeat(ids[1], w.snapshot().generation), GroupError::kUnknownMemberId);
  EXPECT_EQ(w.commit(ids[1], w.snapshot().generation - 1), GroupError::kUnknownMemberId);
}

TEST(GroupJoin, AParkedJoinDoesNotExpireButANewMembersDoes) {
  GroupWorld w;
  const auto ids = w.stable(2);
  JoinGroupRequest slow = GroupWorld::consumer(ids[0]);
  slow.rebalance_timeout_ms = 1'000'000;
  const RequestToken parked = w.join(slow);  // leader or changed: a rebalance
  if (w.answered(parked)) {
    GTEST_SKIP() << "the follower came first";
  }
  const RequestToken fresh = w.join(GroupWorld::consumer());
  for (int i = 0; i < 30; ++i) {
    w.advance(10'000);
    w.heartbeat(ids[1], w.snapshot().generation);
  }
  EXPECT_FALSE(w.answered(parked)) << "45 s of session have passed, but it is parked";
  ASSERT_TRUE(w.answered(fresh)) << "300 s: whoever asked is gone";
  EXPECT_EQ(w.joins[fresh].error, GroupError::kUnknownMemberId);
}

TEST(GroupJoin, ASecondRequestReplacesTheParkedOne) {
  GroupWorld w;
  const auto ids = w.stable(2);
  const RequestToken one = w.join(GroupWorld::consumer(w.snapshot().leader));
  const RequestToken two = w.join(GroupWorld::consumer(w.snapshot().leader));
  EXPECT_EQ(w.joins[one].error, GroupError::kRebalanceInProgress);
  EXPECT_FALSE(w.answered(two));
}

TEST(GroupJoin, TheGroupHasAMaximalSize) {
  GroupConfig config = GroupWorld::no_delay();
  config.members_max = 2;
  GroupWorld w(config);
  const auto ids = w.stable(2);
  EXPECT_EQ(w.joins[w.join(GroupWorld::consumer())].error, GroupError::kGroupMaxSizeReached);
  EXPECT_EQ(w.state(), GroupState::kStable);
  JoinGroupRequest named = GroupWorld::consumer();
  named.requires_known_id = true;
  EXPECT_EQ(w.joins[w.join(named)].error, GroupError::kGroupMaxSizeReached);
  EXPECT_EQ(w.leave(ids[0]), GroupError::kNone);
  EXPECT_FALSE(w.answered(w.join(GroupWorld::consumer())));
}

TEST(GroupSync, FollowersWaitForTheLeaderAndTheLeaderForTheDisk) {
  GroupWorld w;
  const auto ids = w.joined(2);
  const GroupSnapshot at = w.snapshot();
  const std::string follower = at.leader == ids[0] ? ids[1] : ids[0];
  const RequestToken waiting = w.sync(follower, at.generation);
  EXPECT_FALSE(w.answered(waiting));
  w.hold_appends = true;
  const RequestToken leading =
      w.sync(at.leader, at.generation, {{at.leader, "L"}, {follower, "F"}, {"ghost", "G"}});
  EXPECT_FALSE(w.answered(waiting));
  EXPECT_FALSE(w.answered(leading));
  ASSERT_EQ(w.held(), 1U);
  w.finish_append(true);

  EXPECT_EQ(w.syncs[waiting].assignment, "F");
  EXPECT_EQ(w.syncs[leading].assignment, "L");
  EXPECT_EQ(w.syncs[leading].protocol, "range");
  EXPECT_EQ(w.state(), GroupState::kStable);
  const GroupValue& record = w.stored.at("g");
  EXPECT_EQ(record.generation, at.generation);
  EXPECT_EQ(record.leader, at.leader);
  EXPECT_EQ(record.protocol, "range");
  ASSERT_EQ(record.members.size(), 2U);
  EXPECT_EQ(record.members[0].client_host, "/h");
  EXPECT_EQ(record.members[0].rebalance_timeout_ms, 60'000);
}

TEST(GroupSync, AMemberThatTheLeaderLeftOutGetsNothingAndALateOneItsOwn) {
  GroupWorld w;
  const auto ids = w.joined(3);
  const GroupSnapshot at = w.snapshot();
  std::vector<std::string> followers;
  for (const std::string& id : ids) {
    if (id != at.leader) {
      followers.push_back(id);
    }
  }
  const RequestToken left_out = w.sync(followers[0], at.generation);
  w.sync(at.leader, at.generation, {{at.leader, "L"}, {followers[1], "late"}});
  EXPECT_EQ(w.syncs[left_out].error, GroupError::kNone);
  EXPECT_EQ(w.syncs[left_out].assignment, "");
  const RequestToken late = w.sync(followers[1], at.generation);
  EXPECT_EQ(w.syncs[late].assignment, "late");
}

TEST(GroupSync, ARecordThatCannotBeWrittenMakesEverybodyJoinAgain) {
  GroupWorld w;
  const auto ids = w.joined(1);
  w.hold_appends = true;
  const RequestToken leading = w.sync(ids[0], 1, {{ids[0], "L"}});
  w.finish_append(false);
  EXPECT_EQ(w.syncs[leading].error, GroupError::kCoordinatorNotAvailable);
  EXPECT_EQ(w.state(), GroupState::kPreparingRebalance);
  const RequestToken again = w.join(GroupWorld::consumer(ids[0]));
  EXPECT_EQ(w.joins[again].generation, 2);
}

TEST(GroupSync, RefusesWhatKafkaRefuses) {
  GroupWorld w;
  EXPECT_EQ(w.syncs[w.sync("nobody", 1)].error, GroupError::kUnknownMemberId);
  const auto ids = w.joined(1);
  EXPECT_EQ(w.syncs[w.sync("nobody", 1)].error, GroupError::kUnknownMemberId);
  EXPECT_EQ(w.syncs[w.sync(ids[0], 2)].error, GroupError::kIllegalGeneration);
  SyncGroupRequest request;
  request.group = "g";
  request.member_id = ids[0];
  request.generation = 1;
  request.protocol = "roundrobin";
  GroupEffects out;
  w.coordinator->sync(request, 99, w.now(), out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(std::get<AnswerSync>(out[0]).answer.error, GroupError::kInconsistentGroupProtocol);
  w.sync(ids[0], 1, {{ids[0], "L"}});
  w.join(GroupWorld::consumer());
  EXPECT_EQ(w.syncs[w.sync(ids[0], 1)].error, GroupError::kRebalanceInProgress);
}

TEST(GroupSync, ARebalanceAnswersTheParkedOnes) {
  GroupWorld w;
  const auto ids = w.joined(2);
  const GroupSnapshot at = w.snapshot();
  const std::string follower = at.leader == ids[0] ? ids[1] : ids[0];
  const RequestToken parked = w.sync(follower, at.generation);
  w.join(GroupWorld::consumer());
  EXPECT_EQ(w.syncs[parked].error, GroupError::kRebalanceInProgress);
}

TEST(GroupSync, WhoNeverSyncsIsRemovedAfterTheRebalanceTimeout) {
  GroupWorld w;
  const auto ids = w.joined(2);
  const GroupSnapshot at = w.snapshot();
  const std::string follower = at.leader == ids[0] ? ids[1] : ids[0];
  w.sync(at.leader, at.generation, {{at.leader, "L"}});
  EXPECT_EQ(w.state(), GroupState::kStable);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(w.heartbeat(follower, at.generation), GroupError::kNone);
    EXPECT_EQ(w.heartbeat(at.leader, at.generation), GroupError::kNone);
    w.advance(10'000);
  }
  EXPECT_EQ(w.heartbeat(follower, at.generation), GroupError::kUnknownMemberId);
  EXPECT_EQ(w.heartbeat(at.leader, at.generation), GroupError::kRebalanceInProgress);
}

TEST(GroupHeartbeat, AnswersByState) {
  GroupWorld w;
  EXPECT_EQ(w.heartbeat("nobody", 1), GroupError::kUnknownMemberId);
  const auto ids = w.joined(1);
  EXPECT_EQ(w.heartbeat(ids[0], 1), GroupError::kNone) << "CompletingRebalance";
  EXPECT_EQ(w.heartbeat(ids[0], 2), GroupError::kIllegalGeneration);
  w.sync(ids[0], 1, {{ids[0], "L"}});
  EXPECT_EQ(w.heartbeat(ids[0], 1), GroupError::kNone);
  w.join(GroupWorld::consumer());
  EXPECT_EQ(w.heartbeat(ids[0], 1), GroupError::kRebalanceInProgress);
}

TEST(GroupHeartbeat, WithoutOneTheMemberIsRemovedAfterItsSession) {
  GroupWorld w;
  const auto ids = w.stable(2);
  const std::int32_t generation = w.snapshot().generation;
  w.advance(44'999);
  EXPECT_EQ(w.heartbeat(ids[0], generation), GroupError::kNone);
  w.advance(1);
  EXPECT_EQ(w.state(), GroupState::kPreparingRebalance);
  EXPECT_EQ(w.heartbeat(ids[1], generation), GroupError::kUnknownMemberId);
  EXPECT_EQ(w.joins[w.join(GroupWorld::consumer(ids[0]))].generation, generation + 1);
}

TEST(GroupLeave, TheLastMemberLeavesAnEmptyGroupOnDisk) {
  GroupWorld w;
  const auto ids = w.stable(1);
  EXPECT_EQ(w.leave(ids[0]), GroupError::kNone);
  EXPECT_EQ(w.leave(ids[0]), GroupError::kUnknownMemberId);
  EXPECT_EQ(w.state(), GroupState::kEmpty);
  EXPECT_EQ(w.snapshot().protocol_type, "consumer");
  const GroupValue& record = w.stored.at("g");
  EXPECT_EQ(record.generation, 2);
  EXPECT_EQ(record.protocol, std::nullopt);
  EXPECT_EQ(record.leader, std::nullopt);
  EXPECT_TRUE(record.members.empty());
  EXPECT_EQ(record.state_timestamp, w.now().wall);
}

TEST(GroupLeave, TakesSeveralMembersAndStaticOnesByInstanceId) {
  GroupWorld w;
  const RequestToken one = w.join(GroupWorld::consumer("", "one"));
  const RequestToken two = w.join(GroupWorld::consumer("", "two"));
  const RequestToken three = w.join(GroupWorld::consumer());
  w.advance(0);
  const LeavingMember leaving[] = {{"", "one"},
                                   {w.joins[two].member_id, "one"},
                                   {w.joins[three].member_id, std::nullopt},
                                   {"", "nobody"},
                                   {"", std::nullopt}};
  GroupEffects out;
  EXPECT_THAT(w.coordinator->leave("g", leaving, w.now(), out),
              ElementsAre(GroupError::kNone, GroupError::kUnknownMemberId, GroupError::kNone,
                          GroupError::kUnknownMemberId, GroupError::kUnknownMemberId));
  EXPECT_EQ(w.snapshot().members.size(), 1U);
  EXPECT_EQ(w.coordinator->leave("nothing", leaving, w.now(), out)[0],
            GroupError::kUnknownMemberId);
  (void)one;
}

TEST(GroupLeave, AParkedMemberIsAnswered) {
  GroupWorld w;
  const auto ids = w.joined(2);
  const GroupSnapshot at = w.snapshot();
  const std::string follower = at.leader == ids[0] ? ids[1] : ids[0];
  const RequestToken parked = w.sync(follower, at.generation);
  w.leave(follower);
  EXPECT_EQ(w.syncs[parked].error, GroupError::kUnknownMemberId);
}

// --- Static members

TEST(GroupStatic, ARestartedMemberKeepsItsPlaceWithoutARebalance) {
  GroupWorld w;
  const RequestToken token = w.join(GroupWorld::consumer("", "one"));
  w.advance(0);
  const std::string old_id = w.joins[token].member_id;
  w.sync(old_id, 1, {{old_id, "A"}}, "one");

  JoinGroupRequest request = GroupWorld::consumer("", "one");
  request.client_id = "other";
  request.session_timeout_ms = 20'000;
  request.rebalance_timeout_ms = 9'000;
  w.hold_appends = true;
  const RequestToken back = w.join(request);
  EXPECT_FALSE(w.answered(back)) << "the new member id must be durable first";
  w.finish_append(true);
  const JoinGroupAnswer answer = w.joins[back];
  EXPECT_EQ(answer.error, GroupError::kNone);
  EXPECT_EQ(answer.generation, 1);
  EXPECT_NE(answer.member_id, old_id);
  EXPECT_EQ(answer.leader, answer.member_id);
  EXPECT_TRUE(answer.skip_assignment);
  EXPECT_EQ(answer.members.size(), 1U);
  EXPECT_EQ(w.syncs[w.sync(answer.member_id, 1, {}, "one")].assignment, "A");
  EXPECT_EQ(w.state(), GroupState::kStable);
  // KAFKA-14009: what else it says counts too.
  const GroupMemberValue& member = w.stored.at("g").members[0];
  EXPECT_EQ(member.client_id, "other");
  EXPECT_EQ(member.session_timeout_ms, 20'000);
  EXPECT_EQ(member.rebalance_timeout_ms, 9'000);
  EXPECT_EQ(member.assignment, "A");

  // The old one is fenced wherever it turns up.
  EXPECT_EQ(w.heartbeat(old_id, 1, "one"), GroupError::kFencedInstanceId);
  EXPECT_EQ(w.commit(old_id, 1, "one"), GroupError::kFencedInstanceId);
  EXPECT_EQ(w.syncs[w.sync(old_id, 1, {}, "one")].error, GroupError::kFencedInstanceId);
  EXPECT_EQ(w.joins[w.join(GroupWorld::consumer(old_id, "one"))].error,
            GroupError::kFencedInstanceId);
  EXPECT_EQ(w.leave(old_id, "one"), GroupError::kFencedInstanceId);
  // And the session is that of the new one.
  w.advance(19'999);
  EXPECT_EQ(w.state(), GroupState::kStable);
  w.advance(1);
  EXPECT_EQ(w.snapshot().members.size(), 0U);
}

TEST(GroupStatic, AnOldClientDoesNotTakeItselfForTheLeader) {
  GroupWorld w;
  const RequestToken token = w.join(GroupWorld::consumer("", "one"));
  w.advance(0);
  const std::string old_id = w.joins[token].member_id;
  w.sync(old_id, 1, {{old_id, "A"}}, "one");
  JoinGroupRequest request = GroupWorld::consumer("", "one");
  request.can_skip_assignment = false;
  const JoinGroupAnswer answer = w.joins[w.join(request)];
  EXPECT_EQ(answer.leader, old_id);
  EXPECT_TRUE(answer.members.empty());
  EXPECT_FALSE(answer.skip_assignment);
}

TEST(GroupStatic, WhenItsNewIdCannotBeWrittenTheOldOneStays) {
  GroupWorld w;
  const RequestToken token = w.join(GroupWorld::consumer("", "one"));
  w.advance(0);
  const std::string old_id = w.joins[token].member_id;
  w.sync(old_id, 1, {{old_id, "A"}}, "one");
  w.hold_appends = true;
  const RequestToken back = w.join(GroupWorld::consumer("", "one"));
  w.finish_append(false);
  EXPECT_EQ(w.joins[back].error, GroupError::kCoordinatorNotAvailable);
  EXPECT_EQ(w.heartbeat(old_id, 1, "one"), GroupError::kNone);
  EXPECT_EQ(w.snapshot().members[0].assignment, "A");
  EXPECT_EQ(w.snapshot().leader, old_id);
}

TEST(GroupStatic, AnotherListOfTopicsMakesARebalance) {
  GroupWorld w;
  const RequestToken token = w.join(GroupWorld::consumer("", "one"));
  w.advance(0);
  const std::string old_id = w.joins[token].member_id;
  w.sync(old_id, 1, {{old_id, "A"}}, "one");
  JoinGroupRequest request = GroupWorld::consumer("", "one");
  request.protocols[0].metadata = GroupWorld::subscription({"u"});
  const RequestToken back = w.join(request);
  EXPECT_EQ(w.joins[back].generation, 2);
  EXPECT_EQ(w.state(), GroupState::kCompletingRebalance);
}

TEST(GroupStatic, OneThatIsAwayIsNotRemovedByARebalance) {
  GroupWorld w;
  JoinGroupRequest away = GroupWorld::consumer("", "away");
  away.session_timeout_ms = 600'000;
  const RequestToken one = w.join(away);
  const RequestToken two = w.join(GroupWorld::consumer());
  w.advance(0);
  const std::string leader = w.joins[one].leader;
  w.sync(leader, 1, {{w.joins[one].member_id, "A"}, {w.joins[two].member_id, "B"}},
         leader == w.joins[one].member_id ? std::optional<std::string>("away") : std::nullopt);
  w.sync(w.joins[one].member_id, 1, {}, "away");
  w.sync(w.joins[two].member_id, 1);
  ASSERT_EQ(w.state(), GroupState::kStable);
  // A newcomer, and the one with the instance id does not answer.
  const RequestToken three = w.join(GroupWorld::consumer());
  const RequestToken again = w.join(GroupWorld::consumer(w.joins[two].member_id));
  w.advance(60'000);
  EXPECT_EQ(w.joins[again].generation, 2);
  EXPECT_EQ(w.joins[three].generation, 2);
  EXPECT_EQ(w.snapshot().members.size(), 3U) << "it counts for its session";
  EXPECT_NE(w.joins[again].leader, w.joins[one].member_id);
}

TEST(GroupStatic, AParkedIncarnationIsFencedAtOnce) {
  GroupWorld w;
  const auto ids = w.stable(1);
  const RequestToken first = w.join(GroupWorld::consumer("", "one"));
  EXPECT_FALSE(w.answered(first));
  const RequestToken second = w.join(GroupWorld::consumer("", "one"));
  EXPECT_EQ(w.joins[first].error, GroupError::kFencedInstanceId);
  w.join(GroupWorld::consumer(ids[0]));
  EXPECT_EQ(w.joins[second].error, GroupError::kNone);
  EXPECT_EQ(w.snapshot().members.size(), 2U);
}

// --- Commits

TEST(GroupCommit, IsFencedByGenerationAndMember) {
  GroupWorld w;
  EXPECT_EQ(w.commit("m", 3), GroupError::kIllegalGeneration) << "no such group";
  EXPECT_EQ(w.commit("", -1), GroupError::kNone) << "makes the group known";
  EXPECT_EQ(w.state(), GroupState::kEmpty);
  EXPECT_EQ(w.snapshot().protocol_type, "");

  const auto ids = w.joined(1);
  EXPECT_EQ(w.commit(ids[0], 1), GroupError::kRebalanceInProgress) << "CompletingRebalance";
  w.sync(ids[0], 1, {{ids[0], "L"}});
  EXPECT_EQ(w.commit(ids[0], 1), GroupError::kNone);
  EXPECT_EQ(w.commit(ids[0], 0), GroupError::kIllegalGeneration);
  EXPECT_EQ(w.commit(ids[0], 2), GroupError::kIllegalGeneration);
  EXPECT_EQ(w.commit("other", 1), GroupError::kUnknownMemberId);
  EXPECT_EQ(w.commit("", -1), GroupError::kUnknownMemberId) << "a simple consumer beside members";
  EXPECT_EQ(w.commit("", -1, std::nullopt, true), GroupError::kNone) << "of a transaction";
  w.join(GroupWorld::consumer());
  EXPECT_EQ(w.commit(ids[0], 1), GroupError::kNone) << "PreparingRebalance: before it is revoked";
}

TEST(GroupCommit, KeepsTheSession) {
  GroupWorld w;
  const auto ids = w.stable(1);
  for (int i = 0; i < 5; ++i) {
    w.advance(40'000);
    EXPECT_EQ(w.commit(ids[0], 1), GroupError::kNone) << i;
  }
}

TEST(GroupDelete, OffsetsOfASubscribedTopicAndGroupsWithMembersStay) {
  GroupWorld w;
  EXPECT_EQ(w.coordinator->may_delete_offsets("g", "t"), GroupError::kGroupIdNotFound);
  GroupEffects out;
  EXPECT_EQ(w.coordinator->remove("g", out), GroupError::kGroupIdNotFound);
  const auto ids = w.stable(1);
  EXPECT_EQ(w.coordinator->may_delete_offsets("g", "t"), GroupError::kGroupSubscribedToTopic);
  EXPECT_EQ(w.coordinator->may_delete_offsets("g", "u"), GroupError::kNone);
  EXPECT_EQ(w.coordinator->remove("g", out), GroupError::kNonEmptyGroup);
  w.leave(ids[0]);
  EXPECT_EQ(w.coordinator->may_delete_offsets("g", "t"), GroupError::kNone);
  EXPECT_EQ(w.coordinator->remove("g", out), GroupError::kNone);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(std::get<AppendGroup>(out[0]).value, std::nullopt);
  EXPECT_EQ(w.state(), GroupState::kDead);
  // Its append is answered when nothing is there any more.
  w.coordinator->appended(std::get<AppendGroup>(out[0]).id, true, w.now(), out);
}

// --- Loading

TEST(GroupLoad, GoesOnWhereTheRecordSays) {
  GroupWorld w;
  const auto ids = w.stable(2);
  const GroupSnapshot before = w.snapshot();
  w.restart();
  const GroupSnapshot after = w.snapshot();
  EXPECT_EQ(after.state, GroupState::kStable);
  EXPECT_EQ(after.generation, before.generation);
  EXPECT_EQ(after.leader, before.leader);
  EXPECT_EQ(after.members, before.members);
  EXPECT_EQ(after.subscribed_topics, (std::set<std::string>{"t"}));
  EXPECT_EQ(w.heartbeat(ids[0], before.generation), GroupError::kNone);
  EXPECT_EQ(w.syncs[w.sync(ids[1], before.generation)].assignment, "a1");
  w.advance(45'000);
  EXPECT_EQ(w.snapshot().members.size(), 0U) << "sessions begin anew with the loading";
}

TEST(GroupLoad, UnloadingAnswersWhoIsParked) {
  GroupWorld w;
  const auto ids = w.joined(2);
  const GroupSnapshot at = w.snapshot();
  const std::string follower = at.leader == ids[0] ? ids[1] : ids[0];
  w.sync(follower, at.generation);
  w.join(GroupWorld::consumer(at.leader));
  GroupEffects out;
  w.coordinator->unload("g", out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(std::get<AnswerSync>(out[0]).answer.error, GroupError::kNotCoordinator);
  EXPECT_EQ(w.coordinator->next_deadline(), std::nullopt);
  EXPECT_TRUE(w.coordinator->groups().empty());
}

TEST(GroupNotes, TellWhyAMemberWasRemoved) {
  GroupWorld w;
  w.stable(1);
  w.notes.clear();
  w.advance(45'000);
  ASSERT_GE(w.notes.size(), 3U);
  EXPECT_EQ(w.notes[0].kind, GroupNote::Kind::kMemberRemoved);
  EXPECT_EQ(w.notes[0].detail, "its session timed out");
  EXPECT_EQ(w.notes[1].kind, GroupNote::Kind::kRebalance);
  EXPECT_EQ(w.notes[2].kind, GroupNote::Kind::kEmpty);
}

}  // namespace
}  // namespace weir::log::testing
