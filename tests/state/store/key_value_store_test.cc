#include "tests/state/store/store_world.h"

#include <weir/runtime/metrics.h>

#include <gmock/gmock.h>

#include <functional>

namespace weir::state::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Record = ChangelogSink::Record;

// A checkpoint store that counts questions and fails on request.
class WatchedStore final : public CheckpointStore {
 public:
  explicit WatchedStore(std::unique_ptr<CheckpointStore> store) : store_(std::move(store)) {}
  Result<std::optional<StorePosition>> position() override { return store_->position(); }
  Result<std::optional<std::string>> get(ByteView key) override {
    ++gets;
    return store_->get(key);
  }
  Result<std::vector<std::optional<std::string>>> get_many(
      const std::vector<ByteView>& keys) override {
    ++multi_gets;
    return store_->get_many(keys);
  }
  Result<std::unique_ptr<CheckpointIterator>> scan(ByteView from,
                                                   std::optional<ByteView> to) override {
    return store_->scan(from, to);
  }
  Status ingest(const std::function<bool(StoreChange&)>& next,
                const StorePosition& position) override {
    ++ingests;
    if (fail_ingest) {
      return Error(Errc::kNoSpace, "the disk is full");
    }
    return store_->ingest(next, position);
  }
  Status write(const std::vector<StoreChange>& changes, const StorePosition& position) override {
    return store_->write(changes, position);
  }
  Status flush() override { return store_->flush(); }
  Status clear() override { return store_->clear(); }
  std::uint64_t estimated_keys() override { return store_->estimated_keys(); }

  int gets = 0;
  int multi_gets = 0;
  int ingests = 0;
  bool fail_ingest = false;

 private:
  std::unique_ptr<CheckpointStore> store_;
};

// A store over a watched in-memory checkpoint.
struct WatchedWorld {
  explicit WatchedWorld(std::size_t hot_bytes_max = 1U << 30U) : bytes_max(hot_bytes_max) {
    open();
  }
  void open() {
    store.reset();
    if (watched == nullptr) {
      watched = std::make_unique<WatchedStore>(database->open_store("counts-0").value());
    }
    store =
        KeyValueStore::open({.name = "counts", .mode = StoreMode::kHot, .hot_bytes_max = bytes_max},
                            watched.get(), &executor, clock)
            .value();
  }
  void put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(store->put(key, ByteView(value), 1).ok());
  }
  void commit() {
    ASSERT_TRUE(store->write_changelog(sink, 0, PartitionId(0)).ok());
    ASSERT_TRUE(store->promote(position_at(sink.log.size())).ok());
  }
  void checkpoint() {
    ASSERT_TRUE(store->begin_checkpoint().ok());
    ASSERT_TRUE(store->wait_checkpoint().ok());
  }

  std::size_t bytes_max;
  weir::testing::ManualClock clock;
  weir::testing::ManualExecutor executor{clock};
  ChangelogSink sink;
  std::unique_ptr<CheckpointDatabase> database = make_memory_checkpoints();
  std::unique_ptr<WatchedStore> watched;
  std::unique_ptr<KeyValueStore> store;
};

TEST(KeyValueStore, ShowsTheScopeToTheTaskAndCommittedValuesToQueries) {
  StoreWorld world({.name = "hot"});
  world.put("k", "old", 1);
  ASSERT_TRUE(world.commit().ok());
  world.put("k", "new", 2);

  EXPECT_EQ(world.get("k"), "new");
  EXPECT_EQ(world.store->get_committed("k").value(), (OwnedValue{"old", 1}));
  ASSERT_TRUE(world.commit().ok());
  EXPECT_EQ(world.store->get_committed("k").value(), (OwnedValue{"new", 2}));
}

TEST(KeyValueStore, TellsEmptyFromAbsentAndKeepsKeysAndValuesOfEveryLength) {
  StoreWorld world({.name = "hot"});
  for (std::size_t size = 0; size < 40; ++size) {
    world.put(std::string(size, 'k'), std::string(size, 'v'), static_cast<Timestamp>(size));
    world.put(std::string(size, '\0') + "x", std::string(40 - size, 'w'));
  }
  ASSERT_TRUE(world.commit().ok());

  for (std::size_t size = 0; size < 40; ++size) {
    EXPECT_EQ(world.get(std::string(size, 'k')), std::string(size, 'v'));
    EXPECT_EQ(world.get(std::string(size, '\0') + "x"), std::string(40 - size, 'w'));
    EXPECT_EQ(world.get(std::string(size + 1, '\0')), std::nullopt);
  }
}

