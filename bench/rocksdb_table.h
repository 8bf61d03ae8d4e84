#pragma once

#include <weir/runtime/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::bench {

// Debian's RocksDB used directly, as Kafka Streams uses its own: a Get and a Put a record, no
// write-ahead log. (Debian builds it with its asserts on: docs and README say what that means.)
class RocksDbTable {
 public:
  static Result<std::unique_ptr<RocksDbTable>> open(const std::string& folder);
  virtual ~RocksDbTable() = default;

  virtual Result<std::optional<std::int64_t>> get(std::string_view key) = 0;
  virtual Status put(std::string_view key, std::int64_t value) = 0;
  virtual Status flush() = 0;
  // Number and sum of all values, in key order.
  struct Totals {
    std::uint64_t keys = 0;
    std::int64_t sum = 0;
  };
  virtual Result<Totals> scan() = 0;
};

}  // namespace weir::bench
