#include <weir/operators/internal/processor_host.h>

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace weir::internal {

ProcessorCore::ProcessorCore(const NodeSlot& slot, Wiring& wiring)
    : site_{wiring.task(), slot.name},
      host_(wiring.processor_host()),
      child_names_(slot.child_names) {
  for (const std::string& name : slot.stores) {
    stores_.push_back({name, wiring.store_types(name), &wiring.store(name).store()});
  }
}

std::uint64_t ProcessorCore::schedule(PunctuationType type, Duration interval,
                                      std::optional<Timestamp> start,
                                      std::function<void(Timestamp)> function) {
  const std::int64_t interval_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(interval).count();
  if (interval_ms < 1) {
    fail(
        Error(Errc::kInvalidArgument,
              fmt::format("operator '{}' schedules a punctuator every {} ns; the shortest interval "
                          "is 1 ms",
                          site_.name, interval.count())));
    return 0;
  }
  return host_.schedule(type, interval_ms, start,
                        [this, function = std::move(function)](Timestamp time) {
                          // No input record: topic empty, partition and offset -1 (PUN-3).
                          Flow flow;
                          flow.record.timestamp = time;
                          flow.record.stream_time = host_.stream_time();
                          run(flow, [&] { function(time); });
                        });
}

state::KeyValueStore* ProcessorCore::find_store(std::string_view name, const StoreTypes& types) {
  const auto found = std::find_if(stores_.begin(), stores_.end(),
                                  [&](const Store& store) { return store.name == name; });
  if (found == stores_.end()) {
    fail(Error(Errc::kInvalidArgument,
               fmt::format("operator '{}' asks for store '{}', which was not given to process()",
                           site_.name, name)));
    return nullptr;
  }
  if (found->types.key.id != types.key.id || found->types.value.id != types.value.id) {
    fail(Error(Errc::kInvalidArgument,
               fmt::format("operator '{}' asks for store '{}' as <{}, {}>; it is <{}, {}>",
                           site_.name, name, types.key.serde, types.value.serde,
                           found->types.key.serde, found->types.value.serde)));
    return nullptr;
  }
  return found->store;
}

std::optional<std::size_t> ProcessorCore::find_child(std::string_view name) {
  const auto found = std::find(child_names_.begin(), child_names_.end(), name);
  if (found == child_names_.end()) {
    fail(Error(
        Errc::kInvalidArgument,
        fmt::format("operator '{}' forwards to '{}', which is not behind it; behind it are: {}",
                    site_.name, name, fmt::join(child_names_, ", "))));
    return std::nullopt;
  }
  return static_cast<std::size_t>(found - child_names_.begin());
}

}  // namespace weir::internal
