#include <weir/state/key_value_store.h>

#include <algorithm>

namespace weir::state {

AttemptScope::Write* AttemptScope::find(ByteView key, std::uint64_t hash) {
  const auto found = std::find_if(writes_.begin(), writes_.end(), [&](const Write& write) {
    return write.hash == hash && write.key == key;
  });
  return found == writes_.end() ? nullptr : &*found;
}

Result<NullableValue> AttemptScope::get(ByteView key) {
  const Write* own = find(key, KeyValueStore::hash(key));
  if (own == nullptr) {
    return store_->get(key);
  }
  if (!own->value.has_value()) {
    return NullableValue();
  }
  return NullableValue(ValueView{*own->value, own->timestamp});
}

Status AttemptScope::put(ByteView key, NullableBytes value, Timestamp timestamp) {
  const std::uint64_t hash = KeyValueStore::hash(key);
  std::optional<std::string> owned = value.to_owned();
  if (Write* own = find(key, hash); own != nullptr) {
    own->value = std::move(owned);
    own->timestamp = timestamp;
    return {};
  }
  writes_.push_back(
      {.hash = hash, .key = std::string(key), .value = std::move(owned), .timestamp = timestamp});
  return {};
}

Status AttemptScope::reserve() {
  entries_.clear();
  std::size_t bytes = 0;
  for (const Write& write : writes_) {
    WEIR_TRY_ASSIGN(KeyValueStore::Entry * entry, store_->find_or_load(write.key, write.hash));
    entries_.push_back(entry);
    bytes += write.value.has_value() ? write.value->size() : 0;
  }
  return bytes > 0 ? store_->room_for(bytes) : Status();
}

Status AttemptScope::promote() {
  if (entries_.size() != writes_.size()) {
    WEIR_TRY(reserve());  // all that can fail
  }
  for (std::size_t i = 0; i < writes_.size(); ++i) {
    const Write& write = writes_[i];
    store_->write_open(entries_[i],
                       write.value ? NullableBytes(ByteView(*write.value)) : NullableBytes(),
                       write.timestamp);
  }
  discard();
  return {};
}

}  // namespace weir::state
