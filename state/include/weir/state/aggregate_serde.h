#pragma once

#include <weir/runtime/varint.h>
#include <weir/state/serde.h>

#include <array>
#include <cstddef>
#include <limits>
#include <tuple>
#include <vector>

namespace weir {

// A plain aggregate (no base, no constructor, no array member, 1 to 16 members) whose members are
// numbers, bool, enums, strings, Bytes, std::optional and std::vector of members, nested
// aggregates, or types with a Serde of their own. Recursive types are not.
//
//   struct Order { std::string item; std::int64_t cents; std::optional<std::string> note; };
//
// Format (docs/formats/serde.md): 0x01, then the members in order. Adding, removing or reordering
// members changes the format: specialise Serde for a type that must evolve, or use protobuf.

namespace internal {

struct AnyMember {
  template <class T>
    requires(!std::is_array_v<T>)
  operator T() const;  // never defined; NOLINT(google-explicit-constructor)
};

template <class T, std::size_t... Index>
constexpr bool takes_members(std::index_sequence<Index...> /*count*/) {
  return requires { T{(static_cast<void>(Index), AnyMember{})...}; };
}

inline constexpr std::size_t kMembersMax = 16;
// Elements that a length alone may reserve: damaged bytes must not ask for memory.
inline constexpr std::size_t kReserveMax = 1024;

// Largest count of initialisers, 0 when it is above kMembersMax.
template <class T, std::size_t Count = kMembersMax + 1>
constexpr std::size_t member_count() {
  if constexpr (Count == 0) {
    return 0;
  } else if constexpr (takes_members<T>(std::make_index_sequence<Count>())) {
    return Count > kMembersMax ? 0 : Count;
  } else {
    return member_count<T, Count - 1>();
  }
}

// References to all members, by structured bindings.
template <class T>
constexpr auto members_of(T& value) {
  constexpr std::size_t kCount = member_count<std::remove_const_t<T>>();
  // clang-format off
  if constexpr (kCount == 1) { auto& [a] = value; return std::tie(a); }
  else if constexpr (kCount == 2) { auto& [a, b] = value; return std::tie(a, b); }
  else if constexpr (kCount == 3) { auto& [a, b, c] = value; return std::tie(a, b, c); }
  else if constexpr (kCount == 4) { auto& [a, b, c, d] = value; return std::tie(a, b, c, d); }
  else if constexpr (kCount == 5) { auto& [a, b, c, d, e] = value; return std::tie(a, b, c, d, e); }
  else if constexpr (kCount == 6) { auto& [a, b, c, d, e, f] = value; return std::tie(a, b, c, d, e, f); }
  else if constexpr (kCount == 7) { auto& [a, b, c, d, e, f, g] = value; return std::tie(a, b, c, d, e, f, g); }
  else if constexpr (kCount == 8) { auto& [a, b, c, d, e, f, g, h] = value; return std::tie(a, b, c, d, e, f, g, h); }
  else if constexpr (kCount == 9) { auto& [a, b, c, d, e, f, g, h, i] = value; return std::tie(a, b, c, d, e, f, g, h, i); }
  else if constexpr (kCount == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = value; return std::tie(a, b, c, d, e, f, g, h, i, j); }
  else if constexpr (kCount == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = value; return std::tie(a, b, c, d, e, f, g, h, i, j, k); }
  else if constexpr (kCount == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = value; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l); }
  else if constexpr (kCount == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = value; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  else if constexpr (kCount == 14) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = value; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n); }
  else if constexpr (kCount == 15) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = value; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o); }
  else if constexpr (kCount == 16) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = value; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p); }
  // clang-format on
}

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = !std::is_same_v<T, bool>;

template <class T>
constexpr bool is_member();

// A Serde of its own: a complete specialisation that is not the one for aggregates below.
template <class T>
concept OwnSerde = requires { Serde<T>::kName; } && !requires { Serde<T>::kIsAggregate; };

template <class T>
constexpr bool is_plain_aggregate() {
  if constexpr (!std::is_aggregate_v<T> || !std::is_class_v<T>) {
    return false;
  } else if constexpr (member_count<T>() == 0) {
    return false;
  } else {
    return []<class... Members>(std::type_identity<std::tuple<Members&...>> /*members*/) {
      return (is_member<Members>() && ...);
    }(std::type_identity<decltype(members_of(std::declval<T&>()))>());
  }
}

template <class T>
constexpr bool is_member() {
  if constexpr (kIsOptional<T> || kIsVector<T>) {
    return is_member<typename T::value_type>();
  } else if constexpr (std::is_arithmetic_v<T>) {
    return sizeof(T) <= 8;
  } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, std::string> ||
                       std::is_same_v<T, Bytes>) {
    return true;
  } else if constexpr (std::is_aggregate_v<T>) {
    return OwnSerde<T> || is_plain_aggregate<T>();
  } else {
    return Serdeable<T>;
  }
}

