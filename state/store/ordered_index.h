#pragma once

#include <weir/state/key_value_store.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::state {

// The resident entries in key order: sorted runs of geometrically falling length, so that a scan
// after n new keys costs O(n log n) for those alone, and a key is merged O(log n) times in all.
//
// Threading: confined to the store's thread. Bounds: 16 bytes an entry.
class OrderedIndex {
 public:
  using Entry = KeyValueStore::Entry;

  // Nothing is kept before the first scan.
  bool active() const { return active_; }
  // Starts keeping: forgets what it knew, the caller adds every entry.
  void activate();
  void add(Entry* entry) { fresh_.push_back(entry); }
  // Forgets entries that are not live any more. Must run before their places are used again.
  void purge();
  void clear();
  // Takes in what was added; cursors must seek again when version() changed.
  void settle();
  std::uint64_t version() const { return version_; }
  std::size_t run_count() const { return runs_.size(); }

  // Walks all runs at once. Invalid after a change of version().
  class Cursor {
   public:
    // At the first entry whose key is >= `from` (`inclusive`) or > `from`.
    void seek(const OrderedIndex& index, ByteView from, bool inclusive);
    Entry* entry() const {
      return best_ < positions_.size() ? positions_[best_].next->entry : nullptr;
    }
    void next();

   private:
    friend class OrderedIndex;
    struct Item {
      std::uint64_t prefix = 0;  // first 8 bytes of the key, big-endian
      Entry* entry = nullptr;
    };
    struct Position {
      const Item* next = nullptr;
      const Item* end = nullptr;
    };
    void choose();
    std::vector<Position> positions_;  // none is at its end
    std::size_t best_ = 0;
  };

 private:
  using Item = Cursor::Item;
  static Item item_of(Entry* entry);
  static bool before(const Item& a, const Item& b);

  bool active_ = false;
  std::uint64_t version_ = 0;
  std::vector<std::vector<Item>> runs_;
  std::vector<Entry*> fresh_;
};

}  // namespace weir::state
