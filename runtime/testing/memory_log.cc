#include "runtime/testing/memory_log.h"

#include <weir/runtime/settings.h>
#include <weir/runtime/varint.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>

namespace weir::testing::memory {

namespace {

constexpr std::int32_t kPartitionsMax = 100'000;
constexpr std::size_t kOffsetMetadataMax = 4096;  // offset.metadata.max.bytes

// The settings that this backend acts on; it keeps all others as they are given.
struct TopicSettings {
  std::int64_t max_message_bytes = 1'048'588;
  bool weir_ordered = false;
};

const std::array kProperties{
    Property<TopicSettings>{.name = "max.message.bytes",
                            .member = &TopicSettings::max_message_bytes,
                            .min = 0,
                            .max = INT32_MAX,
                            .doc = "Largest record batch."},
    Property<TopicSettings>{.name = "weir.ordered",
                            .member = &TopicSettings::weir_ordered,
                            .doc = "The topic does not grow unless it is forced."},
};

bool is_acted_on(std::string_view key) {
  return std::any_of(kProperties.begin(), kProperties.end(),
                     [key](const auto& property) { return property.name == key; });
}

Result<TopicSettings> read_settings(const std::string& topic, TopicConfig config,
                                    std::vector<std::string> problems = {}) {
  std::erase_if(config, [](const auto& entry) { return !is_acted_on(entry.first); });
  return parse_settings<TopicSettings>("topic " + topic, kProperties, config, {},
                                       std::move(problems));
}

void apply_settings(const TopicSettings& settings, Topic& topic) {
  topic.message_bytes_max = static_cast<std::size_t>(settings.max_message_bytes);
  topic.ordered = settings.weir_ordered;
}

// Topic ids of two backends in one process differ, and are the same in every run.
std::uint64_t next_seed() {
  static std::atomic<std::uint64_t> seed{1};
  return seed.fetch_add(1);
}

// Kafka's Topic.validate.
Status check_topic_name(std::string_view name) {
  const bool has_legal_characters = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
  if (name.empty() || name.size() > 249 || name == "." || name == ".." || !has_legal_characters) {
    return Error(Errc::kInvalidTopic,
                 fmt::format("topic name \"{}\" is not legal; use 1 to 249 of a-z A-Z 0-9 . _ -, "
                             "not \".\" or \"..\"",
                             name.substr(0, 300)));
  }
  return {};
}

Status check_partition_count(const std::string& name, std::int32_t partitions, std::int32_t min) {
  if (partitions < min || partitions > kPartitionsMax) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("topic {}: {} partitions asked for; give {} to {}", name, partitions,
                             min, kPartitionsMax));
  }
  return {};
}

NullableBytes copy_bytes(NullableBytes bytes, std::string& storage) {
  if (bytes.is_null()) {
    return {};
  }
  const std::size_t start = storage.size();
  storage.append(bytes.view());
  return ByteView(storage.data() + start, bytes.size());
}

}  // namespace

std::size_t encoded_size(const RecordRef& record) {
  constexpr std::size_t kBatchHeader = 61;
  constexpr std::size_t kAttributesAndDeltas = 3;
  const auto field_size = [](NullableBytes bytes) {
    return varint_size(bytes.is_null() ? -1 : static_cast<std::int32_t>(bytes.size())) +
           bytes.size();
  };
  const std::size_t body = kAttributesAndDeltas + field_size(record.key) +
                           field_size(record.value) +
                           varint_size(static_cast<std::int32_t>(record.headers.count())) +
                           record.headers.encoded().size();
  return kBatchHeader + varint_size(static_cast<std::int32_t>(body)) + body;
}

