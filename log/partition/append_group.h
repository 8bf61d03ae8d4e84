#pragma once

#include "log/partition/partition.h"

#include <memory>
#include <vector>

namespace weir::log {

struct GroupedAppend {
  std::shared_ptr<Partition> partition;  // of one directory; one may come more than once
  SharedBytes batch;
  AppendOptions options;
};

struct GroupAppended {
  std::vector<Partition::Appended> appended;  // of the first of them
  Status failure;                             // why not all were; as Partition::append()
};

// Appends in this order, up to the first that fails. What was appended to `fsync` topics is one
// atomic group of the write-ahead log (DESIGN D8): after a crash all of it is there or nothing. The
// partitions take no other appends meanwhile. Size: the whole group goes out in one write if it
// can, so it should hold small batches (markers, offsets, states of a transaction).
GroupAppended append_group(std::vector<GroupedAppend> group);

}  // namespace weir::log
