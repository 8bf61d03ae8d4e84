#pragma once

#include <weir/runtime/record.h>
#include <weir/runtime/types.h>

#include <string_view>

namespace weir {

// Where the record that a function works on comes from. Topic, partition and offset are those of
// the input record, also behind map and flat_map_values; behind a repartition those of the
// repartition topic. When a cached result leaves its store there is no input record: topic empty,
// partition -1, offset -1.
//
// Ownership: borrows; valid during the call.
struct RecordContext {
  Timestamp timestamp = kNoTimestamp;
  HeadersView headers;
  std::string_view topic;
  PartitionId partition{-1};
  Offset offset = kNoOffset;
  // Highest timestamp that the task took for processing, -1 before the first record.
  Timestamp stream_time = kNoTimestamp;
};

}  // namespace weir
