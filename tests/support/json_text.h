#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace nlohmann {

// EXPECT_EQ(text, json["name"]): clang takes none of the library's operators for it.
inline bool operator==(const std::string& text, const json& value) {
  return value.is_string() && value.get_ref<const std::string&>() == text;
}

}  // namespace nlohmann
