#include "runtime/base/buffer_pool.h"
#include "tests/support/sanitizer.h"

#include <weir/runtime/bytes.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace weir {
namespace {

constexpr std::size_t kPageBytes = 4096;

std::uintptr_t address_of(const SharedBytes& bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data());
}

std::vector<SharedBytes> allocate_many(std::size_t count, std::size_t capacity) {
  std::vector<SharedBytes> blocks;
  for (std::size_t i = 0; i < count; ++i) {
    blocks.push_back(SharedBytes::allocate(capacity));
  }
  return blocks;
}

TEST(NullableBytes, TellsNullFromEmpty) {
  EXPECT_TRUE(NullableBytes().is_null());
  EXPECT_FALSE(NullableBytes(ByteView()).is_null());
  EXPECT_FALSE(NullableBytes() == NullableBytes(""));
  EXPECT_EQ(NullableBytes().to_owned(), std::nullopt);
  EXPECT_EQ(NullableBytes("").to_owned(), std::optional<std::string>(""));
}

TEST(SharedBytes, IsAlignedAndNeverSixteenBytesIntoAPageForAnySize) {
  std::vector<SharedBytes> blocks;
  for (std::size_t size = 0; size <= (9U << 20U); size += size < 70'000 ? 509 : 300'007) {
    blocks.push_back(SharedBytes::allocate(size));

    EXPECT_EQ(address_of(blocks.back()) % 64, 0U) << size;
    EXPECT_NE(address_of(blocks.back()) % kPageBytes, 16U) << size;
    EXPECT_GE(blocks.back().capacity(), size);
    EXPECT_EQ(blocks.back().size(), 0U);
  }
}

TEST(SharedBytes, StartsSixtyFourBytesIntoAPageWhenItIsLarge) {
  for (std::size_t capacity = 16U << 10U; capacity <= (8U << 20U); capacity *= 2) {
    EXPECT_EQ(address_of(SharedBytes::allocate(capacity)) % kPageBytes, 64U) << capacity;
  }
}

TEST(SharedBytes, RoundsPooledCapacitiesToPowersOfTwo) {
  EXPECT_EQ(SharedBytes::allocate(4096).capacity(), 4096U);
  EXPECT_EQ(SharedBytes::allocate(4097).capacity(), 8192U);
  EXPECT_EQ(SharedBytes::allocate((4U << 20U) - 1).capacity(), 4U << 20U);
}

