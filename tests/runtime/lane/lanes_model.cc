#include "tests/runtime/lane/lanes_model.h"

#include <weir/runtime/session_hash.h>

#include <algorithm>

namespace weir::internal {

using std::chrono::milliseconds;

void LanesModel::start_engine(bool is_first) {
  if (is_first) {
    constexpr OnExhausted kPolicies[] = {OnExhausted::kDeadLetter, OnExhausted::kBlock,
                                         OnExhausted::kDrop, OnExhausted::kQuarantine};
    dispatch_.workers = static_cast<std::uint32_t>(1 + rng_.below(3));
    dispatch_.mode = rng_.chance(1, 2) ? DispatchMode::kLocal : DispatchMode::kSpread;
    dispatch_.window_max = rng_.chance(1, 2) ? 20 + rng_.below(100) : 1U << 20U;
    dispatch_.bytes_max = rng_.chance(1, 3) ? 20'000 : 256U << 20U;
    dispatch_.batches_max = static_cast<std::uint32_t>(1 + rng_.below(4));
    dispatch_.writes_lane_map = rng_.chance(4, 5);
    dispatch_.gap_timeout = milliseconds(rng_.chance(1, 3) ? rng_.between(20, 200) : 0);
    dispatch_.has_gap_guard = rng_.chance(1, 3);
    dispatch_.gap_token_records = 1 + rng_.below(20);
    has_slow_handlers_ = rng_.chance(1, 3);
    other_metadata_ = rng_.chance(1, 3) ? 2'960 + rng_.below(60) : 0;
    lanes_.lane_records_max = static_cast<std::uint32_t>(1 + rng_.below(12));
    lanes_.backoff_records_max = static_cast<std::uint32_t>(rng_.below(30));
    lanes_.stash_records_high = static_cast<std::uint32_t>(4 + rng_.below(30));
    lanes_.stash_records_low = lanes_.stash_records_high / 4;
    lanes_.running_max = static_cast<std::uint32_t>(1 + rng_.below(8));
    lanes_.lanes_max = static_cast<std::uint32_t>(rng_.chance(1, 3) ? 4 + rng_.below(10) : 1'000);
    lanes_.quarantined_max = static_cast<std::uint32_t>(rng_.below(4));
    lanes_.lane_quantum = static_cast<std::uint8_t>(1 + rng_.below(16));
    lanes_.partition_quantum = static_cast<std::uint32_t>(1 + rng_.below(64));
    lanes_.handler_timeout = milliseconds(rng_.chance(1, 3) ? rng_.between(1, 100) : 0);
    lanes_.lane_idle = milliseconds(rng_.below(200));
    lanes_.retry.attempts_max = static_cast<std::uint32_t>(1 + rng_.below(5));
    lanes_.retry.backoff_base = milliseconds(rng_.below(50));
    lanes_.retry.on_exhausted = kPolicies[rng_.below(4)];
  }
  engine_ = std::make_unique<Engine>(dispatch_, lanes_, rng_.next());
  for (ModelPartition& partition : partitions_) {
    partition.is_draining = false;
  }
}

void LanesModel::append() {
  std::uint32_t number = 0;
  ModelPartition& partition = any_partition(&number);
  for (std::uint64_t i = rng_.below(12); i > 0; --i) {
    // A hot session and cold ones.
    const int session = rng_.chance(1, 3) ? 0 : static_cast<int>(rng_.below(kSessions));
    const std::string name = session_name(session);
    const std::int64_t hole = rng_.chance(1, 6) ? rng_.between(1, 1'000'000) : 0;
    partition.log.add(name, ++partition.sessions[name].written, hole);
  }
  if (rng_.chance(1, 5)) {
    partition.log.add_marker();
  }
}

void LanesModel::fetch(std::uint32_t number, std::size_t records_max) {
  ModelPartition& partition = partitions_[number];
  if (!engine_->dispatcher.is_assigned(number) || partition.is_draining || partition.is_paused ||
      partition.position >= partition.log.end) {
    return;
  }
  // A client that gives an offset twice (T66).
  const bool is_again = rng_.chance(1, 50) && partition.position > partition.assigned_at;
  const Offset from =
      is_again ? Offset(rng_.between(partition.assigned_at.value(), partition.position.value()))
               : partition.position;
  RecordBlock block = make_block(partition.log, from, records_max);
  for (const RecordView& record : block.records) {
    if (record.offset >= partition.position) {
      partition.open.insert(record.offset);
    }
  }
  partition.position = std::max(partition.position, block.next_offset);
  engine_->dispatcher.offer(number, std::move(block), {}, engine_->now);
}

void LanesModel::start(std::uint32_t worker) {
  Attempt attempt;
  if (!engine_->start(worker, attempt)) {
    return;
  }
  const std::string session(attempt.session.view_or_empty());
  if (attempt.session.is_null() != session.empty()) {
    wrong("a null session is not the session of an empty key");
  }
  // R1, whatever the epochs.
  if (running_.count({attempt.partition, session}) != 0) {
    wrong("R1: two handlers of session '" + session + "'");
  }
  running_.insert({attempt.partition, session});
  const ModelPartition& partition = partitions_[attempt.partition];
  if (is_current(attempt.partition, attempt.fence.epoch)) {
    if (attempt.record->offset < partition.assigned_at) {
      wrong("R3: a record below the committed offset runs");
    }
    if (!partition.open.contains(attempt.record->offset)) {
      wrong("a terminal record runs again in its epoch");
    }
  }
  runs_.push_back({worker, attempt, session});
  ++counts_["attempts"];
}

void LanesModel::effect(std::uint32_t number, const RecordView& record,
                        const std::string& session) {
  ModelPartition& partition = partitions_[number];
  SessionHistory& history = partition.sessions[session];
  const std::uint64_t n = number_of(record);
  const bool is_legal = history.may_repeat ? n <= history.seen + 1 : n == history.expected;
  if (!is_legal) {
    wrong("order of session '" + session + "': " + std::to_string(n) + " after " +
          std::to_string(history.expected - 1) + ", highest " + std::to_string(history.seen));
  }
  history.may_repeat = false;
  history.expected = n + 1;
  history.seen = std::max(history.seen, n);
  if (partition.open.erase(record.offset) == 0) {
    wrong("a record is terminal twice in one epoch");
  }
  partition.finished.insert(record.offset);
}

void LanesModel::finish(std::size_t index, Outcome::Kind kind) {
  const Run run = runs_[index];
  runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(index));
  running_.erase(running_.find({run.attempt.partition, run.session}));
  const std::uint32_t partition = run.attempt.partition;
  const bool counts = is_current(partition, run.attempt.fence.epoch) && !run.is_terminal;
  ShardReport& report = engine_->shards[run.worker]->report();
  const std::size_t before = report.completions.size();
  // A letter of a skip that is still being written is overtaken by a success.
  engine_->finish(
      run.worker, run.attempt,
      {kind, {}, kind == Outcome::Kind::kOk ? Status() : Status(Error(Errc::kTimedOut, "x"))});
  if (rng_.chance(1, 20)) {
    engine_->finish(run.worker, run.attempt, Outcome::ok());  // T8: a second completion
  }
  const bool is_dropped = std::any_of(
      report.completions.begin() + static_cast<std::ptrdiff_t>(before), report.completions.end(),
      [](const Completion& completion) { return completion.fate == Fate::kDropped; });
  if (counts && (kind == Outcome::Kind::kOk || is_dropped)) {
    effect(partition, *run.attempt.record, run.session);
    ++counts_[is_dropped ? "drops" : "oks"];
  } else if (!counts) {
    ++counts_["late returns"];
  }
}

void LanesModel::answer_letter(std::uint32_t worker, std::size_t index, bool ok) {
  const DeadLetter letter = engine_->letters[worker][index];
  engine_->letters[worker].erase(engine_->letters[worker].begin() +
                                 static_cast<std::ptrdiff_t>(index));
  ShardReport& report = engine_->shards[worker]->report();
  const std::size_t before = report.completions.size();
  engine_->shards[worker]->letter_done(letter.id, ok, engine_->now);
  const std::size_t after = report.completions.size();
  if (after == before) {
    return;
  }
  const Completion& completion = report.completions[before];
  if (!ok || (completion.fate != Fate::kDeadLettered && completion.fate != Fate::kGapSkipped)) {
    wrong("a letter that was not written made its record terminal");
  }
  if (is_current(letter.partition, completion.epoch)) {
    // Its block lives until the dispatcher takes the report.
    effect(letter.partition, *letter.record, std::string(letter.session.view_or_empty()));
    ++counts_[completion.fate == Fate::kGapSkipped ? "gaps skipped" : "dead letters"];
  }
  for (Run& run : runs_) {
    if (completion.fate == Fate::kGapSkipped && !completion.releases && run.worker == worker &&
        run.attempt.run.lane == letter.id.lane) {
      run.is_terminal = true;
    }
  }
}

void LanesModel::begin_commit() {
  if (engine_->dispatcher.has_commit_in_flight()) {
    return;
  }
  in_flight_ = engine_->dispatcher.begin_commit(engine_->now);
  for (const PartitionCommit& commit : in_flight_) {
    if (!is_current(commit.partition, commit.epoch)) {
      wrong("R2: a commit of an epoch that ended");
    }
    if (commit.offset.metadata.size() > kCommitMetadataBytesMax) {
      wrong("commit metadata is too long");
    }
  }
}

void LanesModel::finish_commit(CommitResult result) {
  if (!engine_->dispatcher.has_commit_in_flight()) {
    return;
  }
  for (const PartitionCommit& commit : in_flight_) {
    // The group refuses a commit of a member that no longer owns the partition.
    if (result == CommitResult::kOk && is_current(commit.partition, commit.epoch)) {
      ModelPartition& partition = partitions_[commit.partition];
      if (commit.offset.offset < partition.committed.offset) {
        wrong("C2: a commit went back");
      }
      partition.committed = commit.offset;
      ++counts_["commits"];
    }
  }
  engine_->dispatcher.finish_commit(result);
  if (result == CommitResult::kFenced) {
    for (const PartitionCommit& commit : in_flight_) {
      if (is_current(commit.partition, commit.epoch)) {
        release(commit.partition);
        ++counts_["lost"];
      }
    }
  }
}

void LanesModel::assign(std::uint32_t number) {
  ModelPartition& partition = partitions_[number];
  if (engine_->dispatcher.is_assigned(number)) {
    return;
  }
  engine_->dispatcher.assign(number, partition.committed, 1, partition.log.end);
  if (other_metadata_ > 0) {
    engine_->dispatcher.times(number).processors[std::string(other_metadata_, 'n')] = 1;
  }
  partition.position = partition.assigned_at = partition.last_commit_value =
      partition.committed.offset;
  partition.is_paused = partition.is_draining = false;
  for (auto& [name, history] : partition.sessions) {
    history.may_repeat = true;
  }
  ++counts_["assigned"];
}

void LanesModel::drain(std::uint32_t number) {
  if (engine_->dispatcher.is_assigned(number)) {
    partitions_[number].is_draining = true;
    engine_->dispatcher.drain(
        number, rng_.chance(1, 3) ? Dispatcher::Drain::kQueued : Dispatcher::Drain::kRunning);
  }
}

void LanesModel::release(std::uint32_t number) {
  engine_->dispatcher.release(number);
  partitions_[number].is_draining = false;
  partitions_[number].open.clear();
}

void LanesModel::crash() {
  runs_.clear();
  running_.clear();
  in_flight_.clear();
  for (ModelPartition& partition : partitions_) {
    partition.open.clear();
    partition.is_paused = false;
  }
  start_engine(false);
  ++counts_["crashes"];
}

Outcome::Kind LanesModel::any_outcome() {
  const std::uint64_t draw = rng_.below(100);
  if (rng_.chance(1, 300)) {
    ++counts_["stops"];
    return Outcome::Kind::kStop;
  }
  return draw < 70 ? Outcome::Kind::kOk : draw < 93 ? Outcome::Kind::kRetry : Outcome::Kind::kDead;
}

void LanesModel::step() {
  std::uint32_t number = 0;
  any_partition(&number);
  const std::uint32_t worker = any_worker();
  const std::uint64_t draw = rng_.below(1'000);
  if (engine_->dispatcher.stop_cause().has_value() && rng_.chance(1, 100)) {
    crash();  // the program ends; until then it drains
  }
  Dispatcher& dispatcher = engine_->dispatcher;
  if (draw < 80) {
    append();
  } else if (draw < 240) {
    fetch(number, 1 + rng_.below(30));
  } else if (draw < 380) {
    engine_->take_messages();
    engine_->move_message(worker);
  } else if (draw < 500) {
    engine_->take_report(worker);
    engine_->move_report(worker);
  } else if (draw < 690) {
    start(worker);
  } else if (draw < 860) {
    if (!runs_.empty() && (!has_slow_handlers_ || rng_.chance(1, 4))) {
      finish(rng_.below(runs_.size()), any_outcome());
    }
  } else if (draw < 900) {
    if (!engine_->letters[worker].empty()) {
      answer_letter(worker, rng_.below(engine_->letters[worker].size()), rng_.chance(4, 5));
    }
  } else if (draw < 930) {
    engine_->advance(milliseconds(rng_.below(60)));
    dispatcher.check_gaps(engine_->now);
  } else if (draw < 955) {
    begin_commit();
  } else if (draw < 975) {
    const std::uint64_t result = rng_.below(40);
    finish_commit(result < 30   ? CommitResult::kOk
                  : result < 35 ? CommitResult::kRetry
                  : result < 39 ? CommitResult::kMetadataTooLarge
                                : CommitResult::kFenced);
  } else if (draw < 978) {
    drain(number);
  } else if (draw < 984) {
    // Drained, or its deadline has come; its final commit only when none is in flight.
    if (dispatcher.is_assigned(number) && partitions_[number].is_draining &&
        (dispatcher.is_drained(number) || rng_.chance(1, 3))) {
      finish_commit(CommitResult::kOk);
      begin_commit();
      finish_commit(rng_.chance(3, 4) ? CommitResult::kOk : CommitResult::kRetry);
      counts_[dispatcher.is_drained(number) ? "drained" : "deadlines"] += 1;
      release(number);
    }
  } else if (draw < 993) {
    assign(number);
  } else if (draw < 998) {
    const std::string name = session_name(static_cast<int>(rng_.below(kSessions)));
    dispatcher.slots().move(slot_of(session_hash(name)),
                            static_cast<std::uint32_t>(rng_.below(dispatch_.workers)));
  } else if (rng_.chance(1, 2)) {
    crash();
  }
  check();
}

void LanesModel::check() {
  for (const PauseChange& change : engine_->dispatcher.pauses()) {
    partitions_[change.partition].is_paused = change.is_paused;
  }
  for (std::uint32_t number = 0; number < kPartitions; ++number) {
    if (engine_->dispatcher.is_assigned(number)) {
      check_partition(number);
    }
  }
  const DispatchCounters& counters = engine_->dispatcher.counters();
  if (counters.commit_regressions != 0) {
    wrong("C2: the commit value went below an acknowledged one");
  }
}

void LanesModel::check_partition(std::uint32_t number) {
  ModelPartition& partition = partitions_[number];
  const CommitTracker& tracker = engine_->dispatcher.tracker(number);
  const Offset value = tracker.commit_value();
  // Passed without running here: a former owner must have finished it.
  while (!partition.open.empty() && *partition.open.begin() < value) {
    if (!partition.finished.contains(*partition.open.begin())) {
      wrong("C1: commit value " + std::to_string(value.value()) + " is above unfinished record " +
            std::to_string(partition.open.begin()->value()));
    }
    partition.open.erase(partition.open.begin());
  }
  if (value > tracker.fetch_next()) {
    wrong("C1: the commit value is above what was fetched");
  }
  if (value < partition.last_commit_value) {
    wrong("C2: the commit value went back within an epoch");
  }
  partition.last_commit_value = value;
  if (tracker.empty() && value != tracker.fetch_next()) {
    wrong("C1: an empty window commits less than what was fetched");
  }
}

// Everything that is left runs to its end: nothing is stuck, nothing is lost, nothing leaks.
void LanesModel::finish_everything() {
  engine_->take_messages();
  for (std::uint32_t worker = 0; worker < dispatch_.workers; ++worker) {
    engine_->take_report(worker);
    while (engine_->move_report(worker)) {
    }
  }
  if (engine_->dispatcher.stop_cause().has_value()) {
    crash();
  }
  const auto is_done = [&] {
    for (std::uint32_t number = 0; number < kPartitions; ++number) {
      if (!engine_->dispatcher.is_assigned(number) ||
          engine_->dispatcher.tracker(number).commit_value() < partitions_[number].log.end) {
        return false;
      }
    }
    return engine_->dispatcher.blocks() == 0 && runs_.empty();
  };
  for (int round = 0; round < 20'000 && !is_done() && problem_.empty(); ++round) {
    for (std::uint32_t number = 0; number < kPartitions; ++number) {
      if (partitions_[number].is_draining && engine_->dispatcher.is_assigned(number)) {
        release(number);
      }
      assign(number);
      fetch(number, 10);
    }
    engine_->take_messages();
    for (std::uint32_t worker = 0; worker < dispatch_.workers; ++worker) {
      while (engine_->move_message(worker)) {
      }
      for (int i = 0; i < 4; ++i) {
        start(worker);
      }
      engine_->take_report(worker);
      while (!engine_->letters[worker].empty()) {
        answer_letter(worker, 0, true);
      }
      engine_->take_report(worker);
      while (engine_->move_report(worker)) {
      }
    }
    while (!runs_.empty()) {
      finish(0, Outcome::Kind::kOk);
    }
    engine_->advance(milliseconds(20));
    check();
  }
  if (!problem_.empty()) {
    return;
  }
  if (!is_done()) {
    for (std::uint32_t number = 0; number < kPartitions; ++number) {
      const ModelPartition& partition = partitions_[number];
      wrong("stuck: commit value " +
            std::to_string(engine_->dispatcher.tracker(number).commit_value().value()) + " of " +
            std::to_string(partition.log.end.value()) + ", fetched " +
            std::to_string(partition.position.value()) + (partition.is_paused ? ", paused" : ""));
    }
    return;
  }
  engine_->advance(std::chrono::minutes(1));
  for (const auto& shard : engine_->shards) {
    const LaneShard::Size size = shard->size();
    if (size.records != 0 || size.running != 0 || size.waiting != 0 ||
        size.lanes != size.quarantined) {
      wrong("leak: " + std::to_string(size.records) + " records, " + std::to_string(size.lanes) +
            " lanes, " + std::to_string(size.quarantined) + " in quarantine");
    }
  }
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    if (engine_->dispatcher.slots().out(static_cast<std::uint16_t>(slot)) != 0) {
      wrong("leak: a slot counts records that came back");
    }
  }
  const DispatchCounters& counters = engine_->dispatcher.counters();
  counts_["replay skipped"] += counters.replay_skipped;
  for (const ModelPartition& partition : partitions_) {
    for (const auto& [name, history] : partition.sessions) {
      if (history.seen != history.written) {
        wrong("loss: session '" + name + "' ends at " + std::to_string(history.seen) + " of " +
              std::to_string(history.written));
      }
    }
  }
}

}  // namespace weir::internal
