#pragma once

#include <weir/runtime/bytes.h>

#include <cstdint>

namespace weir {

// 64-bit hash of a session id: routes to workers and to dead-letter partitions, and stands for the
// session in a commit's lane map. The same on every machine and in every version, since it is
// stored. Never used instead of comparing the bytes (session-workers D5).
std::uint64_t session_hash(ByteView session);

}  // namespace weir
