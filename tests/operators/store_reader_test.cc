#include "tests/operators/support/app_world.h"

#include <weir/operators/store_reader.h>
#include <weir/runtime/endian.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace weir::test {
namespace {

using ::testing::HasSubstr;

struct ReaderWorld : World {
  ReaderWorld() {
    make_topic("lines", 3);
    make_topic("word-counts", 1);
  }
  void run(const std::vector<std::string>& lines, bool clean_stop) {
    produce_lines(lines);
    const std::unique_ptr<App> app = make_app(word_count(), options());
    ASSERT_TRUE(app->start().ok());
    ASSERT_TRUE(drain(*this, *app).ok());
    if (clean_stop) {
      ASSERT_TRUE(app->stop(std::chrono::seconds(1)).ok());
    }
  }
  Result<std::unique_ptr<StoreReader>> open(const std::string& store = "counts",
                                            const std::string& application = "wc") {
    return StoreReader::open(
        memory, files, {.state_dir = "/state", .application_id = application, .store = store});
  }
};

Counts scan_all(StoreReader& reader, std::vector<std::string>* order = nullptr) {
  Counts counts;
  const Status scanned = reader.scan({}, {}, [&](const StoreReader::Row& row) {
    counts[row.key] = load_be<std::int64_t>(row.value.data());
    if (order != nullptr) {
      order->push_back(row.key);
    }
    return true;
  });
  EXPECT_TRUE(scanned.ok());
  return counts;
}

TEST(StoreReader, ReadsTheCheckpointAfterACleanStop) {
  ReaderWorld world;
  world.run({"b a", "c a", "d"}, true);
  const std::unique_ptr<StoreReader> reader = world.open().value();

  EXPECT_EQ(reader->key_serde(), "string");
  EXPECT_EQ(reader->value_serde(), "long");
  const std::optional<StoreReader::Row> row = reader->get("a").value();
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(load_be<std::int64_t>(row->value.data()), 2);
  EXPECT_EQ(row->timestamp, 1000);
  EXPECT_FALSE(reader->get("nothing").value().has_value());
}

TEST(StoreReader, MergesAllPartitionsInOrderOfTheKey) {
  ReaderWorld world;
  world.run({"b a", "c a", "d e f g h i j k"}, true);
  const std::unique_ptr<StoreReader> reader = world.open().value();
  std::vector<std::string> order;

  const Counts counts = scan_all(*reader, &order);

  EXPECT_EQ(counts, count_words({"b a", "c a", "d e f g h i j k"}));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(StoreReader, LaysTheChangelogsTailOverTheCheckpoint) {
  ReaderWorld world;
  world.run({"b a", "c a"}, true);
  world.run({"a", "z"}, false);
  const std::unique_ptr<StoreReader> reader = world.open().value();

  EXPECT_EQ(scan_all(*reader), count_words({"b a", "c a", "a", "z"}));
  EXPECT_EQ(load_be<std::int64_t>(reader->get("a").value()->value.data()), 3);
}

TEST(StoreReader, ScansFromTo) {
  ReaderWorld world;
  world.run({"a b c d"}, true);
  const std::unique_ptr<StoreReader> reader = world.open().value();
  std::vector<std::string> keys;

  const Status scanned = reader->scan("b", "d", [&](const StoreReader::Row& row) {
    keys.push_back(row.key);
    return true;
  });

  EXPECT_TRUE(scanned.ok());
  EXPECT_EQ(keys, (std::vector<std::string>{"b", "c"}));
}

TEST(StoreReader, NamesWhatThereIs) {
  ReaderWorld world;
  world.run({"a"}, true);

  const auto no_store = world.open("cuonts");
  const auto no_application = world.open("counts", "other");

  EXPECT_EQ(no_store.error().code(), Errc::kNotFound);
  EXPECT_THAT(no_store.error().message(), HasSubstr("counts"));
  EXPECT_EQ(no_application.error().code(), Errc::kNotFound);
  EXPECT_THAT(no_application.error().message(), HasSubstr("wc"));
}

}  // namespace
}  // namespace weir::test
