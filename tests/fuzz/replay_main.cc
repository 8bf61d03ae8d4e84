#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <random>
#include <string>

// Runs a fuzzer without libFuzzer: on every file of the folders given, as it is and damaged in
// random ways; half of these get a random byte in front, since that is where fuzzers of several
// formats choose one. So each fuzzer is compiled and run by every test run, under every sanitizer.
// An allocation beyond the fuzzer's bound ends the run.
//
// Usage: x_fuzz_replay ROUNDS FOLDER...      WEIR_TEST_SEED repeats a run. ROUNDS: damaged copies
// of each file.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kInputBytesMax = 64U << 10U;

std::atomic<std::size_t> allocation_max{SIZE_MAX};

void run(const std::string& input) {
  allocation_max = weir::fuzz::allocation_max(input.size());
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  allocation_max = SIZE_MAX;
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (size > allocation_max) {
    std::fprintf(stderr, "an allocation of %zu bytes, the bound for this input is %zu\n", size,
                 allocation_max.load());
    std::abort();
  }
  void* const memory =
      alignment == 0
          ? std::malloc(std::max<std::size_t>(size, 1))
          : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
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

void* operator new(std::size_t size) {
  return allocate(size, 0);
}
void* operator new[](std::size_t size) {
  return allocate(size, 0);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}

int main(int argc, char** argv) {
  const std::uint64_t first_seed = seed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(first_seed));
  std::fflush(stdout);
  std::mt19937_64 random(first_seed);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 0;
  int files = 0;
  run("");
  for (int i = 2; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) {
        continue;
      }
      std::ifstream file(entry.path(), std::ios::binary);
      std::string input(std::istreambuf_iterator<char>(file), {});
      input.resize(std::min(input.size(), kInputBytesMax));
      run(input);
      for (int round = 0; round < rounds; ++round) {
        const std::string front(round % 2 == 0 ? 0 : 1, static_cast<char>(random()));
        run(front + damage(input, random));
      }
      ++files;
    }
  }
  std::printf("%d files, each whole and damaged %d times\n", files, rounds);
  return files > 0 && rounds > 0 ? 0 : 1;
}
