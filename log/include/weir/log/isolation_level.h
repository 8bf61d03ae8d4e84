#pragma once

namespace weir::log {

// isolation.level of Kafka.
enum class IsolationLevel {
  kReadUncommitted,  // every record
  kReadCommitted,    // no record of an aborted or unfinished transaction
};

}  // namespace weir::log
