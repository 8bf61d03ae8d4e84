#include "tests/log/coordinator/transaction_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::log {
namespace {

constexpr int kPartitions = 4;
constexpr int kIds = 3;
constexpr std::int32_t kTimeoutMs = 1'500;
constexpr std::int64_t kExpirationMs = 20'000;
constexpr std::size_t kNetworkMax = 60;

bool is_idle(TransactionStatus status) {
  return status == TransactionStatus::kEmpty || status == TransactionStatus::kCompleteCommit ||
         status == TransactionStatus::kCompleteAbort;
}

std::set<TopicPartition> partitions_of(const TransactionValue& value) {
  std::set<TopicPartition> all;
  if (value.partitions) {
    for (const auto& [topic, ids] : *value.partitions) {
      for (const PartitionId id : ids) {
        all.insert({topic, id});
      }
    }
  }
  return all;
}

}  // namespace

TransactionWorld::TransactionWorld(std::uint64_t seed, std::int16_t transaction_version)
    : rng_(seed), partitions_(kPartitions) {
  options_.transaction_version = transaction_version;
  options_.id_expiration_ms = kExpirationMs;
  for (int i = 0; i < 2 * kIds; ++i) {
    Client client;
    client.id = fmt::format("tx-{}", i % kIds);
    // Old and new clients side by side; those of one id speak the same.
    client.version = i % kIds == 0 ? transaction_version
                                   : static_cast<std::int16_t>(transaction_version >= 2 ? 2 : 0);
    clients_.push_back(std::move(client));
  }
  // An id whose epochs are nearly used up.
  TransactionValue old;
  old.producer_id = fresh_id();
  old.previous_producer_id = transaction_version >= 1 ? old.producer_id : kNoProducerId;
  old.producer_epoch = ProducerEpoch(32'758);
  old.timeout_ms = kTimeoutMs;
  old.last_update = now_;
  used_ids_.insert(old.producer_id);
  log_.emplace_back("tx-1", encode_transaction_value(old, transaction_version >= 1 ? 1 : 0));
  latest_["tx-1"] = old;
  core_ = std::make_unique<TransactionCoordinator>(options_);
  WEIR_ASSERT(core_->load("tx-1", old).ok());
  TransactionEffects effects;
  core_->finish_loading(now_, effects);
}

ProducerId TransactionWorld::fresh_id() {
  return ProducerId(next_producer_id_++);
}

void TransactionWorld::violated(std::string what) {
  violations_.push_back(std::move(what));
}

void TransactionWorld::step() {
  if (rng_.chance(1, 3)) {
    now_ += rng_.between(0, 20);
  }
  if (!late_.empty() && rng_.chance(1, 60)) {
    const std::size_t i = rng_.below(late_.size());
    send(std::move(late_[i]));
    late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (!network_.empty() && (network_.size() > kNetworkMax || rng_.chance(3, 5))) {
    deliver(rng_.below(network_.size()));
    return;
  }
  if (rng_.chance(1, 50)) {
    TransactionEffects effects;
    core_->tick(now_, effects);
    carry_out(std::move(effects));
  } else if (rng_.chance(1, 150)) {
    crash();
  } else if (rng_.chance(1, 2000)) {
    now_ += kExpirationMs;
  } else {
    act(rng_.below(clients_.size()));
  }
}

// --- Producers

void TransactionWorld::restart_client(Client& client) {
  Client next;
  next.id = client.id;
  next.version = client.version;
  next.instance = client.instance + 1;
  client = std::move(next);
}

void TransactionWorld::act(std::size_t index) {
  Client& client = clients_[index];
  if (rng_.chance(1, 300)) {
    restart_client(client);  // what it sent is still under way
    return;
  }
  if (client.waits_for != 0 && !client.answer_lost) {
    return;
  }
  if (index >= kIds && client.state == State::kNew && !rng_.chance(1, 60)) {
    return;  // the second producer of an id comes now and then
  }
  client.waits_for = 0;
  client.answer_lost = false;
  Message message{};
  message.client = index;
  message.instance = client.instance;
  switch (client.state) {
    case State::kNew:
      message.kind = Message::Kind::kInit;
      message.init.transactional_id = client.id;
      message.init.timeout_ms = kTimeoutMs;
      if (client.producer.id != kNoProducerId) {
        message.init.known = client.producer;
      }
      ask(std::move(message));
      return;
    case State::kReady:
      if (client.version >= 2 && rng_.chance(1, 10)) {  // an abort without a record
        client.ghost = static_cast<Ghost>(ghosts_.size());
        ghosts_.emplace_back();
        client.state = State::kEnding;
        client.commit = false;
        return;
      }
      client.ghost = static_cast<Ghost>(ghosts_.size());
      ghosts_.emplace_back();
      client.added.clear();
      client.must_abort = false;
      client.state = State::kInTransaction;
      return;
    case State::kInTransaction: {
      const int partition = static_cast<int>(rng_.below(kPartitions));
      if (!client.must_abort && rng_.chance(2, 3)) {
        if (!client.added.contains(partition)) {
          message.kind = Message::Kind::kAdd;
          message.partition = partition;
          message.add = {0,    client.id, client.producer, {name_of(partition)}, client.version,
                         false};
          ask(std::move(message));
          return;
        }
        message.kind = Message::Kind::kWrite;
        message.partition = partition;
        message.producer = client.producer;
        message.ghost = client.ghost;
        message.id = client.id;
        message.client_version = client.version;
        ++client.writes_under_way;
        send(std::move(message));
        return;
      }
      if (client.writes_under_way == 0 && !client.added.empty()) {
        client.commit = !client.must_abort && rng_.chance(2, 3);
        ghosts_[static_cast<std::size_t>(client.ghost)].may_commit = client.commit;
        client.state = State::kEnding;
      }
      return;
    }
    case State::kEnding:
      message.kind = Message::Kind::kEnd;
      message.end = {0, client.id, client.producer, client.commit, client.version, std::nullopt};
      ask(std::move(message));
      return;
  }
}

// Sends a request; its answer comes back, or is lost.
void TransactionWorld::ask(Message message) {
  const TransactionRequestId request = next_request_++;
  message.init.request = request;
  message.add.request = request;
  message.end.request = request;
  Client& client = clients_[message.client];
  client.waits_for = request;
  asked_.emplace(request, message);
  // A late copy of EndTxn decides about another transaction before version 2: what KIP-890 mended.
  if (!quiet_ && client.version >= 2 && rng_.chance(1, 20)) {
    late_.push_back(message);
  }
  send(std::move(message));
}

void TransactionWorld::send(Message message) {
  network_.push_back(std::move(message));
}

void TransactionWorld::on_answer(const Message& message) {
  Client& client = clients_[message.client];
  const TransactionAnswer& answer = message.answer;
  if (client.instance != message.instance || client.waits_for != answer.request) {
    return;
  }
  if (!quiet_ && rng_.chance(1, 15)) {
    client.answer_lost = true;  // it asks again
    return;
  }
  client.waits_for = 0;
  const bool again = answer.code == TransactionCode::kConcurrentTransactions ||
                     answer.code == TransactionCode::kStorageError;
  switch (client.state) {
    case State::kNew:
      if (answer.code == TransactionCode::kNone) {
        client.producer = answer.producer;
        client.state = State::kReady;
      } else if (!again) {
        ++counts_.fenced;
        restart_client(client);
      }
      return;
    case State::kInTransaction:
      if (answer.code == TransactionCode::kNone) {
        for (const TopicPartition& partition : asked_.at(answer.request).add.partitions) {
          client.added.insert(partition.partition.value());
        }
      } else if (!again) {
        ++counts_.fenced;
        restart_client(client);
      }
      return;
    case State::kEnding:
      on_end_answer(client, answer);
      return;
    case State::kReady:
      return;
  }
}

void TransactionWorld::on_end_answer(Client& client, const TransactionAnswer& answer) {
  switch (answer.code) {
    case TransactionCode::kNone:
      ghosts_[static_cast<std::size_t>(client.ghost)].told =
          client.commit ? Told::kCommitted : Told::kAborted;
      ++(client.commit ? counts_.committed : counts_.aborted);
      if (client.version >= 2) {
        client.producer = answer.producer;
      }
      client.state = State::kReady;
      // Sometimes the producer goes on as after an error (KIP-360).
      if (rng_.chance(1, 10)) {
        client.state = State::kNew;
      }
      return;
    case TransactionCode::kConcurrentTransactions:
    case TransactionCode::kStorageError:
      return;  // asks again
    default:
      ++counts_.fenced;
      restart_client(client);
      return;
  }
}

// --- The network

void TransactionWorld::deliver(std::size_t index) {
  const Message message = std::move(network_[index]);
  network_[index] = std::move(network_.back());
  network_.pop_back();
  TransactionEffects effects;
  switch (message.kind) {
    case Message::Kind::kInit: {
      InitProducerId init = message.init;
      core_->init_producer_id(init, now_, effects);
      if (const auto* answer =
              effects.empty() ? nullptr : std::get_if<TransactionAnswer>(&effects[0]);
          answer != nullptr && answer->needs_producer_id) {
        effects.clear();
        init.new_producer_id = fresh_id();
        core_->init_producer_id(init, now_, effects);
      }
      break;
    }
    case Message::Kind::kAdd:
      core_->add_partitions(message.add, now_, effects);
      break;
    case Message::Kind::kEnd: {
      EndTransaction end = message.end;
      core_->end_transaction(end, now_, effects);
      if (const auto* answer =
              effects.empty() ? nullptr : std::get_if<TransactionAnswer>(&effects[0]);
          answer != nullptr && answer->needs_producer_id) {
        effects.clear();
        end.new_producer_id = fresh_id();
        core_->end_transaction(end, now_, effects);
      }
      break;
    }
    case Message::Kind::kAnswer:
      on_answer(message);
      return;
    case Message::Kind::kWrite:
      write(message);
      return;
    case Message::Kind::kAppend:
      if (!quiet_ && rng_.chance(1, 25)) {
        core_->on_appended(message.append.token, Error(Errc::kNoSpace, "disk full"), now_, effects);
        break;
      }
      append(message);
      core_->on_appended(message.append.token, Status(), now_, effects);
      if (rng_.chance(1, 20)) {  // a completion that comes twice (KAFKA-10080)
        core_->on_appended(message.append.token, Status(), now_, effects);
      }
      break;
    case Message::Kind::kMarker:
      if (!quiet_ && rng_.chance(1, 20)) {
        core_->on_markers_failed(message.token);
        return;
      }
      mark(message);
      if (message.client_version >= 2 && rng_.chance(1, 10)) {
        Message late = message;  // a copy that comes when it likes
        late.token = 0;
        late_.push_back(std::move(late));
      }
      if (message.token != 0) {
        const TopicPartition partition = name_of(message.partition);
        core_->on_markers_written(message.token, {&partition, 1}, now_, effects);
      }
      break;
  }
  carry_out(std::move(effects));
}

void TransactionWorld::carry_out(TransactionEffects effects) {
  for (TransactionEffect& effect : effects) {
    Message message{};
    if (auto* append = std::get_if<AppendTransactionState>(&effect)) {
      message.kind = Message::Kind::kAppend;
      message.append = std::move(*append);
      send(std::move(message));
    } else if (auto* write = std::get_if<WriteTransactionMarkers>(&effect)) {
      for (const TopicPartition& partition : write->partitions) {
        message.kind = Message::Kind::kMarker;
        message.token = write->token;
        message.coordinator_epoch = coordinator_epoch_;
        message.producer = write->producer;
        message.commit = write->commit;
        message.client_version = write->client_version;
        message.id = write->transactional_id;
        message.partition = partition.partition.value();
        send(message);
      }
    } else {
      auto& answer = std::get<TransactionAnswer>(effect);
      const auto asked = asked_.find(answer.request);
      if (asked == asked_.end()) {
        violated("an answer to a question that nobody asked");
        continue;
      }
      check_answer(asked->second, answer);
      message.kind = Message::Kind::kAnswer;
      message.client = asked->second.client;
      message.instance = asked->second.instance;
      message.answer = std::move(answer);
      send(std::move(message));
    }
  }
}

// What holds from the moment of an answer on, whether it arrives or not.
void TransactionWorld::check_answer(const Message& request, const TransactionAnswer& answer) {
  if (request.kind != Message::Kind::kInit || answer.code != TransactionCode::kNone) {
    return;
  }
  const std::string& id = request.init.transactional_id;
  const auto before = owners_.find(id);
  if (before != owners_.end() && before->second.id != answer.producer.id) {
    lowest_epoch_[before->second.id] = INT32_MAX;
  }
  owners_[id] = answer.producer;
  std::int32_t& lowest = lowest_epoch_[answer.producer.id];
  lowest = std::max<std::int32_t>(lowest, answer.producer.epoch.value());
}

// --- Partitions

void TransactionWorld::write(const Message& message) {
  ProducerState& state =
      partitions_[static_cast<std::size_t>(message.partition)][message.producer.id];
  bool taken = message.producer.epoch >= state.epoch;
  if (taken && (state.open.empty() || state.epoch != message.producer.epoch)) {
    // Verified right before the append (KAFKA-14884).
    TransactionEffects effects;
    core_->add_partitions({0,
                           message.id,
                           message.producer,
                           {name_of(message.partition)},
                           message.client_version,
                           true},
                          now_, effects);
    taken = std::get<TransactionAnswer>(effects.at(0)).code == TransactionCode::kNone;
  }
  if (taken) {
    if (message.producer.epoch.value() < lowest_epoch_[message.producer.id]) {
      violated(fmt::format("T3: producer {} wrote with epoch {} after epoch {} was given out",
                           message.producer.id.value(), message.producer.epoch.value(),
                           lowest_epoch_[message.producer.id]));
    }
    state.epoch = message.producer.epoch;
    state.open.push_back({message.ghost, message.producer});
    ++ghosts_[static_cast<std::size_t>(message.ghost)].acknowledged;
  }
  Client& client = clients_[message.client];
  if (client.instance == message.instance && client.ghost == message.ghost) {
    --client.writes_under_way;
    client.must_abort |= !taken;
  }
}

void TransactionWorld::mark(const Message& message) {
  ProducerState& state =
      partitions_[static_cast<std::size_t>(message.partition)][message.producer.id];
  if (message.coordinator_epoch < state.coordinator_epoch || message.producer.epoch < state.epoch) {
    return;  // of an earlier coordinator, or a late copy
  }
  if (message.client_version >= 2 && !state.open.empty() && state.epoch == message.producer.epoch) {
    return;  // that one is the next transaction
  }
  state.coordinator_epoch = message.coordinator_epoch;
  state.epoch = message.producer.epoch;
  if (state.open.empty()) {
    return;
  }
  const TransactionValue& decided = latest_[message.id];
  const auto wanted =
      message.commit ? TransactionStatus::kPrepareCommit : TransactionStatus::kPrepareAbort;
  if (decided.status != wanted || decided.producer_id != message.producer.id ||
      decided.producer_epoch != message.producer.epoch) {
    violated(fmt::format("T2: a {} marker of producer {} epoch {} while {} epoch {} is decided",
                         message.commit ? "commit" : "abort", message.producer.id.value(),
                         message.producer.epoch.value(), transaction_status_name(decided.status),
                         decided.producer_epoch.value()));
  }
  const int marked = message.commit ? 1 : 2;
  for (const DataRecord& record : state.open) {
    GhostTransaction& ghost = ghosts_[static_cast<std::size_t>(record.ghost)];
    if (ghost.marked != 0 && ghost.marked != marked) {
      violated("T1: one transaction was committed in one partition and aborted in another");
    }
    ghost.marked = marked;
    if (message.commit && !ghost.may_commit) {
      violated("T1: committed though its producer was not done with it");
    }
    if (record.producer != state.open.front().producer) {
      violated("T3: records of two epochs in one open transaction");
    }
  }
  state.open.clear();
}

// --- The coordinator's log

void TransactionWorld::append(const Message& message) {
  const AppendTransactionState& record = message.append;
  check_successor(record.transactional_id, record.value);
  std::string bytes;
  if (record.value) {
    bytes = encode_transaction_value(*record.value, record.value_version);
    latest_[record.transactional_id] = *record.value;
  } else {
    latest_.erase(record.transactional_id);
  }
  log_.emplace_back(record.transactional_id, std::move(bytes));
}

void TransactionWorld::check_successor(const std::string& id,
                                       const std::optional<TransactionValue>& next) {
  const auto found = latest_.find(id);
  const auto bad = [&](std::string_view why) {
    violated(fmt::format(
        "{}: {} epoch {} behind {} epoch {}: {}", id,
        next ? transaction_status_name(next->status) : "tombstone",
        next ? next->producer_epoch.value() : -1,
        found == latest_.end() ? "nothing" : transaction_status_name(found->second.status),
        found == latest_.end() ? -1 : found->second.producer_epoch.value(), why));
  };
  if (!next) {
    ++counts_.tombstones;
    if (found == latest_.end() || !is_idle(found->second.status)) {
      bad("expired while it was in use");
    }
    return;
  }
  const std::set<TopicPartition> partitions = partitions_of(*next);
  if (found == latest_.end()) {
    if (next->status != TransactionStatus::kEmpty || next->producer_epoch.value() != 0 ||
        !used_ids_.insert(next->producer_id).second) {
      bad("a new id begins empty, with a new producer and epoch 0");
    }
    return;
  }
  const TransactionValue& last = found->second;
  const bool same_producer = last.producer_id == next->producer_id;
  const int raised = next->producer_epoch.value() - last.producer_epoch.value();
  switch (next->status) {
    case TransactionStatus::kEmpty:
      if (!is_idle(last.status)) {
        bad("initialised before the transaction ended");
      }
      if (same_producer
              ? raised != 0 && raised != 1
              : next->producer_epoch.value() != 0 || last.producer_epoch.value() < 32'766 ||
                    !used_ids_.insert(next->producer_id).second) {
        bad("neither the next epoch nor a new producer");
      }
      counts_.rotations += same_producer ? 0 : 1;
      return;
    case TransactionStatus::kOngoing: {
      const std::set<TopicPartition> before = partitions_of(last);
      if (!same_producer || raised != 0) {
        bad("another epoch");
      }
      if (last.status == TransactionStatus::kOngoing
              ? !std::ranges::includes(partitions, before) || next->start != last.start
              : !is_idle(last.status) || partitions.empty() || next->start != next->last_update) {
        bad("partitions or start");
      }
      return;
    }
    case TransactionStatus::kPrepareCommit:
    case TransactionStatus::kPrepareAbort: {
      const bool is_abort = next->status == TransactionStatus::kPrepareAbort;
      if (last.status == TransactionStatus::kOngoing
              ? partitions != partitions_of(last)
              : !is_idle(last.status) || !is_abort || options_.transaction_version < 2 ||
                    !partitions.empty()) {
        bad("decided without a transaction");
      }
      // Version 2 raises it always, a fencing abort too.
      if (!same_producer || raised > 1 || raised < (last.client_version >= 2 ? 1 : 0)) {
        bad("epoch of the decision");
      }
      return;
    }
    case TransactionStatus::kCompleteCommit:
    case TransactionStatus::kCompleteAbort: {
      const bool is_commit = next->status == TransactionStatus::kCompleteCommit;
      if (last.status !=
              (is_commit ? TransactionStatus::kPrepareCommit : TransactionStatus::kPrepareAbort) ||
          !partitions.empty()) {
        bad("completed otherwise than decided");
      }
      const bool rotates = last.next_producer_id != kNoProducerId;
      if (rotates
              ? next->producer_id != last.next_producer_id || next->producer_epoch.value() != 0 ||
                    !used_ids_.insert(next->producer_id).second
              : !same_producer || raised != 0) {
        bad("epoch of the completion");
      }
      counts_.rotations += rotates ? 1 : 0;
      return;
    }
    case TransactionStatus::kDead:
    case TransactionStatus::kPrepareEpochFence:
      bad("never written");
      return;
  }
}

void TransactionWorld::crash() {
  ++counts_.crashes;
  std::vector<Message> left;
  for (Message& message : network_) {
    if (message.kind == Message::Kind::kAppend) {
      if (rng_.chance(1, 2)) {
        append(message);  // it reached the log, and nobody was told
      }
    } else if (message.kind == Message::Kind::kMarker && message.client_version < 2) {
      if (rng_.chance(1, 2)) {
        mark(message);
      }
    } else {
      if (message.kind == Message::Kind::kMarker) {
        message.token = 0;
      }
      left.push_back(std::move(message));
    }
  }
  network_ = std::move(left);
  // What was asked and not answered never will be.
  for (Client& client : clients_) {
    client.answer_lost = client.waits_for != 0;
  }
  ++coordinator_epoch_;
  core_ = std::make_unique<TransactionCoordinator>(options_);
  for (const auto& [id, bytes] : log_) {
    std::optional<TransactionValue> value;
    if (!bytes.empty()) {
      value = decode_transaction_value(bytes).value();
    }
    WEIR_ASSERT(core_->load(id, std::move(value)).ok());
  }
  TransactionEffects effects;
  core_->finish_loading(now_, effects);
  carry_out(std::move(effects));
}

void TransactionWorld::quiesce() {
  quiet_ = true;
  for (Message& message : std::exchange(late_, {})) {
    send(std::move(message));
  }
  for (int round = 0; round < 6; ++round) {
    while (!network_.empty()) {
      deliver(rng_.below(network_.size()));
    }
    now_ += kTimeoutMs + 1;
    TransactionEffects effects;
    core_->tick(now_, effects);
    carry_out(std::move(effects));
  }
  for (const TransactionCoordinator::Description& id : core_->list()) {
    if (!is_idle(id.value.status)) {
      violated(fmt::format("{} is left in {}", id.transactional_id,
                           transaction_status_name(id.value.status)));
    }
  }
  for (const PartitionState& partition : partitions_) {
    for (const auto& [producer, state] : partition) {
      if (!state.open.empty()) {
        violated(fmt::format("a transaction of producer {} epoch {} hangs", producer.value(),
                             state.epoch.value()));
      }
    }
  }
  for (std::size_t i = 0; i < ghosts_.size(); ++i) {
    const GhostTransaction& ghost = ghosts_[i];
    if (ghost.acknowledged == 0 || ghost.told == Told::kNothing) {
      continue;
    }
    if (ghost.marked != (ghost.told == Told::kCommitted ? 1 : 2)) {
      violated(fmt::format("transaction {}: its producer was told {}, its records say {}", i,
                           ghost.told == Told::kCommitted ? "committed" : "aborted", ghost.marked));
    }
  }
}

}  // namespace weir::log