std::shared_ptr<Batch> Batch::encode(std::span<const RecordRef> records, Timestamp now) {
  auto batch = std::make_shared<Batch>();
  std::size_t size = 0;
  for (const RecordRef& record : records) {
    size += record.key.size() + record.value.size() + record.headers.encoded().size();
  }
  // The views below point into `bytes`, so it must not move.
  batch->bytes.reserve(size);
  batch->records.reserve(records.size());
  Offset offset{0};
  for (const RecordRef& record : records) {
    RecordView& view = batch->records.emplace_back();
    view.key = copy_bytes(record.key, batch->bytes);
    view.value = copy_bytes(record.value, batch->bytes);
    view.headers =
        HeadersView(copy_bytes(NullableBytes(record.headers.encoded()), batch->bytes).view(),
                    record.headers.count());
    view.timestamp = record.timestamp == kNoTimestamp ? now : record.timestamp;
    view.offset = offset;
    offset = offset.next();
  }
  return batch;
}

std::size_t Partition::find_batch(Offset offset) const {
  const auto found = std::partition_point(
      batches.begin(), batches.end(),
      [offset](const std::shared_ptr<const Batch>& batch) { return batch->next() <= offset; });
  return static_cast<std::size_t>(std::distance(batches.begin(), found));
}

Offset Partition::append(std::shared_ptr<Batch> batch) {
  for (RecordView& record : batch->records) {
    record.offset = log_end;
    log_end = log_end.next();
  }
  batches.push_back(std::move(batch));
  return log_end;
}

void Partition::delete_before(Offset offset) {
  log_start = std::max(log_start, offset);
  while (!batches.empty() && batches.front()->next() <= log_start) {
    batches.pop_front();
  }
}

TopicDescription Topic::describe() const {
  TopicDescription description;
  description.name = name;
  description.id = id;
  description.partitions = static_cast<std::int32_t>(partitions.size());
  description.internal = name == "__consumer_offsets" || name == "__transaction_state";
  description.config = config;
  return description;
}

std::vector<TopicSetting> Topic::settings() const {
  std::map<std::string, TopicSetting> all;
  for (const auto& property : kProperties) {
    const std::string text = property_text(property, TopicSettings());
    const std::string key(property.name);
    all[key] = {key, text, text, SettingSource::kDefault, std::string(property.doc)};
  }
  for (const auto& [key, value] : config) {
    TopicSetting& setting = all[key];
    setting.name = key;
    setting.value = value;
    setting.source = SettingSource::kTopic;
  }
  std::vector<TopicSetting> listed;
  for (auto& [key, setting] : all) {
    listed.push_back(std::move(setting));
  }
  return listed;
}

Log::Log(const Clock& the_clock) : clock(the_clock), rng_(next_seed()) {}

Result<TopicDescription> Log::create_topic(const TopicSpec& spec) {
  WEIR_TRY(check_topic_name(spec.name));
  WEIR_TRY(check_partition_count(spec.name, spec.partitions, 1));
  WEIR_TRY_ASSIGN(const TopicSettings settings, read_settings(spec.name, spec.config));
  if (topics_.contains(spec.name)) {
    return Error(Errc::kTopicExists,
                 fmt::format("topic {} exists; use it or delete it first", spec.name));
  }
  Topic& made = topics_[spec.name];
  made.name = spec.name;
  made.id = rng_.uuid();
  made.config = spec.config;
  apply_settings(settings, made);
  made.partitions.resize(static_cast<std::size_t>(spec.partitions));
  changed.notify_all();
  return made.describe();
}

Status Log::delete_topic(const std::string& name) {
  WEIR_TRY(topic(name));
  topics_.erase(name);
  for (auto& [group_id, state] : groups_) {
    std::erase_if(state.offsets, [&name](const auto& entry) { return entry.first.topic == name; });
  }
  changed.notify_all();
  return {};
}

Status Log::grow_topic(const std::string& name, std::int32_t partitions, OrderedGrowth ordered) {
  WEIR_TRY_ASSIGN(Topic * found, topic(name));
  const auto present = static_cast<std::int32_t>(found->partitions.size());
  WEIR_TRY(check_partition_count(name, partitions, present + 1));
  if (found->ordered && ordered == OrderedGrowth::kRefuse) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("topic {} has weir.ordered=true and keys would move; force it or copy "
                             "the records to a new topic",
                             name));
  }
  found->partitions.resize(static_cast<std::size_t>(partitions));
  changed.notify_all();
  return {};
}

