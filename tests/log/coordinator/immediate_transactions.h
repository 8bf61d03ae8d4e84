#pragma once

#include "log/coordinator/transaction_coordinator.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weir::log {

// A coordinator whose effects are carried out at once, every record through its codec.
// Threading: confined to its owner.
class ImmediateTransactions {
 public:
  struct Written {
    std::string id;
    std::optional<TransactionValue> value;
  };
  struct Marker {
    TopicPartition partition;
    ProducerIdAndEpoch producer;
    bool commit = false;
    friend bool operator==(const Marker&, const Marker&) = default;
  };

  explicit ImmediateTransactions(TransactionCoordinatorOptions options = {})
      : options_(options), core_(options) {}

  TransactionAnswer init(const std::string& id, std::int32_t timeout_ms = 60'000,
                         std::optional<ProducerIdAndEpoch> known = std::nullopt) {
    InitProducerId request{next_request_++, id, timeout_ms, known, std::nullopt};
    TransactionEffects effects;
    core_.init_producer_id(request, now, effects);
    TransactionAnswer answer = run(std::move(effects));
    if (answer.needs_producer_id) {
      request.new_producer_id = ProducerId(next_producer_id++);
      effects.clear();
      core_.init_producer_id(request, now, effects);
      answer = run(std::move(effects));
    }
    return answer;
  }
  TransactionAnswer add(const std::string& id, ProducerIdAndEpoch producer,
                        std::vector<TopicPartition> partitions, bool verify_only = false) {
    TransactionEffects effects;
    core_.add_partitions(
        {next_request_++, id, producer, std::move(partitions), client_version, verify_only}, now,
        effects);
    return run(std::move(effects));
  }
  TransactionAnswer end(const std::string& id, ProducerIdAndEpoch producer, bool commit) {
    EndTransaction request{next_request_++, id, producer, commit, client_version, std::nullopt};
    TransactionEffects effects;
    core_.end_transaction(request, now, effects);
    TransactionAnswer answer = run(std::move(effects));
    if (answer.needs_producer_id) {
      request.new_producer_id = ProducerId(next_producer_id++);
      effects.clear();
      core_.end_transaction(request, now, effects);
      answer = run(std::move(effects));
    }
    return answer;
  }
  void tick() {
    TransactionEffects effects;
    core_.tick(now, effects);
    run(std::move(effects));
  }
  // As after a crash: what is not in the log is gone.
  void restart() {
    core_ = TransactionCoordinator(options_);
    for (const Written& record : log) {
      ASSERT_TRUE(core_.load(record.id, record.value).ok());
    }
    TransactionEffects effects;
    core_.finish_loading(now, effects);
    run(std::move(effects));
  }
  TransactionStatus status(const std::string& id) const { return core_.describe(id)->value.status; }
  ProducerIdAndEpoch producer(const std::string& id) const {
    const TransactionValue value = core_.describe(id)->value;
    return {value.producer_id, value.producer_epoch};
  }
  TransactionCoordinator& core() { return core_; }

  Timestamp now = 1'000'000;
  std::int16_t client_version = 2;
  std::int64_t next_producer_id = 0;
  std::vector<Written> log;
  std::vector<Marker> markers;
  Status append_failure;      // of every record while set
  bool markers_fail = false;  // all of them
  bool hold_markers = false;  // neither written nor failed
  std::vector<WriteTransactionMarkers> held;

  TransactionAnswer run(TransactionEffects effects) {
    TransactionAnswer last;
    std::deque<TransactionEffect> queue(std::make_move_iterator(effects.begin()),
                                        std::make_move_iterator(effects.end()));
    while (!queue.empty()) {
      const TransactionEffect effect = std::move(queue.front());
      queue.pop_front();
      TransactionEffects more;
      if (const auto* append = std::get_if<AppendTransactionState>(&effect)) {
        write(*append, more);
      } else if (const auto* write = std::get_if<WriteTransactionMarkers>(&effect)) {
        mark(*write, more);
      } else {
        last = std::get<TransactionAnswer>(effect);
      }
      queue.insert(queue.begin(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
    }
    return last;
  }

 private:
  void write(const AppendTransactionState& append, TransactionEffects& more) {
    if (append_failure.ok()) {
      std::optional<TransactionValue> value;
      if (append.value) {
        value =
            decode_transaction_value(encode_transaction_value(*append.value, append.value_version))
                .value();
      }
      log.push_back({append.transactional_id, std::move(value)});
    }
    core_.on_appended(append.token, append_failure, now, more);
  }
  void mark(const WriteTransactionMarkers& write, TransactionEffects& more) {
    if (hold_markers) {
      held.push_back(write);
      return;
    }
    if (markers_fail) {
      core_.on_markers_failed(write.token);
      return;
    }
    for (const TopicPartition& partition : write.partitions) {
      markers.push_back({partition, write.producer, write.commit});
    }
    core_.on_markers_written(write.token, write.partitions, now, more);
  }

  TransactionCoordinatorOptions options_;
  TransactionCoordinator core_;
  TransactionRequestId next_request_ = 1;
};

}  // namespace weir::log
