#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing {

// The rows of tests/data/vectors/`name`, split at spaces. The test fails when there are none.
inline std::vector<std::vector<std::string>> read_vectors(const std::string& name) {
  std::ifstream file(std::string(WEIR_TEST_DATA) + "/vectors/" + name);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string field; fields >> field;) {
      row.push_back(field);
    }
  }
  EXPECT_FALSE(rows.empty()) << "no vectors in " << name;
  return rows;
}

// "-" is no bytes.
inline std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; hex != "-" && i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

}  // namespace weir::testing
