#pragma once

#include "log/dump/dump_output.h"
#include "log/dump/dump_target.h"

#include <weir/log/log_dump.h>

namespace weir::log {

// Text as dump_log() promises it: file after file, batch after batch.
// Errors: kIo for a .log file.
Status dump_as_text(FileSystem& files, const DumpTarget& target, const DumpOptions& options,
                    DumpOutput& out);

}  // namespace weir::log
