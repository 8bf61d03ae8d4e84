#include "tests/crash/support/ledger.h"

#include <weir/operators/store_reader.h>
#include <weir/runtime/endian.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace weir::crash {
namespace {

std::int64_t at(const Counts& counts, const std::string& word) {
  const auto found = counts.find(word);
  return found == counts.end() ? 0 : found->second;
}

Counts sum(const Counts& a, const Counts& b) {
  Counts result = a;
  for (const auto& [word, count] : b) {
    result[word] += count;
  }
  return result;
}

// For each word: low <= counts <= high.
void expect_between(const Counts& low, const Counts& counts, const Counts& high,
                    const std::string& what) {
  for (const auto& [word, least] : low) {
    EXPECT_GE(at(counts, word), least) << what << " is too low for " << word;
  }
  for (const auto& [word, count] : counts) {
    EXPECT_LE(count, at(high, word)) << what << " is too high for " << word;
  }
}

TopicPartition name(const char* topic, std::int32_t partition) {
  return {topic, PartitionId(partition)};
}

}  // namespace

void Ledger::acknowledged(std::int64_t number) {
  ++acknowledged_lines_;
  if (!seen_.contains(number)) {
    unseen_.insert(number);
  }
}

void Ledger::committed(const TopicPartition& partition, Offset offset) {
  Offset& known = committed_.try_emplace(partition, Offset(0)).first->second;
  known = std::max(known, offset);
}

void Ledger::take_records(const RecordBlock& block, Offset from, std::vector<Read>& records) {
  for (const RecordView& record : block.records) {
    if (record.offset >= from) {
      records.push_back({record.offset, std::string(record.key.view_or_empty()),
                         std::string(record.value.view_or_empty())});
    }
  }
}

std::vector<Ledger::Read> Ledger::read(Backend& log, const TopicPartition& partition, Offset from) {
  std::vector<Read> records;
  const Result<PartitionOffsets> offsets = log.admin().offsets(partition);
  EXPECT_TRUE(offsets.ok()) << (offsets.ok() ? "" : offsets.error().to_string());
  if (!offsets.ok() || from >= offsets->high_watermark) {
    return records;
  }
  auto source = log.make_source({}).value();
  EXPECT_TRUE(source->assign({partition}).ok());
  EXPECT_TRUE(source->seek(0, from).ok());
  while (source->position(0) < offsets->high_watermark) {
    const auto blocks = source->poll(Duration::zero());
    if (!blocks.ok() || blocks->empty()) {
      ADD_FAILURE() << "cannot read " << partition.to_string() << " at offset "
                    << source->position(0).value() << " of " << offsets->high_watermark.value()
                    << ": " << (blocks.ok() ? "no records" : blocks.error().to_string());
      return records;
    }
    for (const RecordBlock& block : *blocks) {
      if (!block.status.ok()) {
        ADD_FAILURE() << partition.to_string() << ": " << block.status.error().to_string();
        return records;
      }
      take_records(block, from, records);
    }
  }
  return records;
}

std::map<TopicPartition, Offset> Ledger::read_committed(Backend& log) {
  std::vector<TopicPartition> partitions;
  for (std::int32_t p = 0; p < kPartitions; ++p) {
    partitions.push_back(name(kLinesTopic, p));
    partitions.push_back(name(kRepartitionTopic, p));
  }
  std::map<TopicPartition, Offset> result;
  auto group = log.make_group(kApplicationId).value();
  const auto read = group->committed(partitions);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().to_string());
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    Offset offset(0);
    if (read.ok() && (*read)[i].has_value()) {
      offset = (*read)[i]->offset;
    }
    result[partitions[i]] = offset;
    const auto promised = committed_.find(partitions[i]);
    if (promised != committed_.end()) {
      EXPECT_GE(offset, promised->second) << "lost a commit of " << partitions[i].to_string();
    }
  }
  return result;
}

void Ledger::take_line(std::size_t partition, const Read& record) {
  std::vector<std::int64_t>& numbers = lines_[partition];
  const std::optional<std::int64_t> number = number_of(record.value);
  ASSERT_TRUE(number.has_value()) << "no line: '" << record.value << "'";
  const auto index = static_cast<std::size_t>(record.offset.value());
  if (index < numbers.size()) {
    ASSERT_EQ(numbers[index], *number)
        << "another record at offset " << index << " of partition " << partition;
    return;
  }
  ASSERT_EQ(index, numbers.size()) << "a hole in the input of partition " << partition;
  ASSERT_TRUE(numbers.empty() || numbers.back() < *number)
      << "out of order at offset " << index << " of partition " << partition;
  numbers.push_back(*number);
  EXPECT_TRUE(seen_.insert(*number).second) << "line " << *number << " is there twice";
  for (const std::string& word : words_of(record.value)) {
    ++true_counts_[word];
  }
}

void Ledger::check_lines(Backend& log, bool whole) {
  constexpr std::size_t kOverlap = 200;
  for (std::int32_t p = 0; p < kPartitions; ++p) {
    const auto index = static_cast<std::size_t>(p);
    const std::size_t known = lines_[index].size();
    const std::size_t from = whole || known < kOverlap ? 0 : known - kOverlap;
    const std::vector<Read> records =
        read(log, name(kLinesTopic, p), Offset(static_cast<std::int64_t>(from)));
    // What could be read once must be there for ever, acknowledged or not.
    EXPECT_GE(from + records.size(), known) << "records of partition " << p << " are gone";
    for (const Read& record : records) {
      take_line(index, record);
    }
  }
  std::erase_if(unseen_, [this](std::int64_t number) { return seen_.contains(number); });
  for (const std::int64_t number : unseen_) {
    ADD_FAILURE() << "acknowledged line " << number << " is lost";
  }
}

