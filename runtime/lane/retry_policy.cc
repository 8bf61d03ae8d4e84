#include <weir/runtime/retry_policy.h>

#include <algorithm>
#include <cmath>

namespace weir {

Duration RetryPolicy::backoff(std::uint32_t failures, Rng& rng) const {
  const double longest = static_cast<double>(backoff_max.count());
  const double exponent = failures > 0 ? static_cast<double>(failures - 1) : 0;
  // Infinity is a fine product: the cap takes it.
  const double wanted =
      static_cast<double>(backoff_base.count()) * std::pow(backoff_multiplier, exponent);
  double delay = std::min(wanted, longest);
  if (jitter > 0 && delay > 0) {
    delay *= 1 - jitter + 2 * jitter * rng.unit();
  }
  return Duration(static_cast<std::int64_t>(delay));
}

}  // namespace weir
