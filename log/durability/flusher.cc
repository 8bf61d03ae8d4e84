#include "log/durability/durability.h"

#include <weir/runtime/assert.h>
#include <weir/runtime/thread_annotations.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace weir::log {
namespace {

// What the flusher and the completions that are still on their way share: a completion may be the
// last to leave, after drain() has let the flusher's owner go.
struct Shared {
  struct State {
    std::uint64_t running_ticket = 0;             // oldest submit that the running round serves
    std::optional<std::uint64_t> waiting_ticket;  // oldest submit that the next round will serve
  };
  explicit Shared(FileSystem& file_system) : files(file_system) {}

  FileSystem& files;
  Mutex mutex;
  CondVar finished;
  std::uint64_t next_ticket WEIR_GUARDED_BY(mutex) = 0;
  std::map<DurableLog*, State> logs WEIR_GUARDED_BY(mutex);
  std::vector<std::shared_ptr<DurableLog>> ready WEIR_GUARDED_BY(mutex);  // no round runs yet
};

// One sync of all dirty files of one log.
struct Round {
  std::shared_ptr<Shared> shared;
  std::shared_ptr<DurableLog> log;
  Offset end;
  // Files that are not synced yet, and one more for the thread that starts the round, so that
  // completions that run inside submit() never end it: no recursion, however fast the disk.
  std::atomic<std::size_t> left{0};
  Mutex mutex;
  Status failure WEIR_GUARDED_BY(mutex);
};

void run_rounds(const std::shared_ptr<Shared>& shared, const std::shared_ptr<DurableLog>& log);

// Tells the log. True when another round is due.
bool finish(Round& round) {
  Status failure;
  {
    const MutexLock lock(round.mutex);
    failure = round.failure;
  }
  if (failure.ok()) {
    round.log->on_flushed(round.end);
    round.log->on_durable(round.end);
    round.log->wake_waiters();
  } else {
    round.log->on_durability_lost(failure.error());
  }
  Shared& shared = *round.shared;
  const MutexLock lock(shared.mutex);
  const auto found = shared.logs.find(round.log.get());
  WEIR_ASSERT(found != shared.logs.end());
  const bool again = found->second.waiting_ticket.has_value();
  if (again) {
    found->second.running_ticket = *found->second.waiting_ticket;
    found->second.waiting_ticket.reset();
  } else {
    shared.logs.erase(found);
  }
  shared.finished.notify_all();
  return again;
}

void file_synced(const std::shared_ptr<Round>& round, Status status) {
  if (!status.ok()) {
    const MutexLock lock(round->mutex);
    if (round->failure.ok()) {
      round->failure = std::move(status);
    }
  }
  if (round->left.fetch_sub(1) == 1 && finish(*round)) {
    run_rounds(round->shared, round->log);
  }
}

void sync_files(const std::shared_ptr<Round>& round, std::vector<std::shared_ptr<File>> files) {
  round->left = files.size() + 1;
  for (std::shared_ptr<File>& file : files) {
    IoRequest request;
    request.kind = IoRequest::Kind::kSync;
    request.file = std::move(file);
    round->shared->files.submit(std::move(request),
                                [round](Status status) { file_synced(round, std::move(status)); });
  }
}

void run_rounds(const std::shared_ptr<Shared>& shared, const std::shared_ptr<DurableLog>& log) {
  bool again = true;
  while (again) {
    const auto round = std::make_shared<Round>();
    round->shared = shared;
    round->log = log;
    Result<DurableLog::Unflushed> unflushed = log->prepare_flush(FlushMode::kByFile);
    if (unflushed.ok()) {
      round->end = unflushed->end;
      sync_files(round, std::move(unflushed->files));
    } else {
      const MutexLock lock(round->mutex);
      round->failure = unflushed.status();
      round->left = 1;
    }
    again = round->left.fetch_sub(1) == 1 && finish(*round);
  }
}

class Flusher : public Durability {
 public:
  explicit Flusher(FileSystem& files) : shared_(std::make_shared<Shared>(files)) {}
  ~Flusher() override { Flusher::drain(); }

  bool writes_ahead() const override { return false; }
  Status admit() const override { return Status(); }
  void add(std::shared_ptr<DurableLog> log, SharedBytes /*batch*/, Offset /*end*/) override {
    const MutexLock lock(shared_->mutex);
    const std::uint64_t ticket = shared_->next_ticket++;
    const auto [found, idle] = shared_->logs.try_emplace(log.get());
    if (idle) {
      found->second.running_ticket = ticket;
      shared_->ready.push_back(std::move(log));
    } else if (!found->second.waiting_ticket) {
      found->second.waiting_ticket = ticket;
    }
  }
  void add_group(std::vector<Entry> group) override {
    for (Entry& entry : group) {
      add(std::move(entry.log), std::move(entry.batch), entry.end);
    }
  }
  void start() override {
    std::vector<std::shared_ptr<DurableLog>> ready;
    {
      const MutexLock lock(shared_->mutex);
      ready.swap(shared_->ready);
    }
    for (const std::shared_ptr<DurableLog>& log : ready) {
      run_rounds(shared_, log);
    }
  }
  void note_unflushed(std::shared_ptr<DurableLog> /*log*/) override {}

  void drain() override {
    Flusher::start();
    drain_all();
  }

 private:
  void drain_all() {
    const MutexLock lock(shared_->mutex);
    const std::uint64_t end = shared_->next_ticket;
    while (serves_before(end)) {
      shared_->finished.wait(shared_->mutex);
    }
  }
  bool serves_before(std::uint64_t end) const WEIR_REQUIRES(shared_->mutex) {
    return std::ranges::any_of(shared_->logs, [end](const auto& log) {
      const auto& state = log.second;
      return state.running_ticket < end || (state.waiting_ticket && *state.waiting_ticket < end);
    });
  }

  std::shared_ptr<Shared> shared_;
};

}  // namespace

std::unique_ptr<Durability> make_flusher(FileSystem& files) {
  return std::make_unique<Flusher>(files);
}

}  // namespace weir::log
