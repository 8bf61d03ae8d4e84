#include "state/checkpoint/position_record.h"
#include "tests/state/store/changelog_sink.h"

#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>
#include <weir/runtime/testing/memory_file_system.h>
#include <weir/state/checkpoint_store.h>

#include <gtest/gtest.h>

namespace weir::state {
namespace {

using testing::position_at;

StoreChange change(ByteView key, ByteView value) {
  return {.key = key, .value = value};
}
StoreChange deletion(ByteView key) {
  return {.key = key, .value = {}};
}

Status ingest(CheckpointStore& store, const std::vector<StoreChange>& changes,
              const StorePosition& position) {
  std::size_t at = 0;
  return store.ingest(
      [&](StoreChange& next) {
        if (at == changes.size()) {
          return false;
        }
        next = changes[at++];
        return true;
      },
      position);
}

std::vector<std::pair<std::string, std::string>> rows(CheckpointStore& store, ByteView from,
                                                      std::optional<ByteView> to) {
  std::vector<std::pair<std::string, std::string>> all;
  auto scan = store.scan(from, to);
  EXPECT_TRUE(scan.ok());
  for (; (*scan)->valid(); (*scan)->next()) {
    all.emplace_back((*scan)->key(), (*scan)->value());
  }
  EXPECT_TRUE((*scan)->status().ok());
  return all;
}

class CheckpointStoreTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { open(); }
  void open() {
    if (GetParam()) {
      auto opened = open_rocksdb_checkpoints(files_, "data/state", {});
      ASSERT_TRUE(opened.ok()) << opened.error().to_string();
      database_ = std::move(opened).value();
    } else if (database_ == nullptr) {
      database_ = make_memory_checkpoints();
    }
    auto store = database_->open_store("counts-0");
    ASSERT_TRUE(store.ok()) << store.error().to_string();
    store_ = std::move(store).value();
  }
  // Closes and opens again; the twin in memory just stays.
  void reopen() {
    store_.reset();
    if (GetParam()) {
      const Status closed = database_->close();
      ASSERT_TRUE(closed.ok()) << closed.error().to_string();
    }
    open();
  }

  weir::testing::MemoryFileSystem files_;
  std::unique_ptr<CheckpointDatabase> database_;
  std::unique_ptr<CheckpointStore> store_;
};

TEST_P(CheckpointStoreTest, HasNoPositionAndNoKeysWhenNew) {
  EXPECT_EQ(store_->position().value(), std::nullopt);
  EXPECT_EQ(store_->get("a").value(), std::nullopt);
  EXPECT_TRUE(rows(*store_, "", std::nullopt).empty());
}

TEST_P(CheckpointStoreTest, GivesIngestedKeysAndPositionAlsoAfterReopening) {
  ASSERT_TRUE(
      ingest(*store_, {change("a", "1"), change("b", ""), change("c", "3")}, position_at(3)).ok());

  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(store_->position().value(), position_at(3));
    EXPECT_EQ(store_->get("a").value(), "1");
    EXPECT_EQ(store_->get("b").value(), "");
    EXPECT_EQ(store_->get("").value(), std::nullopt);
    reopen();
  }
}

TEST_P(CheckpointStoreTest, LaterIngestsOverwriteAndDelete) {
  ASSERT_TRUE(ingest(*store_, {change("a", "1"), change("b", "2")}, position_at(2)).ok());
  ASSERT_TRUE(ingest(*store_, {deletion("a"), change("b", "9")}, position_at(4)).ok());

  const std::vector<std::optional<std::string>> values = store_->get_many({"b", "a", "b"}).value();

  EXPECT_EQ(values, (std::vector<std::optional<std::string>>{"9", std::nullopt, "9"}));
  EXPECT_EQ(store_->position().value(), position_at(4));
}

TEST_P(CheckpointStoreTest, IngestsAPositionAlone) {
  ASSERT_TRUE(ingest(*store_, {}, position_at(7)).ok());
  EXPECT_EQ(store_->position().value(), position_at(7));
  EXPECT_TRUE(rows(*store_, "", std::nullopt).empty());
}

TEST_P(CheckpointStoreTest, RefusesKeysOutOfOrderAndGoesOnAfterwards) {
  EXPECT_FALSE(ingest(*store_, {change("b", "1"), change("a", "2")}, position_at(2)).ok());
  EXPECT_EQ(store_->position().value(), std::nullopt);
  EXPECT_EQ(store_->get("b").value(), std::nullopt);

  EXPECT_TRUE(ingest(*store_, {change("a", "2")}, position_at(2)).ok());
  EXPECT_EQ(store_->get("a").value(), "2");
}

TEST_P(CheckpointStoreTest, WritesAreVisibleAtOnceAndDurableAfterFlush) {
  ASSERT_TRUE(store_->write({change("k", "1"), change("l", "2")}, position_at(2)).ok());
  ASSERT_TRUE(store_->write({deletion("k")}, position_at(3)).ok());
  EXPECT_EQ(store_->get("k").value(), std::nullopt);
  ASSERT_TRUE(store_->flush().ok());

  files_.process_crash();
  store_.reset();
  if (GetParam()) {
    database_.reset();
  }
  open();

  EXPECT_EQ(store_->get("l").value(), "2");
  EXPECT_EQ(store_->get("k").value(), std::nullopt);
  EXPECT_EQ(store_->position().value(), position_at(3));
}

