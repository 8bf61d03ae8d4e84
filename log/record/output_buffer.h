#pragma once

#include <weir/runtime/bytes.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir::log {

// Where a codec writes: grows by doubling, never above `bytes_max`.
//
// Threading: confined to its owner.
class OutputBuffer {
 public:
  OutputBuffer(std::size_t bytes_expected, std::size_t bytes_max) : bytes_max_(bytes_max) {
    bytes_ = SharedBytes::allocate(std::min(std::max(bytes_expected, kBytesMin), bytes_max));
    capacity_ = std::min(bytes_.capacity(), bytes_max);
  }

  // Makes room for `more` bytes behind the used ones; false when that is above the limit.
  bool ensure(std::size_t more) {
    if (more <= left()) {
      return true;
    }
    if (more > bytes_max_ - used_) {
      return false;
    }
    SharedBytes larger =
        SharedBytes::allocate(std::min(std::max(used_ + more, 2 * capacity_), bytes_max_));
    std::memcpy(larger.data(), bytes_.data(), used_);
    bytes_ = std::move(larger);
    capacity_ = std::min(bytes_.capacity(), bytes_max_);
    return true;
  }

  char* end() { return bytes_.data() + used_; }
  std::size_t used() const { return used_; }
  std::size_t left() const { return capacity_ - used_; }
  // What ensure() can give at most.
  std::size_t left_max() const { return bytes_max_ - used_; }
  // Requires: count <= left().
  void advance(std::size_t count) { used_ += count; }

  SharedBytes take() {
    bytes_.resize(used_);
    return std::move(bytes_);
  }

 private:
  static constexpr std::size_t kBytesMin = 4000;

  SharedBytes bytes_;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  std::size_t bytes_max_;
};

}  // namespace weir::log
