#pragma once

#include <cstdint>

namespace weir::log {

// Who appends (org.apache.kafka.storage.internals.log.AppendOrigin): only the log itself writes
// control batches. What BatchBuilder of this process encoded (kBuilder, kCoordinator) is not read
// again: no CRC, no walk over its records.
enum class AppendOrigin { kClient, kBuilder, kCoordinator };

struct AppendOptions {
  AppendOrigin origin = AppendOrigin::kClient;
  // What start_verification() gave; 0: none. Only a client's first batch of a transaction needs it.
  std::uint64_t verification = 0;
  // Of the transaction that a marker ends. From 2 on the marker has a later epoch than its records.
  std::int16_t transaction_version = 0;

  AppendOptions() = default;
  AppendOptions(AppendOrigin who) : origin(who) {}  // NOLINT(google-explicit-constructor)
};

}  // namespace weir::log
