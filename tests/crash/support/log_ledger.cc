#include "tests/crash/support/log_ledger.h"

#include "log/record/batch_decoder.h"
#include "log/record/batch_header.h"
#include "log/segment/segment_scan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>

namespace weir::crash {
namespace {

std::int64_t number_after(std::string_view text, std::size_t slash) {
  std::int64_t number = -1;
  std::from_chars(text.data() + slash + 1, text.data() + text.size(), number);
  return number;
}

// What a consumer that reads a whole partition is given.
struct Content {
  std::vector<std::pair<std::int64_t, std::string>> records;  // offset, name
  std::vector<log::EpochStart> epochs;                        // by the batches
};

// The names of a batch's records from `start` on.
void take_records(const log::FetchedBatch& batch, Offset start, Content& content) {
  if (!batch.verified) {
    EXPECT_TRUE(log::verify_batch(batch.bytes.bytes).ok());
  }
  RecordViews records;
  SharedBytes decompressed;
  const Status decoded =
      log::decode_records(batch.header, batch.bytes.bytes, {}, records, decompressed);
  EXPECT_TRUE(decoded.ok()) << decoded.error().to_string();
  std::int64_t expected = batch.header.base_offset.value();
  for (const RecordView& record : records) {
    EXPECT_EQ(record.offset.value(), expected++);
    const std::string_view value = record.value.view_or_empty();
    std::string name(value.substr(0, value.find(':')));
    EXPECT_TRUE(value == value_of(name)) << name << " is not what was sent";
    if (record.offset >= start) {
      content.records.emplace_back(record.offset.value(), std::move(name));
    }
  }
  EXPECT_EQ(expected, batch.header.next_offset().value());
}

// P7: offsets contiguous, epochs never falling.
Content read_whole(log::Partition& partition, const PartitionOffsets& at) {
  constexpr std::size_t kReadBytes = 3000;
  Content content;
  Offset from = at.log_start;
  bool first = true;
  while (from < at.high_watermark) {
    const Result<log::FetchResult> read = partition.read(from, kReadBytes);
    if (!read.ok() || read->batches.empty()) {
      ADD_FAILURE() << "offset " << from.value() << " of [" << at.log_start.value() << ", "
                    << at.high_watermark.value() << ") cannot be read"
                    << (read.ok() ? "" : ": " + read.error().to_string());
      return content;
    }
    for (const log::FetchedBatch& batch : read->batches) {
      EXPECT_TRUE(first ? batch.header.base_offset <= from : batch.header.base_offset == from)
          << batch.header.base_offset.value() << " behind " << from.value();
      EXPECT_LE(batch.header.next_offset(), at.high_watermark);
      first = false;
      take_records(batch, at.log_start, content);
      const LeaderEpoch epoch = batch.header.leader_epoch;
      if (content.epochs.empty() || content.epochs.back().epoch != epoch) {
        EXPECT_TRUE(content.epochs.empty() || content.epochs.back().epoch < epoch)
            << "epoch " << epoch.value() << " behind a later one at offset "
            << batch.header.base_offset.value();
        content.epochs.push_back({epoch, batch.header.base_offset});
      }
      from = batch.header.next_offset();
    }
  }
  return content;
}

// P8: the epoch cache agrees with the batches.
void check_epochs(const log::Partition& partition, const Content& content, Offset end) {
  for (std::size_t i = 0; i < content.epochs.size(); ++i) {
    const Offset expected = i + 1 < content.epochs.size() ? content.epochs[i + 1].start : end;
    const std::optional<Offset> found = partition.epoch_end_offset(content.epochs[i].epoch);
    EXPECT_EQ(found, std::optional(expected))
        << "end of leader epoch " << content.epochs[i].epoch.value();
  }
}

// P10: what one producer sent first stands first.
void check_order(const Content& content) {
  std::map<std::string, std::int64_t> last;
  for (const auto& [offset, name] : content.records) {
    const std::size_t slash = name.rfind('/');
    const std::size_t front = name.find('/');
    const std::int64_t number = number_after(name, slash);
    const auto [found, is_new] = last.try_emplace(name.substr(front, slash - front), number);
    EXPECT_TRUE(is_new || found->second < number) << name << " at offset " << offset;
    found->second = number;
  }
}

}  // namespace

std::string value_of(std::string_view name) {
  std::size_t size = 0;
  std::from_chars(name.data(), name.data() + name.size(), size);
  std::string value(name);
  value += ':';
  const char fill = static_cast<char>('a' + number_after(name, name.rfind('/')) % 26);
  return value.append(size, fill);
}

std::string record_name(std::size_t size, int producer, std::int64_t number) {
  return fmt::format("{}/{}/{}", size, producer, number);
}

// --- Told

const LogLedger::Partition* LogLedger::find(const TopicPartition& partition) const {
  const auto topic = topics_.find(partition.topic);
  const auto index = static_cast<std::size_t>(partition.partition.value());
  return topic == topics_.end() || index >= topic->second.partitions.size()
             ? nullptr
             : &topic->second.partitions[index];
}

LogLedger::Partition* LogLedger::get(const TopicPartition& partition) {
  return const_cast<Partition*>(find(partition));
}

void LogLedger::begin(Change change) {
  ASSERT_FALSE(change_.has_value());
  change_ = std::move(change);
}

void LogLedger::done(const Uuid& id) {
  ASSERT_TRUE(change_.has_value());
  const Change change = *std::exchange(change_, std::nullopt);
  if (change.kind == Change::Kind::kAlter) {
    Topic& topic = topics_.at(change.topic);
    if (topic.fsync != change.fsync) {
      for (Partition& partition : topic.partitions) {
        partition.durable_end = partition.end();
      }
    }
  }
  apply(change);
  if (change.kind == Change::Kind::kCreate) {
    topics_.at(change.topic).id = id;
  }
}

void LogLedger::apply(const Change& change) {
  switch (change.kind) {
    case Change::Kind::kCreate:
      topics_[change.topic] = Topic{{}, change.fsync, {}};
      topics_[change.topic].partitions.resize(static_cast<std::size_t>(change.partitions));
      break;
    case Change::Kind::kDelete:
      forget(change.topic);
      break;
    case Change::Kind::kGrow:
      topics_.at(change.topic).partitions.resize(static_cast<std::size_t>(change.partitions));
      break;
    case Change::Kind::kAlter:
      topics_.at(change.topic).fsync = change.fsync;
      break;
    case Change::Kind::kDeleteRecords:
      if (Partition* partition = get(change.partition)) {
        partition->start = std::max(partition->start, change.before.value());
      }
      break;
  }
}

void LogLedger::forget(const std::string& topic) {
  if (const auto found = topics_.find(topic); found != topics_.end()) {
    if (!found->second.id.is_zero()) {
      deleted_.insert(found->second.id);
    }
    topics_.erase(found);
  }
  std::erase_if(commits_,
                [&topic](const auto& entry) { return entry.first.second.topic == topic; });
}

void LogLedger::trying(const TopicPartition& partition, const std::vector<std::string>& names) {
  if (Partition* known = get(partition)) {
    known->tried.insert(names.begin(), names.end());
  }
}

void LogLedger::appended(const TopicPartition& partition, Offset base, LeaderEpoch epoch,
                         const std::vector<std::string>& names) {
  Partition* known = get(partition);
  if (known == nullptr) {
    return;
  }
  if (epoch != kNoLeaderEpoch) {
    EXPECT_GE(epoch, known->last_epoch);
    EXPECT_TRUE(!known->epoch_must_rise || epoch > known->last_epoch)
        << partition.to_string() << " goes on in epoch " << epoch.value() << " after a crash";
    known->epoch_must_rise = false;
    known->last_epoch = epoch;
  }
  std::int64_t offset = base.value();
  for (const std::string& name : names) {
    known->tried.erase(name);
    const auto [found, is_new] = known->known.emplace(offset++, name);
    EXPECT_EQ(found->second, name) << partition.to_string() << " gave an offset twice";
  }
}

void LogLedger::refused(const TopicPartition& partition, const std::vector<std::string>& names) {
  if (Partition* known = get(partition)) {
    for (const std::string& name : names) {
      known->tried.erase(name);
    }
  }
}

void LogLedger::durable(const TopicPartition& partition, Offset end) {
  const auto topic = topics_.find(partition.topic);
  Partition* known = get(partition);
  if (known != nullptr && topic->second.fsync) {
    known->durable_end = std::max(known->durable_end, end.value());
  }
}

void LogLedger::saw(const TopicPartition& partition, Offset offset, const std::string& name) {
  Partition* known = get(partition);
  if (known == nullptr) {
    return;
  }
  if (const auto found = known->known.find(offset.value()); found != known->known.end()) {
    EXPECT_EQ(found->second, name) << partition.to_string() << " offset " << offset.value();
    return;
  }
  EXPECT_EQ(known->tried.erase(name), 1U)
      << partition.to_string() << " offset " << offset.value() << ": nobody sent " << name;
  known->known[offset.value()] = name;
}

void LogLedger::committing(const Commit& commit, Offset offset) {
  commits_[commit].pending = offset;
}

void LogLedger::committed(const Commit& commit) {
  if (const auto found = commits_.find(commit); found != commits_.end()) {
    found->second.offset = std::exchange(found->second.pending, std::nullopt);
  }
}

void LogLedger::closed() {
  for (auto& [name, topic] : topics_) {
    for (Partition& partition : topic.partitions) {
      partition.durable_end = partition.end();
    }
  }
}

// --- Compared

bool LogLedger::is_open(Change::Kind kind, const std::string& topic) const {
  return change_.has_value() && change_->kind == kind && change_->topic == topic;
}

void LogLedger::check(log::LogDirectory& log, FileSystem& files, Ending ending) {
  check_topics(log);
  check_folders(files, log.layout().log);
  for (auto& [name, topic] : topics_) {
    for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
      check_partition(log, {name, PartitionId(static_cast<std::int32_t>(i))}, ending);
    }
  }
  check_commits(log);
  change_.reset();
}

