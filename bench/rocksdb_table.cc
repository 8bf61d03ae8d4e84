#include "bench/rocksdb_table.h"

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <cstring>

namespace weir::bench {
namespace {

Status to_status(const rocksdb::Status& status) {
  return status.ok() ? Status() : Error(Errc::kIo, "RocksDB: " + status.ToString());
}

std::int64_t number_in(const rocksdb::Slice& bytes) {
  std::int64_t number = 0;
  std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof(number)));
  return number;
}

class Table final : public RocksDbTable {
 public:
  explicit Table(rocksdb::DB* db) : db_(db) { write_.disableWAL = true; }

  Result<std::optional<std::int64_t>> get(std::string_view key) override {
    const rocksdb::Status found = db_->Get(rocksdb::ReadOptions(), db_->DefaultColumnFamily(),
                                           rocksdb::Slice(key.data(), key.size()), &value_);
    if (found.IsNotFound()) {
      return std::optional<std::int64_t>();
    }
    WEIR_TRY(to_status(found));
    const std::int64_t number = number_in(value_);
    value_.Reset();
    return std::optional<std::int64_t>(number);
  }

  Status put(std::string_view key, std::int64_t value) override {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    return to_status(db_->Put(write_, rocksdb::Slice(key.data(), key.size()),
                              rocksdb::Slice(bytes, sizeof(bytes))));
  }

  Status flush() override { return to_status(db_->Flush(rocksdb::FlushOptions())); }

  Result<Totals> scan() override {
    Totals totals;
    const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator(rocksdb::ReadOptions()));
    for (rows->SeekToFirst(); rows->Valid(); rows->Next()) {
      ++totals.keys;
      totals.sum += number_in(rows->value());
    }
    WEIR_TRY(to_status(rows->status()));
    return totals;
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteOptions write_;
  rocksdb::PinnableSlice value_;
};

}  // namespace

Result<std::unique_ptr<RocksDbTable>> RocksDbTable::open(const std::string& folder) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.info_log_level = rocksdb::ERROR_LEVEL;
  rocksdb::DB* db = nullptr;
  WEIR_TRY(to_status(rocksdb::DB::Open(options, folder + "/rocksdb", &db)));
  return std::unique_ptr<RocksDbTable>(std::make_unique<Table>(db));
}

}  // namespace weir::bench
