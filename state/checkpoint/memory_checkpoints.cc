#include <weir/runtime/thread_annotations.h>
#include <weir/state/checkpoint_store.h>

#include <fmt/core.h>

#include <map>
#include <set>
#include <utility>

namespace weir::state {
namespace {

// One store partition's table. Outlives the CheckpointStore objects opened on it, as files would.
struct Table {
  Mutex mutex;
  std::map<std::string, std::string, std::less<>> values WEIR_GUARDED_BY(mutex);
  std::optional<StorePosition> position WEIR_GUARDED_BY(mutex);
};

std::string owned_key(ByteView key) {
  return std::string(key);
}

// Sees the table as it was when the scan began, as RocksDB's iterators do.
class MemoryIterator final : public CheckpointIterator {
 public:
  explicit MemoryIterator(std::vector<std::pair<std::string, std::string>> rows)
      : rows_(std::move(rows)) {}
  bool valid() const override { return at_ < rows_.size(); }
  ByteView key() const override { return rows_[at_].first; }
  ByteView value() const override { return rows_[at_].second; }
  void next() override { ++at_; }
  Status status() const override { return {}; }

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
  std::size_t at_ = 0;
};

class MemoryStore final : public CheckpointStore {
 public:
  explicit MemoryStore(std::shared_ptr<Table> table) : table_(std::move(table)) {}

  Result<std::optional<StorePosition>> position() override {
    const MutexLock lock(table_->mutex);
    return table_->position;
  }

  Result<std::optional<std::string>> get(ByteView key) override {
    const MutexLock lock(table_->mutex);
    return find(key);
  }

  Result<std::vector<std::optional<std::string>>> get_many(
      const std::vector<ByteView>& keys) override {
    const MutexLock lock(table_->mutex);
    std::vector<std::optional<std::string>> values;
    for (const ByteView key : keys) {
      values.push_back(find(key));
    }
    return values;
  }

  Result<std::unique_ptr<CheckpointIterator>> scan(ByteView from,
                                                   std::optional<ByteView> to) override {
    const MutexLock lock(table_->mutex);
    std::vector<std::pair<std::string, std::string>> rows;
    for (auto at = table_->values.lower_bound(from);
         at != table_->values.end() && (!to.has_value() || at->first < *to); ++at) {
      rows.emplace_back(*at);
    }
    return std::unique_ptr<CheckpointIterator>(std::make_unique<MemoryIterator>(std::move(rows)));
  }

  Status ingest(const std::function<bool(StoreChange&)>& next,
                const StorePosition& position) override {
    // Collected first: the changes and the position become visible together.
    std::vector<std::pair<std::string, std::optional<std::string>>> changes;
    StoreChange change;
    while (next(change)) {
      if (!changes.empty() && change.key <= changes.back().first) {
        return Error(Errc::kInvalidArgument, "ingest: keys are not strictly ascending");
      }
      changes.emplace_back(owned_key(change.key), change.value.to_owned());
    }
    const MutexLock lock(table_->mutex);
    for (auto& [key, value] : changes) {
      apply(key, value);
    }
    table_->position = position;
    return {};
  }

  Status write(const std::vector<StoreChange>& changes, const StorePosition& position) override {
    const MutexLock lock(table_->mutex);
    for (const StoreChange& change : changes) {
      apply(owned_key(change.key), change.value.to_owned());
    }
    table_->position = position;
    return {};
  }

  Status flush() override { return {}; }

  Status clear() override {
    const MutexLock lock(table_->mutex);
    table_->values.clear();
    table_->position.reset();
    return {};
  }

  std::uint64_t estimated_keys() override {
    const MutexLock lock(table_->mutex);
    return table_->values.size();
  }

 private:
  std::optional<std::string> find(ByteView key) const WEIR_REQUIRES(table_->mutex) {
    const auto found = table_->values.find(key);
    return found == table_->values.end() ? std::nullopt : std::optional(found->second);
  }
  void apply(const std::string& key, const std::optional<std::string>& value)
      WEIR_REQUIRES(table_->mutex) {
    if (value.has_value()) {
      table_->values[key] = *value;
    } else {
      table_->values.erase(key);
    }
  }

  // Shared with the database, so that a store opened again finds it.
  std::shared_ptr<Table> table_;
};

class MemoryDatabase final : public CheckpointDatabase {
 public:
  Result<std::unique_ptr<CheckpointStore>> open_store(const std::string& name) override {
    const MutexLock lock(mutex_);
    std::shared_ptr<Table>& table = tables_[name];
    if (table == nullptr) {
      table = std::make_shared<Table>();
    }
    return std::unique_ptr<CheckpointStore>(std::make_unique<MemoryStore>(table));
  }

  Result<std::vector<std::string>> list_stores() override {
    const MutexLock lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, table] : tables_) {
      names.push_back(name);
    }
    return names;
  }

  Status close() override { return {}; }

 private:
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Table>> tables_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<CheckpointDatabase> make_memory_checkpoints() {
  return std::make_unique<MemoryDatabase>();
}

}  // namespace weir::state
