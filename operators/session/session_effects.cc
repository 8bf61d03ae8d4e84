#include "operators/session/session_effects.h"

#include <weir/runtime/endian.h>
#include <weir/runtime/murmur2.h>
#include <weir/runtime/session_hash.h>
#include <weir/runtime/varint.h>

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace weir::internal {

namespace {

// Kinds of a session's keys in its partition's store (docs/formats/session-state.md):
// uvarint session length + 1 (0: null) | session | kind | name.
constexpr char kValueKind = 'v';
constexpr char kAppliedKind = 'a';  // value: source topic id, big-endian int64 offset
constexpr std::size_t kAppliedSize = 24;
// Of a name with its value: a changelog takes records of a MiB (max.message.bytes).
constexpr std::size_t kStateBytesMax = 1'000'000;

bool is_applied_key(ByteView key) {
  std::uint64_t size = 0;
  std::size_t at = 0;
  for (unsigned shift = 0; at < key.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(key[at++]);
    size |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80U) {
      break;
    }
  }
  at += size > 0 ? size - 1 : 0;
  return at < key.size() && key[at] == kAppliedKind;
}

NullableBytes view_of(const std::optional<std::string>& bytes) {
  return bytes.has_value() ? NullableBytes(*bytes) : NullableBytes();
}

std::string applied_value(const Uuid& topic, Offset offset) {
  std::string value(reinterpret_cast<const char*>(topic.bytes.data()), topic.bytes.size());
  char number[sizeof(std::int64_t)];
  store_be(number, offset.value());
  return value.append(number, sizeof(number));
}

}  // namespace

SessionEffects::Scope::Scope(const SessionEffects* effects, SessionPartition* partition,
                             const Attempt& attempt)
    : effects_(effects), partition_(partition), record_(attempt.record), session_(attempt.session) {
  if (partition->state.store != nullptr) {
    state_.emplace(partition->state.store->open_attempt());
  }
}

ByteView SessionEffects::Scope::key_of(char kind, ByteView name) {
  if (prefix_ == 0) {
    std::uint64_t size = session_.is_null() ? 0 : session_.size() + 1;
    for (; size >= 0x80U; size >>= 7U) {
      key_.push_back(static_cast<char>(size | 0x80U));
    }
    key_.push_back(static_cast<char>(size));
    key_.append(session_.view_or_empty());
    prefix_ = key_.size();
  }
  key_.resize(prefix_);
  key_.push_back(kind);
  return key_.append(name);
}

Result<NullableBytes> SessionEffects::Scope::get(ByteView name) {
  if (!state_.has_value()) {
    return Error(Errc::kUnsupported, "this session processor has no state: set has_state");
  }
  WEIR_TRY_ASSIGN(const state::NullableValue found, state_->get(key_of(kValueKind, name)));
  return found.has_value() ? NullableBytes(found->value) : NullableBytes();
}

Status SessionEffects::Scope::put(ByteView name, NullableBytes value) {
  if (!state_.has_value()) {
    return Error(Errc::kUnsupported, "this session processor has no state: set has_state");
  }
  const ByteView key = key_of(kValueKind, name);
  if (key.size() + value.size() > kStateBytesMax) {
    return Error(Errc::kRecordTooLarge,
                 fmt::format("a value of {} bytes under a key of {}: state of a session is kept in "
                             "records of at most {} bytes; split it",
                             value.size(), key.size(), kStateBytesMax));
  }
  return state_->put(key, value, record_->timestamp);
}

Status SessionEffects::Scope::emit(std::uint32_t output, const RecordRef& record) {
  if (output >= effects_->outputs_.size()) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("there is no output {}: this session processor has {}", output,
                             effects_->outputs_.size()));
  }
  const std::int32_t partitions = effects_->outputs_[output].partitions;
  const PartitionId partition =
      record.key.is_null()
          ? PartitionId(static_cast<std::int32_t>(session_hash(session_.view_or_empty()) %
                                                  static_cast<std::uint64_t>(partitions)))
          : partition_for_key(record.key.view(), partitions);
  outputs_.push_back(
      {.topic = output,
       .partition = partition,
       .key = record.key.to_owned(),
       .value = record.value.to_owned(),
       .timestamp = record.timestamp == kNoTimestamp ? record_->timestamp : record.timestamp,
       .headers = Headers(record.headers)});
  return {};
}

