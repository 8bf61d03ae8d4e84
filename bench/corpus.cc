#include "bench/corpus.h"

#include <weir/runtime/rng.h>

#include <fmt/core.h>

#include <algorithm>

namespace weir::bench {
namespace {

// Syllables spell the rank, letters that no syllable has follow: no two ranks share a word.
std::string spell(std::uint32_t rank, Rng& rng) {
  constexpr std::string_view kConsonants = "bcdfghjklmnpqrst";
  constexpr std::string_view kVowels = "aeiou";
  constexpr std::uint32_t kSyllables = kConsonants.size() * kVowels.size();
  std::string word;
  for (std::uint32_t rest = rank + 1; rest != 0; rest /= kSyllables + 1) {
    // Digits of base 81 without a zero digit would leave gaps; digit 0 is the letter v.
    const std::uint32_t digit = rest % (kSyllables + 1);
    if (digit == 0) {
      word += 'v';
      continue;
    }
    word += kConsonants[(digit - 1) / kVowels.size()];
    word += kVowels[(digit - 1) % kVowels.size()];
  }
  for (std::uint64_t more = rng.below(5); more != 0; --more) {
    word += "wxyz"[rng.below(4)];
  }
  return word;
}

// Walker's alias method: a draw is one random number and at most two look-ups.
class Zipf {
 public:
  explicit Zipf(std::uint32_t count) : accept_(count), alias_(count) {
    std::vector<double> weight(count);
    double sum = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      weight[i] = 1.0 / (i + 1.0);
      sum += weight[i];
    }
    std::vector<std::uint32_t> small;
    std::vector<std::uint32_t> large;
    for (std::uint32_t i = 0; i < count; ++i) {
      weight[i] *= count / sum;
      (weight[i] < 1 ? small : large).push_back(i);
    }
    while (!small.empty() && !large.empty()) {
      const std::uint32_t low = small.back();
      small.pop_back();
      const std::uint32_t high = large.back();
      accept_[low] = weight[low];
      alias_[low] = high;
      weight[high] -= 1 - weight[low];
      if (weight[high] < 1) {
        large.pop_back();
        small.push_back(high);
      }
    }
    for (const std::vector<std::uint32_t>* rest : {&small, &large}) {
      for (const std::uint32_t i : *rest) {
        accept_[i] = 1;
      }
    }
  }

  std::uint32_t draw(Rng& rng) const {
    const auto i = static_cast<std::uint32_t>(rng.below(accept_.size()));
    return rng.unit() < accept_[i] ? i : alias_[i];
  }

 private:
  std::vector<double> accept_;
  std::vector<std::uint32_t> alias_;
};

}  // namespace

std::shared_ptr<const Text> make_text(std::uint32_t vocabulary, std::uint64_t words) {
  Rng rng(kSeed);
  auto text = std::make_shared<Text>();
  for (std::uint32_t rank = 0; rank < vocabulary; ++rank) {
    text->vocabulary.push_back(spell(rank, rng));
  }
  const Zipf zipf(vocabulary);
  text->words.reserve(words);
  text->counts.resize(vocabulary);
  for (std::uint64_t i = 0; i < words; ++i) {
    const std::uint32_t rank = zipf.draw(rng);
    text->words.push_back(rank);
    text->distinct += text->counts[rank]++ == 0 ? 1U : 0U;
  }
  return text;
}

std::vector<std::string> Text::lines(std::size_t words_a_line) const {
  std::vector<std::string> lines;
  lines.reserve(words.size() / words_a_line + 1);
  for (std::size_t i = 0; i < words.size(); i += words_a_line) {
    std::string& line = lines.emplace_back();
    for (std::size_t j = i; j < std::min(words.size(), i + words_a_line); ++j) {
      line += j == i ? "" : " ";
      line += word(j);
    }
  }
  return lines;
}

std::vector<std::string> make_keys(std::uint32_t count) {
  std::vector<std::string> keys;
  keys.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    keys.push_back(fmt::format("key-{:012}", i));
  }
  return keys;
}

std::vector<std::uint32_t> make_draws(std::uint32_t below, std::uint64_t count) {
  Rng rng(kSeed);
  std::vector<std::uint32_t> draws(count);
  for (std::uint32_t& draw : draws) {
    draw = static_cast<std::uint32_t>(rng.below(below));
  }
  return draws;
}

}  // namespace weir::bench
