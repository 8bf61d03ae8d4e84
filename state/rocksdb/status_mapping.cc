#include "state/rocksdb/status_mapping.h"

#include <string>

namespace weir::state {
namespace {

constexpr const char* kNoSpaceMark = "no space";

bool is_marked(const rocksdb::Status& status) {
  return status.IsIOError() && status.ToString().find(kNoSpaceMark) != std::string::npos;
}

Errc code_of(const rocksdb::Status& status) {
  if (status.IsNoSpace() || is_marked(status)) {
    return Errc::kNoSpace;
  }
  if (status.IsNotFound() || status.IsPathNotFound()) {
    return Errc::kNotFound;
  }
  if (status.IsCorruption()) {
    return Errc::kCorrupt;
  }
  if (status.IsInvalidArgument()) {
    return Errc::kInvalidArgument;
  }
  if (status.IsNotSupported()) {
    return Errc::kUnsupported;
  }
  if (status.IsBusy() || status.IsTimedOut() || status.IsTryAgain()) {
    return Errc::kTimedOut;
  }
  if (status.IsShutdownInProgress()) {
    return Errc::kClosed;
  }
  return status.IsIOError() ? Errc::kIo : Errc::kInternal;
}

}  // namespace

Error to_error(const rocksdb::Status& status, std::string_view doing) {
  return Error(code_of(status), status.ToString()).with_context(doing);
}

Status to_status(const rocksdb::Status& status, std::string_view doing) {
  if (status.ok()) {
    return {};
  }
  return to_error(status, doing);
}

rocksdb::IOStatus to_io_status(const Error& error) {
  switch (error.code()) {
    case Errc::kNotFound:
      return rocksdb::IOStatus::PathNotFound(error.message());
    case Errc::kNoSpace: {
      // Under its own name RocksDB would start a thread that looks for free space every five
      // seconds and refuses Resume() meanwhile. Retriable errors leave that to us.
      rocksdb::IOStatus full = rocksdb::IOStatus::IOError(kNoSpaceMark, error.message());
      full.SetRetryable(true);
      return full;
    }
    case Errc::kCorrupt:
      return rocksdb::IOStatus::Corruption(error.message());
    case Errc::kUnsupported:
      return rocksdb::IOStatus::NotSupported(error.message());
    default:
      return rocksdb::IOStatus::IOError(error.message());
  }
}

rocksdb::IOStatus to_io_status(const Status& status) {
  return status.ok() ? rocksdb::IOStatus::OK() : to_io_status(status.error());
}

}  // namespace weir::state
