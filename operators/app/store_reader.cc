#include "operators/app/state_directory.h"
#include "operators/plan/recorded_plan.h"

#include <weir/operators/store_reader.h>
#include <weir/runtime/endian.h>
#include <weir/runtime/settings.h>
#include <weir/state/checkpoint_store.h>
#include <weir/state/checkpoint_validity.h>

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

namespace weir {
namespace {

constexpr std::size_t kTimestampBytes = 8;  // in front of each stored value

struct Change {
  std::optional<std::string> value;  // nullopt: deleted
  Timestamp timestamp = kNoTimestamp;
};

// One partition of the store: its checkpoint, and what the changelog says since.
struct Shard {
  std::unique_ptr<state::CheckpointStore> checkpoint;  // null: there is none that counts
  std::map<std::string, Change, std::less<>> tail;
};

Result<StoreReader::Row> row_of(ByteView key, ByteView stored) {
  if (stored.size() < kTimestampBytes) {
    return Error(Errc::kCorrupt,
                 fmt::format("a stored value of {} bytes has no timestamp", stored.size()));
  }
  return StoreReader::Row{std::string(key), std::string(stored.substr(kTimestampBytes)),
                          load_be<Timestamp>(stored.data())};
}

Error not_found(const std::string& what, const std::string& name,
                const std::vector<std::string>& names) {
  std::string known;
  for (const std::string& one : names) {
    known += (known.empty() ? "" : ", ") + one;
  }
  return {Errc::kNotFound, fmt::format("{} {} is not recorded; there is {}", what, name,
                                       known.empty() ? "none" : known)};
}

std::vector<std::string> folders(FileSystem& files, const std::string& path) {
  std::vector<std::string> names;
  if (Result<std::vector<DirectoryEntry>> entries = files.list(path); entries.ok()) {
    for (const DirectoryEntry& entry : *entries) {
      if (entry.kind == FileKind::kDirectory) {
        names.push_back(entry.name);
      }
    }
  }
  return names;
}

}  // namespace

class StoreReader::Impl {
 public:
  Impl(Backend& log, internal::RecordedPlan::Store store) : log_(log), store_(std::move(store)) {}

  const internal::RecordedPlan::Store& store() const { return store_; }
  Status open(FileSystem& files, const std::string& folder);
  Result<std::optional<Row>> get(ByteView key);
  Status scan(ByteView from, std::optional<ByteView> to,
              const std::function<bool(const Row&)>& row);

 private:
  Status open_shard(std::int32_t partition, const std::vector<std::string>& checkpoints);
  Status read_tail(const TopicPartition& changelog, Offset from, Offset end, Shard& shard);

  Backend& log_;
  const internal::RecordedPlan::Store store_;
  std::unique_ptr<state::CheckpointDatabase> database_;
  std::vector<Shard> shards_;
};

Status StoreReader::Impl::open(FileSystem& files, const std::string& folder) {
  std::vector<std::string> checkpoints;
  const std::string path = internal::StateDirectory::database_path(folder);
  if (path_exists(files, path)) {
    Result<std::unique_ptr<state::CheckpointDatabase>> database =
        state::open_rocksdb_checkpoints(files, path, {.read_only = true});
    if (database.ok()) {
      database_ = std::move(*database);
      WEIR_TRY_ASSIGN(checkpoints, database_->list_stores());
    } else if (database.error().code() != Errc::kNotFound) {
      return std::move(database).error();
    }
  }
  std::int32_t partitions = 0;
  if (Result<TopicDescription> changelog = log_.admin().describe_topic(store_.changelog_topic);
      changelog.ok()) {
    partitions = changelog->partitions;
  } else if (changelog.error().code() != Errc::kUnknownTopic) {
    return std::move(changelog).error();
  }
  // Without its changelog a store is what its checkpoints say.
  const auto has_checkpoint = [&](std::int32_t partition) {
    return std::find(checkpoints.begin(), checkpoints.end(),
                     fmt::format("{}-{}", store_.name, partition)) != checkpoints.end();
  };
  while (has_checkpoint(partitions)) {
    ++partitions;
  }
  for (std::int32_t i = 0; i < partitions; ++i) {
    WEIR_TRY(open_shard(i, checkpoints));
  }
  return {};
}

Status StoreReader::Impl::open_shard(std::int32_t partition,
                                     const std::vector<std::string>& checkpoints) {
  Shard shard;
  std::optional<state::StorePosition> position;
  const std::string name = fmt::format("{}-{}", store_.name, partition);
  if (std::find(checkpoints.begin(), checkpoints.end(), name) != checkpoints.end()) {
    WEIR_TRY_ASSIGN(shard.checkpoint, database_->open_store(name));
    WEIR_TRY_ASSIGN(position, shard.checkpoint->position());
  }
  const TopicPartition changelog{store_.changelog_topic, PartitionId(partition)};
  WEIR_TRY_ASSIGN(const state::ChangelogFacts facts,
                  state::changelog_facts(log_.admin(), changelog, position, false, kNoTimestamp));
  const state::CheckpointDecision decision = state::judge_checkpoint(position, facts);
  if (decision.verdict == state::CheckpointVerdict::kRebuild ||
      decision.verdict == state::CheckpointVerdict::kNoCheckpoint) {
    shard.checkpoint.reset();
  }
  if (facts.exists && decision.verdict != state::CheckpointVerdict::kChangelogLost) {
    const Offset from = shard.checkpoint && position ? position->next_offset : facts.log_start;
    WEIR_TRY(read_tail(changelog, from, facts.readable_end, shard));
  }
  shards_.push_back(std::move(shard));
  return {};
}

Status StoreReader::Impl::read_tail(const TopicPartition& changelog, Offset from, Offset end,
                                    Shard& shard) {
  if (from >= end) {
    return {};
  }
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, log_.make_source({}));
  WEIR_TRY(source->assign({changelog}));
  WEIR_TRY(source->seek(0, from));
  while (source->position(0) < end) {
    WEIR_TRY_ASSIGN(const std::vector<RecordBlock> blocks, source->poll(std::chrono::seconds(1)));
    for (const RecordBlock& block : blocks) {
      WEIR_TRY(block.status);
      for (const RecordView& record : block.records) {
        if (record.offset < end && !record.key.is_null()) {
          shard.tail.insert_or_assign(std::string(record.key.view()),
                                      Change{record.value.to_owned(), record.timestamp});
        }
      }
    }
  }
  return {};
}

