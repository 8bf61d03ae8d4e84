#include "state/rocksdb/database_core.h"
#include "state/rocksdb/rocksdb_store.h"

#include <weir/state/checkpoint_store.h>

#include <fmt/core.h>

#include <exception>
#include <utility>

namespace weir::state {
namespace {

class RocksDbDatabase final : public CheckpointDatabase {
 public:
  explicit RocksDbDatabase(std::shared_ptr<DatabaseOwner> owner) : owner_(std::move(owner)) {}

  Result<std::unique_ptr<CheckpointStore>> open_store(const std::string& name) override {
    WEIR_TRY_ASSIGN(const std::uint64_t epoch, owner_->open_store(name));
    return std::unique_ptr<CheckpointStore>(std::make_unique<RocksDbStore>(owner_, name, epoch));
  }
  Result<std::vector<std::string>> list_stores() override { return owner_->store_names(); }
  Status close() override { return owner_->close(); }

 private:
  std::shared_ptr<DatabaseOwner> owner_;  // shared with its stores
};

// Checkpoints that a crash interrupted before they were ingested.
Status remove_leftovers(weir::FileSystem& files, const std::string& path) {
  WEIR_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, files.list(path));
  for (const DirectoryEntry& entry : entries) {
    if (entry.kind == FileKind::kFile && entry.name.ends_with(FileSystemAdapter::kIngestSuffix)) {
      WEIR_TRY(files.remove_file(join_path(path, entry.name)));
    }
  }
  return {};
}

// Makes the folder with its parents, durably: a checkpoint must not vanish with a folder's name.
Status make_folder(weir::FileSystem& files, const std::string& path) {
  std::vector<std::string> made;
  for (std::string at = path; at != "." && at != "/" && !path_exists(files, at);
       at = parent_path(at)) {
    made.push_back(at);
  }
  WEIR_TRY(files.create_directories(path));
  for (auto at = made.rbegin(); at != made.rend(); ++at) {
    WEIR_TRY(files.sync_directory(parent_path(*at)));
  }
  return {};
}

// Beside a running owner files may vanish between the reading of the manifest and their opening.
bool may_pass(Errc code) {
  return code == Errc::kNotFound || code == Errc::kIo || code == Errc::kCorrupt;
}

Result<std::unique_ptr<DatabaseCore>> open_read_only(weir::FileSystem& files,
                                                     const std::string& path,
                                                     const CheckpointDatabaseOptions& options) {
  constexpr int kAttempts = 20;
  for (int attempt = 1;; ++attempt) {
    auto opened = DatabaseCore::open(files, path, options);
    if (opened.ok() || attempt == kAttempts || !may_pass(opened.error().code()) ||
        !path_exists(files, join_path(path, "CURRENT"))) {
      return opened;
    }
  }
}

Result<std::unique_ptr<DatabaseCore>> open_for_writing(weir::FileSystem& files,
                                                       const std::string& path,
                                                       const CheckpointDatabaseOptions& options) {
  WEIR_TRY(make_folder(files, path));
  WEIR_TRY_ASSIGN(std::unique_ptr<DatabaseCore> core, DatabaseCore::open(files, path, options));
  WEIR_TRY(remove_leftovers(files, path));  // the lock is ours
  return core;
}

}  // namespace

Result<std::unique_ptr<CheckpointDatabase>> open_rocksdb_checkpoints(
    weir::FileSystem& files, const std::string& path, const CheckpointDatabaseOptions& options) {
  try {
    WEIR_TRY_ASSIGN(std::unique_ptr<DatabaseCore> core,
                    options.read_only ? open_read_only(files, path, options)
                                      : open_for_writing(files, path, options));
    return std::unique_ptr<CheckpointDatabase>(std::make_unique<RocksDbDatabase>(
        std::make_shared<DatabaseOwner>(files, path, options, std::move(core))));
  } catch (const std::exception& problem) {
    return Error(Errc::kInternal, fmt::format("open checkpoints in {}: {}", path, problem.what()));
  }
}

}  // namespace weir::state
