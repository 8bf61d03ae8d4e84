#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

// Runs a fuzzer without libFuzzer: on every file of the folders given, as it is and damaged in
// random ways. So each fuzzer is compiled and run by every test run, under every sanitizer.
//
// Usage: x_fuzz_replay FOLDER...      WEIR_TEST_SEED repeats a run.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kInputBytesMax = 64U << 10U;
constexpr int kMutationsPerFile = 200;

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::uint64_t seed() {
  if (const char* given = std::getenv("WEIR_TEST_SEED"); given != nullptr) {
    return std::strtoull(given, nullptr, 10);
  }
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

// One to eight changes: a byte, a cut, a piece doubled.
std::string damage(std::string input, std::mt19937_64& random) {
  const std::uint64_t changes = 1 + random() % 8;
  for (std::uint64_t i = 0; i < changes && !input.empty(); ++i) {
    const std::size_t at = random() % input.size();
    switch (random() % 4) {
      case 0:
        input[at] = static_cast<char>(random());
        break;
      case 1:
        input[at] = static_cast<char>(input[at] ^ (1 << (random() % 8)));
        break;
      case 2:
        input.erase(at, 1 + random() % 16);
        break;
      default:
        input.insert(at, input.substr(random() % input.size(), random() % 32));
        break;
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t first_seed = seed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(first_seed));
  std::fflush(stdout);
  std::mt19937_64 random(first_seed);
  int files = 0;
  run("");
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) {
        continue;
      }
      std::ifstream file(entry.path(), std::ios::binary);
      std::string input(std::istreambuf_iterator<char>(file), {});
      input.resize(std::min(input.size(), kInputBytesMax));
      run(input);
      for (int round = 0; round < kMutationsPerFile; ++round) {
        run(damage(input, random));
      }
      ++files;
    }
  }
  std::printf("%d files, each whole and damaged %d times\n", files, kMutationsPerFile);
  return files > 0 ? 0 : 1;
}
