#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/endian.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>
#include <weir/runtime/varint.h>

#include <cstdint>
#include <optional>
#include <string>

namespace weir::log {

// Writes the primitive types of Kafka's messages (reference K 3.1) behind each other.
// Threading: confined to its owner.
class WireWriter {
 public:
  template <class T>
  void integer(T value) {
    char bytes[sizeof(T)];
    store_be(bytes, value);
    out_.append(bytes, sizeof(bytes));
  }
  void uvarint(std::uint64_t value) {
    char bytes[10];
    out_.append(bytes, static_cast<std::size_t>(write_uvarint(bytes, value) - bytes));
  }
  // int16 length, then bytes. Requires: size <= 32,767.
  void string(ByteView text) {
    WEIR_ASSERT(text.size() <= INT16_MAX);
    integer(static_cast<std::int16_t>(text.size()));
    out_.append(text);
  }
  void compact_string(ByteView text) {
    uvarint(text.size() + 1);
    out_.append(text);
  }
  void compact_nullable_string(const std::optional<std::string>& text) {
    if (text) {
      compact_string(*text);
    } else {
      uvarint(0);
    }
  }
  void uuid(const Uuid& id) {
    out_.append(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
  }
  void raw(ByteView bytes) { out_.append(bytes); }
  const std::string& bytes() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads them back. After the first read past the end every read gives zeros and ok() is false, so
// that a message is read straight through and checked once. Lengths never cause an allocation
// beyond the input. Threading: confined to its owner. Ownership: borrows the bytes.
class WireReader {
 public:
  explicit WireReader(ByteView bytes) : in_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  template <class T>
  T integer() {
    if (static_cast<std::size_t>(end_ - in_) < sizeof(T)) {
      fail();
      return T{};
    }
    const T value = load_be<T>(in_);
    in_ += sizeof(T);
    return value;
  }
  std::uint32_t uvarint() {
    std::uint32_t value = 0;
    const char* next = read_uvarint32(in_, end_, &value);
    if (next == nullptr) {
      fail();
      return 0;
    }
    in_ = next;
    return value;
  }
  ByteView raw(std::size_t size) {
    if (static_cast<std::size_t>(end_ - in_) < size) {
      fail();
      return {};
    }
    const ByteView bytes(in_, size);
    in_ += size;
    return bytes;
  }
  ByteView string() {
    const auto size = integer<std::int16_t>();
    if (size < 0) {
      return {};  // null reads as empty
    }
    return raw(static_cast<std::size_t>(size));
  }
  ByteView compact_string() { return compact_nullable_string().value_or(ByteView()); }
  std::optional<ByteView> compact_nullable_string() {
    const std::uint32_t size = uvarint();
    if (size == 0) {
      return std::nullopt;
    }
    return raw(size - 1);
  }
  Uuid uuid() {
    Uuid id;
    const ByteView bytes = raw(id.bytes.size());
    if (bytes.size() == id.bytes.size()) {
      std::memcpy(id.bytes.data(), bytes.data(), bytes.size());
    }
    return id;
  }
  // Calls `field(tag, reader over its bytes)` for each tagged field.
  template <class F>
  void tagged_fields(F&& field) {
    for (std::uint32_t left = uvarint(); left > 0 && ok(); --left) {
      const std::uint32_t tag = uvarint();
      const std::uint32_t size = uvarint();
      WireReader bytes(raw(size));
      if (ok()) {
        field(tag, bytes);
      }
    }
  }
  void skip_tagged_fields() {
    tagged_fields([](std::uint32_t, WireReader&) {});
  }
  bool ok() const { return !failed_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - in_); }

 private:
  void fail() {
    failed_ = true;
    in_ = end_;
  }

  const char* in_;
  const char* end_;
  bool failed_ = false;
};

}  // namespace weir::log
