#include "runtime/io/errno_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace weir::internal {
namespace {

Errc code_of(int error_number) {
  switch (error_number) {
    case ENOENT:
      return Errc::kNotFound;
    case EEXIST:
      return Errc::kExists;
    case ENOSPC:
    case EDQUOT:
      return Errc::kNoSpace;
    case EMFILE:
    case ENFILE:
      return Errc::kExhausted;
    default:
      return Errc::kIo;
  }
}

std::string_view next_step(int error_number) {
  switch (error_number) {
    case ENOENT:
      return "create it or correct the path";
    case EEXIST:
      return "remove it or choose another name";
    case ENOTDIR:
    case EISDIR:
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
      return "correct the path";
    case ENOTEMPTY:
      return "remove what is in it first";
    case EACCES:
    case EPERM:
      return "check the owner and the mode of it and of its folders";
    case EROFS:
      return "mount the file system writable or choose another one";
    case ENOSPC:
      return "free space on the disk or shorten the retention";
    case EDQUOT:
      return "free space or raise the quota";
    case EFBIG:
      return "use smaller files or raise the file size limit (ulimit -f)";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    case ENOMEM:
      return "free memory or raise the limit of mappings (vm.max_map_count)";
    case EIO:
      return "unknown bytes may be lost, check the disk and the kernel's log";
    default:
      return "check the path, the disk and the kernel's log";
  }
}

}  // namespace

Error errno_error(std::string_view action, std::string_view path, int error_number) {
  return {code_of(error_number), fmt::format("{} {}: {} (errno {}); {}", action, path,
                                             std::generic_category().message(error_number),
                                             error_number, next_step(error_number))};
}

Error read_only_error(std::string_view action, std::string_view path) {
  return {Errc::kReadOnly,
          fmt::format("{} {}: the file was opened for reading; open it for writing", action, path)};
}

Error locked_error(std::string_view path, std::string_view holder) {
  return {Errc::kLocked,
          fmt::format("lock {}: held by '{}'; stop that process or use another folder", path,
                      holder.empty() ? "a process that has not written its name yet" : holder)};
}

Error short_mapping_error(std::string_view path, std::size_t size, std::size_t wanted) {
  return {Errc::kCorrupt,
          fmt::format("map {}: the file has {} bytes, {} are needed; its writer has not finished "
                      "it or it is damaged, restart the writer",
                      path, size, wanted)};
}

}  // namespace weir::internal