TEST(KeyValueStore, WritesEachKeyOnceToTheChangelogInOrderOfFirstChange) {
  StoreWorld world({.name = "hot"});
  world.put("gone", "x", 1);
  ASSERT_TRUE(world.commit().ok());
  world.sink.log.clear();

  world.put("b", "1", 10);
  world.put("a", "a value that is longer than an entry", 11);
  world.remove("gone", 12);
  world.put("b", "2", 13);
  ASSERT_TRUE(world.commit().ok());

  EXPECT_THAT(world.sink.log, ElementsAre(Record{"b", "2", 13},
                                          Record{"a", "a value that is longer than an entry", 11},
                                          Record{"gone", std::nullopt, 12}));
}

TEST(KeyValueStore, SendsALargeScopeInBatches) {
  StoreWorld world({.name = "hot"});
  for (int i = 0; i < 2000; ++i) {
    world.put(std::to_string(i), "v");
  }
  ASSERT_TRUE(world.commit().ok());

  EXPECT_EQ(world.sink.log.size(), 2000U);
  EXPECT_LE(world.sink.sends, 10);
}

TEST(KeyValueStore, RefusesToDropWhatMayBeInTheChangelogAndCommitsItLater) {
  StoreWorld world({.name = "hot"});
  world.put("a", "1");
  world.put("b", "1");
  world.sink.fail_after = 1;
  ASSERT_FALSE(world.commit().ok());

  const Status dropped = world.store->drop();

  EXPECT_EQ(dropped.error().code(), Errc::kInvalidArgument);
  EXPECT_EQ(world.get("a"), "1");
  ASSERT_TRUE(world.commit().ok());
  EXPECT_EQ(world.store->get_committed("b").value(), (OwnedValue{"1", 1}));
}

TEST(KeyValueStore, RefusesToPromoteChangesThatTheChangelogLacks) {
  StoreWorld world({.name = "hot"});
  world.put("a", "1");
  ASSERT_TRUE(world.store->write_changelog(world.sink, 0, PartitionId(0)).ok());
  world.put("a", "2");

  EXPECT_EQ(world.store->promote(position_at(1)).error().code(), Errc::kInvalidArgument);
  ASSERT_TRUE(world.commit().ok());
  EXPECT_EQ(world.sink.log.back(), (Record{"a", "2", 1}));
}

TEST(KeyValueStore, DropForgetsTheScopeOnly) {
  StoreWorld world({.name = "hot"});
  world.put("a", "1");
  ASSERT_TRUE(world.commit().ok());
  world.put("a", "a much longer value than before");
  world.put("b", "1");
  world.remove("a");
  ASSERT_TRUE(world.store->drop().ok());

  EXPECT_EQ(world.get("a"), "1");
  EXPECT_EQ(world.get("b"), std::nullopt);
  EXPECT_TRUE(world.store->scope_empty());
}

TEST(KeyValueStore, GivesPendingEntriesInOrderOfTheirLastChange) {
  StoreWorld world({.name = "hot"});
  const auto mark = [&](const std::string& key) {
    auto* entry = world.store->find_or_load(key, KeyValueStore::hash(key)).value();
    EXPECT_TRUE(world.store->put(entry, ByteView("12345678"), 1).ok());
    return world.store->mark_pending(entry);
  };
  EXPECT_TRUE(mark("a"));
  EXPECT_TRUE(mark("b"));
  EXPECT_TRUE(mark("c"));
  EXPECT_FALSE(mark("a"));
  EXPECT_EQ(world.store->pending_count(), 3U);
  EXPECT_GT(world.store->pending_bytes(), 3U * 9U);
  EXPECT_EQ(world.store->promote(position_at(0)).error().code(), Errc::kInvalidArgument);

  std::vector<std::string> order;
  for (const auto* entry : world.store->take_pending()) {
    order.emplace_back(KeyValueStore::key(*entry));
  }

  EXPECT_THAT(order, ElementsAre("b", "c", "a"));
  EXPECT_EQ(world.store->pending_bytes(), 0U);
  EXPECT_TRUE(mark("a"));
  world.store->take_pending();
  EXPECT_TRUE(world.commit().ok());
}

