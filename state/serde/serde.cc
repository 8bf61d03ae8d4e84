#include <weir/state/aggregate_serde.h>
#include <weir/state/serde.h>

#include <fmt/core.h>

#include <algorithm>

namespace weir::internal {

Error wrong_size(std::string_view type, std::size_t expected, std::size_t actual) {
  return Error(Errc::kCorrupt,
               fmt::format("serde {} takes {} bytes but these are {}; was the topic "
                           "or store written with another type?",
                           type, expected, actual));
}

Error unexpected_null(std::string_view type) {
  return Error(Errc::kCorrupt,
               fmt::format("serde {} cannot read null; use std::optional for values that may be "
                           "absent",
                           type));
}

void write_length(std::size_t length, std::string& out) {
  char bytes[10];
  const char* end = write_uvarint(bytes, length);
  out.append(bytes, static_cast<std::size_t>(end - bytes));
}

bool MemberReader::fixed(char* out, std::size_t size) {
  if (rest.size() < size) {
    return false;
  }
  std::copy_n(rest.data(), size, out);
  rest.remove_prefix(size);
  return true;
}

bool MemberReader::length(std::size_t& out) {
  std::uint64_t value = 0;
  const char* end = read_uvarint64(rest.data(), rest.data() + rest.size(), &value);
  if (end == nullptr) {
    return false;
  }
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  // An element takes at least one byte: no aggregate is empty.
  if (value > rest.size()) {
    return false;
  }
  out = static_cast<std::size_t>(value);
  return true;
}

bool MemberReader::bytes(ByteView& out) {
  std::size_t size = 0;
  if (!length(size)) {
    return false;
  }
  out = rest.substr(0, size);
  rest.remove_prefix(size);
  return true;
}

Error damaged_aggregate(ByteView bytes) {
  if (!bytes.empty() && bytes.front() != 1) {
    return Error(Errc::kCorrupt,
                 fmt::format("aggregate has format byte {}, this serde reads 1; was it written by "
                             "another serde or a newer program?",
                             static_cast<unsigned>(static_cast<unsigned char>(bytes.front()))));
  }
  return Error(Errc::kCorrupt,
               fmt::format("aggregate of {} bytes does not fit the type's members; were members "
                           "added, removed or reordered?",
                           bytes.size()));
}

}  // namespace weir::internal