Result<bool> SessionEffects::Scope::is_applied() {
  if (!effects_->skips_applied_ || !state_.has_value()) {
    return false;
  }
  WEIR_TRY_ASSIGN(const state::NullableValue found, state_->get(key_of(kAppliedKind, {})));
  if (!found.has_value()) {
    return false;
  }
  if (found->value.size() != kAppliedSize) {
    return Error(Errc::kCorrupt,
                 fmt::format("the state of a session in {} says of {} bytes how "
                             "far it is: it is not of this format",
                             partition_->state.changelog.to_string(), found->value.size()));
  }
  const Uuid& id = partition_->source_id;
  const ByteView topic(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
  is_applied_ =
      found->value.starts_with(topic) &&
      record_->offset.value() <= load_be<std::int64_t>(found->value.data() + topic.size());
  return is_applied_;
}

Status SessionEffects::Scope::mark_applied() {
  return state_->put(key_of(kAppliedKind, {}),
                     ByteView(applied_value(partition_->source_id, record_->offset)),
                     record_->timestamp);
}

SessionEffects::SessionEffects(std::unique_ptr<RecordSink> sink, std::vector<SinkTopicInfo> outputs,
                               const SessionPartitions& partitions, const Clock& clock,
                               bool skips_applied)
    : sink_(std::move(sink)),
      outputs_(std::move(outputs)),
      partitions_(partitions),
      clock_(clock),
      skips_applied_(skips_applied) {}

std::shared_ptr<SessionPartition>& SessionEffects::partition(std::uint32_t number) {
  if (number >= cached_.size()) {
    cached_.resize(number + 1);
  }
  std::shared_ptr<SessionPartition>& cached = cached_[number];
  if (cached == nullptr || cached->is_retired.load(std::memory_order_acquire)) {
    cached = partitions_.get(number);
  }
  WEIR_ASSERT(cached != nullptr);  // on_assigned() comes before the first attempt
  return cached;
}

SessionEffects::Scope SessionEffects::begin_attempt(const Attempt& attempt) {
  return {this, partition(attempt.partition).get(), attempt};
}

void SessionEffects::discard(Scope scope) {
  if (scope.state_.has_value()) {
    scope.state_->discard();
  }
}

Status SessionEffects::send_outputs(const Scope& scope) {
  for (const Output& output : scope.outputs_) {
    const RecordRef record{.key = view_of(output.key),
                           .value = view_of(output.value),
                           .timestamp = output.timestamp,
                           .headers = output.headers.view()};
    Status sent = sink_->send(outputs_[output.topic].handle, output.partition, {&record, 1});
    if (!sent.ok()) {
      const Errc code = sent.error().code();
      // Anything else may tell of an append before it, whose records are lost.
      if (code != Errc::kRecordTooLarge && code != Errc::kInvalidRecord &&
          code != Errc::kTimedOut && failed_.ok()) {
        failed_ = sent;
      }
      return sent;
    }
    has_outputs_ = true;
    ++outputs_promoted_;
  }
  return {};
}

Status SessionEffects::promote(Scope scope) {
  if (scope.partition_->is_retired.load(std::memory_order_acquire)) {
    return Error(Errc::kFenced, scope.partition_->source.to_string() +
                                    " was handed over while a handler ran: its effects are "
                                    "dropped, the next owner repeats the record");
  }
  if (!failed_.ok()) {
    return Error(Errc::kIo,
                 fmt::format("an earlier output may be lost: {}", failed_.error().to_string()));
  }
  if (skips_applied_ && scope.state_.has_value() && !scope.is_applied_) {
    WEIR_TRY(scope.mark_applied());
  }
  // Outputs first: state that is promoted and then handled again would count twice. And no output
  // of an attempt whose state has no room.
  if (scope.state_.has_value()) {
    WEIR_TRY(scope.state_->reserve());
  }
  WEIR_TRY(send_outputs(scope));
  return scope.state_.has_value() ? scope.state_->promote() : Status();
}

Status SessionEffects::write_changelogs() {
  for (const std::shared_ptr<SessionPartition>& entry : cached_) {
    if (entry == nullptr || entry->state.store == nullptr) {
      continue;
    }
    TaskStore& state = entry->state;
    entry->in_flush =
        !entry->is_retired.load(std::memory_order_acquire) && !state.store->scope_empty();
    if (!entry->in_flush) {
      continue;
    }
    if (!entry->has_changelog_handle) {
      WEIR_TRY_ASSIGN(state.changelog_topic, sink_->open_topic(state.changelog.topic));
      entry->has_changelog_handle = true;
    }
    // A crash may keep a prefix: what says that a record is applied comes behind what it wrote.
    if (skips_applied_) {
      state.store->order_changelog(is_applied_key);
    }
    WEIR_TRY(state.store->write_changelog(*sink_, state.changelog_topic.handle,
                                          state.changelog.partition));
  }
  return {};
}

Status SessionEffects::promote_stores(const std::vector<FlushedPartition>& flushed) {
  for (const std::shared_ptr<SessionPartition>& entry : cached_) {
    if (entry == nullptr || !std::exchange(entry->in_flush, false)) {
      continue;
    }
    TaskStore& state = entry->state;
    const auto end = std::find_if(flushed.begin(), flushed.end(), [&](const auto& partition) {
      return partition.topic == state.changelog_topic.handle &&
             partition.partition == state.changelog.partition;
    });
    if (end == flushed.end()) {
      return Error(Errc::kInternal,
                   "the log did not report the end of " + state.changelog.to_string());
    }
    WEIR_TRY(state.store->promote(
        {state.changelog_topic.id, end->end_offset, end->leader_epoch, clock_.now()}));
  }
  return {};
}

Status SessionEffects::flush_all() {
  // What is in a changelog makes a record count as applied, so its outputs are durable before it.
  if (skips_applied_ && std::exchange(has_outputs_, false)) {
    WEIR_TRY(sink_->flush().status());
  }
  WEIR_TRY(write_changelogs());
  const bool has_state = std::any_of(cached_.begin(), cached_.end(), [](const auto& entry) {
    return entry != nullptr && entry->in_flush;
  });
  if (!has_state && !std::exchange(has_outputs_, false)) {
    return {};
  }
  has_outputs_ = false;
  WEIR_TRY_ASSIGN(const std::vector<FlushedPartition> flushed, sink_->flush());
  return promote_stores(flushed);
}

// Of partitions that moved away.
void SessionEffects::forget_retired() {
  for (std::shared_ptr<SessionPartition>& entry : cached_) {
    if (entry != nullptr && entry->is_retired.load(std::memory_order_acquire)) {
      entry.reset();
    }
  }
}

Status SessionEffects::flush() {
  forget_retired();
  if (failed_.ok()) {
    failed_ = flush_all();
  }
  return failed_;
}

}  // namespace weir::internal
