#pragma once

#include <weir/operators/record_context.h>
#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/state/serde.h>

#include <concepts>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// What the compiler has to know about keys, values and users' functions.

namespace weir::internal {

template <class T>
struct OptionalTraits {
  using Plain = T;
};
template <class T>
struct OptionalTraits<std::optional<T>> {
  using Plain = T;
};
// std::optional<T> -> T; any other T stays. (kIsOptional<T> comes with the serdes.)
template <class T>
using PlainOf = typename OptionalTraits<T>::Plain;

template <class T>
concept NullableSerdeable = Serdeable<PlainOf<T>>;

// True when every byte string is a value, so that a record can be counted without reading it.
template <class T>
inline constexpr bool kAnyBytesAreValid = std::is_same_v<T, std::string>;

// Appends the bytes of `value`; false (nothing appended) when it is null.
template <class T>
bool append_bytes(const T& value, std::string& out) {
  if constexpr (kIsOptional<T>) {
    if (!value.has_value()) {
      return false;
    }
    Serde<PlainOf<T>>::write(*value, out);
  } else {
    Serde<T>::write(value, out);
  }
  return true;
}

// A key behind a pointer: null, or an optional without value.
template <class K>
bool is_null_key(const K* key) {
  if constexpr (kIsOptional<K>) {
    return key == nullptr || !key->has_value();
  } else {
    return key == nullptr;
  }
}

// Functions take (value), (key, value) or (key, value, context): the first form that compiles.
template <class F, class K, class V>
concept TakesValue = std::invocable<F&, const V&>;
template <class F, class K, class V>
concept TakesKeyAndValue = !TakesValue<F, K, V> && std::invocable<F&, const K&, const V&>;
template <class F, class K, class V>
concept TakesContext = !TakesValue<F, K, V> && !TakesKeyAndValue<F, K, V> &&
                       std::invocable<F&, const K&, const V&, const RecordContext&>;
template <class F, class K, class V>
concept RecordFunction =
    std::copy_constructible<F> &&
    (TakesValue<F, K, V> || TakesKeyAndValue<F, K, V> || TakesContext<F, K, V>);

// Whether the function must be given a key; a record whose (plain) key is null then has no call.
template <class F, class K, class V>
inline constexpr bool kNeedsKey = !TakesValue<F, K, V> && !kIsOptional<K>;

template <class F, class K, class V>
  requires RecordFunction<F, K, V>
decltype(auto) call(F& function, const K* key, const V& value, const RecordContext& context) {
  if constexpr (TakesValue<F, K, V>) {
    return function(value);
  } else if constexpr (TakesKeyAndValue<F, K, V>) {
    return function(*key, value);
  } else {
    return function(*key, value, context);
  }
}

// Results become owned values: a view into a function's argument must not outlive the call.
template <class T>
struct OwnedTraits {
  using Type = T;
};
template <>
struct OwnedTraits<std::string_view> {
  using Type = std::string;
};
template <>
struct OwnedTraits<const char*> {
  using Type = std::string;
};
template <class T>
using Owned = typename OwnedTraits<std::remove_cvref_t<T>>::Type;

template <class F, class K, class V>
using ResultOf = decltype(call(std::declval<F&>(), std::declval<const K*>(),
                               std::declval<const V&>(), std::declval<const RecordContext&>()));

template <class F, class K, class V>
concept Predicate = RecordFunction<F, K, V> && std::convertible_to<ResultOf<F, K, V>, bool>;
template <class F, class K, class V>
concept RangeFunction =
    RecordFunction<F, K, V> && std::ranges::input_range<std::remove_cvref_t<ResultOf<F, K, V>>>;
template <class T>
concept PairLike = requires(const std::remove_cvref_t<T>& pair) {
  pair.first;
  pair.second;
};
template <class F, class K, class V>
concept PairRangeFunction =
    RangeFunction<F, K, V> &&
    PairLike<std::ranges::range_reference_t<std::remove_cvref_t<ResultOf<F, K, V>>>>;
template <class F, class K, class V>
concept PairFunction = RecordFunction<F, K, V> && PairLike<ResultOf<F, K, V>>;

// A reducer combines the stored and the new value into V, or into std::optional<V>, where no value
// deletes the entry.
template <class F, class V>
concept Reducer =
    std::copy_constructible<F> && std::invocable<F&, const V&, const V&> &&
    (std::same_as<Owned<std::invoke_result_t<F&, const V&, const V&>>, V> ||
     std::same_as<Owned<std::invoke_result_t<F&, const V&, const V&>>, std::optional<V>>);
template <class F, class V>
using ReducedTo = Owned<std::invoke_result_t<F&, const V&, const V&>>;

// An aggregator takes (value, aggregate) or (key, value, aggregate) and returns the new aggregate,
// or std::optional of it, where no value deletes the entry. The aggregate is given as an rvalue.
template <class F, class K, class V, class A>
inline constexpr bool kAggregatorTakesKey = std::invocable<F&, const K&, const V&, A&&>;
template <class F, class K, class V, class A>
decltype(auto) call_aggregator(F& function, const K* key, const V& value, A&& aggregate) {
  if constexpr (kAggregatorTakesKey<F, K, V, std::remove_cvref_t<A>>) {
    return function(*key, value, std::forward<A>(aggregate));
  } else {
    return function(value, std::forward<A>(aggregate));
  }
}
template <class F, class K, class V, class A>
struct AggregatorResult {};
template <class F, class K, class V, class A>
  requires kAggregatorTakesKey<F, K, V, A>
struct AggregatorResult<F, K, V, A> {
  using Type = std::invoke_result_t<F&, const K&, const V&, A&&>;
};
template <class F, class K, class V, class A>
  requires(!kAggregatorTakesKey<F, K, V, A> && std::invocable<F&, const V&, A &&>)
struct AggregatorResult<F, K, V, A> {
  using Type = std::invoke_result_t<F&, const V&, A&&>;
};
template <class F, class K, class V, class A>
using AggregatedTo = Owned<typename AggregatorResult<F, K, V, A>::Type>;
template <class F, class K, class V, class A>
concept Aggregator = std::copy_constructible<F> &&
                     (kAggregatorTakesKey<F, K, V, A> || std::invocable<F&, const V&, A&&>) &&
                     (std::same_as<AggregatedTo<F, K, V, A>, A> ||
                      std::same_as<AggregatedTo<F, K, V, A>, std::optional<A>>);
template <class F, class A>
concept Initializer = std::copy_constructible<F> && std::invocable<F&> &&
                      std::convertible_to<std::invoke_result_t<F&>, A>;

// Re-grouping a table: the function returns a pair, or std::optional of one; halves may be optional
// too. What is null is left out.
template <class F, class K, class V>
using RegroupedPair = PlainOf<std::remove_cvref_t<ResultOf<F, K, V>>>;
template <class F, class K, class V>
concept Regrouper = RecordFunction<F, K, V> && PairLike<RegroupedPair<F, K, V>>;
template <class F, class K, class V>
using RegroupedKey = PlainOf<Owned<decltype(std::declval<RegroupedPair<F, K, V>>().first)>>;
template <class F, class K, class V>
using RegroupedValue = PlainOf<Owned<decltype(std::declval<RegroupedPair<F, K, V>>().second)>>;

}  // namespace weir::internal
