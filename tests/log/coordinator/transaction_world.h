#pragma once

#include "log/coordinator/transaction_coordinator.h"

#include <weir/runtime/rng.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace weir::log {

// Producers, partitions and one coordinator with a network between them that delays, loses and
// repeats, and crashes of the coordinator between any two effects; one seed replays everything.
//
// What is checked (reference R 3.3), by rules that know nothing of the coordinator's code:
//   - every record of `__transaction_state` is a legal successor of the one before of its id;
//   - T1: the records of a transaction get the same outcome in all partitions;
//   - T2: at most one marker for a transaction in a partition, and it says what was decided in
//     `__transaction_state` before;
//   - T3: after InitProducerId has answered, nothing of an earlier epoch is taken;
//   - a transaction is committed only after its producer asked for that;
//   - a producer that was told "committed" or "aborted" was told the truth;
//   - at the end, with a quiet network, nothing is open.
// Threading: confined to its owner.
class TransactionWorld {
 public:
  TransactionWorld(std::uint64_t seed, std::int16_t transaction_version);

  void step();
  // Delivers everything, lets open transactions time out, checks what must hold then.
  void quiesce();
  // What was violated; empty: nothing.
  const std::vector<std::string>& violations() const { return violations_; }

  struct Counts {
    std::uint64_t committed = 0;
    std::uint64_t aborted = 0;
    std::uint64_t fenced = 0;
    std::uint64_t crashes = 0;
    std::uint64_t rotations = 0;
    std::uint64_t tombstones = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  using Ghost = int;  // a transaction as its producer sees it
  enum class Told { kNothing, kCommitted, kAborted };
  struct GhostTransaction {
    Told told = Told::kNothing;
    bool may_commit = false;  // its producer asked for it
    int marked = 0;           // 0 not yet, 1 committed, 2 aborted
    std::size_t acknowledged = 0;
  };

  // --- Partitions
  struct DataRecord {
    Ghost ghost;
    ProducerIdAndEpoch producer;
  };
  struct ProducerState {
    ProducerEpoch epoch = kNoProducerEpoch;
    int coordinator_epoch = -1;
    std::vector<DataRecord> open;  // of the open transaction; empty: none
  };
  using PartitionState = std::map<ProducerId, ProducerState>;

  // --- Producers
  enum class State { kNew, kReady, kInTransaction, kEnding };
  struct Client {
    std::string id;
    std::int16_t version = 2;
    State state = State::kNew;
    ProducerIdAndEpoch producer;
    TransactionRequestId waits_for = 0;  // 0: for nothing
    bool answer_lost = false;
    Ghost ghost = -1;
    std::set<int> added;
    std::size_t writes_under_way = 0;
    bool commit = false;
    bool must_abort = false;
    int instance = 0;  // a crash of the producer makes the next one
  };

  // --- The network
  struct Message {
    enum class Kind { kInit, kAdd, kEnd, kAnswer, kWrite, kAppend, kMarker } kind;
    std::size_t client = 0;
    int instance = 0;
    InitProducerId init;
    AddPartitions add;
    EndTransaction end;
    TransactionAnswer answer;
    Ghost ghost = -1;
    ProducerIdAndEpoch producer;
    int partition = 0;
    AppendTransactionState append;
    // Of a marker
    std::uint64_t token = 0;
    int coordinator_epoch = 0;
    bool commit = false;
    std::int16_t client_version = 0;
    std::string id;
  };

  void act(std::size_t index);
  void send(Message message);
  void deliver(std::size_t index);
  void ask(Message message);
  void carry_out(TransactionEffects effects);
  void on_answer(const Message& message);
  void on_end_answer(Client& client, const TransactionAnswer& answer);
  void write(const Message& message);
  void append(const Message& message);
  void mark(const Message& message);
  void crash();
  void restart_client(Client& client);
  void check_successor(const std::string& id, const std::optional<TransactionValue>& next);
  void check_answer(const Message& request, const TransactionAnswer& answer);
  void violated(std::string what);
  static TopicPartition name_of(int partition) { return {"t", PartitionId(partition)}; }
  ProducerId fresh_id();

  Rng rng_;
  TransactionCoordinatorOptions options_;
  std::unique_ptr<TransactionCoordinator> core_;
  int coordinator_epoch_ = 0;
  Timestamp now_ = 1'000'000;
  std::int64_t next_producer_id_ = 1000;
  TransactionRequestId next_request_ = 1;
  bool quiet_ = false;  // nothing is lost, repeated or begun any more

  std::vector<std::pair<std::string, std::string>> log_;  // id, encoded value; empty: tombstone
  std::map<std::string, TransactionValue> latest_;        // of the log
  std::set<ProducerId> used_ids_;
  std::map<ProducerId, std::int32_t> lowest_epoch_;  // T3: below it nothing may be taken
  std::map<std::string, ProducerIdAndEpoch> owners_;
  std::map<TransactionRequestId, Message> asked_;
  std::vector<PartitionState> partitions_;
  std::vector<Client> clients_;
  std::vector<GhostTransaction> ghosts_;
  std::vector<Message> network_;
  std::vector<Message> late_;  // copies that come long after
  std::vector<std::string> violations_;
  Counts counts_;
};

}  // namespace weir::log
