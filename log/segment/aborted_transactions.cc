#include "log/segment/aborted_transactions.h"

#include <weir/runtime/endian.h>

#include <fmt/format.h>

namespace weir::log {

AbortedTransaction read_aborted_transaction(const char* in) {
  AbortedTransaction aborted;
  aborted.version = load_be<std::int16_t>(in);
  aborted.producer_id = ProducerId(load_be<std::int64_t>(in + 2));
  aborted.first_offset = Offset(load_be<std::int64_t>(in + 10));
  aborted.last_offset = Offset(load_be<std::int64_t>(in + 18));
  aborted.last_stable_offset = Offset(load_be<std::int64_t>(in + 26));
  return aborted;
}

void write_aborted_transaction(char* out, const AbortedTransaction& aborted) {
  store_be(out, aborted.version);
  store_be(out + 2, aborted.producer_id.value());
  store_be(out + 10, aborted.first_offset.value());
  store_be(out + 18, aborted.last_offset.value());
  store_be(out + 26, aborted.last_stable_offset.value());
}

std::string encode_transaction_index(const AbortedTransactions& entries) {
  std::string bytes(entries.size() * AbortedTransaction::kBytes, '\0');
  char* out = bytes.data();
  for (const AbortedTransaction& entry : entries) {
    write_aborted_transaction(out, entry);
    out += AbortedTransaction::kBytes;
  }
  return bytes;
}

Result<AbortedTransactions> parse_transaction_index(ByteView file, Offset base, Offset end) {
  const std::size_t used = file.find_last_not_of('\0');
  const std::size_t whole = file.size() / AbortedTransaction::kBytes;
  const std::size_t count =
      used == ByteView::npos ? 0 : used / AbortedTransaction::kBytes + std::size_t{1};
  if (count > whole) {
    return Error(Errc::kCorrupt, fmt::format("{} bytes end inside an entry of {}", file.size(),
                                             AbortedTransaction::kBytes));
  }
  AbortedTransactions entries;
  entries.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const AbortedTransaction entry =
        read_aborted_transaction(file.data() + i * AbortedTransaction::kBytes);
    if (entry.version != 0) {
      return Error(Errc::kUnsupported,
                   fmt::format("entry {} has version {}, known is 0", i, entry.version));
    }
    const bool rises = entries.empty() || entries.back().last_offset < entry.last_offset;
    if (!rises || entry.first_offset < Offset(0) || entry.first_offset > entry.last_offset ||
        entry.last_offset < base || entry.last_offset >= end) {
      return Error(Errc::kCorrupt,
                   fmt::format("entry {} (producer {}, offsets {} to {}) is none of this segment",
                               i, entry.producer_id.value(), entry.first_offset.value(),
                               entry.last_offset.value()));
    }
    entries.push_back(entry);
  }
  return entries;
}

bool collect_aborted(const AbortedTransactions& entries, Offset from, Offset to,
                     AbortedTransactions& out) {
  for (const AbortedTransaction& entry : entries) {
    if (entry.last_offset >= from && entry.first_offset < to) {
      out.push_back(entry);
    }
    if (entry.last_stable_offset >= to) {
      return true;
    }
  }
  return false;
}

}  // namespace weir::log
