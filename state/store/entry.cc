#include <weir/runtime/endian.h>
#include <weir/state/key_value_store.h>

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <new>

// Keys and values inside an entry, short ones in place, long ones on the heap.

namespace weir::state {
namespace {

// Rough cost of one allocation besides its bytes.
constexpr std::size_t kAllocationOverhead = 16;
constexpr std::size_t kTimestampBytes = 8;

}  // namespace

std::size_t KeyValueStore::key_footprint(const Entry& entry) {
  return entry.key_size == kHeapKey ? heap_key(entry).size() + kAllocationOverhead : 0;
}

std::size_t KeyValueStore::heap_footprint(const Entry::Value& value, std::uint8_t size) {
  return size == kHeap ? sizeof(HeapValue) + heap_value(value)->capacity + kAllocationOverhead : 0;
}

std::size_t KeyValueStore::footprint(const Entry& entry) {
  return sizeof(Entry) + key_footprint(entry) +
         heap_footprint(entry.committed, entry.committed_size);
}

void KeyValueStore::set_key(Entry& entry, ByteView key) {
  if (key.size() <= kInlineKey) {
    key.copy(entry.key, kInlineKey);
    entry.key_size = static_cast<std::uint8_t>(key.size());
    return;
  }
  char* bytes = static_cast<char*>(::operator new(key.size()));
  key.copy(bytes, key.size());
  const auto size = static_cast<std::uint32_t>(key.size());
  std::memcpy(entry.key, &bytes, sizeof(bytes));
  std::memcpy(entry.key + sizeof(bytes), &size, sizeof(size));
  entry.key_size = kHeapKey;
  heap_bytes_ += key_footprint(entry);
}

void KeyValueStore::free_value(Entry::Value& slot, std::uint8_t& size) {
  if (size == kHeap) {
    heap_bytes_ -= heap_footprint(slot, size);
    ::operator delete(const_cast<HeapValue*>(heap_value(slot)));
  }
  size = kNull;
}

// `value` may be a view of what the slot holds.
void KeyValueStore::set_value(Entry::Value& slot, std::uint8_t& size, NullableBytes value,
                              Timestamp timestamp) {
  slot.timestamp = timestamp;
  if (value.is_null()) {
    free_value(slot, size);
    return;
  }
  const ByteView bytes = value.view();
  if (bytes.size() <= kInlineValue) {
    char copy[kInlineValue] = {};
    bytes.copy(copy, sizeof(copy));
    free_value(slot, size);
    std::memcpy(slot.bytes, copy, sizeof(copy));
    size = static_cast<std::uint8_t>(bytes.size());
    return;
  }
  if (size == kHeap) {
    auto* heap = const_cast<HeapValue*>(heap_value(slot));
    if (heap->capacity >= bytes.size() && heap->capacity / 4 <= bytes.size()) {
      std::memmove(heap + 1, bytes.data(), bytes.size());
      heap->size = static_cast<std::uint32_t>(bytes.size());
      return;
    }
  }
  const auto capacity = static_cast<std::uint32_t>((bytes.size() + 7U) & ~std::size_t{7});
  auto* heap = new (::operator new(sizeof(HeapValue) + capacity))
      HeapValue{static_cast<std::uint32_t>(bytes.size()), capacity};
  std::memcpy(heap + 1, bytes.data(), bytes.size());
  free_value(slot, size);
  std::memcpy(slot.bytes, &heap, sizeof(heap));
  size = kHeap;
  heap_bytes_ += heap_footprint(slot, size);
}

Status KeyValueStore::load_stored(Entry& entry, const std::optional<std::string>& stored) {
  if (!stored.has_value()) {
    return {};
  }
  if (stored->size() < kTimestampBytes) {
    return short_value(stored->size());
  }
  set_value(entry.committed, entry.committed_size, ByteView(*stored).substr(kTimestampBytes),
            load_be<Timestamp>(stored->data()));
  return {};
}

void KeyValueStore::join_scope(Entry* entry) {
  scope_.push_back(entry);
  scope_bytes_ += sizeof(Entry) + key_footprint(*entry);
  entry->open_size = kNull;
}

Status KeyValueStore::room_for(std::size_t bytes) {
  const std::size_t needed = bytes_used() + bytes;
  if (needed <= options_.hot_bytes_max) {
    return {};
  }
  if (needed > refuse_above()) {
    return no_space();
  }
  early_commit_ = true;
  return {};
}

Status KeyValueStore::put_slow(Entry* entry, NullableBytes value, Timestamp timestamp) {
  if (value.size() > UINT32_MAX / 2) {
    return Error(Errc::kRecordTooLarge, fmt::format("store {} cannot hold a value of {} bytes",
                                                    options_.name, value.size()));
  }
  if (value.size() > kInlineValue) {
    WEIR_TRY(room_for(value.size()));
  }
  write_open(entry, value, timestamp);
  return {};
}

void KeyValueStore::write_open(Entry* entry, NullableBytes value, Timestamp timestamp) {
  if (entry->open_size == kNone) {
    join_scope(entry);
  }
  changelog_current_ = false;
  const std::size_t before = heap_footprint(entry->open, entry->open_size);
  set_value(entry->open, entry->open_size, value, timestamp);
  scope_bytes_ += heap_footprint(entry->open, entry->open_size);
  scope_bytes_ -= before;
}

}  // namespace weir::state
