#include "tests/log/stored/stored_support.h"
#include "tests/support/log_fixture.h"

namespace weir::log {
namespace {

using weir::testing::LogFixture;

Errc code_of(const Status& status) {
  return status.ok() ? Errc::kInternal : status.error().code();
}

class TopicOverlay : public ::testing::Test {
 protected:
  void SetUp() override {
    stored_ = testing::open_stored(testing::stored_data("whole-directory/1-stopped"));
    ASSERT_NE(stored_, nullptr);
    world_.open();
    world_.create("results");
    world_.create("orders", 7);  // of another folder: not seen
    world_.send("orders", {"mine"}, 0);
    open();
  }
  void open() {
    auto made = read_topics_from(*stored_, {"orders"}, *world_.log);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    overlay_ = *std::move(made);
  }
  static TopicPartition orders(std::int32_t partition) {
    return {"orders", PartitionId(partition)};
  }

  std::unique_ptr<StoredLog> stored_;
  LogFixture world_;
  std::unique_ptr<Backend> overlay_;
};

TEST_F(TopicOverlay, ShowsTheNamedTopicsOfTheFolderAndAllOthersOfTheDirectory) {
  Admin& admin = overlay_->admin();
  EXPECT_EQ(admin.describe_topic("orders")->partitions, 3);
  EXPECT_EQ(admin.describe_topic("results")->partitions, 1);
  EXPECT_EQ(code_of(admin.describe_topic("again").status()), Errc::kUnknownTopic);
  std::vector<std::string> names;
  const auto topics = admin.list_topics().value();
  for (const TopicDescription& topic : topics) {
    names.push_back(topic.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"orders", "results"}));
  EXPECT_EQ(admin.offsets(orders(0))->high_watermark, Offset(15));
  EXPECT_EQ(code_of(admin.delete_topic("orders")), Errc::kReadOnly);
  EXPECT_TRUE(admin.create_topic({"more", 1, {}}).ok());
}

TEST_F(TopicOverlay, PollsBothUnderTheCallersIndexes) {
  world_.send("results", {"r0", "r1"});
  auto source = overlay_->make_source({}).value();
  ASSERT_TRUE(source->assign({{"results", PartitionId(0)}, orders(2), orders(1)}).ok());
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(source->seek(i, Offset(0)).ok());
  }
  std::map<std::uint32_t, std::vector<std::string>> values;
  for (auto blocks = source->poll(Duration::zero()); !blocks->empty();
       blocks = source->poll(Duration::zero())) {
    for (const RecordBlock& block : *blocks) {
      ASSERT_TRUE(block.status.ok());
      for (const RecordView& record : block.records) {
        values[block.assignment].emplace_back(record.value.view());
      }
    }
  }
  EXPECT_EQ(values[0], (std::vector<std::string>{"r0", "r1"}));
  EXPECT_EQ(values[1], (std::vector<std::string>{"orders-2 0"}));
  EXPECT_EQ(values[2].size(), 5U);
  EXPECT_EQ(source->position(0), Offset(2));
  EXPECT_EQ(source->position(2), Offset(5));
}

TEST_F(TopicOverlay, WritesToTheDirectoryAndNotToTheFolder) {
  auto sink = overlay_->make_sink({}).value();
  EXPECT_EQ(code_of(sink->open_topic("orders").status()), Errc::kReadOnly);
  const SinkTopicInfo results = sink->open_topic("results").value();
  const RecordRef record{{}, ByteView("x"), 1, {}};
  ASSERT_TRUE(sink->send(results.handle, PartitionId(0), {&record, 1}).ok());
  ASSERT_TRUE(sink->flush().ok());
  EXPECT_EQ(world_.read("results"), (std::vector<std::string>{"x"}));
}

TEST_F(TopicOverlay, KeepsCommittedOffsetsOverARestart) {
  const std::vector<PartitionOffset> offsets{{orders(0), {Offset(7), LeaderEpoch(0), "m"}},
                                             {{"results", PartitionId(0)}, {Offset(0)}}};
  ASSERT_TRUE(overlay_->make_group("app").value()->commit(offsets).ok());
  world_.close();
  world_.open();
  open();

  auto group = overlay_->make_group("app").value();
  const std::vector<TopicPartition> asked{orders(0), orders(1)};
  const auto committed = group->committed(asked).value();
  EXPECT_EQ(committed[0], offsets[0].second);
  EXPECT_FALSE(committed[1].has_value());
  EXPECT_EQ(overlay_->admin().group_offsets("app").value(), offsets);
  ASSERT_TRUE(overlay_->admin().delete_group_offsets("app", asked).ok());
  EXPECT_FALSE(group->committed(asked).value()[0].has_value());
}

// The directory's own topic of that name has offsets of its own.
TEST_F(TopicOverlay, DoesNotMixOffsetsOfTopicsOfOneName) {
  const std::vector<PartitionOffset> own{{orders(0), {Offset(1)}}};
  ASSERT_TRUE(world_.log->make_group("app").value()->commit(own).ok());
  const std::vector<TopicPartition> asked{orders(0)};
  EXPECT_FALSE(overlay_->make_group("app").value()->committed(asked).value()[0].has_value());

  const std::vector<PartitionOffset> stored{{orders(0), {Offset(9)}}};
  ASSERT_TRUE(overlay_->make_group("app").value()->commit(stored).ok());
  EXPECT_EQ(world_.log->make_group("app").value()->committed(asked).value()[0], own[0].second);
}

TEST_F(TopicOverlay, ReadsAnotherFolderOfThatTopicFromItsStart) {
  const std::vector<PartitionOffset> offsets{{{"again", PartitionId(0)}, {Offset(2)}}};
  auto again = read_topics_from(*stored_, {"again"}, *world_.log).value();
  ASSERT_TRUE(again->make_group("app").value()->commit(offsets).ok());

  testing::copy_tree(testing::stored_data("crash-small/only-logs"), *world_.files, "copy/again-0");
  auto other_folder =
      testing::open_stored("copy", IsolationLevel::kReadCommitted, world_.files.get());
  auto other = read_topics_from(*other_folder, {"again"}, *world_.log).value();
  const std::vector<TopicPartition> asked{{"again", PartitionId(0)}};
  EXPECT_FALSE(other->make_group("app").value()->committed(asked).value()[0].has_value());
  EXPECT_TRUE(again->make_group("app").value()->committed(asked).value()[0].has_value());
}

class Assigned : public GroupListener {
 public:
  void on_assigned(std::span<const TopicPartition> partitions) override {
    names.insert(names.end(), partitions.begin(), partitions.end());
  }
  void on_revoked(std::span<const TopicPartition> /*partitions*/) override {}
  void on_lost(std::span<const TopicPartition> /*partitions*/) override {}
  std::vector<TopicPartition> names;
};

TEST_F(TopicOverlay, AssignsThePartitionsOfTheFolder) {
  Assigned listener;
  auto group = overlay_->make_group("app").value();
  ASSERT_TRUE(group->join({"orders", "results"}, "", listener).ok());
  ASSERT_TRUE(group->poll().ok());
  std::ranges::sort(listener.names);
  EXPECT_EQ(listener.names, (std::vector<TopicPartition>{
                                orders(0), orders(1), orders(2), {"results", PartitionId(0)}}));
}

TEST_F(TopicOverlay, SaysWhichTopicsTheFolderHas) {
  const auto made = read_topics_from(*stored_, {"lines"}, *world_.log);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), Errc::kUnknownTopic);
  EXPECT_NE(made.error().message().find("orders"), std::string::npos) << made.error().message();
}

}  // namespace
}  // namespace weir::log
