#include "tests/runtime/lane/lanes_world.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir::internal {

namespace {

// What a block's records point to.
struct BlockBytes {
  std::deque<std::string> sessions;
  std::deque<std::uint64_t> numbers;
};

}  // namespace

RecordBlock make_block(const TestLog& log, Offset position, std::size_t records_max) {
  RecordBlock block;
  const auto bytes = std::make_shared<BlockBytes>();
  auto next = std::lower_bound(
      log.records.begin(), log.records.end(), position,
      [](const TestRecord& record, Offset offset) { return record.offset < offset; });
  for (; next != log.records.end() && block.records.size() < records_max; ++next) {
    bytes->sessions.push_back(next->session);
    bytes->numbers.push_back(next->number);
    RecordView record;
    if (!next->session.empty()) {
      record.key = ByteView(bytes->sessions.back());
    }
    record.value = ByteView(reinterpret_cast<const char*>(&bytes->numbers.back()), 8);
    record.offset = next->offset;
    record.timestamp = next->offset.value();
    block.records.push_back(record);
  }
  block.next_offset = next == log.records.end() ? log.end : block.records.back().offset.next();
  block.high_watermark = block.last_stable_offset = log.end;
  block.leader_epoch = LeaderEpoch(1);
  block.owner = bytes;
  return block;
}

std::uint64_t number_of(const RecordView& record) {
  std::uint64_t number = 0;
  std::memcpy(&number, record.value.view().data(), sizeof(number));
  return number;
}

std::string name_of(const Attempt& attempt) {
  return std::string(attempt.session.view_or_empty()) + "/" +
         std::to_string(number_of(*attempt.record));
}

Engine::Engine(const DispatchOptions& dispatch, const LaneOptions& lanes, std::uint64_t seed)
    : dispatcher(dispatch),
      to_shard(dispatch.workers),
      to_dispatcher(dispatch.workers),
      letters(dispatch.workers) {
  for (std::uint32_t worker = 0; worker < dispatch.workers; ++worker) {
    shards.push_back(std::make_unique<LaneShard>(lanes, seed + worker));
  }
}

void Engine::take_messages() {
  for (std::uint32_t worker = 0; worker < shards.size(); ++worker) {
    for (ShardMessage& message : dispatcher.messages(worker)) {
      to_shard[worker].push_back(std::move(message));
    }
  }
}

bool Engine::move_message(std::uint32_t worker) {
  if (to_shard[worker].empty()) {
    return false;
  }
  shards[worker]->apply(to_shard[worker].front(), now);
  to_shard[worker].pop_front();
  return true;
}

void Engine::take_report(std::uint32_t worker) {
  LaneShard& shard = *shards[worker];
  if (!shard.report().empty()) {
    to_dispatcher[worker].push_back(std::exchange(shard.report(), {}));
  }
  for (DeadLetter& letter : std::exchange(shard.letters(), {})) {
    letters[worker].push_back(std::move(letter));
  }
  shard.cancels().clear();
}

bool Engine::move_report(std::uint32_t worker) {
  if (to_dispatcher[worker].empty()) {
    return false;
  }
  dispatcher.take(worker, to_dispatcher[worker].front(), now);
  to_dispatcher[worker].pop_front();
  return true;
}

void Engine::settle() {
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    take_messages();
    for (std::uint32_t worker = 0; worker < shards.size(); ++worker) {
      while (move_message(worker)) {
        has_moved = true;
      }
      take_report(worker);
      while (move_report(worker)) {
        has_moved = true;
      }
    }
  }
}

void Engine::answer_letters(bool ok) {
  for (std::uint32_t worker = 0; worker < shards.size(); ++worker) {
    take_report(worker);
    for (const DeadLetter& letter : std::exchange(letters[worker], {})) {
      shards[worker]->letter_done(letter.id, ok, now);
    }
  }
}

void Engine::advance(Duration by) {
  now += by;
  for (const auto& shard : shards) {
    shard->advance(now);
  }
}

void LanesTest::assign() {
  engine.dispatcher.assign(0, committed, 1, log.end);
  position = committed.offset;
  engine.settle();
}

void LanesTest::fetch(std::size_t block_records) {
  while (position < log.end) {
    RecordBlock block = make_block(log, position, block_records);
    position = block.next_offset;
    engine.dispatcher.offer(0, std::move(block), {}, engine.now);
    engine.settle();
  }
}

void LanesTest::feed(const std::vector<std::string>& sessions) {
  for (const std::string& session : sessions) {
    const auto found = std::find(sessions_.begin(), sessions_.end(), session);
    const auto index = static_cast<std::size_t>(found - sessions_.begin());
    if (found == sessions_.end()) {
      sessions_.push_back(session);
      numbers_.push_back(0);
    }
    log.add(session, ++numbers_[index]);
  }
  fetch();
}

std::optional<Attempt> LanesTest::start() {
  Attempt attempt;
  return engine.start(0, attempt) ? std::optional(attempt) : std::nullopt;
}

std::vector<std::string> LanesTest::run_all() {
  std::vector<std::string> names;
  while (const std::optional<Attempt> attempt = start()) {
    names.push_back(name_of(*attempt));
    finish(*attempt, Outcome::ok());
  }
  return names;
}

void LanesTest::commit() {
  for (const PartitionCommit& commit : engine.dispatcher.begin_commit(engine.now)) {
    committed = commit.offset;
  }
  engine.dispatcher.finish_commit(CommitResult::kOk);
}

}  // namespace weir::internal
