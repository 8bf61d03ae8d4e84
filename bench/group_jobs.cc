#include "bench/jobs.h"
#include "bench/log_fixture.h"

#include <fmt/core.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

// groups: a consumer group of 100 members over 1,000 partitions, all in this process. The members
// poll in turn on one thread, so the figure is what the whole rebalance costs, with the disk's
// syncs for the group's records; between threads it is shorter by what they do beside each other.

namespace weir::bench {
namespace {

// A run of so many "records" makes a thousandth of members.
constexpr std::uint64_t kRecords = 100'000;
constexpr double kMembersShare = 0.001;
constexpr std::uint64_t kPartitionsOfEach = 10;

class Owner final : public GroupListener {
 public:
  void on_assigned(std::span<const TopicPartition> partitions) override {
    owned.insert(partitions.begin(), partitions.end());
    ++calls;
  }
  void on_revoked(std::span<const TopicPartition> partitions) override { take(partitions); }
  void on_lost(std::span<const TopicPartition> partitions) override { take(partitions); }
  std::set<TopicPartition> owned;
  std::uint64_t calls = 0;

 private:
  void take(std::span<const TopicPartition> partitions) {
    for (const TopicPartition& partition : partitions) {
      owned.erase(partition);
    }
    ++calls;
  }
};

struct Member {
  std::unique_ptr<Owner> owner;
  std::unique_ptr<Group> group;  // behind the listener, which it uses
};

Result<Member> join(Backend& log, const std::string& strategy) {
  GroupOptions options;
  options.assignors = {strategy};
  Member member;
  member.owner = std::make_unique<Owner>();
  WEIR_TRY_ASSIGN(member.group, log.make_group_member("bench", options));
  WEIR_TRY(member.group->join({"topic"}, "", *member.owner));
  return member;
}

// Polls until everybody has had `rounds` polls without news and all partitions have an owner.
Status settle(std::vector<Member>& members, std::uint64_t partitions) {
  for (int idle = 0, polls = 0; idle < 2; ++polls) {
    WEIR_TRY(expect(polls < 1'000, "the group does not settle"));
    std::uint64_t calls = 0;
    std::uint64_t owned = 0;
    for (Member& member : members) {
      const std::uint64_t before = member.owner->calls;
      WEIR_TRY(member.group->poll());
      calls += member.owner->calls - before;
    }
    for (const Member& member : members) {
      owned += member.owner->owned.size();
    }
    idle = calls == 0 && owned == partitions ? idle + 1 : 0;
  }
  std::set<TopicPartition> all;
  for (const Member& member : members) {
    all.insert(member.owner->owned.begin(), member.owner->owned.end());
  }
  return expect_equal(all.size(), partitions, "partitions with an owner of their own");
}

enum class What { kStart, kOneMore };

Status rebalance(Run& run, What what, const std::string& strategy) {
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  const std::uint64_t partitions = run.items() * kPartitionsOfEach;
  WEIR_TRY(make_topic(log->admin(), "topic", "fsync", static_cast<std::int32_t>(partitions)));
  std::vector<Member> members;
  if (what == What::kStart) {
    run.start();
  }
  for (std::uint64_t i = 0; i < run.items(); ++i) {
    WEIR_TRY_ASSIGN(Member member, join(*log, strategy));
    members.push_back(std::move(member));
  }
  WEIR_TRY(settle(members, partitions));
  if (what == What::kOneMore) {
    run.start();
    WEIR_TRY_ASSIGN(Member member, join(*log, strategy));
    members.push_back(std::move(member));
    WEIR_TRY(settle(members, partitions));
  }
  run.stop();
  WEIR_TRY_ASSIGN(const GroupDescription group, log->admin().describe_group("bench"));
  run.note("generations", group.generation, "");
  members.clear();
  return log->close();
}

}  // namespace

std::vector<Case> group_cases() {
  std::vector<Case> cases;
  for (const auto& [name, what] :
       {std::pair("start", What::kStart), std::pair("one_more", What::kOneMore)}) {
    Case& one = cases.emplace_back();
    one.name = name;
    one.unit = "member";
    one.items = kRecords;
    one.rounds = 3;
    const auto with = [what = what](const std::string& strategy) {
      return [what, strategy](Run& run) { return rebalance(run, what, strategy); };
    };
    one.contenders = {{"weir", with("cooperative-sticky"), kMembersShare},
                      {"range", with("range"), kMembersShare}};
  }
  return cases;
}

}  // namespace weir::bench