void Ledger::check_repartition(Backend& log, const std::map<TopicPartition, Offset>& offsets) {
  for (std::int32_t p = 0; p < kPartitions; ++p) {
    const auto index = static_cast<std::size_t>(p);
    const TopicPartition partition = name(kRepartitionTopic, p);
    std::vector<std::string>& words = repartitioned_[index];
    for (const Read& record :
         read(log, partition, Offset(static_cast<std::int64_t>(words.size())))) {
      ASSERT_EQ(static_cast<std::size_t>(record.offset.value()), words.size());
      words.push_back(record.key);
      ++repartition_sent_[record.key];
    }
    const auto end = static_cast<std::size_t>(offsets.at(partition).value());
    ASSERT_LE(end, words.size()) << "committed beyond the end of " << partition.to_string();
    for (std::size_t& i = words_settled_[index]; i < end; ++i) {
      ++repartition_settled_[words[i]];
    }
    const auto lines_end = static_cast<std::size_t>(offsets.at(name(kLinesTopic, p)).value());
    ASSERT_LE(lines_end, lines_[index].size()) << "committed beyond the end of the input";
    for (std::size_t& i = lines_settled_[index]; i < lines_end; ++i) {
      for (const std::string& word : words_of(line_of(lines_[index][i]))) {
        ++committed_line_counts_[word];
      }
    }
  }
  expect_between(committed_line_counts_, repartition_sent_, sum(true_counts_, resent_),
                 "the repartition topic");
}

void Ledger::allow_repetition(Backend& log, const std::map<TopicPartition, Offset>& offsets) {
  for (const auto& [partition, offset] : offsets) {
    const bool is_input = partition.topic == kLinesTopic;
    for (const Read& record : read(log, partition, offset)) {
      if (!is_input) {
        ++counted_twice_[record.key];
        ++allowance_[record.key];
        continue;
      }
      for (const std::string& word : words_of(record.value)) {
        ++resent_[word];
        ++allowance_[word];
      }
    }
  }
}

void Ledger::check_after_crash(Backend& log, FileSystem& files, bool whole) {
  const auto topics = log.admin().list_topics();
  ASSERT_TRUE(topics.ok());
  const bool made = std::any_of(topics->begin(), topics->end(), [](const TopicDescription& topic) {
    return topic.name == kChangelogTopic;  // the last one that is made
  });
  if (!made) {
    ASSERT_TRUE(acknowledged_lines_ == 0 && committed_.empty()) << "a topic is lost";
    return;
  }
  check_lines(log, whole);
  const std::map<TopicPartition, Offset> offsets = read_committed(log);
  if (!options_.purges) {
    check_repartition(log, offsets);
    if (path_exists(files,
                    join_path(join_path(options_.state_dir, kApplicationId), "plan.binpb"))) {
      Counts store = read_store(log, files, options_.state_dir);
      expect_between(repartition_settled_, store, sum(repartition_sent_, counted_twice_),
                     "the store");
      last_store_ = std::move(store);
    }
  }
  allow_repetition(log, offsets);
}

void Ledger::check_beside(Backend& log, FileSystem& files) {
  // How much the application has counted since then, only it knows.
  const Counts store = read_store(log, files, options_.state_dir);
  for (const auto& [word, count] : last_store_) {
    EXPECT_GE(at(store, word), count) << "the store read from outside is too low for " << word;
  }
}

void Ledger::check_drained(Backend& log, FileSystem& files) {
  check_lines(log, true);
  const std::map<TopicPartition, Offset> offsets = read_committed(log);
  for (const auto& [partition, offset] : offsets) {
    const auto ends = log.admin().offsets(partition);
    ASSERT_TRUE(ends.ok());
    EXPECT_EQ(offset, ends->high_watermark) << partition.to_string() << " is not drained";
  }
  const Counts store = read_store(log, files, options_.state_dir);
  expect_between(true_counts_, store, sum(true_counts_, allowance_), "the drained store");
  Counts output;
  for (const Read& record : read(log, name(kCountsTopic, 0), Offset(0))) {
    ASSERT_EQ(record.value.size(), sizeof(std::int64_t));
    output[record.key] = load_be<std::int64_t>(record.value.data());
  }
  EXPECT_EQ(output, store) << "the last results differ from the store";
  repeated_ = 0;
  for (const auto& [word, count] : store) {
    repeated_ += count - at(true_counts_, word);
  }
  allowed_ = 0;
  for (const auto& [word, count] : allowance_) {
    allowed_ += count;
  }
}

Counts Ledger::read_store(Backend& log, FileSystem& files, const std::string& state_dir) {
  Counts counts;
  auto reader = StoreReader::open(
      log, files, {.state_dir = state_dir, .application_id = kApplicationId, .store = kStoreName});
  EXPECT_TRUE(reader.ok()) << (reader.ok() ? "" : reader.error().to_string());
  if (!reader.ok()) {
    return counts;
  }
  const Status scanned = (*reader)->scan({}, std::nullopt, [&](const StoreReader::Row& row) {
    counts[row.key] = load_be<std::int64_t>(row.value.data());
    return true;
  });
  EXPECT_TRUE(scanned.ok()) << (scanned.ok() ? "" : scanned.error().to_string());
  return counts;
}

}  // namespace weir::crash
