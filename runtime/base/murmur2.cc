#include <weir/runtime/murmur2.h>

namespace weir {

namespace {

std::uint32_t byte_at(const char* bytes, std::size_t index) {
  return static_cast<unsigned char>(bytes[index]);
}

// Little-endian on every machine.
std::uint32_t word_at(const char* bytes) {
  return byte_at(bytes, 0) | byte_at(bytes, 1) << 8U | byte_at(bytes, 2) << 16U |
         byte_at(bytes, 3) << 24U;
}

}  // namespace

std::int32_t murmur2(ByteView bytes) {
  constexpr std::uint32_t kSeed = 0x9747b28cU;
  constexpr std::uint32_t kMultiplier = 0x5bd1e995U;
  std::uint32_t hash = kSeed ^ static_cast<std::uint32_t>(bytes.size());
  const char* in = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 4; left -= 4, in += 4) {
    std::uint32_t word = word_at(in);
    word *= kMultiplier;
    word ^= word >> 24U;
    word *= kMultiplier;
    hash *= kMultiplier;
    hash ^= word;
  }
  if (left == 3) {
    hash ^= byte_at(in, 2) << 16U;
  }
  if (left >= 2) {
    hash ^= byte_at(in, 1) << 8U;
  }
  if (left >= 1) {
    hash ^= byte_at(in, 0);
    hash *= kMultiplier;
  }
  hash ^= hash >> 13U;
  hash *= kMultiplier;
  hash ^= hash >> 15U;
  return static_cast<std::int32_t>(hash);
}

PartitionId partition_for_key(ByteView key, std::int32_t partitions) {
  WEIR_ASSERT(partitions > 0);
  return PartitionId((murmur2(key) & 0x7fffffff) % partitions);
}

}  // namespace weir
