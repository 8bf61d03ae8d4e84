#include "operators/app/state_directory.h"

#include <fmt/core.h>

#include <unistd.h>
#include <utility>

namespace weir::internal {

state::StoreMode store_mode_of(const AppOptions& options) {
  if (options.store_mode == "direct") {
    return state::StoreMode::kDirect;
  }
  return options.store_mode == "memory" ? state::StoreMode::kMemory : state::StoreMode::kHot;
}

std::string StateDirectory::path_of(const std::string& state_dir,
                                    const std::string& application_id) {
  return join_path(state_dir, application_id);
}

std::string StateDirectory::database_path(const std::string& folder) {
  return join_path(folder, "rocksdb");
}

std::string StateDirectory::lock_path(const std::string& folder) {
  return join_path(folder, "lock");
}

Result<std::unique_ptr<StateDirectory>> StateDirectory::open(FileSystem& files,
                                                             const AppOptions& options) {
  std::unique_ptr<StateDirectory> directory(
      new StateDirectory(files, path_of(options.state_dir, options.application_id)));
  WEIR_TRY(files.create_directories(directory->path_));
  Result<std::unique_ptr<FileLock>> lock =
      files.lock(lock_path(directory->path_),
                 fmt::format("application {} in process {}", options.application_id, getpid()));
  if (!lock.ok()) {
    return std::move(lock).error().with_context(
        fmt::format("state directory {} (stop the other instance, or use another state.dir)",
                    directory->path_));
  }
  directory->lock_ = std::move(lock).value();
  if (store_mode_of(options) != state::StoreMode::kMemory) {
    WEIR_TRY_ASSIGN(directory->database_,
                    state::open_rocksdb_checkpoints(files, database_path(directory->path_), {}));
  }
  return directory;
}

StateDirectory::~StateDirectory() {
  close().ignore("who cares for the outcome calls close()");
}

Result<std::optional<RecordedPlan>> StateDirectory::read_plan() {
  const std::string path = join_path(path_, kRecordedPlanFile);
  if (!path_exists(files_, path)) {
    return std::optional<RecordedPlan>();
  }
  WEIR_TRY_ASSIGN(const std::string bytes, read_file(files_, path));
  Result<RecordedPlan> plan = decode_recorded_plan(bytes);
  if (!plan.ok()) {
    return std::move(plan).error().with_context(path);
  }
  return std::optional<RecordedPlan>(std::move(plan).value());
}

Status StateDirectory::write_plan(const RecordedPlan& plan) {
  return replace_file(files_, join_path(path_, kRecordedPlanFile), encode_recorded_plan(plan));
}

Status StateDirectory::close() {
  Status closed;
  if (database_ != nullptr) {
    closed = database_->close();
    database_.reset();
  }
  lock_.reset();
  return closed;
}

}  // namespace weir::internal
