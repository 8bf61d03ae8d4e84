#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/endian.h>
#include <weir/runtime/result.h>

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir {

// How a type becomes bytes: by type, never by argument. Specialise it for a type of your own:
//
//   template <> struct weir::Serde<Money> {
//     static constexpr std::string_view kName = "money";
//     static void write(const Money& value, std::string& out);       // appends
//     static Result<Money> read(ByteView bytes);                     // kCorrupt when it is none
//   };
//
// kName is recorded in an application's plan, so that tools can decode its stores. A type without a
// serde does not compile where it meets a topic or a store. Built in: std::string ("string"), Bytes
// ("bytes"), std::int16_t/int32_t/int64_t ("short", "integer", "long"), float and double, all as
// Kafka's big-endian serializers write them; std::optional<T> for nullable values; plain aggregates
// (a format byte, then their members; <weir/state/aggregate_serde.h>); protobuf messages
// (<weir/state/protobuf_serde.h>). Layouts: docs/formats/serde.md.
template <class T>
struct Serde;

template <class T>
concept Serdeable = requires(const T& value, std::string& out, ByteView bytes) {
  { Serde<T>::kName } -> std::convertible_to<std::string_view>;
  Serde<T>::write(value, out);
  { Serde<T>::read(bytes) } -> std::same_as<Result<T>>;
};

// Bytes that are no text.
struct Bytes {
  std::string data;
  friend auto operator<=>(const Bytes&, const Bytes&) = default;
};

template <>
struct Serde<std::string> {
  static constexpr std::string_view kName = "string";
  static void write(const std::string& value, std::string& out) { out += value; }
  static Result<std::string> read(ByteView bytes) { return std::string(bytes); }
};

template <>
struct Serde<Bytes> {
  static constexpr std::string_view kName = "bytes";
  static void write(const Bytes& value, std::string& out) { out += value.data; }
  static Result<Bytes> read(ByteView bytes) { return Bytes{std::string(bytes)}; }
};

namespace internal {

// "a long is 8 bytes, these are 5"
Error wrong_size(std::string_view type, std::size_t expected, std::size_t actual);
Error unexpected_null(std::string_view type);

template <class T, class Bits>
struct FixedSerde {
  static void write(T value, std::string& out) {
    char bytes[sizeof(Bits)];
    store_be(bytes, std::bit_cast<Bits>(value));
    out.append(bytes, sizeof(bytes));
  }
  static Result<T> read_as(std::string_view type, ByteView bytes) {
    if (bytes.size() != sizeof(Bits)) [[unlikely]] {
      return wrong_size(type, sizeof(Bits), bytes.size());
    }
    return std::bit_cast<T>(load_be<Bits>(bytes.data()));
  }
};

}  // namespace internal

// ShortSerializer
template <>
struct Serde<std::int16_t> : internal::FixedSerde<std::int16_t, std::int16_t> {
  static constexpr std::string_view kName = "short";
  static Result<std::int16_t> read(ByteView bytes) { return read_as(kName, bytes); }
};
// IntegerSerializer
template <>
struct Serde<std::int32_t> : internal::FixedSerde<std::int32_t, std::int32_t> {
  static constexpr std::string_view kName = "integer";
  static Result<std::int32_t> read(ByteView bytes) { return read_as(kName, bytes); }
};
// LongSerializer
template <>
struct Serde<std::int64_t> : internal::FixedSerde<std::int64_t, std::int64_t> {
  static constexpr std::string_view kName = "long";
  static Result<std::int64_t> read(ByteView bytes) { return read_as(kName, bytes); }
};
// FloatSerializer: IEEE 754 bits. (Java's floatToIntBits makes all NaNs one; we keep the payload.)
template <>
struct Serde<float> : internal::FixedSerde<float, std::int32_t> {
  static constexpr std::string_view kName = "float";
  static Result<float> read(ByteView bytes) { return read_as(kName, bytes); }
};
// DoubleSerializer
template <>
struct Serde<double> : internal::FixedSerde<double, std::int64_t> {
  static constexpr std::string_view kName = "double";
  static Result<double> read(ByteView bytes) { return read_as(kName, bytes); }
};

// A nullable value: T's bytes; absence is the null of the record or store, never bytes. Use
// write_nullable() and read_nullable(), which know both kinds of types.
template <Serdeable T>
struct Serde<std::optional<T>> {
  static constexpr std::string_view kName = Serde<T>::kName;
  // Requires: value.has_value().
  static void write(const std::optional<T>& value, std::string& out) {
    WEIR_ASSERT(value.has_value());
    Serde<T>::write(*value, out);
  }
  static Result<std::optional<T>> read(ByteView bytes) {
    Result<T> value = Serde<T>::read(bytes);
    if (!value.ok()) {
      return value.error();
    }
    return std::optional<T>(std::move(value).value());
  }
};

namespace internal {
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
}  // namespace internal

// Replaces `scratch` by the value's bytes and returns a view of them; null for an empty optional.
template <Serdeable T>
NullableBytes write_nullable(const T& value, std::string& scratch) {
  if constexpr (internal::kIsOptional<T>) {
    if (!value.has_value()) {
      return {};
    }
  }
  scratch.clear();
  Serde<T>::write(value, scratch);
  return ByteView(scratch);
}

// Null gives an empty optional; for other types it is an error (kCorrupt).
template <Serdeable T>
Result<T> read_nullable(NullableBytes bytes) {
  if (bytes.is_null()) {
    if constexpr (internal::kIsOptional<T>) {
      return T();
    } else {
      return internal::unexpected_null(Serde<T>::kName);
    }
  }
  return Serde<T>::read(bytes.view());
}

}  // namespace weir