void write_length(std::size_t length, std::string& out);

// Cursor over an aggregate's bytes. Each read returns false once the bytes end too early.
struct MemberReader {
  ByteView rest;
  bool fixed(char* out, std::size_t size);
  // At most what is left, so that damaged bytes cannot ask for memory.
  bool length(std::size_t& out);
  bool bytes(ByteView& out);
};
Error damaged_aggregate(ByteView bytes);

template <std::size_t Size>
using UnsignedOf = std::conditional_t<
    Size == 1, std::uint8_t,
    std::conditional_t<Size == 2, std::uint16_t,
                       std::conditional_t<Size == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
void write_member(const T& value, std::string& out) {
  if constexpr (std::is_same_v<T, bool>) {
    out.push_back(value ? '\1' : '\0');
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    char bytes[sizeof(T)];
    store_be(bytes, std::bit_cast<UnsignedOf<sizeof(T)>>(value));
    out.append(bytes, sizeof(bytes));
  } else if constexpr (std::is_same_v<T, std::string>) {
    write_length(value.size(), out);
    out += value;
  } else if constexpr (std::is_same_v<T, Bytes>) {
    write_member(value.data, out);
  } else if constexpr (kIsOptional<T>) {
    out.push_back(value.has_value() ? '\1' : '\0');
    if (value.has_value()) {
      write_member(*value, out);
    }
  } else if constexpr (kIsVector<T>) {
    write_length(value.size(), out);
    for (const auto& element : value) {
      write_member(element, out);
    }
  } else if constexpr (OwnSerde<T>) {
    std::string bytes;
    Serde<T>::write(value, bytes);
    write_member(bytes, out);
  } else {
    std::apply([&out](const auto&... members) { (write_member(members, out), ...); },
               members_of(value));
  }
}

template <class T>
bool read_member(MemberReader& in, T& value);

template <class T>
bool read_vector(MemberReader& in, std::vector<T>& value) {
  std::size_t count = 0;
  if (!in.length(count)) {
    return false;
  }
  value.clear();
  value.reserve(count < kReserveMax ? count : kReserveMax);
  for (std::size_t i = 0; i < count; ++i) {
    if (T element{}; read_member(in, element)) {
      value.push_back(std::move(element));
    } else {
      return false;
    }
  }
  return true;
}

template <class T>
bool read_flag(MemberReader& in, T& value) {
  char byte = 0;
  if (!in.fixed(&byte, 1) || (byte != '\0' && byte != '\1')) {
    return false;
  }
  if constexpr (std::is_same_v<T, bool>) {
    value = byte == '\1';
    return true;
  } else {
    value.reset();
    return byte == '\0' || read_member(in, value.emplace());
  }
}

template <class T>
bool read_bytes(MemberReader& in, T& value) {
  ByteView bytes;
  if (!in.bytes(bytes)) {
    return false;
  }
  if constexpr (std::is_same_v<T, std::string>) {
    value = bytes;
  } else if constexpr (std::is_same_v<T, Bytes>) {
    value.data = bytes;
  } else {
    Result<T> read = Serde<T>::read(bytes);
    if (!read.ok()) {
      return false;
    }
    value = std::move(read).value();
  }
  return true;
}

template <class T>
bool read_member(MemberReader& in, T& value) {
  if constexpr (std::is_same_v<T, bool> || kIsOptional<T>) {
    return read_flag(in, value);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    char bytes[sizeof(T)];
    if (!in.fixed(bytes, sizeof(bytes))) {
      return false;
    }
    value = std::bit_cast<T>(load_be<UnsignedOf<sizeof(T)>>(bytes));
    return true;
  } else if constexpr (kIsVector<T>) {
    return read_vector(in, value);
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Bytes> || OwnSerde<T>) {
    return read_bytes(in, value);
  } else {
    return std::apply([&in](auto&... members) { return (read_member(in, members) && ...); },
                      members_of(value));
  }
}

}  // namespace internal

template <class T>
concept PlainAggregate = internal::is_plain_aggregate<T>();

template <PlainAggregate T>
struct Serde<T> {
  static constexpr std::string_view kName = "aggregate";
  static constexpr bool kIsAggregate = true;
  static constexpr char kFormat = 1;

  static void write(const T& value, std::string& out) {
    out.push_back(kFormat);
    internal::write_member(value, out);
  }
  static Result<T> read(ByteView bytes) {
    internal::MemberReader in{bytes};
    char format = 0;
    T value{};
    if (!in.fixed(&format, 1) || format != kFormat || !internal::read_member(in, value) ||
        !in.rest.empty()) {
      return internal::damaged_aggregate(bytes);
    }
    return value;
  }
};

}  // namespace weir
