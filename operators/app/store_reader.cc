#include "operators/app/state_directory.h"
#include "operators/plan/recorded_plan.h"

#include <weir/operators/store_reader.h>
#include <weir/runtime/endian.h>
#include <weir/runtime/murmur2.h>
#include <weir/state/checkpoint_store.h>
#include <weir/state/checkpoint_validity.h>

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

namespace weir {

namespace {

using Row = StoreReader::Row;

Result<std::pair<std::string, Timestamp>> split_stored(ByteView stored, const std::string& name) {
  if (stored.size() < sizeof(Timestamp)) {
    return Error(Errc::kCorrupt, fmt::format("checkpoint {} has a value of {} bytes, shorter than "
                                             "its timestamp",
                                             name, stored.size()));
  }
  return std::pair(std::string(stored.substr(sizeof(Timestamp))),
                   load_be<Timestamp>(stored.data()));
}

// One partition: its checkpoint under the tail of its changelog.
class Part {
 public:
  Part(std::string name, TopicPartition changelog)
      : name_(std::move(name)), changelog_(std::move(changelog)) {}

  Status open(state::CheckpointDatabase* database, Admin& admin, Timestamp now) {
    std::optional<state::StorePosition> position;
    if (database != nullptr) {
      WEIR_TRY_ASSIGN(const std::vector<std::string> names, database->list_stores());
      if (std::find(names.begin(), names.end(), name_) != names.end()) {
        WEIR_TRY_ASSIGN(checkpoint_, database->open_store(name_));
        WEIR_TRY_ASSIGN(position, checkpoint_->position());
      }
    }
    WEIR_TRY_ASSIGN(const state::ChangelogFacts facts,
                    state::changelog_facts(admin, changelog_, position, false, now));
    const auto verdict = state::judge_checkpoint(position, facts).verdict;
    start_ = facts.log_start;
    end_ = facts.exists ? facts.readable_end : facts.log_start;
    if (verdict == state::CheckpointVerdict::kValid) {
      start_ = position->next_offset;
    } else if (verdict != state::CheckpointVerdict::kChangelogLost) {
      checkpoint_.reset();
    }
    return {};
  }

  // Reads the tail once.
  Status load_tail(Backend& log) {
    if (is_loaded_ || start_ >= end_) {
      is_loaded_ = true;
      return {};
    }
    WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, log.make_source({}));
    WEIR_TRY(source->assign({changelog_}));
    WEIR_TRY(source->seek(0, start_));
    while (source->position(0) < end_) {
      WEIR_TRY_ASSIGN(const std::vector<RecordBlock> blocks, source->poll(std::chrono::seconds(5)));
      if (blocks.empty()) {
        return Error(Errc::kTimedOut, fmt::format("changelog {} gave no records up to offset {}",
                                                  changelog_.to_string(), end_.value()));
      }
      for (const RecordBlock& block : blocks) {
        WEIR_TRY(apply(block));
      }
    }
    is_loaded_ = true;
    return {};
  }

  Result<std::optional<Row>> get(ByteView key) {
    if (const auto found = tail_.find(key); found != tail_.end()) {
      return found->second;
    }
    if (checkpoint_ == nullptr) {
      return std::optional<Row>();
    }
    WEIR_TRY_ASSIGN(const std::optional<std::string> stored, checkpoint_->get(key));
    if (!stored.has_value()) {
      return std::optional<Row>();
    }
    WEIR_TRY_ASSIGN(auto split, split_stored(*stored, name_));
    return std::optional<Row>(Row{std::string(key), std::move(split.first), split.second});
  }

  Status begin_scan(ByteView from, std::optional<ByteView> to) {
    entries_.reset();
    if (checkpoint_ != nullptr) {
      WEIR_TRY_ASSIGN(entries_, checkpoint_->scan(from, to));
    }
    tail_at_ = tail_.lower_bound(from);
    tail_end_ = to.has_value() ? tail_.lower_bound(*to) : tail_.end();
    return advance();
  }
  // The row that the scan is at; null at its end.
  const Row* current() const { return current_.has_value() ? &*current_ : nullptr; }
  // Moves to the next row: that of the tail hides the checkpoint's, a delete hides both.
  Status advance() {
    current_.reset();
    while (!current_.has_value()) {
      const bool has_entry = entries_ != nullptr && entries_->valid();
      const bool has_tail = tail_at_ != tail_end_;
      if (!has_entry && !has_tail) {
        return entries_ == nullptr ? Status() : entries_->status();
      }
      if (has_tail && (!has_entry || tail_at_->first <= entries_->key())) {
        if (has_entry && entries_->key() == tail_at_->first) {
          entries_->next();
        }
        current_ = (tail_at_++)->second;
        continue;
      }
      WEIR_TRY_ASSIGN(auto split, split_stored(entries_->value(), name_));
      current_ = Row{std::string(entries_->key()), std::move(split.first), split.second};
      entries_->next();
    }
    return {};
  }

 private:
  Status apply(const RecordBlock& block) {
    WEIR_TRY(block.status);
    for (const RecordView& record : block.records) {
      if (record.key.is_null()) {
        continue;
      }
      std::optional<Row>& row = tail_[std::string(record.key.view())];
      row.reset();
      if (!record.value.is_null()) {
        row =
            Row{std::string(record.key.view()), std::string(record.value.view()), record.timestamp};
      }
    }
    return {};
  }

