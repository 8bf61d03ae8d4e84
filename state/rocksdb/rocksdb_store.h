#pragma once

#include "state/rocksdb/database_core.h"

#include <weir/state/checkpoint_store.h>

#include <memory>
#include <string>
#include <string_view>

namespace weir::state {

// A store partition's checkpoint in a column family (docs/formats/store.md).
class RocksDbStore final : public CheckpointStore {
 public:
  RocksDbStore(std::shared_ptr<DatabaseOwner> owner, std::string name, std::uint64_t epoch);

  Result<std::optional<StorePosition>> position() override;
  Result<std::optional<std::string>> get(ByteView key) override;
  Result<std::vector<std::optional<std::string>>> get_many(
      const std::vector<ByteView>& keys) override;
  Result<std::unique_ptr<CheckpointIterator>> scan(ByteView from,
                                                   std::optional<ByteView> to) override;
  Status ingest(const std::function<bool(StoreChange&)>& next,
                const StorePosition& position) override;
  Status write(const std::vector<StoreChange>& changes, const StorePosition& position) override;
  Status flush() override;
  Status clear() override;
  std::uint64_t estimated_keys() override;

 private:
  std::string doing(std::string_view what) const;
  // Runs a write; a failure is remembered, so that the next one opens the database again.
  template <class Call>
  Status writing(std::string_view what, Call call);
  Status build_file(DatabaseCore& core, const std::string& path,
                    const std::function<bool(StoreChange&)>& next, const StorePosition& position);
  Status ingest_file(DatabaseCore& core, const std::function<bool(StoreChange&)>& next,
                     const StorePosition& position);
  Status write_batch(DatabaseCore& core, const std::vector<StoreChange>& changes,
                     const StorePosition& position);

  std::shared_ptr<DatabaseOwner> owner_;  // shared by the stores and the database object
  std::string name_;
  std::uint64_t epoch_;
};

}  // namespace weir::state
