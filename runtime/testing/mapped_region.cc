#include "runtime/testing/mapped_region.h"

#include "runtime/io/errno_error.h"

#include <weir/runtime/assert.h>

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

namespace weir::testing::internal {

Result<std::unique_ptr<MappedRegion>> MappedRegion::create(const std::string& path) {
  const int fd = ::memfd_create("weir-memory-file", MFD_CLOEXEC);
  if (fd < 0) {
    return weir::internal::errno_error("map", path, errno);
  }
  return std::unique_ptr<MappedRegion>(new MappedRegion(fd));
}

MappedRegion::~MappedRegion() {
  if (base_ != nullptr) {
    unmap(base_, size_);
  }
  ::close(fd_);
}

Status MappedRegion::grow(const std::string& path, std::size_t size) {
  if (size <= size_) {
    return {};
  }
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) {
    return weir::internal::errno_error("map", path, errno);
  }
  void* fresh = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (fresh == MAP_FAILED) {
    return weir::internal::errno_error("map", path, errno);
  }
  if (base_ != nullptr) {
    unmap(base_, size_);
  }
  base_ = static_cast<char*>(fresh);
  size_ = size;
  return {};
}

Result<char*> MappedRegion::map(const std::string& path, std::size_t size) const {
  WEIR_ASSERT(size <= size_);
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (data == MAP_FAILED) {
    return weir::internal::errno_error("map", path, errno);
  }
  return static_cast<char*>(data);
}

void MappedRegion::unmap(char* data, std::size_t size) {
  ::munmap(data, size);
}

}  // namespace weir::testing::internal