TEST_P(CheckpointStoreTest, ScansHalfOpenRangesInByteOrder) {
  ASSERT_TRUE(ingest(*store_,
                     {change("", "0"), change(ByteView("\0", 1), "1"), change("a", "2"),
                      change("ab", "3"), change("b", "4"), change("\xff", "5")},
                     position_at(6))
                  .ok());

  using Rows = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(rows(*store_, "a", "b"), (Rows{{"a", "2"}, {"ab", "3"}}));
  EXPECT_EQ(rows(*store_, "", "a"), (Rows{{"", "0"}, {std::string(1, '\0'), "1"}}));
  EXPECT_EQ(rows(*store_, "b", std::nullopt), (Rows{{"b", "4"}, {"\xff", "5"}}));
  EXPECT_EQ(rows(*store_, "", std::nullopt).size(), 6U);
}

TEST_P(CheckpointStoreTest, ScansManyBlocksOfRowsWithoutLossOrRepeat) {
  std::vector<std::string> keys;
  for (int i = 100'000; i < 109'000; ++i) {
    keys.push_back(std::to_string(i));
  }
  std::vector<StoreChange> changes;
  for (const std::string& key : keys) {
    changes.push_back(change(key, ByteView(key)));
  }
  ASSERT_TRUE(ingest(*store_, changes, position_at(9000)).ok());

  const auto all = rows(*store_, "", std::nullopt);

  ASSERT_EQ(all.size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(all[i].first, keys[i]);
  }
  EXPECT_GT(store_->estimated_keys(), 8000U);
}

TEST_P(CheckpointStoreTest, ClearRemovesKeysAndPositionAlsoAfterReopening) {
  ASSERT_TRUE(ingest(*store_, {change("a", "1")}, position_at(1)).ok());
  auto open_scan = store_->scan("", std::nullopt);
  ASSERT_TRUE(store_->clear().ok());

  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(store_->position().value(), std::nullopt);
    EXPECT_EQ(store_->get("a").value(), std::nullopt);
    open_scan.value().reset();
    reopen();
  }
  ASSERT_TRUE(ingest(*store_, {change("b", "1")}, position_at(1)).ok());
  EXPECT_EQ(store_->get("b").value(), "1");
}

TEST_P(CheckpointStoreTest, StoresOfOneDatabaseAreApart) {
  auto other = database_->open_store("counts-1").value();
  ASSERT_TRUE(ingest(*store_, {change("a", "1")}, position_at(1)).ok());
  ASSERT_TRUE(ingest(*other, {change("a", "2")}, position_at(2)).ok());

  EXPECT_EQ(store_->get("a").value(), "1");
  EXPECT_EQ(other->get("a").value(), "2");
  EXPECT_EQ(database_->list_stores().value(), (std::vector<std::string>{"counts-0", "counts-1"}));
}

INSTANTIATE_TEST_SUITE_P(BothDatabases, CheckpointStoreTest, ::testing::Values(false, true),
                         [](const auto& instance) {
                           return instance.param ? "RocksDb" : "Memory";
                         });

// Bytes worked out by hand from docs/formats/store.md and the protobuf encoding; the CRC-32C comes
// from the catalogue's algorithm (CRC-32/ISCSI) run in Python.
constexpr unsigned char kPositionBytes[] = {
    0x5f, 0x13, 0x91, 0x2c, 0x08, 0x01, 0x12, 0x10, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
    0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x18, 0x88, 0x8e, 0x98, 0xa8, 0xc0,
    0xe0, 0x80, 0x81, 0x01, 0x20, 0x12, 0x28, 0x80, 0xa0, 0xab, 0xfe, 0xf9, 0x62};

std::string with_crc(std::string message) {
  std::string bytes(4, '\0');
  store_be(bytes.data(), crc32c(message));
  return bytes + message;
}

TEST(PositionRecord, HasTheDocumentedLayout) {
  StorePosition position;
  for (std::size_t i = 0; i < 16; ++i) {
    position.changelog_topic_id.bytes[i] = static_cast<std::uint8_t>(i);
  }
  position.next_offset = Offset(0x0102030405060708);
  position.leader_epoch = LeaderEpoch(9);
  position.time = 1'700'000'000'000;

  const std::string bytes = encode_position(position);

  EXPECT_EQ(bytes, ByteView(reinterpret_cast<const char*>(kPositionBytes), sizeof(kPositionBytes)));
  EXPECT_EQ(decode_position(bytes).value(), position);
}

TEST(PositionRecord, KeepsUnknownValues) {
  EXPECT_EQ(decode_position(encode_position(StorePosition{})).value(), StorePosition{});
}

TEST(PositionRecord, RefusesDamageAndNewerFormats) {
  const std::string bytes = encode_position(position_at(5));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_EQ(decode_position(damaged).error().code(), Errc::kCorrupt) << "byte " << i;
    EXPECT_EQ(decode_position(bytes.substr(0, i)).error().code(), Errc::kCorrupt) << i << " bytes";
  }
  // By tag: 0x08 is field 1 (format), 0x12 field 2 (topic id).
  EXPECT_EQ(decode_position(with_crc("\x08\x02")).error().code(), Errc::kUnsupported);
  EXPECT_EQ(decode_position(with_crc("")).error().code(), Errc::kCorrupt) << "no format";
  EXPECT_EQ(decode_position(with_crc("\x08\x01\x12\x01x")).error().code(), Errc::kCorrupt)
      << "an id of one byte";
  EXPECT_EQ(decode_position(with_crc("\x08\x01\x12\x10x")).error().code(), Errc::kCorrupt)
      << "cut inside";
}

}  // namespace
}  // namespace weir::state
