#pragma once

#include "log/record/batch_header.h"

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>
#include <weir/runtime/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weir::log {

// An entry of a .txnindex file (org.apache.kafka.storage.internals.log.AbortedTxn), 34 bytes:
//
//   i16 version = 0 | i64 producerId | i64 firstOffset | i64 lastOffset | i64 lastStableOffset
struct AbortedTransaction {
  static constexpr std::size_t kBytes = 34;
  std::int16_t version = 0;
  ProducerId producer_id;
  Offset first_offset;
  Offset last_offset;         // of the ABORT marker
  Offset last_stable_offset;  // as it was behind the marker
  friend bool operator==(const AbortedTransaction&, const AbortedTransaction&) = default;

  // Whether the batch is a part of it.
  bool covers(const BatchHeader& batch) const {
    return batch.is_transactional() && !batch.is_control() && batch.producer_id == producer_id &&
           first_offset <= batch.base_offset && batch.base_offset <= last_offset;
  }
};

// In the order of their markers, as a file has them.
using AbortedTransactions = std::vector<AbortedTransaction>;

// Requires: kBytes at `in`, at `out`.
AbortedTransaction read_aborted_transaction(const char* in);
void write_aborted_transaction(char* out, const AbortedTransaction& aborted);

std::string encode_transaction_index(const AbortedTransactions& entries);
// The entries of a whole file, without the zeroes behind them. Errors: kCorrupt when one is broken
// off, the markers do not rise, or one lies outside [base, end); kUnsupported (a later version).
Result<AbortedTransactions> parse_transaction_index(ByteView file, Offset base, Offset end);

// Adds those of `entries` that overlap [from, to). True when no later entry, in this segment or
// behind it, can (TransactionIndex.collectAbortedTxns).
bool collect_aborted(const AbortedTransactions& entries, Offset from, Offset to,
                     AbortedTransactions& out);

}  // namespace weir::log
