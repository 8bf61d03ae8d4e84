// The group coordinator under random clients, a network that delays, doubles and loses, timeouts,
// failing appends and crashes. What it may answer is told by ghosts: a small reference that knows
// only what was sent and what was answered before, nothing of the coordinator's inside.
#include "log/coordinator/group_coordinator.h"
#include "tests/support/size_of_run.h"

#include <weir/runtime/rng.h>

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <sstream>

namespace weir::log {
namespace {

constexpr int kPartitions = 8;
constexpr int kClients = 6;
constexpr int kStaticClients = 3;  // the first ones
constexpr std::int32_t kSessionMs = 6'000;
constexpr std::int32_t kRebalanceMs = 9'000;

std::uint64_t steps_wanted() {
  return weir::testing::rounds<std::uint64_t>(50'000, 1'200'000);
}

// Assignments of the model: the numbers of partitions as bytes.
std::set<int> numbers(const std::string& bytes) {
  std::set<int> result;
  for (const char c : bytes) {
    result.insert(static_cast<unsigned char>(c));
  }
  return result;
}

class Model {
 public:
  explicit Model(std::uint64_t seed) : rng_(seed) {
    config_.initial_delay_ms = 500;
    config_.members_max = kClients + 2;
    config_.new_member_timeout_ms = 20'000;
    restart();
  }

  void step() {
    ++steps;
    switch (rng_.below(20)) {
      case 0:
        advance(static_cast<std::int64_t>(rng_.below(rng_.chance(1, 6) ? 4'000 : 200)));
        break;
      case 1:
      case 2:
      case 3:
        finish_append(rng_.chance(9, 10));
        break;
      case 4:
        if (rng_.chance(1, 120)) {
          crash();
        }
        break;
      case 5:
      case 6:
      case 7:
      case 8:
      case 9:
      case 10:
        deliver();
        break;
      default:
        act(clients_[rng_.below(kClients)]);
    }
    check_state();
  }

  // Nothing is lost any more and everybody behaves: the group gets whole again.
  void calm() {
    network_.clear();
    calm_ = true;
    for (Client& client : clients_) {
      if (client.waits && !open_tokens_.contains(*client.waits)) {
        client.waits.reset();  // it was lost
        client.phase = Phase::kOut;
      }
    }
    for (int round = 0; round < 400 && !whole(); ++round) {
      while (!held_.empty()) {
        finish_append(true);
      }
      for (Client& client : clients_) {
        act(client);
        while (!network_.empty()) {
          deliver();
        }
      }
      advance(250);
    }
    ASSERT_TRUE(whole()) << describe();
    std::set<int> all;
    for (const Client& client : clients_) {
      for (const int number : client.owned) {
        ASSERT_TRUE(all.insert(number).second) << "partition twice: " << number;
      }
    }
    ASSERT_EQ(all.size(), static_cast<std::size_t>(kPartitions));
    ASSERT_TRUE(open_tokens_.empty()) << open_tokens_.size() << " requests never answered";
    calm_ = false;
  }

  void crash() {
    ++crashes;
    // What was handed to the disk may be there or not, in order.
    for (std::uint64_t left = rng_.below(held_.size() + 1); left > 0; --left) {
      store(held_.front());
      held_.pop_front();
    }
    restart();
  }

  std::uint64_t steps = 0, crashes = 0, commits = 0, refused_commits = 0, stable = 0,
                stale_syncs = 0;

 private:
  enum class Phase { kOut, kJoining, kJoined, kSyncing, kMember };
  struct Client {
    int index = 0;
    std::optional<std::string> instance;
    Phase phase = Phase::kOut;
    std::string member_id;
    std::int32_t generation = -1;
    bool leads = false;
    std::vector<std::string> members;  // when it leads
    std::set<int> owned;
    std::optional<RequestToken> waits;                      // for this answer alone
    std::deque<std::pair<std::string, std::int32_t>> past;  // identities it had
  };
  struct Message {
    enum class Kind { kJoin, kSync, kHeartbeat, kCommit, kLeave } kind{};
    int client = 0;
    RequestToken token = 0;
    JoinGroupRequest join;
    SyncGroupRequest sync;
    GroupIdentity who;
  };

  GroupTime now() const { return {MonotonicTime(std::chrono::milliseconds(time_ms_)), time_ms_}; }

  // --- The world around the coordinator

  void restart() {
    config_.member_id_seed = ++lives_;
    coordinator_ = std::make_unique<GroupCoordinator>(config_);
    held_.clear();
    open_tokens_.clear();
    GroupEffects out;
    life_generation_ = -1;
    requests_.clear();
    if (stored_) {
      life_generation_ = stored_->generation;
      for (const GroupMemberValue& member : stored_->members) {
        joined_.insert({member.member_id, stored_->generation});
        contact_[member.member_id] = time_ms_;
        identity_[member.member_id] = member.instance_id.value_or(member.member_id);
        if (member.instance_id) {
          incarnation_[*member.instance_id] = member.member_id;
        }
      }
      coordinator_->load("g", *stored_, now(), out);
      const GroupSnapshot at = coordinator_->snapshot("g");
      ASSERT_EQ(at.generation, stored_->generation);
      if (at.state == GroupState::kStable) {
        ASSERT_EQ(at.members, stored_->members);
      }
    }
    settle(out);
    for (Client& client : clients_) {
      client.waits.reset();
      if (client.phase == Phase::kJoining || client.phase == Phase::kSyncing) {
        client.phase = Phase::kOut;
      }
    }
    network_.clear();
  }

  void store(const AppendGroup& append) {
    stored_ = append.value
                  ? std::optional(decode_group_value(encode_group_value(*append.value)).value())
                  : std::nullopt;
  }

  void finish_append(bool durable) {
    if (held_.empty()) {
      return;
    }
    const AppendGroup append = std::move(held_.front());
    held_.pop_front();
    // A failure is an unknown outcome: the bytes may be there all the same.
    if (durable || rng_.chance(1, 2)) {
      store(append);
    }
    GroupEffects out;
    coordinator_->appended(append.id, durable, now(), out);
    settle(out);
  }

  void advance(std::int64_t ms) {
    time_ms_ += ms;
    GroupEffects out;
    coordinator_->tick(now(), out);
    ASSERT_FALSE(coordinator_->next_deadline() && *coordinator_->next_deadline() <= now().monotonic)
        << "a tick left something that is due";
    settle(out);
  }

  void settle(const GroupEffects& effects) {
    for (const GroupEffect& effect : effects) {
      if (const auto* join = std::get_if<AnswerJoin>(&effect)) {
        answered(join->token);
        joined(*join);
      } else if (const auto* sync = std::get_if<AnswerSync>(&effect)) {
        answered(sync->token);
        synced(*sync);
      } else if (const auto* append = std::get_if<AppendGroup>(&effect)) {
        held_.push_back(*append);
      } else {
        noted(std::get<GroupNote>(effect));
      }
    }
  }

  void answered(RequestToken token) {
    ASSERT_EQ(open_tokens_.erase(token), 1U) << "answered twice, or never asked: " << token;
  }

  // --- The ghosts

  void joined(const AnswerJoin& done) {
    const Message& asked = requests_.at(done.token);
    const JoinGroupAnswer& answer = done.answer;
    if (answer.error == GroupError::kNone) {
      // Generations never fall, and each has its own members.
      ASSERT_GE(answer.generation, life_generation_) << describe();
      life_generation_ = answer.generation;
      joined_.insert({answer.member_id, answer.generation});
      contact_[answer.member_id] = time_ms_;
      if (asked.join.instance_id) {
        incarnation_[*asked.join.instance_id] = answer.member_id;
      }
      identity_[answer.member_id] = asked.join.instance_id.value_or(answer.member_id);
    }
    Client& client = clients_[static_cast<std::size_t>(asked.client)];
    if (client.waits == done.token) {
      client.waits.reset();
      if (answer.error == GroupError::kNone) {
        client.phase = Phase::kJoined;
        client.member_id = answer.member_id;
        client.generation = answer.generation;
        client.leads = answer.leader == answer.member_id && !answer.skip_assignment;
        client.members.clear();
        for (const JoinedMember& member : answer.members) {
          client.members.push_back(member.member_id);
        }
      } else {
        client.phase = Phase::kOut;
        if (answer.error == GroupError::kMemberIdRequired) {
          client.member_id = answer.member_id;
        } else if (answer.error != GroupError::kRebalanceInProgress &&
                   answer.error != GroupError::kCoordinatorNotAvailable) {
          forget(client);
        }
      }
    }
    requests_.erase(done.token);
  }

  void synced(const AnswerSync& done) {
    const Message& asked = requests_.at(done.token);
    const SyncGroupAnswer& answer = done.answer;
    const std::string& member = asked.sync.member_id;
    if (answer.error == GroupError::kNone) {
      contact_[member] = time_ms_;
      ASSERT_EQ(asked.sync.generation, life_generation_) << "an old generation was answered";
      // G1: one owner a generation, over crashes and restarts of static members too.
      const std::string owner = identity_.contains(member) ? identity_[member] : member;
      for (const int number : numbers(answer.assignment)) {
        const auto [at, fresh] = owner_.insert({{asked.sync.generation, number}, owner});
        ASSERT_EQ(at->second, owner) << "partition " << number << " has two owners in generation "
                                     << asked.sync.generation << describe();
      }
      ASSERT_TRUE(stored_ && stored_->generation == asked.sync.generation)
          << "answered before it was durable";
    }
    Client& client = clients_[static_cast<std::size_t>(asked.client)];
    if (client.waits == done.token) {
      client.waits.reset();
      if (answer.error == GroupError::kNone) {
        client.phase = Phase::kMember;
        client.owned = numbers(answer.assignment);
        ++stable;
      } else {
        client.phase = Phase::kOut;
        if (answer.error != GroupError::kRebalanceInProgress &&
            answer.error != GroupError::kCoordinatorNotAvailable) {
          forget(client);
        }
      }
    }
    requests_.erase(done.token);
  }

  void noted(const GroupNote& note) {
    if (note.kind == GroupNote::Kind::kMemberRemoved && note.detail == "its session timed out") {
      // Nobody is thrown out who was heard in time.
      const std::int64_t silent = time_ms_ - contact_[note.member_id];
      ASSERT_GE(silent, kSessionMs) << note.member_id << describe();
    }
  }

  void committed(const GroupIdentity& who, GroupError heartbeat, GroupError commit) {
    // The two agree, and a commit is never taken from an old generation, of a stranger or of a
    // static member's former self.
    switch (heartbeat) {
      case GroupError::kNone:
        ASSERT_TRUE(commit == GroupError::kNone || commit == GroupError::kRebalanceInProgress);
        break;
      case GroupError::kRebalanceInProgress:
        ASSERT_EQ(commit, GroupError::kNone);
        break;
      default:
        if (coordinator_->snapshot("g").state == GroupState::kDead) {
          ASSERT_EQ(commit, GroupError::kIllegalGeneration);
        } else {
          ASSERT_EQ(commit, heartbeat);
        }
    }
    if (commit == GroupError::kNone) {
      ++commits;
      ASSERT_EQ(who.generation, life_generation_) << describe();
      ASSERT_TRUE(joined_.contains({who.member_id, who.generation})) << who.member_id;
      if (who.instance_id) {
        ASSERT_EQ(incarnation_[*who.instance_id], who.member_id);
      }
      contact_[who.member_id] = time_ms_;
    } else {
      ++refused_commits;
    }
  }

  void check_state() {
    const GroupSnapshot at = coordinator_->snapshot("g");
    switch (at.state) {
      case GroupState::kEmpty:
      case GroupState::kDead:
        ASSERT_TRUE(at.members.empty());
        break;
      case GroupState::kStable:
      case GroupState::kCompletingRebalance: {
        std::set<std::string> instances;
        bool has_leader = false;
        for (const GroupMemberValue& member : at.members) {
          has_leader = has_leader || member.member_id == at.leader;
          ASSERT_TRUE(!member.instance_id || instances.insert(*member.instance_id).second);
        }
        ASSERT_TRUE(has_leader);
        break;
      }
      case GroupState::kPreparingRebalance:
        break;
    }
    ASSERT_LE(at.members.size(), 2 * static_cast<std::size_t>(config_.members_max));
    ASSERT_GE(at.generation, std::max(0, life_generation_));
  }

  // --- The clients

  static void forget(Client& client) {
    if (!client.member_id.empty() && client.generation >= 0) {
      client.past.emplace_back(client.member_id, client.generation);
      if (client.past.size() > 4) {
        client.past.pop_front();
      }
    }
    client.member_id.clear();
    client.generation = -1;
    client.owned.clear();
    client.phase = Phase::kOut;
  }

  void send(Message message) {
    if (calm_ || !rng_.chance(1, 12)) {  // else it is lost, and with it the answer
      if (!calm_ && rng_.chance(1, 10)) {
        Message twice = message;
        twice.token = ++last_token_;
        network_.push_back(std::move(twice));
      }
      network_.push_back(std::move(message));
    }
  }

  Message message(Message::Kind kind, const Client& client) {
    Message message;
    message.kind = kind;
    message.client = client.index;
    message.token = ++last_token_;
    message.who = {"g", client.generation, client.member_id, client.instance};
    return message;
  }

  void act(Client& client) {
    if (!calm_ && rng_.chance(1, 60)) {  // restarts: a static member comes back under its name
      client.waits.reset();
      forget(client);
      return;
    }
    if (!calm_ && client.waits && rng_.chance(1, 25)) {  // gives up waiting and asks again
      client.waits.reset();
      client.phase = Phase::kOut;
    }
    if (client.waits) {
      return;
    }
    if (!calm_ && !client.past.empty() && rng_.chance(1, 20)) {  // an old self turns up
      Message old =
          message(rng_.chance(1, 2) ? Message::Kind::kCommit : Message::Kind::kHeartbeat, client);
      std::tie(old.who.member_id, old.who.generation) = client.past[rng_.below(client.past.size())];
      old.who.generation -= static_cast<std::int32_t>(rng_.below(2));
      send(std::move(old));
      return;
    }
    switch (client.phase) {
      case Phase::kOut:
        ask_to_join(client);
        return;
      case Phase::kJoined:
        ask_to_sync(client);
        return;
      case Phase::kMember:
        live(client);
        return;
      case Phase::kJoining:
      case Phase::kSyncing:
        client.phase = Phase::kOut;  // lost in a crash
        return;
    }
  }

  void ask_to_join(Client& client) {
    Message ask = message(Message::Kind::kJoin, client);
    ask.join.group = "g";
    ask.join.member_id = client.member_id;
    ask.join.instance_id = client.instance;
    ask.join.client_id = "c" + std::to_string(client.index);
    ask.join.session_timeout_ms = kSessionMs;
    ask.join.rebalance_timeout_ms = kRebalanceMs;
    ask.join.protocols = {{"p", !calm_ && rng_.chance(1, 10) ? "other" : "same"}};
    ask.join.requires_known_id = client.index % 2 == 1;
    ask.join.can_skip_assignment = client.index != 0;
    client.waits = ask.token;
    client.phase = Phase::kJoining;
    send(std::move(ask));
  }

  void ask_to_sync(Client& client) {
    Message ask = message(Message::Kind::kSync, client);
    ask.sync.group = "g";
    ask.sync.generation = client.generation;
    ask.sync.member_id = client.member_id;
    ask.sync.instance_id = client.instance;
    if (client.leads && !client.members.empty()) {
      std::map<std::string, std::string> given;
      for (int i = 0; i < kPartitions; ++i) {
        given[client.members[rng_.below(client.members.size())]].push_back(static_cast<char>(i));
      }
      ask.sync.assignments.assign(given.begin(), given.end());
    }
    if (!calm_ && rng_.chance(1, 15)) {
      ask.sync.generation -= 1;
      ++stale_syncs;
    }
    client.waits = ask.token;
    client.phase = Phase::kSyncing;
    send(std::move(ask));
  }

  void live(Client& client) {
    const std::uint64_t what = calm_ ? 0 : rng_.below(40);
    if (what == 1) {
      send(message(Message::Kind::kLeave, client));
      forget(client);
    } else if (what == 2) {
      client.phase = Phase::kOut;  // joins again
    } else {
      send(message(what % 2 == 0 ? Message::Kind::kHeartbeat : Message::Kind::kCommit, client));
    }
  }

  void deliver() {
    if (network_.empty()) {
      return;
    }
    const std::size_t at = calm_ ? 0 : rng_.below(network_.size());
    const Message got = std::move(network_[at]);
    network_.erase(network_.begin() + static_cast<std::ptrdiff_t>(at));
    GroupEffects out;
    Client& client = clients_[static_cast<std::size_t>(got.client)];
    switch (got.kind) {
      case Message::Kind::kJoin:
        open_tokens_.insert(got.token);
        requests_[got.token] = got;
        coordinator_->join(got.join, got.token, now(), out);
        break;
      case Message::Kind::kSync:
        open_tokens_.insert(got.token);
        requests_[got.token] = got;
        coordinator_->sync(got.sync, got.token, now(), out);
        break;
      case Message::Kind::kHeartbeat:
      case Message::Kind::kCommit: {
        const GroupError heard = coordinator_->heartbeat(got.who, now());
        if (heard == GroupError::kNone || heard == GroupError::kRebalanceInProgress) {
          contact_[got.who.member_id] = time_ms_;
        }
        committed(got.who, heard, coordinator_->commit(got.who, false, now()));
        if (heard != GroupError::kNone && client.phase == Phase::kMember &&
            client.member_id == got.who.member_id && client.generation == got.who.generation) {
          client.phase = Phase::kOut;
          if (heard != GroupError::kRebalanceInProgress) {
            forget(client);
          }
        }
        break;
      }
      case Message::Kind::kLeave: {
        const LeavingMember one{got.who.member_id, got.who.instance_id};
        coordinator_->leave("g", {&one, 1}, now(), out);
        break;
      }
    }
    settle(out);
  }

  bool whole() const {
    const GroupSnapshot at = coordinator_->snapshot("g");
    if (at.state != GroupState::kStable || at.members.size() != kClients) {
      return false;
    }
    for (const Client& client : clients_) {
      if (client.phase != Phase::kMember || client.generation != at.generation) {
        return false;
      }
    }
    return open_tokens_.empty();
  }

  std::string describe() const {
    std::ostringstream text;
    const GroupSnapshot at = coordinator_->snapshot("g");
    text << "\nstep " << steps << " life " << lives_ << " " << group_state_name(at.state)
         << " generation " << at.generation << " members " << at.members.size() << " open "
         << open_tokens_.size();
    for (const Client& client : clients_) {
      text << "\n client " << client.index << " phase " << static_cast<int>(client.phase) << " "
           << client.member_id << " generation " << client.generation;
    }
    return text.str();
  }

  static std::vector<Client> make_clients() {
    std::vector<Client> clients(kClients);
    for (int i = 0; i < kClients; ++i) {
      clients[static_cast<std::size_t>(i)].index = i;
      if (i < kStaticClients) {
        clients[static_cast<std::size_t>(i)].instance = "static-" + std::to_string(i);
      }
    }
    return clients;
  }

  Rng rng_;
  GroupConfig config_;
  std::unique_ptr<GroupCoordinator> coordinator_;
  std::vector<Client> clients_ = make_clients();
  std::vector<Message> network_;
  std::deque<AppendGroup> held_;
  std::optional<GroupValue> stored_;
  std::map<RequestToken, Message> requests_;
  std::set<RequestToken> open_tokens_;
  RequestToken last_token_ = 0;
  std::int64_t time_ms_ = 1'000'000;
  std::uint64_t lives_ = 0;
  bool calm_ = false;

  std::int32_t life_generation_ = -1;                      // highest that was answered or loaded
  std::set<std::pair<std::string, std::int32_t>> joined_;  // member, generation
  std::map<std::pair<std::int32_t, int>, std::string> owner_;  // generation, partition
  std::map<std::string, std::string> identity_;                // member id to instance or itself
  std::map<std::string, std::string> incarnation_;             // instance to its newest member id
  std::map<std::string, std::int64_t> contact_;                // when it was heard or answered last
};

TEST(GroupModel, KeepsItsPromisesUnderRandomClientsTimeAndCrashes) {
  const std::uint64_t wanted = steps_wanted();
  const std::uint64_t per_seed = 25'000;
  std::uint64_t steps = 0;
  std::uint64_t crashes = 0;
  std::uint64_t commits = 0;
  std::uint64_t refused = 0;
  std::uint64_t stable = 0;
  for (std::uint64_t seed = 1; steps < wanted; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Model model(seed);
    for (std::uint64_t i = 0; i < per_seed; ++i) {
      model.step();
      if (i % 2'500 == 2'499) {
        model.calm();
      }
      if (::testing::Test::HasFatalFailure()) {
        return;
      }
    }
    steps += model.steps;
    crashes += model.crashes;
    commits += model.commits;
    refused += model.refused_commits;
    stable += model.stable;
  }
  RecordProperty("steps", std::to_string(steps));
  // It did meet what it is about.
  EXPECT_GT(crashes, steps / 10'000);
  EXPECT_GT(commits, steps / 200);
  EXPECT_GT(refused, steps / 1'000);
  EXPECT_GT(stable, steps / 1'000);
}

}  // namespace
}  // namespace weir::log
