#include "log/stored/stored_source.h"

#include <fmt/core.h>

namespace weir::log {

struct StoredLog::State {
  State(FileSystem& files, IsolationLevel isolation) : topics(files, isolation), admin(topics) {}
  StoredTopics topics;
  StoredAdmin admin;
};

StoredLog::StoredLog(std::unique_ptr<State> state) : state_(std::move(state)) {}
StoredLog::~StoredLog() = default;

Result<std::unique_ptr<StoredLog>> StoredLog::open(const std::string& folder,
                                                   StoredLogOptions options) {
  FileSystem& files = options.files != nullptr ? *options.files : posix_file_system();
  auto state = std::make_unique<State>(files, options.isolation);
  WEIR_TRY(state->topics.open(folder));
  return std::unique_ptr<StoredLog>(new StoredLog(std::move(state)));
}

Admin& StoredLog::admin() {
  return state_->admin;
}

Result<std::unique_ptr<RecordSource>> StoredLog::make_source(const SourceOptions& options) {
  return std::unique_ptr<RecordSource>(std::make_unique<StoredSource>(state_->topics, options));
}

Result<std::unique_ptr<RecordSink>> StoredLog::make_sink(const SinkOptions& /*options*/) {
  return Error(Errc::kReadOnly,
               fmt::format("cannot write to {}: it is only read", state_->topics.folder().path));
}

Result<std::unique_ptr<Group>> StoredLog::make_group(const std::string& group_id) {
  return Error(Errc::kReadOnly, fmt::format("group {} cannot keep offsets in {}: it is only read",
                                            group_id, state_->topics.folder().path));
}

Result<StoredPartitionReport> StoredLog::report(const TopicPartition& partition) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<StoredPartition> log, state_->topics.partition(partition));
  StoredPartitionReport report = log->report();
  report.offsets = state_->topics.visible_offsets(*log);
  return report;
}

const std::vector<std::string>& StoredLog::notes() const {
  return state_->topics.folder().notes;
}

bool StoredLog::may_be_in_use() const {
  return state_->topics.folder().may_be_in_use;
}

}  // namespace weir::log
