#include <weir/operators/internal/aggregate.h>
#include <weir/runtime/endian.h>

#include <algorithm>
#include <array>

namespace weir::internal {

namespace {

// How far the store is looked ahead: slots twice as far as entries, which are reached through them.
constexpr std::size_t kSlotsAhead = 16;
constexpr std::size_t kEntriesAhead = 8;

}  // namespace

AggregateCore::AggregateCore(StoreCache& cache, CheckBytes check_key, CheckBytes check_value)
    : cache_(cache),
      store_(cache.store()),
      task_(cache.task()),
      check_key_(check_key),
      check_value_(check_value) {}

void AggregateCore::receive_run(std::span<const RecordView> records, Flow& flow,
                                std::size_t& progress) {
  std::array<std::uint64_t, kSlotsAhead> hashes{};
  flow.has_key_bytes = true;
  const std::size_t count = records.size();
  const auto look_up = [&](std::size_t i) {
    const std::uint64_t hash = state::KeyValueStore::hash(records[i].key.view_or_empty());
    hashes[i % kSlotsAhead] = hash;
    store_.prefetch(hash);
  };
  for (std::size_t i = 0; i < std::min(count, kSlotsAhead); ++i) {
    look_up(i);
  }
  for (progress = 0; progress < count && !task_.failed(); ++progress) {
    if (progress + kEntriesAhead < count) {
      store_.prefetch_entry(hashes[(progress + kEntriesAhead) % kSlotsAhead]);
    }
    const std::uint64_t hash = hashes[progress % kSlotsAhead];
    if (progress + kSlotsAhead < count) {
      look_up(progress + kSlotsAhead);
    }
    receive_one(records[progress], hash, flow);
  }
}

void AggregateCore::receive_one(const RecordView& record, std::uint64_t hash, Flow& flow) {
  flow.record.timestamp = record.timestamp;
  flow.record.offset = record.offset;
  flow.record.headers = record.headers;
  flow.record.stream_time = std::max(flow.record.stream_time, record.timestamp);
  if (record.key.is_null() || record.value.is_null()) [[unlikely]] {
    task_.drop(record.key.is_null() ? DropReason::kNullKey : DropReason::kNullValue, flow);
    return;
  }
  // Bytes that are no key or value of the type fail here as they would when they were read.
  if (check_key_ != nullptr) {
    if (Status checked = check_key_(record.key.view()); !checked.ok()) {
      task_.fail(std::move(checked).error().with_context("key"));
      return;
    }
  }
  if (check_value_ != nullptr) {
    if (Status checked = check_value_(record.value.view()); !checked.ok()) {
      task_.fail(std::move(checked).error().with_context("value"));
      return;
    }
  }
  flow.key_bytes = record.key;
  update_hashed(record.key.view(), hash, {.value = record.value}, flow);
}

void AggregateCore::update(ByteView key, const Input& input, Flow& flow) {
  update_hashed(key, state::KeyValueStore::hash(key), input, flow);
}

void AggregateCore::update_hashed(ByteView key, std::uint64_t hash, const Input& input,
                                  Flow& flow) {
  Result<Entry*> found = store_.find_or_load(key, hash);
  if (!found.ok()) [[unlikely]] {
    task_.fail(std::move(found).error().with_context("store " + store_.options().name),
               FailureKind::kInfrastructure);
    return;
  }
  Entry* entry = *found;
  // A deleted entry has a value no more, so its time does not count either (AGG-2).
  const NullableBytes stored = store_.value(*entry);
  const Timestamp timestamp = stored.is_null()
                                  ? flow.record.timestamp
                                  : std::max(store_.timestamp(*entry), flow.record.timestamp);
  if (apply(entry, stored, input, timestamp, flow.record.timestamp)) {
    cache_.updated(entry, timestamp, flow);
  }
}

bool CountCore::apply(Entry* entry, NullableBytes stored, const Input& /*input*/,
                      Timestamp timestamp, Timestamp /*delete_timestamp*/) {
  std::int64_t count = 0;
  if (stored.size() == sizeof(count)) [[likely]] {
    count = load_be<std::int64_t>(stored.view().data());
  } else if (!stored.is_null()) {
    task_.fail(Error(Errc::kCorrupt, "a count in store " + store_.options().name + " has " +
                                         std::to_string(stored.size()) + " bytes instead of 8"));
    return false;
  }
  char bytes[sizeof(count)];
  store_be(bytes, count + 1);
  Status put = store_.put(entry, ByteView(bytes, sizeof(bytes)), timestamp);
  if (!put.ok()) [[unlikely]] {
    task_.fail(std::move(put).error(), FailureKind::kInfrastructure);
    return false;
  }
  return true;
}

bool ReduceCore::apply(Entry* entry, NullableBytes stored, const Input& input, Timestamp timestamp,
                       Timestamp delete_timestamp) {
  scratch_.clear();
  const Step step = combine(stored, input, scratch_);
  if (step == Step::kFailed) {
    return false;
  }
  Status put = step == Step::kDelete ? store_.put(entry, NullableBytes(), delete_timestamp)
                                     : store_.put(entry, ByteView(scratch_), timestamp);
  if (!put.ok()) [[unlikely]] {
    task_.fail(std::move(put).error(), FailureKind::kInfrastructure);
    return false;
  }
  return true;
}

}  // namespace weir::internal
