#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

struct HeaderView {
  ByteView name;  // UTF-8, may be empty
  NullableBytes value;
};

// Headers of one record as encoded bytes: `count` times
//   zigzag varint name length | name | zigzag varint value length (-1 null) | value
// so that forwarding them is one memcpy. Order and duplicates are kept. (Kafka DefaultRecord.)
//
// Ownership: borrows the bytes. Whoever makes one has checked that it parses.
class HeadersView {
 public:
  constexpr HeadersView() = default;
  constexpr HeadersView(ByteView encoded, std::uint32_t count)
      : data_(encoded.data()), size_(static_cast<std::uint32_t>(encoded.size())), count_(count) {}

  std::uint32_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  ByteView encoded() const { return {data_, size_}; }

  class Iterator {
   public:
    using value_type = HeaderView;
    using difference_type = std::ptrdiff_t;
    Iterator(ByteView rest, std::uint32_t left) : rest_(rest), left_(left) { load(); }
    const HeaderView& operator*() const { return current_; }
    const HeaderView* operator->() const { return &current_; }
    Iterator& operator++() {
      --left_;
      load();
      return *this;
    }
    bool operator==(const Iterator& other) const { return left_ == other.left_; }

   private:
    void load();
    ByteView rest_;
    std::uint32_t left_;
    HeaderView current_;
  };
  Iterator begin() const { return {encoded(), count_}; }
  Iterator end() const { return {ByteView(), 0}; }

  // Value of the last header with this name (Kafka's Headers.lastHeader).
  std::optional<NullableBytes> last(ByteView name) const;

 private:
  const char* data_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t count_ = 0;
};

// Owns encoded headers. Threading: confined to its owner.
class Headers {
 public:
  Headers() = default;
  explicit Headers(HeadersView view) : encoded_(view.encoded()), count_(view.count()) {}
  void add(ByteView name, NullableBytes value);
  // All headers of that name.
  void remove(ByteView name);
  void clear() {
    encoded_.clear();
    count_ = 0;
  }
  HeadersView view() const { return {encoded_, count_}; }

 private:
  std::string encoded_;
  std::uint32_t count_ = 0;
};

// A record to write. Borrows everything.
struct RecordRef {
  NullableBytes key;
  NullableBytes value;
  Timestamp timestamp = kNoTimestamp;  // kNoTimestamp: the sink stamps its clock's now
  HeadersView headers;
};

// A record that was read; one cache line. Borrows its block.
struct RecordView {
  NullableBytes key;
  NullableBytes value;
  Offset offset;
  Timestamp timestamp = kNoTimestamp;
  HeadersView headers;
};

using RecordViews = std::vector<RecordView, PooledAllocator<RecordView>>;

// Records of one partition in offset order, with what keeps their bytes alive. What
// RecordSource::poll returns; nothing in it names a batch format, a folder or a socket.
struct RecordBlock {
  // Index of the partition in the list given to RecordSource::assign.
  std::uint32_t assignment = 0;
  Uuid topic_id;  // zero when the backend has none
  LeaderEpoch leader_epoch = kNoLeaderEpoch;
  // The position behind this block: behind control batches, aborted data and holes too. A block may
  // have no records and still move the position.
  Offset next_offset;
  Offset high_watermark;
  Offset last_stable_offset;
  RecordViews records;
  std::shared_ptr<const void> owner;

  // Not ok: no records, and the partition stays idle until seek() is called for it.
  //   kUnknownTopic      the topic was deleted (or deleted and made again: another topic id);
  //   kOffsetOutOfRange  the position is outside [log start, log end];
  //   kCorrupt           the bytes at the position are damaged; the message names file and offsets.
  Status status;
};

}  // namespace weir