void LogLedger::check_topics(log::LogDirectory& log) {
  std::set<std::string> present;
  for (const TopicDescription& found : log.list_topics()) {
    if (!found.internal) {
      present.insert(found.name);
      check_topic(found);
    }
  }
  for (auto topic = topics_.begin(); topic != topics_.end();) {
    const std::string name = (topic++)->first;
    if (!present.contains(name)) {
      EXPECT_TRUE(is_open(Change::Kind::kDelete, name)) << "topic " << name << " is gone";
      forget(name);
    }
  }
}

void LogLedger::check_topic(const TopicDescription& found) {
  const Uuid& id = found.id;
  EXPECT_FALSE(deleted_.contains(id)) << "topic " << found.name << " was deleted and is back";
  if (!topics_.contains(found.name)) {
    ASSERT_TRUE(is_open(Change::Kind::kCreate, found.name)) << "nobody made topic " << found.name;
    apply(*change_);
  }
  Topic& topic = topics_.at(found.name);
  EXPECT_TRUE(topic.id.is_zero() || topic.id == id) << found.name << " has another id";
  topic.id = id;
  const auto partitions = static_cast<std::size_t>(found.partitions);
  if (partitions != topic.partitions.size()) {
    EXPECT_TRUE(is_open(Change::Kind::kGrow, found.name) && found.partitions == change_->partitions)
        << found.name << " has " << found.partitions << " partitions";
    topic.partitions.resize(partitions);
  }
  const auto durability = found.config.find("weir.durability");
  const bool fsync = durability == found.config.end() || durability->second == "fsync";
  if (fsync != topic.fsync) {
    EXPECT_TRUE(is_open(Change::Kind::kAlter, found.name) && change_->fsync == fsync)
        << found.name << " has another durability";
    if (fsync) {  // what it holds is synced before the topic is called one that is
      for (Partition& partition : topic.partitions) {
        partition.durable_end = partition.end();
      }
    }
    topic.fsync = fsync;
  }
}

