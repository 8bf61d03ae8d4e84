#include <weir/operators/internal/aggregate.h>
#include <weir/runtime/endian.h>

namespace weir::internal {

std::optional<Timestamp> CountCore::apply(Entry* entry, NullableBytes stored,
                                          const Input& /*input*/, const Flow& flow) {
  std::int64_t count = 0;
  if (stored.size() == sizeof(count)) [[likely]] {
    count = load_be<std::int64_t>(stored.view().data());
  } else if (!stored.is_null()) {
    site_.task.fail(Error(Errc::kCorrupt, "a count in store " + store_.options().name + " has " +
                                              std::to_string(stored.size()) +
                                              " bytes instead of 8"));
    return std::nullopt;
  }
  const Timestamp timestamp = later(*entry, stored, flow);
  char bytes[sizeof(count)];
  store_be(bytes, count + 1);
  if (!put(entry, ByteView(bytes, sizeof(bytes)), timestamp)) [[unlikely]] {
    return std::nullopt;
  }
  return timestamp;
}

std::optional<Timestamp> CombineCore::apply(Entry* entry, NullableBytes stored, const Input& input,
                                            const Flow& flow) {
  scratch_.clear();
  const Timestamp timestamp = later(*entry, stored, flow);
  const Step step = combine(stored, input, flow, scratch_);
  if (step == Step::kFailed) {
    return std::nullopt;
  }
  // A tombstone has the time of the record that caused it.
  const bool done = step == Step::kDelete ? put(entry, NullableBytes(), flow.record.timestamp)
                                          : put(entry, ByteView(scratch_), timestamp);
  return done ? std::optional(timestamp) : std::nullopt;
}

}  // namespace weir::internal