TEST(KeyValueStore, KeepsAttemptsApartUntilTheyArePromoted) {
  StoreWorld world({.name = "hot"});
  world.put("k", "base");
  AttemptScope first = world.store->open_attempt();
  AttemptScope second = world.store->open_attempt();
  ASSERT_TRUE(first.put("k", ByteView("first"), 2).ok());
  ASSERT_TRUE(second.put("k", NullableBytes(), 3).ok());

  EXPECT_EQ(first.get("k").value()->value, "first");
  EXPECT_EQ(second.get("k").value(), std::nullopt);
  EXPECT_EQ(world.get("k"), "base");

  ASSERT_TRUE(world.commit().ok());  // attempts outlive a commit
  second.discard();
  EXPECT_EQ(second.get("k").value()->value, "base");
  ASSERT_TRUE(first.promote().ok());
  EXPECT_EQ(world.get("k"), "first");
  EXPECT_EQ(world.store->get_committed("k").value(), (OwnedValue{"base", 1}));
}

TEST(KeyValueStore, NeverAsksTheCheckpointWhileEveryKeyIsResident) {
  WatchedWorld world;
  world.put("a", "1");
  world.commit();
  world.checkpoint();
  EXPECT_EQ(world.store->get("absent").value(), std::nullopt);
  EXPECT_EQ(world.watched->gets, 0);

  world.open();
  EXPECT_EQ(world.store->get("a").value()->value, "1");
  EXPECT_EQ(world.store->get("absent").value(), std::nullopt);
  EXPECT_EQ(world.watched->gets, 2);
  EXPECT_EQ(world.store->get("absent").value(), std::nullopt);
  EXPECT_EQ(world.watched->gets, 2);

  ASSERT_TRUE(world.store->warm().ok());
  EXPECT_EQ(world.store->get("other").value(), std::nullopt);
  EXPECT_EQ(world.watched->gets, 2);
}

TEST(KeyValueStore, AsksOnceForABatchOfMisses) {
  WatchedWorld world;
  for (const char* key : {"a", "b", "c"}) {
    world.put(key, "1");
  }
  world.commit();
  world.checkpoint();
  world.open();

  const std::vector<ByteView> keys{"a", "b", "absent", "a"};
  ASSERT_TRUE(world.store->load_many(keys).ok());

  EXPECT_EQ(world.store->get("b").value()->value, "1");
  EXPECT_EQ(world.store->get("absent").value(), std::nullopt);
  EXPECT_EQ(world.watched->multi_gets, 1);
  EXPECT_EQ(world.watched->gets, 0);
}

TEST(KeyValueStore, WarmsWhatFitsAndFindsTheRestInTheCheckpoint) {
  WatchedWorld roomy;
  for (int i = 0; i < 2000; ++i) {
    roomy.put(std::to_string(i), std::to_string(i));
  }
  roomy.commit();
  roomy.checkpoint();
  roomy.bytes_max = 40'000;
  roomy.open();

  ASSERT_TRUE(roomy.store->warm().ok());

  EXPECT_GT(roomy.store->entries(), 100U);
  EXPECT_LE(roomy.store->bytes_used(), 40'000U);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(roomy.store->get(std::to_string(i)).value()->value, std::to_string(i));
  }
}

