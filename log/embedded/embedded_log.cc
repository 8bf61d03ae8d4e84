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

// Bounds what a start after a crash has to read again.
constexpr auto kCheckpointInterval = std::chrono::seconds(10);

GroupServiceOptions group_options(const EmbeddedLogOptions& options, std::uint64_t seed) {
  GroupServiceOptions result;
  result.groups.initial_delay_ms =
      static_cast<std::int32_t>(options.group_initial_rebalance_delay_ms);
  result.groups.members_max = static_cast<std::int32_t>(options.group_max_size);
  result.groups.session_timeout_min_ms =
      static_cast<std::int32_t>(options.group_min_session_timeout_ms);
  result.groups.session_timeout_max_ms =
      static_cast<std::int32_t>(options.group_max_session_timeout_ms);
  result.groups.member_id_seed = seed;
  result.offsets_retention_ms = options.offsets_retention_minutes * 60'000;
  return result;
}

}  // namespace

Executor::TimerId EmbeddedLog::State::run_after(Duration wait, std::function<void()> work) {
  return executor->post_after(wait, [guard = background, work = std::move(work)] {
    if (guard->enter()) {
      work();
      guard->leave();
    }
  });
}

void EmbeddedLog::State::schedule_checkpoint() {
  const MutexLock lock(mutex);
  if (executor == nullptr) {
    return;
  }
  executor->cancel(timer);
  timer = run_after(due ? Duration(0) : Duration(kCheckpointInterval), [this] { checkpoint(); });
}

void EmbeddedLog::State::checkpoint_soon() {
  {
    const MutexLock lock(mutex);
    due = true;
  }
  schedule_checkpoint();
}

void EmbeddedLog::State::checkpoint() {
  {
    const MutexLock lock(mutex);
    due = false;
  }
  if (Status done = directory->checkpoint(); !done.ok()) {
    WEIR_WARN("checkpoint failed error=\"{}\"", done.error().to_string());
  }
  schedule_checkpoint();
}

void EmbeddedLog::State::schedule_scrub(Duration wait) {
  const MutexLock lock(mutex);
  if (executor != nullptr && options.scrub_bytes_per_second > 0) {
    scrub_timer = run_after(wait, [this] { schedule_scrub(directory->scrub_step()); });
  }
}

void EmbeddedLog::State::schedule_cleaner(Duration wait) {
  const MutexLock lock(mutex);
  if (executor != nullptr) {
    cleaner_timer = run_after(wait, [this] { schedule_cleaner(directory->cleaner_step()); });
  }
}

void EmbeddedLog::State::schedule_transactions() {
  const MutexLock lock(mutex);
  if (executor == nullptr) {
    return;
  }
  const auto wait = std::chrono::milliseconds(options.transaction_abort_interval_ms);
  transaction_timer = run_after(wait, [this] {
    if (Status done = directory->transactions().tick(); !done.ok()) {
      WEIR_WARN("transactions wait for the next look at them error=\"{}\"",
                done.error().to_string());
    }
    schedule_transactions();
  });
}

void EmbeddedLog::State::schedule_groups(Duration wait) {
  const MutexLock lock(mutex);
  if (executor != nullptr) {
    executor->cancel(group_timer);
    group_timer = run_after(wait, [this] { schedule_groups(directory->groups().tick()); });
  }
}

void EmbeddedLog::State::schedule_expiry() {
  const MutexLock lock(mutex);
  if (executor == nullptr) {
    return;
  }
  const auto wait = std::chrono::milliseconds(options.offsets_check_interval_ms);
  expiry_timer = run_after(wait, [this] {
    if (const auto expired = directory->groups().expire_offsets(); !expired.ok()) {
      WEIR_WARN("committed offsets could not be looked through for old ones error=\"{}\"",
                expired.error().to_string());
    }
    schedule_expiry();
  });
}

void EmbeddedLog::State::stop_background() {
  background->stop();
  const MutexLock lock(mutex);
  if (executor != nullptr) {
    executor->cancel(timer);
    executor->cancel(scrub_timer);
    executor->cancel(transaction_timer);
    executor->cancel(cleaner_timer);
    executor->cancel(group_timer);
    executor->cancel(expiry_timer);
  }
}

EmbeddedLog::EmbeddedLog(std::unique_ptr<State> state) : state_(std::move(state)) {}