Result<std::optional<StoreReader::Row>> StoreReader::Impl::get(ByteView key) {
  for (Shard& shard : shards_) {
    if (const auto change = shard.tail.find(key); change != shard.tail.end()) {
      if (change->second.value) {
        return std::optional<Row>(
            Row{std::string(key), *change->second.value, change->second.timestamp});
      }
      continue;
    }
    if (shard.checkpoint) {
      WEIR_TRY_ASSIGN(const std::optional<std::string> stored, shard.checkpoint->get(key));
      if (stored) {
        WEIR_TRY_ASSIGN(Row row, row_of(key, *stored));
        return std::optional<Row>(std::move(row));
      }
    }
  }
  return std::optional<Row>();
}

namespace {

// Merges a shard's checkpoint with its tail, in order of the keys; the tail wins.
class ShardCursor {
 public:
  static Result<ShardCursor> open(const Shard& shard, ByteView from, std::optional<ByteView> to) {
    ShardCursor cursor;
    if (shard.checkpoint) {
      WEIR_TRY_ASSIGN(cursor.checkpoint_, shard.checkpoint->scan(from, to));
    }
    cursor.tail_ = shard.tail.lower_bound(from);
    cursor.tail_end_ = to ? shard.tail.lower_bound(*to) : shard.tail.end();
    WEIR_TRY(cursor.advance());
    return cursor;
  }

  const std::optional<StoreReader::Row>& row() const { return row_; }

  Status advance() {
    row_.reset();
    while (!row_) {
      const bool stored = checkpoint_ != nullptr && checkpoint_->valid();
      const bool changed = tail_ != tail_end_;
      if (!stored && !changed) {
        return checkpoint_ != nullptr ? checkpoint_->status() : Status();
      }
      if (!changed || (stored && checkpoint_->key() < tail_->first)) {
        WEIR_TRY_ASSIGN(row_, row_of(checkpoint_->key(), checkpoint_->value()));
        checkpoint_->next();
        continue;
      }
      if (stored && checkpoint_->key() == tail_->first) {
        checkpoint_->next();
      }
      if (tail_->second.value) {
        row_ = StoreReader::Row{tail_->first, *tail_->second.value, tail_->second.timestamp};
      }
      ++tail_;
    }
    return {};
  }

 private:
  using Tail = std::map<std::string, Change, std::less<>>;
  std::unique_ptr<state::CheckpointIterator> checkpoint_;
  Tail::const_iterator tail_;
  Tail::const_iterator tail_end_;
  std::optional<StoreReader::Row> row_;
};

}  // namespace

Status StoreReader::Impl::scan(ByteView from, std::optional<ByteView> to,
                               const std::function<bool(const Row&)>& row) {
  std::vector<ShardCursor> cursors;
  for (const Shard& shard : shards_) {
    WEIR_TRY_ASSIGN(ShardCursor cursor, ShardCursor::open(shard, from, to));
    cursors.push_back(std::move(cursor));
  }
  for (;;) {
    ShardCursor* first = nullptr;
    for (ShardCursor& cursor : cursors) {
      if (cursor.row() && (first == nullptr || cursor.row()->key < first->row()->key)) {
        first = &cursor;
      }
    }
    if (first == nullptr || !row(*first->row())) {
      return {};
    }
    WEIR_TRY(first->advance());
  }
}

StoreReader::StoreReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StoreReader::~StoreReader() = default;

Result<std::unique_ptr<StoreReader>> StoreReader::open(Backend& log, FileSystem& files,
                                                       const Options& options) {
  const std::string folder =
      internal::StateDirectory::path_of(options.state_dir, options.application_id);
  Result<std::string> text = read_file(files, join_path(folder, internal::kRecordedPlanFile));
  if (!text.ok()) {
    if (text.error().code() == Errc::kNotFound) {
      return not_found("application", options.application_id, folders(files, options.state_dir));
    }
    return std::move(text).error();
  }
  Result<internal::RecordedPlan> plan = internal::decode_recorded_plan(*text);
  if (!plan.ok()) {
    return std::move(plan).error().with_context(folder);
  }
  std::vector<std::string> names;
  for (internal::RecordedPlan::Store& store : plan->stores) {
    if (store.name == options.store) {
      auto impl = std::make_unique<Impl>(log, std::move(store));
      WEIR_TRY(impl->open(files, folder));
      return std::unique_ptr<StoreReader>(new StoreReader(std::move(impl)));
    }
    names.push_back(store.name);
  }
  return not_found("store", options.store, names);
}

const std::string& StoreReader::key_serde() const {
  return impl_->store().key_serde;
}
const std::string& StoreReader::value_serde() const {
  return impl_->store().value_serde;
}
Result<std::optional<StoreReader::Row>> StoreReader::get(ByteView key) {
  return impl_->get(key);
}
Status StoreReader::scan(ByteView from, std::optional<ByteView> to,
                         const std::function<bool(const Row&)>& row) {
  return impl_->scan(from, to, row);
}

}  // namespace weir
