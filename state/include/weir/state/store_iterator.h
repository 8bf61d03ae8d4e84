#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

namespace weir::state {

// Which values a read sees.
enum class ReadView {
  kCommitted,  // as of the last promote(); what queries see
  kOpenScope,  // through the commit scope; what the task itself sees
};

// Keys of one store in byte order, each once.
//
// The iterator holds no lock and blocks neither writes, promotes, checkpoints nor eviction. It is
// weakly consistent: a key that is there during the whole scan is seen with a value that it had at
// some moment of the scan; keys that come or go meanwhile may be seen or not.
//
// Threading: confined to the store's thread. Ownership: must not outlive its store.
class StoreIterator {
 public:
  virtual ~StoreIterator() = default;
  virtual bool valid() const = 0;  // false at the end or after an error
  // Valid until next().
  virtual ByteView key() const = 0;
  virtual ByteView value() const = 0;
  virtual Timestamp timestamp() const = 0;
  virtual void next() = 0;
  virtual Status status() const = 0;
};

}  // namespace weir::state
