#include "tests/crash/support/transaction_ledger.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace weir::crash {

const TopicPartition TransactionLedger::kInput{"input", PartitionId(0)};

TransactionLedger::TransactionLedger(std::string topic, int partitions,
                                     std::vector<std::string> groups,
                                     std::function<bool()> may_fail)
    : topic_(std::move(topic)),
      partitions_(partitions),
      groups_(std::move(groups)),
      may_fail_(std::move(may_fail)) {}

int TransactionLedger::begin() {
  transactions_.emplace_back();
  return count() - 1;
}

std::string TransactionLedger::record_name(int transaction, int partition) const {
  const auto& records = transactions_[static_cast<std::size_t>(transaction)].records;
  const auto sent = records.find(partition);
  return fmt::format("{}/{}/{}/", transaction, partition, sent == records.end() ? 0 : sent->second);
}

void TransactionLedger::sent(int transaction, int partition) {
  ++at(transaction).records[partition];
}

bool TransactionLedger::may_send_offset(int transaction, const std::string& group) const {
  const std::string& mine = transactions_[static_cast<std::size_t>(transaction)].group;
  return mine.empty() || mine == group;
}

void TransactionLedger::sending_offset(int transaction, const std::string& group) {
  at(transaction).group = group;
  at(transaction).offset_sent = ++offsets_sent_;
}

void TransactionLedger::ending(int transaction, bool commit) {
  at(transaction).end = End::kUnknown;
  at(transaction).may_commit = commit;
}

void TransactionLedger::ended(int transaction, TransactionOutcome outcome) {
  if (outcome == TransactionOutcome::kCommitted) {
    at(transaction).end = End::kCommitted;
    ++committed_;
  } else if (outcome == TransactionOutcome::kAborted) {
    at(transaction).end = End::kAborted;
  }
}

void TransactionLedger::plain_sent(bool acknowledged) {
  if (acknowledged) {
    ++plain_;
  } else {
    plain_may_be_more_ = true;
  }
}

void TransactionLedger::look(log::EmbeddedLog& log) {
  const std::set<std::string> now = visible(log);
  if (!is_dead()) {
    seen_.insert(now.begin(), now.end());
  }
}

void TransactionLedger::check(log::EmbeddedLog& log, const std::function<void()>& resolve) {
  const std::set<std::string> before = visible(log);
  resolve();
  const std::set<std::string> now = visible(log);
  for (const std::string& name : seen_) {
    ASSERT_TRUE(now.contains(name)) << name << " was read, and is gone";
  }
  ASSERT_TRUE(std::ranges::includes(now, before)) << "a record that was read was not committed";
  for (int i = 0; i < count(); ++i) {
    check_transaction(i, now);
  }
  check_offsets(log);
  check_plain(log);
  seen_ = now;
}

std::vector<std::string> TransactionLedger::read(log::EmbeddedLog& log, int partition) const {
  std::vector<std::string> values;
  SourceOptions options;
  options.read_committed = true;
  auto source = log.make_source(options).value();
  (void)source->assign({{topic_, PartitionId(partition)}}).ok();
  (void)source->seek(0, Offset(0)).ok();
  while (true) {
    const auto blocks = source->poll(Duration::zero());
    if (!blocks.ok() || blocks->empty()) {
      EXPECT_TRUE(blocks.ok() || is_dead()) << blocks.error().to_string();
      return values;
    }
    for (const RecordBlock& block : *blocks) {
      EXPECT_TRUE(block.status.ok() || is_dead()) << block.status.error().to_string();
      for (const RecordView& record : block.records) {
        values.emplace_back(record.value.view_or_empty());
      }
    }
  }
}

// "transaction/partition/number".
std::set<std::string> TransactionLedger::visible(log::EmbeddedLog& log) const {
  std::set<std::string> all;
  for (int partition = 0; partition < partitions_; ++partition) {
    for (const std::string& value : read(log, partition)) {
      if (value != "plain") {
        const std::string name = value.substr(0, value.rfind('/'));
        EXPECT_TRUE(all.insert(name).second || is_dead()) << name << " is there twice";
      }
    }
  }
  return all;
}

void TransactionLedger::check_plain(log::EmbeddedLog& log) {
  const std::vector<std::string> values = read(log, 0);
  const auto count = static_cast<int>(std::ranges::count(values, "plain"));
  if (plain_may_be_more_ && count == plain_ + 1) {
    ++plain_;
  }
  plain_may_be_more_ = false;
  ASSERT_EQ(plain_, count);
}

void TransactionLedger::check_transaction(int number, const std::set<std::string>& now) {
  Transaction& transaction = at(number);
  int expected = 0;
  int found = 0;
  for (const auto& [partition, records] : transaction.records) {
    expected += records;
    for (int i = 0; i < records; ++i) {
      found += now.contains(fmt::format("{}/{}/{}", number, partition, i)) ? 1 : 0;
    }
  }
  ++checked_;
  ASSERT_TRUE(found == 0 || found == expected)
      << "transaction " << number << " shows " << found << " of " << expected << " records";
  if (transaction.end == End::kCommitted) {
    ASSERT_EQ(found, expected) << "transaction " << number << " was committed";
  } else if (transaction.end == End::kAborted || !transaction.may_commit) {
    ASSERT_EQ(found, 0) << "transaction " << number << " was not committed";
  }
  if (expected > 0 && transaction.end != End::kCommitted) {
    transaction.end = found > 0 ? End::kCommitted : End::kAborted;
  }
}

void TransactionLedger::check_offsets(log::EmbeddedLog& log) {
  for (const std::string& group : groups_) {
    auto member = log.make_group(group).value();
    const auto found = member->committed({&kInput, 1});
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    // With each wish of those of which nobody knows how they ended: they have no records.
    std::set<std::int64_t> allowed;
    for (const bool counts : {false, true}) {
      std::int64_t last = -1;
      int last_sent = 0;
      for (int i = 0; i < count(); ++i) {
        const Transaction& one = at(i);
        const bool is_committed =
            one.end == End::kCommitted || (counts && one.end == End::kUnknown && one.may_commit);
        if (one.group == group && is_committed && last_sent < one.offset_sent) {
          last = i;
          last_sent = one.offset_sent;
        }
      }
      allowed.insert(last);
    }
    const std::int64_t offset = (*found)[0] ? (*found)[0]->offset.value() : -1;
    ASSERT_TRUE(allowed.contains(offset)) << group << " is at " << offset << ", not at "
                                          << *allowed.begin() << " or " << *allowed.rbegin();
    for (int i = 0; i < count(); ++i) {
      if (at(i).end == End::kUnknown && at(i).group == group) {
        at(i).end = offset == i ? End::kCommitted : End::kAborted;
      }
    }
  }
}

}  // namespace weir::crash
