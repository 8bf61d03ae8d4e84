#pragma once

#include <weir/runtime/result.h>

#include <rocksdb/io_status.h>
#include <rocksdb/status.h>

#include <string_view>

namespace weir::state {

// RocksDB's answer as ours; `doing` names the call and its object.
Status to_status(const rocksdb::Status& status, std::string_view doing);
Error to_error(const rocksdb::Status& status, std::string_view doing);
// Ours as RocksDB's, for the file system adapter.
rocksdb::IOStatus to_io_status(const Error& error);
rocksdb::IOStatus to_io_status(const Status& status);

}  // namespace weir::state
