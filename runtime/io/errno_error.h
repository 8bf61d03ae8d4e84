#pragma once

#include <weir/runtime/result.h>

#include <string>
#include <string_view>

namespace weir::internal {

// "open /x/y: Permission denied (errno 13); check the owner and ..." with the code that callers
// react to: ENOENT kNotFound, EEXIST kExists, ENOSPC and EDQUOT kNoSpace, all others kIo.
Error errno_error(std::string_view action, std::string_view path, int error_number);

// A write through a handle that was opened with OpenMode::kRead.
Error read_only_error(std::string_view action, std::string_view path);

// A lock that `holder` has; `holder` may be empty when it has not written its text yet.
Error locked_error(std::string_view path, std::string_view holder);

// A read-only mapping of a file that is too short.
Error short_mapping_error(std::string_view path, std::size_t size, std::size_t wanted);

}  // namespace weir::internal