TEST(SharedBytes, GivesEveryByteOfItsCapacity) {
  for (const std::size_t size : {1U, 63U, 4096U, 70'000U, 5U << 20U}) {
    SharedBytes bytes = SharedBytes::allocate(size);
    bytes.resize(bytes.capacity());
    std::memset(bytes.data(), 0x5a, bytes.capacity());

    EXPECT_EQ(bytes.view().find_first_not_of('\x5a'), ByteView::npos) << size;
  }
}

TEST(SharedBytes, SharesWhenCopiedAndMovesWithoutCounting) {
  SharedBytes first = SharedBytes::copy_of("some bytes");
  EXPECT_TRUE(first.is_unique());

  SharedBytes second = first;
  EXPECT_FALSE(first.is_unique());
  EXPECT_EQ(second.data(), first.data());
  EXPECT_EQ(second.view(), "some bytes");

  const SharedBytes third = std::move(second);
  EXPECT_FALSE(static_cast<bool>(second));  // NOLINT(bugprone-use-after-move)
  first = SharedBytes();
  EXPECT_TRUE(third.is_unique());
  EXPECT_EQ(third.view(), "some bytes");
}

TEST(SharedBytes, CopyOfNothingIsABlockAndNotNull) {
  const SharedBytes empty = SharedBytes::copy_of("");

  EXPECT_TRUE(static_cast<bool>(empty));
  EXPECT_EQ(empty.size(), 0U);
}

TEST(BufferPool, GivesTheSameMemoryAgain) {
  SharedBytes bytes = SharedBytes::allocate(100'000);
  const std::uintptr_t before = address_of(bytes);
  bytes.resize(100'000);
  bytes = SharedBytes();

  const SharedBytes again = SharedBytes::allocate(128'000);

  EXPECT_EQ(address_of(again), before);
  EXPECT_EQ(again.size(), 0U);
  EXPECT_TRUE(again.is_unique());
}

TEST(BufferPool, KeepsAtMostSixtyFourMebibytes) {
  std::vector<SharedBytes> large = allocate_many(30, 4U << 20U);
  std::vector<SharedBytes> medium = allocate_many(1000, 64U << 10U);
  large.clear();
  EXPECT_LE(BufferPool::instance().cached_bytes(), BufferPool::kCachedBytesMax);
  medium.clear();

  EXPECT_LE(BufferPool::instance().cached_bytes(), BufferPool::kCachedBytesMax);
  EXPECT_GE(BufferPool::instance().cached_bytes(), BufferPool::kCachedBytesMax - (4U << 20U));
}

TEST(BufferPool, MakesRoomForASizeWhenAnotherOneFillsIt) {
  allocate_many(20, 4U << 20U).clear();
  std::vector<SharedBytes> small = allocate_many(256, 16U << 10U);
  std::set<std::uintptr_t> before;
  for (const SharedBytes& bytes : small) {
    before.insert(address_of(bytes));
  }
  small.clear();

  const std::vector<SharedBytes> again = allocate_many(256, 16U << 10U);

  for (const SharedBytes& bytes : again) {
    EXPECT_TRUE(before.contains(address_of(bytes)));
  }
}

TEST(BufferPool, DoesNotKeepBlocksOutsideItsSizes) {
  const std::size_t before = BufferPool::instance().cached_bytes();

  SharedBytes::allocate(4095);
  SharedBytes::allocate((4U << 20U) + 1);

  EXPECT_EQ(BufferPool::instance().cached_bytes(), before);
}

TEST(BufferPool, CountsExactlyWhenBlocksMoveBetweenThreads) {
  constexpr std::size_t kRounds = 3000;
  allocate_many(64, 4096).clear();
  std::vector<SharedBytes> shared = allocate_many(32, 4096);
  const std::size_t before = BufferPool::instance().cached_bytes();
  const auto work = [&shared](char mark) {
    for (std::size_t i = 0; i < kRounds; ++i) {
      SharedBytes own = SharedBytes::allocate(4096);
      own.resize(64);
      std::memset(own.data(), mark, 64);
      const SharedBytes borrowed = shared[i % shared.size()];
      const SharedBytes copy = own;
      ASSERT_EQ(copy.view(), std::string(64, mark));
    }
  };

  std::thread first(work, 'a');
  std::thread second(work, 'b');
  first.join();
  second.join();

  EXPECT_EQ(BufferPool::instance().cached_bytes(), before);
  for (const SharedBytes& bytes : shared) {
    EXPECT_TRUE(bytes.is_unique());
  }
}

TEST(PooledAllocator, GivesVectorsTheMemoryOfThePoolAgain) {
  using Numbers = std::vector<std::uint64_t, PooledAllocator<std::uint64_t>>;
  const void* first = nullptr;
  {
    Numbers numbers(10'000, 7);
    first = numbers.data();
    EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0}), 70'000U);
  }
  const std::size_t cached = BufferPool::instance().cached_bytes();
  Numbers again(10'000, 8);
  EXPECT_EQ(again.data(), first);
  EXPECT_LT(BufferPool::instance().cached_bytes(), cached);
}

TEST(PooledAllocator, TakesSmallVectorsFromTheHeap) {
  const std::size_t cached = BufferPool::instance().cached_bytes();
  {
    std::vector<std::uint64_t, PooledAllocator<std::uint64_t>> numbers;
    for (std::uint64_t i = 0; i < 200; ++i) {
      numbers.push_back(i);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(numbers.data()) % 64, 0U);
    }
    EXPECT_EQ(numbers[199], 199U);
  }
  EXPECT_EQ(BufferPool::instance().cached_bytes(), cached);
}

#if defined(WEIR_TEST_ASAN)
TEST(BufferPoolDeathTest, ReportsAReaderThatKeptAViewTooLong) {
  SharedBytes bytes = SharedBytes::copy_of(std::string(5000, 'x'));
  const volatile char* kept = bytes.data();
  bytes = SharedBytes();

  EXPECT_DEATH({ [[maybe_unused]] const char seen = kept[100]; }, "use-after-poison");
}
#endif

}  // namespace
}  // namespace weir
