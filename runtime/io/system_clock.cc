#include <weir/runtime/clock.h>
#include <weir/runtime/rng.h>

#include <cerrno>
#include <chrono>
#include <sys/random.h>
#include <unistd.h>

namespace weir {

namespace {

class SystemClock final : public Clock {
 public:
  Timestamp now() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  MonotonicTime monotonic() const override {
    return std::chrono::duration_cast<MonotonicTime>(
        std::chrono::steady_clock::now().time_since_epoch());
  }
};

}  // namespace

Clock& system_clock() {
  // Never destroyed: threads and static objects may ask for the time until the process ends.
  static SystemClock* const clock = new SystemClock;
  return *clock;
}

std::uint64_t entropy_seed() {
  std::uint64_t seed = 0;
  ssize_t got = 0;
  do {
    got = ::getrandom(&seed, sizeof(seed), 0);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof(seed))) {
    return seed;
  }
  // A sandbox without getrandom: seeds need to differ between processes, not to be secret.
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;
  const auto time = static_cast<std::uint64_t>(system_clock().monotonic().count());
  const auto process = static_cast<std::uint64_t>(::getpid());
  return (time * kGolden) ^ process;
}

}  // namespace weir
