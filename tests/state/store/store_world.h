#pragma once

#include "tests/state/store/changelog_sink.h"

#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/manual_executor.h>
#include <weir/runtime/testing/memory_file_system.h>
#include <weir/state/key_value_store.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace weir::state::testing {

struct StoreCase {
  std::string name;
  StoreMode mode = StoreMode::kHot;
  std::size_t hot_bytes_max = 1U << 30U;
  bool rocksdb = false;
};

// One store with all that it stands on; can crash and come back.
class StoreWorld {
 public:
  explicit StoreWorld(const StoreCase& store_case) : case_(store_case) { open(); }
  ~StoreWorld() {
    store.reset();
    checkpoints.reset();
    database.reset();
  }
  StoreWorld(const StoreWorld&) = delete;
  StoreWorld& operator=(const StoreWorld&) = delete;

  void open() {
    if (case_.mode != StoreMode::kMemory) {
      open_checkpoints();
    }
    const StoreOptions options{
        .name = "counts", .mode = case_.mode, .hot_bytes_max = case_.hot_bytes_max};
    auto opened = KeyValueStore::open(options, checkpoints.get(), &executor, clock);
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    store = std::move(opened).value();
  }

  // kill -9: what was written to files survives, nothing else.
  void crash() {
    files.process_crash();
    store.reset();
    checkpoints.reset();
    if (case_.rocksdb) {
      database.reset();
    }
    open();
  }

  Status commit() {
    if (Status written = store->write_changelog(sink, 0, PartitionId(0)); !written.ok()) {
      return written;
    }
    return store->promote(position_at(sink.log.size()));
  }

  void put(const std::string& key, const std::string& value, Timestamp timestamp = 1) {
    const Status done = store->put(key, ByteView(value), timestamp);
    ASSERT_TRUE(done.ok()) << done.error().to_string();
  }
  void remove(const std::string& key, Timestamp timestamp = 1) {
    const Status done = store->put(key, NullableBytes(), timestamp);
    ASSERT_TRUE(done.ok()) << done.error().to_string();
  }
  std::optional<std::string> get(const std::string& key) {
    const Result<NullableValue> value = store->get(key);
    EXPECT_TRUE(value.ok());
    return value.ok() && value->has_value() ? std::optional<std::string>((*value)->value)
                                            : std::nullopt;
  }
  ChangelogSink::State scan(ReadView view) {
    ChangelogSink::State rows;
    auto all = store->scan(ByteView(), std::nullopt, view);
    EXPECT_TRUE(all.ok());
    std::optional<std::string> last;
    for (; (*all)->valid(); (*all)->next()) {
      const std::string key((*all)->key());
      EXPECT_TRUE(!last.has_value() || *last < key) << "not in order";
      last = key;
      rows[key] = {std::string((*all)->value()), (*all)->timestamp()};
    }
    EXPECT_TRUE((*all)->status().ok());
    return rows;
  }

  StoreCase case_;
  weir::testing::ManualClock clock;
  weir::testing::ManualExecutor executor{clock};
  weir::testing::MemoryFileSystem files;
  ChangelogSink sink;
  std::unique_ptr<CheckpointDatabase> database;
  std::unique_ptr<CheckpointStore> checkpoints;
  std::unique_ptr<KeyValueStore> store;

 private:
  void open_checkpoints() {
    if (database == nullptr && case_.rocksdb) {
      auto opened = open_rocksdb_checkpoints(files, "state/app", {});
      ASSERT_TRUE(opened.ok()) << opened.error().to_string();
      database = std::move(opened).value();
    } else if (database == nullptr) {
      database = make_memory_checkpoints();
    }
    auto opened = database->open_store("counts-0");
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    checkpoints = std::move(opened).value();
  }
};

}  // namespace weir::state::testing
