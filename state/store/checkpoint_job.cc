#include "state/store/checkpoint_job.h"

#include <weir/runtime/endian.h>

#include <tbb/parallel_sort.h>

#include <exception>
#include <iterator>
#include <thread>
#include <utility>

namespace weir::state {
namespace {

ByteView key_of(const KeyValueStore::Entry& entry) {
  return KeyValueStore::key(entry);
}

std::uint64_t key_prefix(ByteView key) {
  char bytes[8] = {};
  key.copy(bytes, sizeof(bytes));
  return load_be<std::uint64_t>(bytes);
}

}  // namespace

CheckpointJob::CheckpointJob(CheckpointStore& store, std::vector<Entry*> entries,
                             std::uint8_t generation, const StorePosition& position,
                             bool flush_only)
    : store_(store),
      entries_(std::move(entries)),
      generation_(generation),
      position_(position),
      flush_only_(flush_only) {}

void CheckpointJob::run_if_waiting() {
  Stage expected = Stage::kWaiting;
  if (!stage_.compare_exchange_strong(expected, Stage::kRunning)) {
    return;
  }
  try {
    result_ = build();
  } catch (const std::exception& problem) {
    result_ = Error(Errc::kInternal, std::string("building a checkpoint: ") + problem.what());
  }
  const MutexLock lock(mutex_);
  stage_.store(Stage::kDone, std::memory_order_release);
  finished_.notify_all();
}

bool CheckpointJob::cancel() {
  Stage expected = Stage::kWaiting;
  return stage_.compare_exchange_strong(expected, Stage::kCancelled);
}

void CheckpointJob::wait() {
  const MutexLock lock(mutex_);
  while (!done()) {
    finished_.wait(mutex_);
  }
}

void CheckpointJob::Copies::add(const Entry& entry, std::uint32_t buffer) {
  Frozen copy{.prefix = key_prefix(key_of(entry)),
              .entry = &entry,
              .offset = values.size(),
              .size = kDeleted,
              .buffer = buffer};
  const NullableBytes value = KeyValueStore::committed_value(entry);
  if (!value.is_null()) {
    char timestamp[8];
    store_be(timestamp, KeyValueStore::committed_timestamp(entry));
    values.append(timestamp, sizeof(timestamp));
    values += value.view();
    copy.size = static_cast<std::uint32_t>(values.size() - copy.offset);
  }
  frozen.push_back(copy);
}

void CheckpointJob::preserve(Entry& entry) {
  std::uint8_t expected = generation_;
  if (entry.dirty.compare_exchange_strong(expected, KeyValueStore::kBusy,
                                          std::memory_order_acquire)) {
    preserved_.add(entry, 1);
    entry.dirty.store(KeyValueStore::kClean, std::memory_order_release);
    return;
  }
  while (expected == KeyValueStore::kBusy) {
    std::this_thread::yield();
    expected = entry.dirty.load(std::memory_order_acquire);
  }
}

void CheckpointJob::copy_frozen() {
  built_.frozen.reserve(entries_.size());
  for (Entry* entry : entries_) {
    std::uint8_t expected = generation_;
    if (entry->dirty.compare_exchange_strong(expected, KeyValueStore::kBusy,
                                             std::memory_order_acquire)) {
      built_.add(*entry, 0);
      entry->dirty.store(KeyValueStore::kClean, std::memory_order_release);
      continue;
    }
    // The acquiring reads here are what makes preserved_ readable below.
    while (expected == KeyValueStore::kBusy) {
      std::this_thread::yield();
      expected = entry->dirty.load(std::memory_order_acquire);
    }
  }
}

bool CheckpointJob::before(const Frozen& a, const Frozen& b) {
  return a.prefix != b.prefix ? a.prefix < b.prefix : key_of(*a.entry) < key_of(*b.entry);
}

Status CheckpointJob::build() {
  if (flush_only_) {
    return store_.flush();
  }
  copy_frozen();
  std::vector<Frozen>& frozen = built_.frozen;
  frozen.insert(frozen.end(), preserved_.frozen.begin(), preserved_.frozen.end());
  tbb::parallel_sort(frozen.begin(), frozen.end(), &CheckpointJob::before);

  std::size_t at = 0;
  const auto next = [&](StoreChange& change) {
    if (at == frozen.size()) {
      return false;
    }
    const Frozen& copy = frozen[at++];
    const std::string& values = copy.buffer == 0 ? built_.values : preserved_.values;
    change.key = key_of(*copy.entry);
    change.value = copy.size == kDeleted
                       ? NullableBytes()
                       : NullableBytes(ByteView(values).substr(copy.offset, copy.size));
    return true;
  };
  Status ingested = store_.ingest(next, position_);
  built_ = Copies();
  return ingested;
}

}  // namespace weir::state
