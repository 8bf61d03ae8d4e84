#include "tests/state/store/changelog_sink.h"

#include <weir/runtime/rng.h>
#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_file_system.h>
#include <weir/state/key_value_store.h>

#include <gtest/gtest.h>

#include <map>

namespace weir::state::testing {
namespace {

std::string stored(Timestamp timestamp, const std::string& value) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(static_cast<std::uint64_t>(timestamp) >> (56U - 8U * i));
  }
  return bytes + value;
}

// Commits go on while another thread copies, sorts and ingests: each checkpoint holds exactly the
// state of the commit at which it began.
class CheckpointConcurrency : public ::testing::TestWithParam<bool> {};

TEST_P(CheckpointConcurrency, WritesTheStateOfTheCommitAtWhichItBegan) {
  constexpr int kRounds = 30;
  constexpr std::uint64_t kKeys = 3000;
  const std::uint64_t seed = 42;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  const weir::testing::ManualClock clock;
  weir::testing::MemoryFileSystem files;
  auto database =
      GetParam() ? open_rocksdb_checkpoints(files, "state", {}).value() : make_memory_checkpoints();
  auto checkpoints = database->open_store("counts-0").value();
  auto executor = make_asio_executor(1);
  auto store =
      KeyValueStore::open({.name = "counts"}, checkpoints.get(), executor.get(), clock).value();
  ChangelogSink sink;
  std::map<std::string, std::string> model;
  const auto commit = [&](std::uint64_t changes) {
    for (std::uint64_t i = 0; i < changes; ++i) {
      const std::string key = "key-" + std::to_string(rng.below(kKeys));
      const Timestamp timestamp = rng.between(0, 1000);
      if (rng.chance(1, 10)) {
        ASSERT_TRUE(store->put(key, NullableBytes(), timestamp).ok());
        model.erase(key);
        continue;
      }
      const std::string value(rng.chance(1, 2) ? 8 : rng.below(60),
                              static_cast<char>('a' + i % 26));
      ASSERT_TRUE(store->put(key, ByteView(value), timestamp).ok());
      model[key] = stored(timestamp, value);
    }
    ASSERT_TRUE(store->write_changelog(sink, 0, PartitionId(0)).ok());
    ASSERT_TRUE(store->promote(position_at(sink.log.size())).ok());
  };

  int overlapped = 0;
  for (int round = 0; round < kRounds; ++round) {
    commit(kKeys);
    const std::map<std::string, std::string> frozen = model;
    const Offset frozen_at = store->position()->next_offset;
    ASSERT_TRUE(store->begin_checkpoint().ok());
    for (int i = 0; i < 3; ++i) {
      overlapped += store->checkpoint_running() ? 1 : 0;
      commit(kKeys / 2);
    }
    ASSERT_TRUE(store->wait_checkpoint().ok());

    std::map<std::string, std::string> written;
    auto scan = checkpoints->scan("", std::nullopt).value();
    for (; scan->valid(); scan->next()) {
      written.emplace(scan->key(), scan->value());
    }
    ASSERT_EQ(written, frozen) << "round " << round;
    ASSERT_EQ(checkpoints->position().value()->next_offset, frozen_at);
  }
  EXPECT_GT(overlapped, kRounds / 2);
}

TEST_P(CheckpointConcurrency, WaitsForARunningCheckpointWhenTheStoreIsDestroyed) {
  const weir::testing::ManualClock clock;
  weir::testing::MemoryFileSystem files;
  auto database =
      GetParam() ? open_rocksdb_checkpoints(files, "state", {}).value() : make_memory_checkpoints();
  auto checkpoints = database->open_store("counts-0").value();
  for (int round = 0; round < 10; ++round) {
    auto executor = make_asio_executor(1);
    auto store =
        KeyValueStore::open({.name = "counts"}, checkpoints.get(), executor.get(), clock).value();
    for (int i = 0; i < 2000; ++i) {
      ASSERT_TRUE(store->put("key-" + std::to_string(i), ByteView("value"), round).ok());
    }
    const auto offset = static_cast<std::size_t>(round + 1);
    ASSERT_TRUE(store->promote(position_at(offset)).ok());
    ASSERT_TRUE(store->begin_checkpoint().ok());
    store.reset();
    executor.reset();

    // All of a checkpoint or nothing of it.
    const std::optional<StorePosition> position = checkpoints->position().value();
    const std::optional<std::string> value = checkpoints->get("key-0").value();
    ASSERT_EQ(position.has_value(), value.has_value());
    if (position.has_value()) {
      ASSERT_EQ(position->next_offset.value() - 1, value->at(7));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(BothDatabases, CheckpointConcurrency, ::testing::Values(false, true),
                         [](const auto& instance) {
                           return instance.param ? "RocksDb" : "Memory";
                         });

}  // namespace
}  // namespace weir::state::testing
