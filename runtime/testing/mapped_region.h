#pragma once

#include <weir/runtime/result.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace weir::testing::internal {

// The memory that all mappings of one simulated file share. Backed by an anonymous file of the
// kernel, so that a longer mapping made later sees the same bytes and older ones keep their
// address.
// Threading: confined to its owner; the bytes are shared with whoever maps them.
class MappedRegion {
 public:
  // Errors: kIo names `path` and errno's text.
  static Result<std::unique_ptr<MappedRegion>> create(const std::string& path);
  MappedRegion(const MappedRegion&) = delete;
  MappedRegion& operator=(const MappedRegion&) = delete;
  ~MappedRegion();

  // Makes bytes() at least `size` long; new bytes are zeros.
  Status grow(const std::string& path, std::size_t size);
  std::span<char> bytes() { return {base_, size_}; }
  // One more view of the first `size` bytes, that outlives the region; the caller unmaps it.
  // Requires: size <= bytes().size().
  Result<char*> map(const std::string& path, std::size_t size) const;
  static void unmap(char* data, std::size_t size);

 private:
  explicit MappedRegion(int fd) : fd_(fd) {}

  const int fd_;
  char* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weir::testing::internal