// A deleted topic leaves no folder behind a start.
void LogLedger::check_folders(FileSystem& files, const std::string& log_folder) const {
  const Result<std::vector<DirectoryEntry>> entries = files.list(log_folder);
  ASSERT_TRUE(entries.ok());
  for (const DirectoryEntry& entry : *entries) {
    if (entry.kind != FileKind::kDirectory || entry.name.starts_with("__")) {
      continue;
    }
    const std::size_t dash = entry.name.rfind('-');
    const std::int64_t partition = number_after(entry.name, dash);
    const TopicPartition name{entry.name.substr(0, dash),
                              PartitionId(static_cast<std::int32_t>(partition))};
    EXPECT_TRUE(partition >= 0 && find(name) != nullptr) << entry.name << " was left behind";
  }
}

// P12: the log start is the one last answered for, or the one under way.
void LogLedger::check_start(const TopicPartition& name, Partition& known,
                            const PartitionOffsets& found) {
  const bool is_pending = change_.has_value() && change_->kind == Change::Kind::kDeleteRecords &&
                          change_->partition == name;
  const std::int64_t start = found.log_start.value();
  EXPECT_TRUE(start == known.start || (is_pending && start == change_->before.value()))
      << "log start " << start << ", not " << known.start;
  EXPECT_LE(found.log_start, found.high_watermark);
  EXPECT_EQ(found.high_watermark, found.log_end);
  known.start = start;
}

