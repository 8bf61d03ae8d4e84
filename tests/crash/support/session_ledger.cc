#include "tests/crash/support/session_ledger.h"

#include "tests/crash/killing.h"
#include "tests/crash/support/session_talk.h"

#include <gtest/gtest.h>

#include <functional>

namespace weir::crash {

void SessionLedger::read_new(
    Backend& log, const std::string& topic,
    const std::function<void(std::int32_t partition, const RecordView&)>& take) {
  const auto description = log.admin().describe_topic(topic);
  if (!description.ok()) {
    EXPECT_EQ(description.error().code(), Errc::kUnknownTopic);
    return;  // killed before it was made
  }
  for (std::int32_t i = 0; i < description->partitions; ++i) {
    const TopicPartition partition{topic, PartitionId(i)};
    const Offset end = log.admin().offsets(partition).value().high_watermark;
    Offset& position = positions_.emplace(partition, Offset(0)).first->second;
    EXPECT_LE(position, end) << partition.to_string() << " lost what was durable";
    const std::unique_ptr<RecordSource> source = std::move(log.make_source({})).value();
    ASSERT_TRUE(source->assign({partition}).ok());
    ASSERT_TRUE(source->seek(0, position).ok());
    while (source->position(0) < end) {
      const auto blocks = source->poll(Duration::zero());
      ASSERT_TRUE(blocks.ok()) << blocks.error().to_string();
      for (const RecordBlock& block : *blocks) {
        ASSERT_TRUE(block.status.ok()) << block.status.error().to_string();
        for (const RecordView& record : block.records) {
          take(i, record);
        }
      }
    }
    position = end;
  }
}

std::int64_t SessionLedger::behind(const std::string& name, const Session& session,
                                   std::int64_t number) {
  for (++number; session.dead.contains(number) && is_hopeless(name, number); ++number) {
  }
  return number;
}

void SessionLedger::take_answer(const std::string& name, std::int64_t number, std::int64_t count) {
  Session& session = sessions_[name];
  EXPECT_LE(number, session.sent) << name << " answers what was not sent";
  if (session.at == -1) {
    EXPECT_LE(number, behind(name, session, session.seen)) << name << " skips";
    EXPECT_GT(number, session.committed) << name << " repeats what was committed";
  } else {
    EXPECT_EQ(number, behind(name, session, session.at)) << name << " skips or goes back";
  }
  session.at = number;
  const auto [known, is_new] = session.counts.emplace(number, count);
  EXPECT_EQ(known->second, count) << name << " counts message " << number << " anew";
  if (number <= session.seen) {
    ++repeated_;
    return;
  }
  ++answers_;
  const auto dead = static_cast<std::int64_t>(
      std::distance(session.dead.begin(), session.dead.lower_bound(number)));
  EXPECT_EQ(count, number - dead) << name << " has a wrong count at message " << number;
  session.seen = number;
}

void SessionLedger::check_after_crash(Backend& log) {
  for (auto& [name, session] : sessions_) {
    session.at = -1;
  }
  read_new(log, kTalk, [this](std::int32_t partition, const RecordView& record) {
    const std::string name(record.key.view());
    const std::int64_t number = Words(record.value.view()).number();
    EXPECT_EQ(number, ++sessions_[name].sent) << name << " was not sent in order";
    EXPECT_EQ(record.offset.value(), static_cast<std::int64_t>(sent_[partition].size()));
    sent_[partition].push_back({name, number});
    ++messages_;
  });
  read_new(log, kTalkLetters, [this](std::int32_t /*partition*/, const RecordView& record) {
    const std::string name(record.key.view());
    const std::int64_t number = Words(record.value.view()).number();
    EXPECT_TRUE(is_hopeless(name, number)) << name << " gave up message " << number;
    sessions_[name].dead.insert(number);
    ++letters_;
  });
  read_new(log, kAnswers, [this](std::int32_t /*partition*/, const RecordView& record) {
    Words answer(record.value.view());
    const std::int64_t number = answer.number();
    take_answer(std::string(record.key.view()), number, answer.number());
  });
  check_committed(log);
}

void SessionLedger::check_committed(Backend& log) {
  const auto offsets = log.admin().group_offsets(kTalkGroup);
  ASSERT_TRUE(offsets.ok());
  for (const auto& [partition, at] : *offsets) {
    if (partition.topic != kTalk) {
      continue;
    }
    std::int64_t& before = committed_[partition.partition.value()];
    const std::vector<Sent>& sent = sent_[partition.partition.value()];
    EXPECT_GE(at.offset.value(), before) << partition.to_string() << " was committed backwards";
    EXPECT_LE(at.offset.value(), static_cast<std::int64_t>(sent.size()));
    for (; before < at.offset.value() && !::testing::Test::HasFailure(); ++before) {
      const Sent& message = sent[static_cast<std::size_t>(before)];
      Session& session = sessions_[message.session];
      EXPECT_TRUE(session.seen >= message.number || session.dead.contains(message.number))
          << "offset " << before << " of " << partition.to_string()
          << " is committed, but nothing came of message " << message.number << " of "
          << message.session;
      session.committed = message.number;
      session.counts.erase(session.counts.begin(), session.counts.lower_bound(message.number));
    }
  }
}

void SessionLedger::check_drained(Backend& log) {
  check_after_crash(log);
  for (const auto& [partition, sent] : sent_) {
    EXPECT_EQ(committed_[partition], static_cast<std::int64_t>(sent.size()))
        << "partition " << partition << " is not committed to its end";
  }
  for (const auto& [name, session] : sessions_) {
    EXPECT_EQ(behind(name, session, session.seen), session.sent + 1) << name << " is not answered";
  }
}

}  // namespace weir::crash
