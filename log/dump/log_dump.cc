#include "log/dump/dump_output.h"
#include "log/dump/dump_target.h"
#include "log/dump/json_dump.h"
#include "log/dump/text_dump.h"

#include <weir/log/log_dump.h>

namespace weir::log {

Status dump_log(FileSystem& files, const std::string& path, const DumpOptions& options,
                const std::function<void(std::string_view)>& write) {
  WEIR_TRY_ASSIGN(const DumpTarget target, find_dump_target(files, path));
  DumpOutput out(write);
  Status status = options.json ? dump_as_json(files, target, options, out)
                               : dump_as_text(files, target, options, out);
  out.flush();
  return status;
}

}  // namespace weir::log