void LogLedger::check_partition(log::LogDirectory& log, const TopicPartition& name, Ending ending) {
  SCOPED_TRACE(name.to_string());
  Partition& known = *get(name);
  const Result<std::shared_ptr<log::Partition>> opened = log.partition(name);
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  const PartitionOffsets at = (*opened)->offsets();
  const std::int64_t known_end = known.end();
  check_start(name, known, at);
  const std::int64_t end = at.log_end.value();
  const std::int64_t firm_end = ending == Ending::kPowerCut ? known.durable_end : known_end;
  EXPECT_GE(end, firm_end) << "what was promised is gone";

  const Content content = read_whole(**opened, at);
  check_epochs(**opened, content, at.log_end);
  check_order(content);
  std::map<std::int64_t, std::string> found;
  for (const auto& [offset, record] : content.records) {
    ++records_checked_;
    const auto same = known.known.find(offset);
    if (same != known.known.end()) {
      EXPECT_EQ(record, same->second) << "offset " << offset;
    } else {
      EXPECT_EQ(known.tried.erase(record), 1U)
          << "offset " << offset << ": " << record << " has no place here";
    }
    found[offset] = record;
  }
  const bool fsync = topics_.at(name.topic).fsync;
  const bool lost = !fsync && known_end > std::max(end, known.start);
  known.known = std::move(found);
  known.tried.clear();
  known.durable_end = fsync ? end : std::min(known.durable_end, end);
  // Another record takes the place of one that was read only in another epoch.
  if (!lost) {
    known.last_epoch = content.epochs.empty() ? kNoLeaderEpoch : content.epochs.back().epoch;
  }
  known.epoch_must_rise = !log.recovery().was_clean && (end > 0 || lost);
}

// G2, G3: the last commit that was answered for, or the one under way.
void LogLedger::check_commits(log::LogDirectory& log) {
  for (auto& [commit, known] : commits_) {
    const auto& [group, partition] = commit;
    const auto found = log.offsets().committed(group, {&partition, 1});
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    std::optional<Offset> offset;
    if (found->front().has_value()) {
      offset = found->front()->offset;
    }
    EXPECT_TRUE(offset == known.offset || (known.pending.has_value() && offset == known.pending))
        << group << " " << partition.to_string() << " is at " << offset.value_or(kNoOffset).value()
        << ", not at " << known.offset.value_or(kNoOffset).value();
    known = {offset, std::nullopt};
  }
  // A topic that was made again has no commit of its former life.
  for (const auto& [name, topic] : topics_) {
    for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
      const TopicPartition partition{name, PartitionId(static_cast<std::int32_t>(i))};
      for (const std::string group : {"g0", "g1"}) {
        if (!commits_.contains({group, partition})) {
          const auto found = log.offsets().committed(group, {&partition, 1});
          EXPECT_TRUE(found.ok() && !found->front().has_value())
              << group << " has an offset of " << partition.to_string();
        }
      }
    }
  }
}

}  // namespace weir::crash
