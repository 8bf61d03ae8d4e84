#pragma once

#include <weir/runtime/bytes.h>

#include <string>
#include <string_view>

namespace weir::state {

// docs/formats/store.md: the position lies before all user keys.
inline constexpr std::string_view kPositionKey{"\x00", 1};
inline constexpr char kUserPrefix = 0x01;

inline std::string stored_key(ByteView user_key) {
  std::string key;
  key.reserve(user_key.size() + 1);
  key.push_back(kUserPrefix);
  key += user_key;
  return key;
}

}  // namespace weir::state
