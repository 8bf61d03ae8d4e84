#pragma once

#include <weir/log/embedded_log.h>
#include <weir/runtime/result.h>

#include <memory>
#include <string>

namespace weir::cli {

// Opens the data directory for a command that only reads: beside a running program too.
Result<std::unique_ptr<log::EmbeddedLog>> open_for_reading(const std::string& data);
// For a command that changes what is there; kLocked names the holder, kNotFound when there is none.
Result<std::unique_ptr<log::EmbeddedLog>> open_existing(const std::string& data);
// For a program that may begin with nothing; kLocked names the holder.
Result<std::unique_ptr<log::EmbeddedLog>> open_for_writing(const std::string& data);

}  // namespace weir::cli