TEST(KeyValueStore, StaysWithinItsBoundByEvictingAndForcedCheckpoints) {
  constexpr std::size_t kBound = 100'000;
  WatchedWorld world(kBound);
  for (int i = 0; i < 20'000; ++i) {
    world.put("key-" + std::to_string(i), "12345678");
    if (world.store->needs_early_commit()) {
      world.commit();
      ASSERT_LE(world.store->bytes_used(), kBound);
    }
  }
  world.commit();

  EXPECT_GT(world.store->metrics().evictions.value(), 15'000U);
  EXPECT_LT(world.store->metrics().checkpoints.value(), 200U);
  for (int i = 0; i < 20'000; i += 37) {
    ASSERT_EQ(world.store->get("key-" + std::to_string(i)).value()->value, "12345678");
  }
}

TEST(KeyValueStore, RefusesNewKeysFarAboveItsBoundUntilTheNextCommit) {
  WatchedWorld world(50'000);
  Status refused;
  int taken = 0;
  while (refused.ok()) {
    refused = world.store->put("key-" + std::to_string(taken), ByteView("12345678"), 1);
    taken += refused.ok() ? 1 : 0;
  }

  EXPECT_EQ(refused.error().code(), Errc::kNoSpace);
  EXPECT_THAT(refused.error().message(), HasSubstr("weir.store.hot.max.bytes"));
  EXPECT_LE(world.store->bytes_used(), 2U * 50'000U + (1U << 20U) + 64U);
  world.commit();
  EXPECT_TRUE(world.store->put("another", ByteView("1"), 1).ok());
  EXPECT_EQ(world.sink.log.size(), static_cast<std::size_t>(taken));
}

TEST(KeyValueStore, RefusesALargeValueWithoutTouchingTheScope) {
  WatchedWorld world(50'000);
  world.put("k", "old");
  const std::string huge(2U << 20U, 'x');

  EXPECT_EQ(world.store->put("k", ByteView(huge), 1).error().code(), Errc::kNoSpace);
  EXPECT_EQ(world.store->put("new", ByteView(huge), 1).error().code(), Errc::kNoSpace);

  EXPECT_EQ(world.store->get("k").value()->value, "old");
  world.commit();
  EXPECT_EQ(world.sink.log.size(), 1U);
}

TEST(KeyValueStore, InMemoryModeRefusesAtItsBoundAndForgetsDeletedKeys) {
  StoreWorld world({.name = "memory", .mode = StoreMode::kMemory, .hot_bytes_max = 20'000});
  int taken = 0;
  while (world.store->put(std::to_string(taken), ByteView("v"), 1).ok()) {
    ++taken;
  }
  EXPECT_GT(taken, 100);
  ASSERT_TRUE(world.commit().ok());

  for (int i = 0; i < taken; ++i) {
    ASSERT_TRUE(world.store->put(std::to_string(i), NullableBytes(), 1).ok());
  }
  ASSERT_TRUE(world.commit().ok());

  EXPECT_EQ(world.store->entries(), 0U);
  EXPECT_TRUE(world.store->put("again", ByteView("v"), 1).ok());
}

TEST(KeyValueStore, KeepsTombstonesUntilTheyAreCheckpointed) {
  WatchedWorld world;
  world.put("a", "1");
  world.commit();
  world.checkpoint();
  ASSERT_TRUE(world.store->put("a", NullableBytes(), 2).ok());
  world.commit();
  EXPECT_EQ(world.store->entries(), 1U);
  EXPECT_EQ(world.store->get_committed("a").value(), std::nullopt);

  world.checkpoint();

  EXPECT_EQ(world.store->entries(), 0U);
  world.open();
  EXPECT_EQ(world.store->get("a").value(), std::nullopt);
}

TEST(KeyValueStore, StoresTheTimestampInFrontOfTheValue) {
  WatchedWorld world;
  ASSERT_TRUE(world.store->put("k", ByteView("ab"), 0x0102030405060708).ok());
  world.commit();
  world.checkpoint();

  EXPECT_EQ(world.watched->get("k").value(), std::string("\1\2\3\4\5\6\7\x08"
                                                         "ab"));
}

TEST(KeyValueStore, ReportsAFailedCheckpointOnceAndWritesItsKeysWithTheNext) {
  WatchedWorld world;
  world.put("a", "1");
  world.put("b", "1");
  world.commit();
  world.watched->fail_ingest = true;
  ASSERT_TRUE(world.store->begin_checkpoint().ok());
  world.put("a", "2");
  world.commit();

  const Status failed = world.store->wait_checkpoint();

  EXPECT_EQ(failed.error().code(), Errc::kNoSpace);
  EXPECT_THAT(failed.error().message(), HasSubstr("counts"));
  EXPECT_TRUE(world.store->poll_checkpoint().ok());
  EXPECT_GT(world.store->dirty_bytes(), 0U);
  world.watched->fail_ingest = false;
  world.checkpoint();
  EXPECT_EQ(world.store->dirty_bytes(), 0U);
  world.open();
  EXPECT_EQ(world.store->get("a").value()->value, "2");
  EXPECT_EQ(world.store->get("b").value()->value, "1");
  EXPECT_EQ(world.store->checkpoint_position().value()->next_offset, Offset(3));
}

TEST(KeyValueStore, FreezesACheckpointAgainstLaterCommits) {
  WatchedWorld world;
  world.put("a", "a value on the heap, the first");
  world.put("b", "1");
  world.commit();
  ASSERT_TRUE(world.store->begin_checkpoint().ok());
  world.put("a", "a value on the heap, the second");
  ASSERT_TRUE(world.store->put("b", NullableBytes(), 2).ok());
  world.put("c", "1");
  world.commit();

  world.executor.run_ready();
  ASSERT_TRUE(world.store->poll_checkpoint().ok());

  EXPECT_THAT(*world.watched->get("a").value(), HasSubstr("the first"));
  EXPECT_NE(world.watched->get("b").value(), std::nullopt);
  EXPECT_EQ(world.watched->get("c").value(), std::nullopt);
  EXPECT_EQ(world.watched->position().value()->next_offset, Offset(2));
}

TEST(KeyValueStore, DoesNothingWhenNothingChangedButRefreshesAnAgeingPosition) {
  WatchedWorld world;
  world.put("a", "1");
  world.commit();
  world.checkpoint();
  world.checkpoint();
  EXPECT_EQ(world.watched->ingests, 1);
  const Timestamp first = world.watched->position().value()->time;

  world.clock.advance(std::chrono::hours(2));
  world.checkpoint();

  EXPECT_EQ(world.watched->ingests, 2);
  EXPECT_EQ(world.watched->position().value()->time, first + 2 * 3'600'000);
}

// Tombstones above the position may be older than the restore: the position must not look younger
// than the checkpoint that the restore began with.
TEST(KeyValueStore, KeepsTheOldTimeInACheckpointInTheMiddleOfARestore) {
  WatchedWorld world;
  world.put("a", "1");
  world.commit();
  world.checkpoint();
  const Timestamp old_time = world.watched->position().value()->time;
  world.put("b", "1");
  world.put("c", "1");
  world.commit();
  world.clock.advance(std::chrono::hours(48));
  world.open();

  ASSERT_TRUE(world.store->restore(world.sink.views(1, 2), position_at(2)).ok());
  world.checkpoint();
  EXPECT_EQ(world.watched->position().value()->next_offset, Offset(2));
  EXPECT_EQ(world.watched->position().value()->time, old_time);

  ASSERT_TRUE(world.store->restore(world.sink.views(2, 3), position_at(3)).ok());
  ASSERT_TRUE(world.store->finish_restore(position_at(3)).ok());
  world.checkpoint();
  EXPECT_EQ(world.watched->position().value()->time, world.clock.now());
}

TEST(KeyValueStore, RestoresMoreThanFitsThroughCheckpointsOnTheWay) {
  WatchedWorld source;
  for (int i = 0; i < 5000; ++i) {
    source.put("key-" + std::to_string(i), "12345678");
  }
  source.commit();
  WatchedWorld world(60'000);
  for (std::size_t at = 0; at < 5000; at += 500) {
    ASSERT_TRUE(world.store->restore(source.sink.views(at, at + 500), position_at(at + 500)).ok());
    EXPECT_LE(world.store->bytes_used(), 60'000U);
  }
  ASSERT_TRUE(world.store->finish_restore(position_at(5000)).ok());

  EXPECT_GT(world.watched->ingests, 0);
  for (int i = 0; i < 5000; i += 11) {
    ASSERT_EQ(world.store->get("key-" + std::to_string(i)).value()->value, "12345678");
  }
}

TEST(KeyValueStore, RefusesAChangelogRecordWithoutKey) {
  WatchedWorld world;
  RecordView record;
  record.value = ByteView("v");
  record.offset = Offset(17);

  const Status restored = world.store->restore(std::span(&record, 1), position_at(18));

  EXPECT_EQ(restored.error().code(), Errc::kInvalidArgument);
  EXPECT_THAT(restored.error().message(), HasSubstr("17"));
}

TEST(KeyValueStore, GivesALostChangelogItsStateAgain) {
  WatchedWorld world;
  for (int i = 0; i < 1000; ++i) {
    world.put(std::to_string(i), "v" + std::to_string(i));
  }
  world.commit();
  world.checkpoint();
  ASSERT_TRUE(world.store->put("7", NullableBytes(), 2).ok());
  world.commit();
  const ChangelogSink::State before = world.sink.fold();
  world.open();
  ASSERT_TRUE(world.store->restore(world.sink.views(1000, 1001), position_at(1001)).ok());
  ChangelogSink fresh;

  ASSERT_TRUE(world.store->rewrite_changelog(fresh, 0, PartitionId(0)).ok());
  ASSERT_TRUE(world.store->finish_restore(position_at(fresh.log.size())).ok());

  EXPECT_EQ(fresh.fold(), before);
  EXPECT_EQ(fresh.log.size(), 999U);
}

TEST(KeyValueStore, ClearsItselfAndItsCheckpoint) {
  WatchedWorld world;
  world.put("a", "1");
  world.commit();
  world.checkpoint();
  world.put("b", "1");
  ASSERT_TRUE(world.store->begin_checkpoint().ok());

  ASSERT_TRUE(world.store->clear().ok());

  EXPECT_EQ(world.store->get("a").value(), std::nullopt);
  EXPECT_EQ(world.store->position(), std::nullopt);
  world.open();
  EXPECT_EQ(world.store->get("a").value(), std::nullopt);
  EXPECT_EQ(world.store->checkpoint_position().value(), std::nullopt);
}

TEST(KeyValueStore, CountsOpenScansAndForgetsThoseThatStopAfterOneRow) {
  StoreWorld world(
      {.name = "direct", .mode = StoreMode::kDirect, .hot_bytes_max = 1U << 20U, .rocksdb = true});
  MetricsRegistry registry;
  const auto handles = world.store->metrics().register_in(registry, "store=\"counts\"");
  const auto open_scans = [&] {
    for (const MetricSample& sample : registry.read()) {
      if (sample.name == "weir_store_open_iterators") {
        return sample.value;
      }
    }
    return -1.0;
  };
  for (int i = 0; i < 100; ++i) {
    world.put(std::to_string(i), "v");
  }
  ASSERT_TRUE(world.commit().ok());
  auto kept = world.store->scan("", std::nullopt).value();
  EXPECT_EQ(open_scans(), 1);

  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(world.store->scan("5", std::nullopt).value()->key(), "5");
  }

  EXPECT_EQ(open_scans(), 1);
  kept.reset();
  EXPECT_EQ(open_scans(), 0);
}

TEST(KeyValueStore, ScansPrefixesUpToTheLastByte) {
  StoreWorld world({.name = "hot"});
  for (const char* key : {"a", "a\xff", "a\xff\xff", "b", "\xff", "\xff\xff"}) {
    world.put(key, "v");
  }
  const auto keys = [&](ByteView prefix) {
    std::vector<std::string> found;
    auto scan = world.store->scan_prefix(prefix).value();
    for (; scan->valid(); scan->next()) {
      found.emplace_back(scan->key());
    }
    return found;
  };

  EXPECT_THAT(keys("a"), ElementsAre("a", "a\xff", "a\xff\xff"));
  EXPECT_THAT(keys("a\xff"), ElementsAre("a\xff", "a\xff\xff"));
  EXPECT_THAT(keys("\xff"), ElementsAre("\xff", "\xff\xff"));
  EXPECT_EQ(keys("").size(), 6U);
}

TEST(KeyValueStore, NeedsACheckpointStoreUnlessItIsInMemory) {
  const weir::testing::ManualClock clock;
  const auto opened = KeyValueStore::open({.name = "counts"}, nullptr, nullptr, clock);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Errc::kInvalidArgument);
  EXPECT_TRUE(
      KeyValueStore::open({.name = "counts", .mode = StoreMode::kMemory}, nullptr, nullptr, clock)
          .ok());
}

TEST(KeyValueStore, SpreadsHashesOfSimilarKeys) {
  std::vector<int> buckets(1024);
  for (int i = 0; i < 102'400; ++i) {
    const std::uint64_t hash = KeyValueStore::hash("word-" + std::to_string(i));
    ++buckets[(hash >> 32U) & 1023U];
  }
  for (const int count : buckets) {
    EXPECT_GT(count, 50);
    EXPECT_LT(count, 170);
  }
}

}  // namespace
}  // namespace weir::state::testing
