#pragma once

#include "log/coordinator/consumer_protocol.h"
#include "log/coordinator/group_coordinator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::log::testing {

// A coordinator with a clock and a log in memory. Records are durable at once unless
// `hold_appends`.
class GroupWorld {
 public:
  static constexpr const char* kGroup = "g";

  explicit GroupWorld(GroupConfig config = no_delay()) : config_(config) { restart(); }

  static GroupConfig no_delay() {
    GroupConfig config;
    config.initial_delay_ms = 0;
    return config;
  }

  // A join of a consumer of topic "t" with one protocol.
  static JoinGroupRequest consumer(const std::string& member_id = "",
                                   std::optional<std::string> instance = std::nullopt) {
    JoinGroupRequest request;
    request.group = kGroup;
    request.member_id = member_id;
    request.instance_id = std::move(instance);
    request.client_id = "c";
    request.client_host = "/h";
    request.rebalance_timeout_ms = 60'000;
    request.protocols = {{"range", subscription({"t"})}};
    request.requires_known_id = false;
    return request;
  }
  static std::string subscription(std::vector<std::string> topics) {
    ConsumerSubscription subscription;
    subscription.topics = std::move(topics);
    return encode_subscription(subscription);
  }

  RequestToken join(const JoinGroupRequest& request) {
    const RequestToken token = next_token_++;
    coordinator->join(request, token, now(), effects_);
    settle();
    return token;
  }
  RequestToken sync(const std::string& member, std::int32_t generation,
                    std::vector<std::pair<std::string, std::string>> assignments = {},
                    std::optional<std::string> instance = std::nullopt) {
    const RequestToken token = next_token_++;
    SyncGroupRequest request;
    request.group = kGroup;
    request.member_id = member;
    request.generation = generation;
    request.instance_id = std::move(instance);
    request.assignments = std::move(assignments);
    coordinator->sync(request, token, now(), effects_);
    settle();
    return token;
  }
  GroupError heartbeat(const std::string& member, std::int32_t generation,
                       std::optional<std::string> instance = std::nullopt) {
    return coordinator->heartbeat({kGroup, generation, member, std::move(instance)}, now());
  }
  GroupError commit(const std::string& member, std::int32_t generation,
                    std::optional<std::string> instance = std::nullopt,
                    bool transactional = false) {
    return coordinator->commit({kGroup, generation, member, std::move(instance)}, transactional,
                               now());
  }
  GroupError leave(const std::string& member, std::optional<std::string> instance = std::nullopt) {
    const LeavingMember one{member, std::move(instance)};
    const GroupError error = coordinator->leave(kGroup, {&one, 1}, now(), effects_)[0];
    settle();
    return error;
  }
  void advance(std::int64_t ms) {
    time_ms_ += ms;
    coordinator->tick(now(), effects_);
    settle();
  }
  // The next append that was held is done.
  void finish_append(bool durable) {
    const AppendGroup append = std::move(held_.front());
    held_.pop_front();
    if (durable) {
      store(append);
    }
    coordinator->appended(append.id, durable, now(), effects_);
    settle();
  }
  // A new coordinator that knows what is durable.
  void restart() {
    coordinator = std::make_unique<GroupCoordinator>(config_);
    config_.member_id_seed++;
    held_.clear();
    effects_.clear();
    for (const auto& [group, value] : stored) {
      coordinator->load(group, value, now(), effects_);
    }
    settle();
  }

  bool answered(RequestToken token) const { return joins.contains(token) || syncs.contains(token); }
  GroupSnapshot snapshot() const { return coordinator->snapshot(kGroup); }
  GroupState state() const { return snapshot().state; }
  GroupTime now() const {
    return {MonotonicTime(std::chrono::milliseconds(time_ms_)), 1'700'000'000'000 + time_ms_};
  }
  std::size_t held() const { return held_.size(); }

  // `count` members whose ids are given back in order; all joined, none synced.
  std::vector<std::string> joined(std::size_t count) {
    std::vector<RequestToken> tokens;
    for (std::size_t i = 0; i < count; ++i) {
      tokens.push_back(join(consumer()));
      if (i == 0) {
        advance(0);  // the initial delay
      } else {
        // Those that are in have to come again.
        for (std::size_t k = 0; k + 1 < tokens.size(); ++k) {
          tokens[k] = join(consumer(joins.at(tokens[k]).member_id));
        }
      }
    }
    std::vector<std::string> ids;
    for (const RequestToken token : tokens) {
      ids.push_back(joins.at(token).member_id);
    }
    return ids;
  }
  // The same, and everybody synced: member i has assignment "a<i>".
  std::vector<std::string> stable(std::size_t count) {
    std::vector<std::string> ids = joined(count);
    const GroupSnapshot at = snapshot();
    std::vector<std::pair<std::string, std::string>> assignments;
    for (std::size_t i = 0; i < count; ++i) {
      assignments.emplace_back(ids[i], "a" + std::to_string(i));
    }
    sync(at.leader, at.generation, assignments);
    for (const std::string& id : ids) {
      sync(id, at.generation);
    }
    EXPECT_EQ(state(), GroupState::kStable);
    return ids;
  }

  std::unique_ptr<GroupCoordinator> coordinator;
  std::map<RequestToken, JoinGroupAnswer> joins;
  std::map<RequestToken, SyncGroupAnswer> syncs;
  std::map<std::string, GroupValue> stored;
  std::vector<GroupValue> history;  // of kGroup; a tombstone is a default value
  std::vector<GroupNote> notes;
  bool hold_appends = false;

 private:
  void store(const AppendGroup& append) {
    if (append.value) {
      // What is read back is what was written.
      stored[append.group] = decode_group_value(encode_group_value(*append.value)).value();
    } else {
      stored.erase(append.group);
    }
    history.push_back(append.value.value_or(GroupValue()));
  }
  void settle() {
    while (!effects_.empty()) {
      GroupEffects effects = std::exchange(effects_, {});
      for (GroupEffect& effect : effects) {
        if (auto* join = std::get_if<AnswerJoin>(&effect)) {
          EXPECT_FALSE(answered(join->token)) << "twice: " << join->token;
          joins[join->token] = join->answer;
        } else if (auto* sync = std::get_if<AnswerSync>(&effect)) {
          EXPECT_FALSE(answered(sync->token)) << "twice: " << sync->token;
          syncs[sync->token] = sync->answer;
        } else if (auto* append = std::get_if<AppendGroup>(&effect)) {
          if (hold_appends) {
            held_.push_back(*append);
          } else {
            store(*append);
            coordinator->appended(append->id, true, now(), effects_);
          }
        } else {
          notes.push_back(std::get<GroupNote>(effect));
        }
      }
    }
  }

  GroupConfig config_;
  GroupEffects effects_;
  std::deque<AppendGroup> held_;
  RequestToken next_token_ = 1;
  std::int64_t time_ms_ = 0;
};

}  // namespace weir::log::testing
