#pragma once

#include "runtime/lane/lane_shard.h"

#include <weir/runtime/session_engine.h>
#include <weir/runtime/thread_annotations.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace weir::internal {

// A worker: the lanes that it owns, the user's LaneWorker that runs them, and two mailboxes. Rounds
// are run by its own thread, or by the polling thread where there are none.
//
// Threading: send(), finish(), answer_letter(), request_flush(), take() and wake() are thread-safe;
// run_round() and next_due() are the worker thread's.
// Bounds: the dispatcher bounds what is under way; each open attempt and letter is answered once.
class LaneRunner final : LaneRuns {
 public:
  // What a worker has to say to the polling thread.
  struct Outbox {
    std::vector<ShardReport> reports;
    std::vector<std::vector<Delivery>> spare;  // memory of records that arrived
    std::uint32_t flushes = 0;                 // answers to request_flush()
    Status flush_error;
    bool empty() const { return reports.empty() && flushes == 0; }
  };

  // `notify` is called, without a lock, when take() has something after it had nothing.
  LaneRunner(const LaneOptions& options, std::uint64_t seed, const Clock& clock,
             std::unique_ptr<LaneWorker> worker, std::function<void()> notify);
  ~LaneRunner() override;

  void start_thread();
  // Joins the thread; what is in the mailboxes stays. An attempt that runs is waited for.
  void stop_thread();

  void send(std::vector<ShardMessage> messages);
  void finish_later(RunId run, Outcome outcome);
  void answer_later(RunId letter, bool ok);
  void request_flush();
  void wake();
  // Swaps what is in the outbox for the cleared memory of `outbox`.
  void take(Outbox& outbox);

  // False: nothing was there to do.
  bool run_round();
  std::optional<MonotonicTime> next_due() const;
  LaneShard& shard() { return shard_; }

 private:
  struct Inbox {
    std::vector<ShardMessage> messages;
    std::vector<std::pair<RunId, Outcome>> outcomes;
    std::vector<std::pair<RunId, bool>> answers;
    std::uint32_t flushes = 0;
    bool has_command = false;  // in the messages
    bool empty() const {
      return messages.empty() && outcomes.empty() && answers.empty() && flushes == 0;
    }
  };
  // Of a round; at least twice what arrived in it, so that what is here does not grow while
  // handlers keep up, and stays in the cache.
  static constexpr std::uint32_t kAttemptsMin = 1'024;
  // And in time, for reports, letters and timers: looked at every so many attempts.
  static constexpr std::uint32_t kAttemptsALook = 16;
  static constexpr Duration kRoundMax = std::chrono::milliseconds(1);
  static constexpr std::size_t kSpareReportsMax = 8;

  // What ends while letters are written is applied behind it: it may free what they borrow.
  struct Ended {
    std::vector<std::pair<RunId, Outcome>> outcomes;
    std::vector<std::pair<RunId, bool>> answers;
  };

  bool next(Attempt& attempt) override;
  void finish(RunId run, Outcome outcome) override;
  void answer_letter(RunId letter, bool ok) override;
  MonotonicTime now() const override { return now_; }

  void wake_for_worker();
  void run();
  void wait() WEIR_REQUIRES(mutex_);
  void take_inbox();
  // The next message of records; all at once when one of them brings a command.
  void apply_messages();
  void write_letters();
  void publish();

  const Clock& clock_;
  LaneShard shard_;
  std::unique_ptr<LaneWorker> worker_;
  std::function<void()> notify_;
  MonotonicTime now_{};
  std::uint32_t budget_ = 0;
  std::uint32_t looks_ = 0;
  Inbox taken_;
  std::size_t applied_ = 0;  // of taken_.messages
  Ended ended_;
  bool is_writing_ = false;
  std::vector<std::vector<Delivery>> arrived_;

  bool takes_all_ = false;  // of taken_.messages, in this round: a command came
  bool has_ended_ = false;  // an attempt or a letter, in this round

  // A command or a request for a flush is in the inbox: ends a round early, since drains and
  // commits must not wait for handlers. Set and cleared with the inbox, read without its lock.
  std::atomic<bool> is_wanted_{false};
  std::atomic<bool> has_thread_{false};

  Mutex mutex_;
  CondVar condition_;
  Inbox inbox_ WEIR_GUARDED_BY(mutex_);
  Outbox outbox_ WEIR_GUARDED_BY(mutex_);
  std::vector<ShardReport> spare_reports_ WEIR_GUARDED_BY(mutex_);
  bool is_woken_ WEIR_GUARDED_BY(mutex_) = false;
  bool is_stopping_ WEIR_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace weir::internal
