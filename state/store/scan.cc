#include "state/store/ordered_index.h"

#include <weir/runtime/endian.h>
#include <weir/state/key_value_store.h>

#include <string>
#include <utility>

// Ordered scans: the hot tier's index merged with the checkpoint.

namespace weir::state {

// A resident key hides the checkpoint's, whatever its value. Keys and values are copied at each
// step, so that nothing that happens to the store between two steps can hurt.
class MergingIterator final : public StoreIterator {
 public:
  MergingIterator(KeyValueStore& store, ByteView from, std::optional<ByteView> to, ReadView view)
      : store_(store), key_(from), to_(to), view_(view) {
    store_.metrics_.open_iterators.fetch_add(1, std::memory_order_relaxed);
  }
  ~MergingIterator() override {
    store_.metrics_.open_iterators.fetch_sub(1, std::memory_order_relaxed);
  }

  Status start() {
    advance(true);
    return status_;
  }

  bool valid() const override { return valid_; }
  ByteView key() const override { return key_; }
  ByteView value() const override { return value_; }
  Timestamp timestamp() const override { return timestamp_; }
  void next() override { advance(false); }
  Status status() const override { return status_; }

 private:
  void advance(bool inclusive) {
    valid_ = false;
    catch_up(inclusive);
    while (status_.ok() && step()) {
      if (valid_) {
        return;
      }
    }
  }

  // Finds the places behind key_ again after the store's layout changed.
  void catch_up(bool inclusive) {
    if (!seeked_ || index_version_ != store_.index_->version()) {
      index_version_ = store_.index_->version();
      if (store_.index_->active()) {
        hot_.seek(*store_.index_, key_, inclusive);
      } else {
        hot_ = {};  // emptied by a promote (kDirect) or clear()
      }
    }
    if (!seeked_ || checkpoint_version_ != store_.checkpoint_version_) {
      checkpoint_version_ = store_.checkpoint_version_;
      seek_checkpoint(inclusive);
    }
    seeked_ = true;
  }

  void seek_checkpoint(bool inclusive) {
    cold_.reset();
    if (!store_.may_be_checkpointed()) {
      return;
    }
    auto opened =
        store_.checkpoints_->scan(key_, to_ ? std::optional<ByteView>(*to_) : std::nullopt);
    if (!opened.ok()) {
      status_ = Error(opened.error()).with_context("scan store " + store_.options_.name);
      return;
    }
    cold_ = std::move(opened).value();
    if (!inclusive && cold_->valid() && cold_->key() == key_) {
      cold_->next();
    }
  }

  // Goes over one key; false at the end. valid_ tells whether it has a value.
  bool step() {
    KeyValueStore::Entry* hot = hot_.entry();
    if (hot != nullptr && to_.has_value() && KeyValueStore::key(*hot) >= *to_) {
      hot = nullptr;
    }
    const bool has_cold = cold_ != nullptr && cold_->valid();
    if (cold_ != nullptr && !has_cold) {
      status_ = cold_->status();
      if (!status_.ok()) {
        return false;
      }
    }
    if (hot == nullptr && !has_cold) {
      return false;
    }
    const int order = hot == nullptr ? 1
                      : !has_cold    ? -1
                                     : KeyValueStore::key(*hot).compare(cold_->key());
    if (order > 0) {
      return take_cold();
    }
    take_hot(*hot);
    hot_.next();
    if (order == 0) {
      cold_->next();
    }
    return true;
  }

  void take_hot(const KeyValueStore::Entry& entry) {
    key_ = KeyValueStore::key(entry);
    const bool committed = view_ == ReadView::kCommitted;
    const NullableBytes value =
        committed ? KeyValueStore::committed_value(entry) : KeyValueStore::value(entry);
    if (!value.is_null()) {
      value_ = value.view();
      timestamp_ =
          committed ? KeyValueStore::committed_timestamp(entry) : KeyValueStore::timestamp(entry);
      valid_ = true;
    }
  }

  bool take_cold() {
    const ByteView stored = cold_->value();
    if (stored.size() < sizeof(Timestamp)) {
      status_ = store_.short_value(stored.size());
      return false;
    }
    key_ = cold_->key();
    value_ = stored.substr(sizeof(Timestamp));
    timestamp_ = load_be<Timestamp>(stored.data());
    valid_ = true;
    cold_->next();
    return true;
  }

  KeyValueStore& store_;
  std::string key_;  // the present key; before start() the first
  std::optional<std::string> to_;
  ReadView view_;
  OrderedIndex::Cursor hot_;
  std::unique_ptr<CheckpointIterator> cold_;  // null: nothing there that is not resident
  std::uint64_t index_version_ = 0;
  std::uint64_t checkpoint_version_ = 0;
  bool seeked_ = false;
  bool valid_ = false;
  std::string value_;
  Timestamp timestamp_ = kNoTimestamp;
  Status status_;
};

Result<std::unique_ptr<StoreIterator>> KeyValueStore::scan(ByteView from,
                                                           std::optional<ByteView> to,
                                                           ReadView view) {
  if (!index_->active()) {
    index_->activate();
    for (std::uint32_t i = 0; i < next_index_; ++i) {
      if (Entry* entry = entry_at(i); (entry->flags & kLive) != 0) {
        index_->add(entry);
      }
    }
  }
  index_->settle();
  auto iterator = std::make_unique<MergingIterator>(*this, from, to, view);
  WEIR_TRY(iterator->start());
  return std::unique_ptr<StoreIterator>(std::move(iterator));
}

Result<std::unique_ptr<StoreIterator>> KeyValueStore::scan_prefix(ByteView prefix, ReadView view) {
  // The first string above all with the prefix: the prefix without trailing 0xff, plus one.
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff') {
    end.pop_back();
  }
  if (end.empty()) {
    return scan(prefix, std::nullopt, view);
  }
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1U);
  return scan(prefix, ByteView(end), view);
}

}  // namespace weir::state