  using Tail = std::map<std::string, std::optional<Row>, std::less<>>;
  const std::string name_;
  const TopicPartition changelog_;
  std::unique_ptr<state::CheckpointStore> checkpoint_;
  Offset start_;
  Offset end_;
  bool is_loaded_ = false;
  Tail tail_;
  std::unique_ptr<state::CheckpointIterator> entries_;
  Tail::const_iterator tail_at_;
  Tail::const_iterator tail_end_;
  std::optional<Row> current_;
};

Error no_application(FileSystem& files, const StoreReader::Options& options) {
  std::vector<std::string> names;
  if (const auto entries = files.list(options.state_dir); entries.ok()) {
    for (const DirectoryEntry& entry : *entries) {
      if (entry.kind == FileKind::kDirectory) {
        names.push_back(entry.name);
      }
    }
  }
  return {
      Errc::kNotFound,
      fmt::format(
          "no application {} has state in {}; there {}", options.application_id, options.state_dir,
          names.empty() ? std::string("is none") : fmt::format("are: {}", fmt::join(names, ", ")))};
}

Result<internal::RecordedPlan::Store> find_store(const internal::RecordedPlan& plan,
                                                 const std::string& name) {
  std::vector<std::string> names;
  for (const internal::RecordedPlan::Store& store : plan.stores) {
    if (store.name == name) {
      return store;
    }
    names.push_back(store.name);
  }
  return Error(Errc::kNotFound, fmt::format("application {} has no store {}; its stores: {}",
                                            plan.application_id, name, fmt::join(names, ", ")));
}

}  // namespace

class StoreReader::Impl {
 public:
  explicit Impl(Backend& log) : log_(log) {}

  Status open(FileSystem& files, const Options& options) {
    const std::string folder =
        internal::StateDirectory::path_of(options.state_dir, options.application_id);
    const std::string plan_path = join_path(folder, internal::kRecordedPlanFile);
    if (!path_exists(files, plan_path)) {
      return no_application(files, options);
    }
    WEIR_TRY_ASSIGN(const std::string bytes, read_file(files, plan_path));
    WEIR_TRY_ASSIGN(const internal::RecordedPlan plan, internal::decode_recorded_plan(bytes));
    WEIR_TRY_ASSIGN(store_, find_store(plan, options.store));
    const std::string database = internal::StateDirectory::database_path(folder);
    if (path_exists(files, database)) {
      WEIR_TRY_ASSIGN(database_,
                      state::open_rocksdb_checkpoints(files, database, {.read_only = true}));
    }
    return open_parts();
  }

  const internal::RecordedPlan::Store& store() const { return store_; }

  Result<std::optional<Row>> get(ByteView key) {
    if (parts_.empty()) {
      return std::optional<Row>();
    }
    const PartitionId partition = partition_for_key(key, static_cast<std::int32_t>(parts_.size()));
    Part& part = parts_[static_cast<std::size_t>(partition.value())];
    WEIR_TRY(part.load_tail(log_));
    return part.get(key);
  }

  Status scan(ByteView from, std::optional<ByteView> to,
              const std::function<bool(const Row&)>& row) {
    for (Part& part : parts_) {
      WEIR_TRY(part.load_tail(log_));
      WEIR_TRY(part.begin_scan(from, to));
    }
    while (true) {
      Part* first = nullptr;
      for (Part& part : parts_) {
        if (part.current() != nullptr &&
            (first == nullptr || part.current()->key < first->current()->key)) {
          first = &part;
        }
      }
      if (first == nullptr || !row(*first->current())) {
        return {};
      }
      WEIR_TRY(first->advance());
    }
  }

 private:
  Status open_parts() {
    const Result<TopicDescription> changelog = log_.admin().describe_topic(store_.changelog_topic);
    std::int32_t partitions = 0;
    if (changelog.ok()) {
      partitions = changelog->partitions;
    } else if (changelog.error().code() != Errc::kUnknownTopic) {
      return changelog.status();
    } else if (database_ != nullptr) {
      WEIR_TRY_ASSIGN(const std::vector<std::string> names, database_->list_stores());
      while (std::find(names.begin(), names.end(), part_name(partitions)) != names.end()) {
        ++partitions;
      }
    }
    for (std::int32_t p = 0; p < partitions; ++p) {
      parts_.emplace_back(part_name(p), TopicPartition{store_.changelog_topic, PartitionId(p)});
      WEIR_TRY(parts_.back().open(database_.get(), log_.admin(), system_clock().now()));
    }
    return {};
  }
  std::string part_name(std::int32_t partition) const {
    return fmt::format("{}-{}", store_.name, partition);
  }

  Backend& log_;
  internal::RecordedPlan::Store store_;
  std::unique_ptr<state::CheckpointDatabase> database_;
  std::vector<Part> parts_;
};

StoreReader::StoreReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StoreReader::~StoreReader() = default;

Result<std::unique_ptr<StoreReader>> StoreReader::open(Backend& log, FileSystem& files,
                                                       const Options& options) {
  auto impl = std::make_unique<Impl>(log);
  WEIR_TRY(impl->open(files, options));
  return std::unique_ptr<StoreReader>(new StoreReader(std::move(impl)));
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
