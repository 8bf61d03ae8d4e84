#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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
// (<weir/state/protobuf_serde.h>).
template <class T>
struct Serde;

template <class T>
concept Serdeable = requires(const T& value, std::string& out, ByteView bytes) {
  { Serde<T>::kName } -> std::convertible_to<std::string_view>;
  Serde<T>::write(value, out);
  { Serde<T>::read(bytes) } -> std::same_as<Result<T>>;
};

}  // namespace weir
