#include "tests/support/log_fixture.h"

#include <gtest/gtest.h>

namespace weir::log {
namespace {

using testing::LogFixture;
using Values = std::vector<std::string>;

constexpr TopicPartition lines() {
  return {"lines", PartitionId(0)};
}

Status try_send(EmbeddedLog& log, const std::string& topic, const std::string& value) {
  WEIR_TRY_ASSIGN(const auto sink, log.make_sink({}));
  WEIR_TRY_ASSIGN(const SinkTopicInfo info, sink->open_topic(topic));
  const RecordRef record{{}, ByteView(value), 1'700'000'000'000, {}};
  WEIR_TRY(sink->send(info.handle, PartitionId(0), {&record, 1}));
  return sink->flush().status();
}

Status try_commit(EmbeddedLog& log, std::int64_t offset) {
  WEIR_TRY_ASSIGN(const auto member, log.make_group("g"));
  const std::pair<TopicPartition, CommittedOffset> one[] = {
      {lines(), {Offset(offset), LeaderEpoch(0), ""}}};
  return member->commit(one);
}

// Fills the disk from outside until nothing is left.
void fill(LogFixture& f) {
  const std::uint64_t used =
      f.files->disk_space(".")->capacity_bytes - f.files->disk_space(".")->available_bytes;
  f.files->set_capacity(used);
}

TEST(DiskFull, RefusesUsersAppendsRetriablyWhileReadsAndCommitsGoOn) {
  LogFixture f;
  f.files->set_capacity(64U << 20U);
  f.open();
  f.create("lines");
  f.send("lines", {"a", "b"});
  ASSERT_TRUE(try_commit(*f.log, 1).ok());
  fill(f);

  Values kept{"a", "b"};
  Status refused;
  for (int i = 0; i < 100 && refused.ok(); ++i) {  // what was reserved for it may still take some
    const std::string value(3000, 'x');
    refused = try_send(*f.log, "lines", value);
    if (refused.ok()) {
      kept.push_back(value);
    }
  }

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::kNoSpace);
  EXPECT_EQ(f.read("lines"), kept);
  for (int i = 0; i < 50; ++i) {  // more than what is left in its segment
    const Status committed = try_commit(*f.log, 2);
    ASSERT_TRUE(committed.ok()) << i << committed.error().to_string();
  }
  EXPECT_EQ(try_send(*f.log, "lines", "y").error().code(), Errc::kNoSpace);

  // Room again, without a restart.
  f.files->set_capacity(64U << 20U);
  f.send("lines", {"c"});
  kept.emplace_back("c");
  EXPECT_EQ(f.read("lines"), kept);
  f.cut_power();
  f.open();
  EXPECT_EQ(f.read("lines"), kept);
}

TEST(DiskFull, LetsTopicsBeDeletedToMakeRoom) {
  LogFixture f;
  f.files->set_capacity(64U << 20U);
  f.open();
  f.create("old");
  f.create("lines");
  for (int i = 0; i < 20; ++i) {
    f.send("old", {std::string(100'000, 'x')});
  }
  fill(f);
  Status refused;
  while ((refused = try_send(*f.log, "lines", std::string(50'000, 'y'))).ok()) {
  }
  EXPECT_EQ(refused.error().code(), Errc::kNoSpace);

  const Status deleted = f.log->admin().delete_topic("old");
  ASSERT_TRUE(deleted.ok()) << deleted.error().to_string();

  EXPECT_TRUE(try_send(*f.log, "lines", "z").ok());
}

// The write-ahead log needs a checkpoint to go on, and the checkpoint needs room.
TEST(DiskFull, LosesNothingAcknowledgedWhenItComesInTheMiddleOfARun) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    LogFixture f(seed);
    f.open();
    f.create("lines", 1, {{"segment.bytes", "20000"}});
    const std::uint64_t used =
        f.files->disk_space(".")->capacity_bytes - f.files->disk_space(".")->available_bytes;
    f.files->set_capacity(used + seed * 30'000);
    Values kept;
    for (int i = 0; i < 300; ++i) {
      const std::string value = std::to_string(i) + std::string(3000, 'x');
      const Status sent = try_send(*f.log, "lines", value);
      if (sent.ok()) {
        kept.push_back(value);
        continue;
      }
      ASSERT_EQ(sent.error().code(), Errc::kNoSpace) << sent.error().to_string();
      f.files->set_capacity(UINT64_MAX);
    }
    EXPECT_EQ(f.read("lines"), kept);
    f.cut_power();
    f.open();
    EXPECT_EQ(f.read("lines"), kept);
  }
}

}  // namespace
}  // namespace weir::log
