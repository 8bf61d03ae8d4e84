#pragma once

#include <weir/log/embedded_log.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weir::crash {

// What transactional producers were promised, kept outside of the log, and the comparison of a
// recovered log with it. A difference fails the running test.
//
// Checked: T1, T2 and T4 of one node. Every read_committed reader and every group see all of a
// transaction or nothing; what was committed is there, what was aborted is not; what a reader saw
// stays, and nothing is there twice.
//
// The transactions write to partitions of one topic, and commit their own number as the offset of
// kInput, for one group each. Records without a transaction have the value "plain".
//
// Threading: confined to one thread.
class TransactionLedger {
 public:
  // `may_fail`: the log died, and what it says is not to be believed.
  TransactionLedger(std::string topic, int partitions, std::vector<std::string> groups,
                    std::function<bool()> may_fail = {});

  // --- what the producers do
  int begin();  // its number, from 0
  int count() const { return static_cast<int>(transactions_.size()); }
  // What its next record to a partition begins with: "transaction/partition/number/".
  std::string record_name(int transaction, int partition) const;
  void sent(int transaction, int partition);
  // False: it commits for another group.
  bool may_send_offset(int transaction, const std::string& group) const;
  void sending_offset(int transaction, const std::string& group);
  void ending(int transaction, bool commit);
  void ended(int transaction, TransactionOutcome outcome);  // nothing: nobody knows
  void plain_sent(bool acknowledged);
  // What a reader saw it must see ever after; its name is "transaction/partition/number".
  void saw(const std::string& name) { seen_.insert(name); }
  void look(log::EmbeddedLog& log);  // at everything

  // `resolve` opens every transactional id, which aborts what it left open.
  void check(log::EmbeddedLog& log, const std::function<void()>& resolve);

  int checked() const { return checked_; }
  int committed() const { return committed_; }

  static const TopicPartition kInput;

 private:
  enum class End { kOpen, kUnknown, kCommitted, kAborted };
  struct Transaction {
    End end = End::kOpen;
    bool may_commit = false;
    std::map<int, int> records;  // by partition, those that may be there
    // The later record of an offset wins, whichever transaction ends first.
    std::string group;    // empty: no offset
    int offset_sent = 0;  // when, among all
  };

  bool is_dead() const { return may_fail_ && may_fail_(); }
  Transaction& at(int number) { return transactions_[static_cast<std::size_t>(number)]; }
  std::vector<std::string> read(log::EmbeddedLog& log, int partition) const;
  std::set<std::string> visible(log::EmbeddedLog& log) const;
  void check_transaction(int number, const std::set<std::string>& now);
  void check_offsets(log::EmbeddedLog& log);
  void check_plain(log::EmbeddedLog& log);

  const std::string topic_;
  const int partitions_;
  const std::vector<std::string> groups_;
  const std::function<bool()> may_fail_;
  std::vector<Transaction> transactions_;
  int offsets_sent_ = 0;
  std::set<std::string> seen_;
  int plain_ = 0;
  bool plain_may_be_more_ = false;
  int checked_ = 0;
  int committed_ = 0;
};

}  // namespace weir::crash
