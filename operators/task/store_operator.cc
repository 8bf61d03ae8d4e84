#include <weir/operators/internal/store_operator.h>

#include <algorithm>
#include <array>

namespace weir::internal {

namespace {

// How far the store is looked ahead: slots twice as far as entries, which are reached through them.
constexpr std::size_t kSlotsAhead = 16;
constexpr std::size_t kEntriesAhead = 8;

}  // namespace

StoreOperator::StoreOperator(const NodeSite& site, StoreCache& cache, const RawChecks& checks)
    : site_(site), cache_(cache), store_(cache.store()), checks_(checks) {}

void StoreOperator::receive_run(std::span<const RecordView> records, Flow& flow,
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
  for (progress = 0; progress < count && !site_.task.stops_run(); ++progress) {
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

// Bytes that are no key or value of the type are rejected here as they would be when they were
// read.
bool StoreOperator::check(const RecordView& record, const Flow& flow) {
  const auto holds = [&](CheckBytes read, NullableBytes bytes, const char* what) {
    if (read == nullptr || bytes.is_null()) {
      return true;
    }
    return site_.read(flow, what, [&] { return read(bytes.view()); });
  };
  return holds(checks_.key, record.key, "key") && holds(checks_.value, record.value, "value");
}

void StoreOperator::receive_one(const RecordView& record, std::uint64_t hash, Flow& flow) {
  begin_record(record, flow);
  if ((checks_.key != nullptr || checks_.value != nullptr) && !check(record, flow)) {
    return;
  }
  if (record.key.is_null()) [[unlikely]] {
    drop_null_key(flow);
    return;
  }
  if (record.value.is_null() && !checks_.takes_null_values) [[unlikely]] {
    drop_null_value(flow);
    return;
  }
  flow.key_bytes = record.key;
  update_hashed(hash, {.key = record.key.view(), .value = record.value}, flow);
}

[[gnu::always_inline]] inline void StoreOperator::update_entry(Entry* entry, const Input& input,
                                                               Flow& flow) {
  const NullableBytes stored = state::KeyValueStore::value(*entry);
  NullableBytes old_value;
  if (cache_.wants_old_value() && !stored.is_null()) {
    old_value_.assign(stored.view());
    old_value = ByteView(old_value_);
  }
  if (const std::optional<Timestamp> timestamp = apply(entry, stored, input, flow);
      timestamp.has_value()) {
    cache_.updated(entry, old_value, *timestamp, flow);
  }
}

void StoreOperator::update(const Input& input, Flow& flow) {
  update_hashed(state::KeyValueStore::hash(input.key), input, flow);
}

void StoreOperator::update_hashed(std::uint64_t hash, const Input& input, Flow& flow) {
  Result<Entry*> found = store_.find_or_load(input.key, hash);
  if (!found.ok()) [[unlikely]] {
    site_.task.fail(std::move(found).error().with_context("store " + store_.options().name),
                    FailureKind::kInfrastructure);
    return;
  }
  site_.guard(flow, [&] { update_entry(*found, input, flow); });
}

}  // namespace weir::internal
