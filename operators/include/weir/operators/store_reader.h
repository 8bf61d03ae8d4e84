#pragma once

#include <weir/runtime/backend.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/result.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir {

// Reads a store of an application from outside, beside a running owner too: the last whole
// checkpoint of each partition plus the changelog's tail up to the high watermark as of open().
//
// Threading: confined to one thread at a time.
// Cost:      open() is cheap; get() and scan() read the tail of the changelog once and keep its
//            latest values in memory.
class StoreReader {
 public:
  struct Options {
    std::string state_dir;  // as AppOptions::state_dir
    std::string application_id;
    std::string store;
  };
  // `log` and `files` outlive the reader.
  // Errors: kNotFound (no such application or store; names those that there are), kCorrupt, kIo.
  static Result<std::unique_ptr<StoreReader>> open(Backend& log, FileSystem& files,
                                                   const Options& options);
  ~StoreReader();

  // Names of the serdes that the application recorded ("string", "long").
  const std::string& key_serde() const;
  const std::string& value_serde() const;

  struct Row {
    std::string key;
    std::string value;
    Timestamp timestamp = kNoTimestamp;
  };
  Result<std::optional<Row>> get(ByteView key);
  // [from, to) in order of the key's bytes, all partitions merged; `row` returns false to stop.
  Status scan(ByteView from, std::optional<ByteView> to,
              const std::function<bool(const Row&)>& row);

 private:
  class Impl;
  explicit StoreReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir
