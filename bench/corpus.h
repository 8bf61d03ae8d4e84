#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// The inputs, from fixed seeds: the same bytes in every run on every machine.

namespace weir::bench {

inline constexpr std::uint64_t kSeed = 20'260'101;

// A text of words drawn from a vocabulary by Zipf's law with exponent 1: the word of rank r comes
// 1/r as often as the first. Words are 2 to 12 lower-case letters, frequent ones shorter (5.7 bytes
// on average over a text with 20,000, 6.3 with 1,000,000).
struct Text {
  std::vector<std::string> vocabulary;  // by rank
  std::vector<std::uint32_t> words;     // ranks
  std::vector<std::uint64_t> counts;    // by rank: the oracle
  std::uint64_t distinct = 0;           // words that occur

  std::string_view word(std::size_t i) const { return vocabulary[words[i]]; }
  std::vector<std::string> lines(std::size_t words_a_line) const;
};
std::shared_ptr<const Text> make_text(std::uint32_t vocabulary, std::uint64_t words);

// Keys of 16 bytes, "key-000000000042"; uniform draws from them.
std::vector<std::string> make_keys(std::uint32_t count);
std::vector<std::uint32_t> make_draws(std::uint32_t below, std::uint64_t count);

}  // namespace weir::bench
