#include "log/client/embedded_group.h"
#include "log/client/embedded_sink.h"
#include "log/client/embedded_source.h"
#include "log/embedded/embedded_log_state.h"

#include <weir/log/embedded_log.h>
#include <weir/runtime/logger.h>
#include <weir/runtime/rng.h>

#include <chrono>

namespace weir::log {
namespace {

// log.flush.offset.checkpoint.interval.ms of Kafka.
constexpr auto kCheckpointInterval = std::chrono::seconds(60);

}  // namespace

void EmbeddedLog::State::schedule_checkpoint() {
  if (executor == nullptr) {
    return;
  }
  const MutexLock lock(mutex);
  if (!closed) {
    timer = executor->post_after(kCheckpointInterval, [this] { checkpoint(); });
  }
}

void EmbeddedLog::State::checkpoint() {
  if (Status written = directory->write_checkpoints(); !written.ok()) {
    // Only a longer scan after a crash is at stake.
    WEIR_WARN("recovery points were not written error=\"{}\"", written.error().to_string());
  }
  schedule_checkpoint();
}

EmbeddedLog::EmbeddedLog(std::unique_ptr<State> state) : state_(std::move(state)) {}

EmbeddedLog::~EmbeddedLog() {
  {
    const MutexLock lock(state_->mutex);
    state_->closed = true;
    if (state_->executor != nullptr) {
      state_->executor->cancel(state_->timer);
    }
  }
  state_->own_executor.reset();  // joins a checkpoint that runs
}

Result<std::unique_ptr<EmbeddedLog>> EmbeddedLog::open(const std::string& path,
                                                       EmbeddedLogOptions options) {
  auto state = std::make_unique<State>();
  if (options.files == nullptr) {
    options.files = &posix_file_system();
  }
  if (options.clock == nullptr) {
    options.clock = &system_clock();
  }
  LogDirectoryOptions directory;
  directory.files = options.files;
  directory.clock = options.clock;
  directory.seed = options.seed != 0 ? options.seed : entropy_seed();
  directory.read_only = options.read_only;
  directory.tail_cache_bytes = options.tail_cache_bytes;
  directory.offsets_partitions = options.offsets_partitions;
  WEIR_TRY_ASSIGN(state->directory, LogDirectory::open(path, directory));
  state->recovery = state->directory->recovery();
  state->admin = std::make_unique<EmbeddedAdmin>(*state->directory);
  state->options = options;
  if (options.background && !options.read_only) {
    if (options.executor == nullptr) {
      state->own_executor = make_asio_executor(1);
      state->executor = state->own_executor.get();
    } else {
      state->executor = options.executor;
    }
  }
  state->schedule_checkpoint();
  return std::unique_ptr<EmbeddedLog>(new EmbeddedLog(std::move(state)));
}

Admin& EmbeddedLog::admin() {
  return *state_->admin;
}

Result<std::unique_ptr<RecordSource>> EmbeddedLog::make_source(const SourceOptions& options) {
  return std::unique_ptr<RecordSource>(
      std::make_unique<EmbeddedSource>(*state_->directory, options));
}

Result<std::unique_ptr<RecordSink>> EmbeddedLog::make_sink(const SinkOptions& options) {
  if (!options.transactional_id.empty()) {
    return Error(Errc::kUnsupported,
                 "this log has no transactions yet; leave transactional.id empty");
  }
  return std::unique_ptr<RecordSink>(std::make_unique<EmbeddedSink>(*state_->directory, options));
}

Result<std::unique_ptr<Group>> EmbeddedLog::make_group(const std::string& group_id) {
  if (group_id.empty() || group_id.size() > INT16_MAX) {
    return Error(Errc::kInvalidArgument, "a group id has 1 to 32,767 bytes");
  }
  return std::unique_ptr<Group>(
      std::make_unique<EmbeddedGroup>(*state_->directory, state_->group_members, group_id));
}

const RecoveryResult& EmbeddedLog::recovery() const {
  return state_->recovery;
}

const std::string& EmbeddedLog::state_directory() const {
  return state_->directory->layout().state;
}

Status EmbeddedLog::close() {
  {
    const MutexLock lock(state_->mutex);
    state_->closed = true;
    if (state_->executor != nullptr) {
      state_->executor->cancel(state_->timer);
    }
  }
  return state_->directory->close();
}

}  // namespace weir::log