EmbeddedLog::~EmbeddedLog() {
  state_->stop_background();
  {
    const MutexLock lock(state_->mutex);  // the directory may ask for a checkpoint until it is gone
    state_->executor = nullptr;
  }
  state_->own_executor.reset();
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
  directory.metadata_snapshot_bytes = static_cast<std::uint64_t>(options.metadata_snapshot_bytes);
  directory.offsets_partitions = options.offsets_partitions;
  directory.transaction_partitions = options.transaction_partitions;
  directory.transactions.max_timeout_ms = options.transaction_max_timeout_ms;
  directory.transactions.id_expiration_ms = options.transactional_id_expiration_ms;
  directory.groups = group_options(options, directory.seed);
  directory.wal.file_bytes_min = options.wal_file_bytes_min;
  directory.wal.file_bytes_max = std::max(options.wal_file_bytes_min, options.wal_file_bytes_max);
  directory.wal.total_bytes_max = options.wal_bytes_max;
  directory.wal.checkpoint_bytes = options.wal_bytes_max / 4;
  directory.open_files_max = options.open_files_max;
  directory.disk_reserve_bytes = options.disk_reserve_bytes;
  directory.producers.expiration_ms = options.producer_id_expiration_ms;
  directory.scrub = {options.scrub_bytes_per_second, options.scrub_interval_ms};
  directory.cleaner.compacts = options.cleaner_enable;
  directory.cleaner.retention_check_interval_ms = options.retention_check_interval_ms;
  directory.cleaner.backoff_ms = options.cleaner_backoff_ms;
  directory.cleaner.io_bytes_per_second = options.cleaner_io_bytes_per_second;
  directory.cleaner.dedupe_buffer_bytes =
      static_cast<std::size_t>(options.cleaner_dedupe_buffer_bytes);
  if (options.background) {
    directory.checkpoint_due = [state = state.get()] { state->checkpoint_soon(); };
  }
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
  if (!options.read_only) {
    // What was decided before a crash is ended before anybody reads. Whoever needs transactions
    // tries again and learns why.
    if (Status started = state->directory->transactions().start(); !started.ok()) {
      WEIR_ERROR("transactions are not served error=\"{}\"", started.error().to_string());
    }
  }
  state->schedule_checkpoint();
  const std::chrono::milliseconds initial_delay(options.initial_task_delay_ms);
  state->schedule_scrub(initial_delay);
  state->schedule_transactions();
  state->schedule_cleaner(initial_delay);
  state->schedule_expiry();
  if (state->executor != nullptr) {
    state->directory->groups().set_timer(
        [state = state.get()] { state->schedule_groups(Duration::zero()); });
  }
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
  std::unique_ptr<TransactionSession> session;
  if (!options.transactional_id.empty()) {
    WEIR_TRY_ASSIGN(session,
                    TransactionSession::open(*state_->directory, options.transactional_id,
                                             options.transaction_timeout, options.block_max));
  }
  return std::unique_ptr<RecordSink>(
      std::make_unique<EmbeddedSink>(*state_->directory, options, std::move(session)));
}

Result<std::unique_ptr<Group>> EmbeddedLog::make_group(const std::string& group_id) {
  return make_group_member(group_id, {});
}

Result<std::unique_ptr<Group>> EmbeddedLog::make_group_member(const std::string& group_id,
                                                              const GroupOptions& options) {
  return EmbeddedGroup::make(*state_->directory, group_id, options);
}

Result<std::size_t> EmbeddedLog::expire_offsets() {
  return state_->directory->groups().expire_offsets();
}

const RecoveryResult& EmbeddedLog::recovery() const {
  return state_->recovery;
}

std::vector<QuarantinedRange> EmbeddedLog::quarantined_ranges() const {
  return state_->directory->quarantined_ranges();
}

ScrubProgress EmbeddedLog::scrub_progress() const {
  return state_->directory->scrub_progress();
}

CleanerProgress EmbeddedLog::cleaner_progress() const {
  return state_->directory->cleaner_progress();
}

Status EmbeddedLog::compact_topic(const std::string& name) {
  return state_->directory->compact_topic(name);
}

const std::string& EmbeddedLog::state_directory() const {
  return state_->directory->layout().state;
}

Status EmbeddedLog::close() {
  state_->stop_background();
  return state_->directory->close();
}

}  // namespace weir::log