Status Log::alter_topic(const std::string& name, const TopicConfig& set,
                        const std::vector<std::string>& remove) {
  WEIR_TRY_ASSIGN(Topic * found, topic(name));
  TopicConfig config = found->config;
  std::vector<std::string> problems;
  for (const std::string& key : remove) {
    if (set.contains(key)) {
      problems.push_back(fmt::format("{} is to be set and to be removed; choose one", key));
    }
    config.erase(key);
  }
  for (const auto& [key, value] : set) {
    config[key] = value;
  }
  WEIR_TRY_ASSIGN(const TopicSettings settings, read_settings(name, config, std::move(problems)));
  found->config = std::move(config);
  apply_settings(settings, *found);
  return {};
}

Topic* Log::find_topic(const std::string& name) {
  const auto found = topics_.find(name);
  return found == topics_.end() ? nullptr : &found->second;
}

Topic* Log::find_topic(const std::string& name, const Uuid& id) {
  Topic* const found = find_topic(name);
  return found != nullptr && found->id == id ? found : nullptr;
}

Result<Topic*> Log::topic(const std::string& name) {
  Topic* const found = find_topic(name);
  if (found != nullptr) {
    return found;
  }
  std::vector<std::string_view> names;
  for (const auto& [known, unused] : topics_) {
    names.push_back(known);
  }
  const std::string nearest = nearest_name(name, names);
  return Error(Errc::kUnknownTopic,
               nearest.empty()
                   ? fmt::format("topic {} does not exist; create it first", name)
                   : fmt::format("topic {} does not exist; did you mean {}?", name, nearest));
}

Result<Partition*> Log::partition(const TopicPartition& partition) {
  WEIR_TRY_ASSIGN(Topic * found, topic(partition.topic));
  const std::int32_t index = partition.partition.value();
  if (index < 0 || static_cast<std::size_t>(index) >= found->partitions.size()) {
    return Error(Errc::kUnknownTopic,
                 fmt::format("partition {} does not exist; topic {} has {} partitions",
                             partition.to_string(), found->name, found->partitions.size()));
  }
  return &found->partitions[static_cast<std::size_t>(index)];
}

Status Log::check_offsets(std::span<const std::pair<TopicPartition, CommittedOffset>> offsets) {
  for (const auto& [where, committed] : offsets) {
    WEIR_TRY(partition(where));
    if (committed.offset < Offset(0)) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("offset {} of {} is negative; commit the next offset to read",
                               committed.offset.value(), where.to_string()));
    }
    if (committed.metadata.size() > kOffsetMetadataMax) {
      return Error(Errc::kInvalidArgument,
                   fmt::format("metadata of the offset of {} has {} bytes; at most {} are kept",
                               where.to_string(), committed.metadata.size(), kOffsetMetadataMax));
    }
  }
  return {};
}

void Log::put_offsets(const std::string& group_id, const Offsets& offsets) {
  GroupState& state = groups_[group_id];
  for (const auto& [where, committed] : offsets) {
    state.offsets[where] = committed;
  }
}

std::uint64_t Log::fence_producers(const std::string& transactional_id) {
  return ++producer_epochs_[transactional_id];
}

bool Log::is_fenced(const std::string& transactional_id, std::uint64_t epoch) {
  return producer_epochs_[transactional_id] != epoch;
}

void Log::plan_fault(MemoryBackend::FaultPoint point, Error error) {
  faults_[point].push_back(std::move(error));
}

Status Log::take_fault(MemoryBackend::FaultPoint point) {
  std::deque<Error>& planned = faults_[point];
  if (planned.empty()) {
    return {};
  }
  Error error = std::move(planned.front());
  planned.pop_front();
  return error;
}

}  // namespace weir::testing::memory
