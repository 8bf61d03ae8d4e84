#include "tests/fuzz/batch_decoder_fuzz.h"

#include "tests/log/record/fixtures.h"

#include <filesystem>
#include <random>

namespace weir::log {
namespace {

// Every edge batch and every batch of the codecs' folders that is at most `bytes_max` long.
std::vector<std::string> corpus(std::size_t bytes_max) {
  std::vector<std::string> batches;
  const nlohmann::json edge = testing::read_json("edge-batches/edge.json");
  for (const auto& batch : edge["batches"]) {
    batches.push_back(testing::from_hex(batch["bytes"].get<std::string>()));
  }
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(testing::data_path("codecs"))) {
    if (entry.path().extension() != ".log") {
      continue;
    }
    const std::string bytes = testing::read_file(entry.path().string());
    const auto found = testing::split_batches(bytes);
    EXPECT_TRUE(found.ok());
    for (const ByteView batch : *found) {
      batches.emplace_back(batch);
    }
  }
  std::erase_if(batches, [&](const std::string& batch) { return batch.size() > bytes_max; });
  return batches;
}

// One to four changes: a bit, a byte, a border value, a cut, a doubled or a removed part.
std::string mutate(std::string bytes, std::mt19937_64& random) {
  const auto below = [&](std::size_t bound) { return bound == 0 ? 0 : random() % bound; };
  for (std::size_t left = 1 + below(4); left > 0 && !bytes.empty(); --left) {
    const std::size_t at = below(bytes.size());
    const std::size_t size = below(std::min<std::size_t>(bytes.size() - at, 16) + 1);
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes.replace(at, size, size, below(2) == 0 ? '\xff' : '\x80');
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.insert(at, bytes.substr(at, size));
        break;
      default:
        bytes.erase(at, size);
    }
  }
  return bytes;
}

TEST(BatchDecoderFuzz, HoldsOnEveryFixture) {
  const std::vector<std::string> batches = corpus(SIZE_MAX);
  ASSERT_GT(batches.size(), 250U);
  for (const std::string& batch : batches) {
    fuzz::check_batch_bytes(batch);
  }
}

TEST(BatchDecoderFuzz, HoldsOn20000RandomMutations) {
  const auto seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937_64 random(seed);
  const std::vector<std::string> batches = corpus(4096);
  for (int i = 0; i < 20000; ++i) {
    fuzz::check_batch_bytes(mutate(batches[random() % batches.size()], random));
  }
}

}  // namespace
}  // namespace weir::log
