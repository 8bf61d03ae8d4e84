#pragma once

#include "operators/plan/recorded_plan.h"

#include <weir/operators/app.h>
#include <weir/state/checkpoint_store.h>
#include <weir/state/key_value_store.h>

#include <memory>
#include <optional>
#include <string>

namespace weir::internal {

// The folder of one application id: <state.dir>/<application.id>/
//   lock         held while the application runs
//   plan.binpb   RecordedPlan
//   rocksdb/     one database, a column family for each store partition
// Threading: thread-safe; write_plan() from one thread at a time.
class StateDirectory {
 public:
  // Makes the folder and locks it. Errors: kLocked (names the holder), kIo, kNoSpace, kCorrupt.
  static Result<std::unique_ptr<StateDirectory>> open(FileSystem& files, const AppOptions& options);
  ~StateDirectory();
  StateDirectory(const StateDirectory&) = delete;
  StateDirectory& operator=(const StateDirectory&) = delete;

  static std::string path_of(const std::string& state_dir, const std::string& application_id);
  static std::string database_path(const std::string& folder);
  static std::string lock_path(const std::string& folder);

  // nullopt: never recorded. Errors: kCorrupt, kUnsupported, kIo.
  Result<std::optional<RecordedPlan>> read_plan();
  // Durable when ok.
  Status write_plan(const RecordedPlan& plan);
  // Null in mode `memory`.
  state::CheckpointDatabase* database() { return database_.get(); }
  // Closes the database and lets the lock go.
  Status close();

 private:
  StateDirectory(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<state::CheckpointDatabase> database_;
};

state::StoreMode store_mode_of(const AppOptions& options);

}  // namespace weir::internal
