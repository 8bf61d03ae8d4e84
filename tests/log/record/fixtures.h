#pragma once

#include "log/record/batch_decoder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

// Files of tests/data/log and bytes written as hex, for the tests of log/record.

namespace weir::log::testing {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::string data_path(const std::string& name) {
  return std::string(WEIR_TEST_DATA "/log/") + name;
}

inline nlohmann::json read_json(const std::string& name) {
  return nlohmann::json::parse(read_file(data_path(name)));
}

inline std::string from_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  }
  return bytes;
}

inline std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    hex.push_back("0123456789abcdef"[value >> 4U]);
    hex.push_back("0123456789abcdef"[value & 15U]);
  }
  return hex;
}

struct Decoded {
  BatchHeader header;
  RecordViews records;
  SharedBytes decompressed;
};

// verify_batch and decode_records: what a reader does with one whole batch.
inline Result<Decoded> verify_and_decode(ByteView batch) {
  Decoded decoded;
  WEIR_TRY_ASSIGN(decoded.header, verify_batch(batch));
  WEIR_TRY(
      decode_records(decoded.header, batch, DecodeLimits(), decoded.records, decoded.decompressed));
  return decoded;
}

// Whole batches at the front of `bytes`; a rest that is not there yet ends the list.
// Errors: those of read_batch_header.
inline Result<std::vector<ByteView>> split_batches(ByteView bytes) {
  std::vector<ByteView> batches;
  while (bytes.size() >= kBatchHeaderBytes) {
    WEIR_TRY_ASSIGN(const BatchHeader header, read_batch_header(bytes, SIZE_MAX));
    if (header.size_bytes() > bytes.size()) {
      break;
    }
    batches.push_back(bytes.substr(0, header.size_bytes()));
    bytes.remove_prefix(header.size_bytes());
  }
  return batches;
}

}  // namespace weir::log::testing
