#pragma once

#include <weir/operators/internal/traits.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

namespace internal {
// Keeps `name` for the life of the process and returns it. Equal names share one copy.
// Threading: thread-safe.
// Bounds:    65,536 distinct names; beyond that kNameTableFull, which no topology accepts.
std::string_view intern_name(std::string_view name);
inline constexpr std::string_view kNameTableFull = "(name table full)";
}  // namespace internal

// A topic and the types of its records. One declaration is used by the pipeline, the tests and the
// tools, so that a name is written once and a wrong type does not compile:
//
//   inline constexpr weir::Topic<std::string, std::string> kLines{"lines"};
//
// K and V need a Serde. Null is a type: std::optional<V> shows null values to the functions of a
// stream; with plain V, records with a null value are dropped and counted at the source. A plain K
// lets null keys pass through functions that do not take the key (docs/operators.md, "Nulls").
// Immutable value type.
template <internal::NullableSerdeable K, internal::NullableSerdeable V>
struct Topic {
  using Key = K;
  using Value = V;

  std::string_view name;

  // A name that is known only at run time. The text is kept until the process ends, so names must
  // come from a bounded set (at most 65,536; a topology refuses what comes after).
  static Topic named(std::string_view name) { return Topic{internal::intern_name(name)}; }
};

// A key-value store and the types of its entries: names the operator's state, its changelog
// ("<application.id>-<name>-changelog") and, where the key was changed, its repartition topic.
// Immutable value type.
template <internal::NullableSerdeable K, internal::NullableSerdeable V>
  requires(!internal::kIsOptional<K> && !internal::kIsOptional<V>)
struct KvStore {
  using Key = K;
  using Value = V;

  std::string_view name;

  // As Topic::named.
  static KvStore named(std::string_view name) { return KvStore{internal::intern_name(name)}; }
};

}  // namespace weir
