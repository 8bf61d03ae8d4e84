#pragma once

#include <weir/operators/internal/nodes.h>
#include <weir/operators/internal/processor_host.h>
#include <weir/operators/topic.h>
#include <weir/runtime/assert.h>
#include <weir/state/key_value_store.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir {

template <class V>
struct ValueAndTimestamp {
  V value{};
  Timestamp timestamp = kNoTimestamp;
  friend bool operator==(const ValueAndTimestamp&, const ValueAndTimestamp&) = default;
};

// A processor's typed view of a store: reads its own writes, which become durable with the task's
// next commit. Each value carries the timestamp of the record or punctuation that wrote it.
//
// Errors:    a disk that fails stops the task, which is made again and works on from the last
// commit;
//            until the function returns, reads then find nothing.
// Ownership: valid as long as the processor. One that no context gave may only be assigned to.
// Threading: confined to the task.
template <class K, class V>
class KeyValueStoreView {
 public:
  KeyValueStoreView() = default;
  KeyValueStoreView(internal::ProcessorCore& core, std::string_view name)
      : core_(&core),
        store_(core.find_store(name, {internal::type_info<K>(), internal::type_info<V>()})) {}

  // False for a store that was not given to process().
  explicit operator bool() const { return store_ != nullptr; }

  std::optional<V> get(const K& key) {
    std::optional<ValueAndTimestamp<V>> found = get_with_timestamp(key);
    return found.has_value() ? std::optional<V>(std::move(found->value)) : std::nullopt;
  }
  std::optional<ValueAndTimestamp<V>> get_with_timestamp(const K& key) {
    if (!usable()) {
      return std::nullopt;
    }
    const Result<state::NullableValue> found = store_->get(bytes_of(key));
    if (!found.ok()) {
      core_->fail(found.error(), internal::FailureKind::kInfrastructure);
      return std::nullopt;
    }
    return found->has_value() ? read((*found)->value, (*found)->timestamp) : std::nullopt;
  }
  void put(const K& key, const V& value) { put(key, value, time()); }
  void put(const K& key, const V& value, Timestamp timestamp) {
    scratch_.clear();
    Serde<V>::write(value, scratch_);
    write(key, ByteView(scratch_), timestamp);
  }
  // The value that is there already; then nothing is written.
  std::optional<V> put_if_absent(const K& key, const V& value) {
    std::optional<V> present = get(key);
    if (!present.has_value()) {
      put(key, value);
    }
    return present;
  }
  // Deletes the entry and returns what it was.
  std::optional<V> erase(const K& key) {
    std::optional<V> old = get(key);
    if (old.has_value()) {
      write(key, NullableBytes(), time());
    }
    return old;
  }

  // Calls function(key, value, timestamp) for the entries in byte order of their keys: all, those
  // of [from, to], or those whose key's bytes start with `prefix`. What the function writes to the
  // store meanwhile is seen or not.
  template <class F>
  void for_each(F&& function) {
    if (usable()) {
      visit(store_->scan({}, std::nullopt), function);
    }
  }
  template <class F>
  void for_each_in(const K& from, const K& to, F&& function) {
    if (!usable()) {
      return;
    }
    const std::string first(bytes_of(from));
    std::string last(bytes_of(to));
    last.push_back('\0');  // the key behind `to`
    visit(store_->scan(first, ByteView(last)), function);
  }
  template <class F>
  void for_each_with_prefix(ByteView prefix, F&& function) {
    if (usable()) {
      visit(store_->scan_prefix(prefix), function);
    }
  }

 private:
  // False: the task has failed. Requires: the view came from a context.
  bool usable() const {
    WEIR_ASSERT(core_ != nullptr);
    return store_ != nullptr;
  }
  Timestamp time() const {
    WEIR_ASSERT(core_ != nullptr);
    return core_->time();
  }

  ByteView bytes_of(const K& key) {
    key_scratch_.clear();
    Serde<K>::write(key, key_scratch_);
    return key_scratch_;
  }
  void write(const K& key, NullableBytes value, Timestamp timestamp) {
    if (!usable()) {
      return;
    }
    if (Status done = store_->put(bytes_of(key), value, timestamp); !done.ok()) {
      core_->fail(std::move(done).error(), internal::FailureKind::kInfrastructure);
    }
  }
  std::optional<ValueAndTimestamp<V>> read(ByteView bytes, Timestamp timestamp) {
    std::optional<V> value;
    if (!internal::decode_own<V>(bytes, value, core_->site().task, "value in store")) {
      return std::nullopt;
    }
    return ValueAndTimestamp<V>{std::move(*value), timestamp};
  }
  template <class F>
  void visit(Result<std::unique_ptr<state::StoreIterator>> opened, F& function) {
    if (!opened.ok()) {
      core_->fail(std::move(opened).error(), internal::FailureKind::kInfrastructure);
      return;
    }
    state::StoreIterator& entries = **opened;
    for (; entries.valid(); entries.next()) {
      std::optional<K> key;
      if (!internal::decode_own<K>(entries.key(), key, core_->site().task, "key in store")) {
        return;
      }
      if (auto value = read(entries.value(), entries.timestamp()); value.has_value()) {
        function(*key, value->value, value->timestamp);
      }
    }
    if (Status status = entries.status(); !status.ok()) {
      core_->fail(std::move(status).error(), internal::FailureKind::kInfrastructure);
    }
  }

  internal::ProcessorCore* core_ = nullptr;
  state::KeyValueStore* store_ = nullptr;
  std::string key_scratch_;
  std::string scratch_;
};

}  // namespace weir
