#include "state/store/ordered_index.h"

#include <weir/runtime/endian.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::state {
namespace {

std::uint64_t key_prefix(ByteView key) {
  char bytes[8] = {};
  key.copy(bytes, sizeof(bytes));
  return load_be<std::uint64_t>(bytes);
}

}  // namespace

OrderedIndex::Item OrderedIndex::item_of(Entry* entry) {
  return {.prefix = key_prefix(KeyValueStore::key(*entry)), .entry = entry};
}

bool OrderedIndex::before(const Item& a, const Item& b) {
  return a.prefix != b.prefix ? a.prefix < b.prefix
                              : KeyValueStore::key(*a.entry) < KeyValueStore::key(*b.entry);
}

void OrderedIndex::activate() {
  clear();
  active_ = true;
}

void OrderedIndex::clear() {
  active_ = false;
  runs_.clear();
  fresh_.clear();
  ++version_;
}

void OrderedIndex::purge() {
  const auto is_dead = [](const Entry* entry) {
    return (entry->flags & KeyValueStore::kLive) == 0;
  };
  std::erase_if(fresh_, is_dead);
  for (std::vector<Item>& run : runs_) {
    std::erase_if(run, [&](const Item& item) { return is_dead(item.entry); });
  }
  std::erase_if(runs_, [](const std::vector<Item>& run) { return run.empty(); });
  ++version_;
}

void OrderedIndex::settle() {
  if (fresh_.empty()) {
    return;
  }
  std::vector<Item> run;
  run.reserve(fresh_.size());
  std::transform(fresh_.begin(), fresh_.end(), std::back_inserter(run), &item_of);
  fresh_.clear();
  std::sort(run.begin(), run.end(), &before);
  while (!runs_.empty() && runs_.back().size() < 2 * run.size()) {
    std::vector<Item> merged;
    merged.reserve(run.size() + runs_.back().size());
    std::merge(runs_.back().begin(), runs_.back().end(), run.begin(), run.end(),
               std::back_inserter(merged), &before);
    run = std::move(merged);
    runs_.pop_back();
  }
  runs_.push_back(std::move(run));
  ++version_;
}

void OrderedIndex::Cursor::seek(const OrderedIndex& index, ByteView from, bool inclusive) {
  const std::uint64_t prefix = key_prefix(from);
  const auto is_below = [&](const Item& item) {
    if (item.prefix != prefix) {
      return item.prefix < prefix;
    }
    const int order = KeyValueStore::key(*item.entry).compare(from);
    return inclusive ? order < 0 : order <= 0;
  };
  positions_.clear();
  for (const std::vector<Item>& run : index.runs_) {
    const auto first = std::partition_point(run.begin(), run.end(), is_below);
    if (first != run.end()) {
      positions_.push_back({.next = &*first, .end = run.data() + run.size()});
    }
  }
  choose();
}

void OrderedIndex::Cursor::next() {
  Position& position = positions_[best_];
  if (++position.next == position.end) {
    positions_.erase(positions_.begin() + static_cast<std::ptrdiff_t>(best_));
  }
  choose();
}

void OrderedIndex::Cursor::choose() {
  best_ = 0;
  for (std::size_t i = 1; i < positions_.size(); ++i) {
    if (before(*positions_[i].next, *positions_[best_].next)) {
      best_ = i;
    }
  }
}

}  // namespace weir::state
