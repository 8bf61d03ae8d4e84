#pragma once

#include "log/dump/dump_output.h"
#include "log/dump/dump_target.h"

#include <weir/log/log_dump.h>

namespace weir::log {

// The one object that dump_log() promises. Written as it is found: a list that stands later in the
// object costs another walk over the segments, and no memory.
// Errors: kIo for a .log file.
Status dump_as_json(FileSystem& files, const DumpTarget& target, const DumpOptions& options,
                    DumpOutput& out);

}  // namespace weir::log
