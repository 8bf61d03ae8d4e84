#include "apps/averages/price.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace weir::averages {
namespace {

__extension__ using Unsigned128 = unsigned __int128;

constexpr int kSignificantDigits = 16;
constexpr std::size_t kLongestText = 64;
constexpr int kBits = 64;

constexpr auto kPowersOfTen = [] {
  std::array<Int128, Price::kDecimals + Price::kIntegerDigits + 1> powers{1};
  for (std::size_t i = 1; i < powers.size(); ++i) {
    powers[i] = powers[i - 1] * 10;
  }
  return powers;
}();

Error no_price(std::string_view text, std::string_view why) {
  return {Errc::kInvalidArgument, fmt::format("the price '{}{}' {}", text.substr(0, kLongestText),
                                              text.size() > kLongestText ? "..." : "", why)};
}

// A decimal as it is written: `value` times 10^-decimals, without zeros at either end.
struct Digits {
  static constexpr std::int64_t kCountMax = Price::kIntegerDigits + Price::kDecimals;

  bool negative = false;
  Int128 value = 0;
  std::int64_t count = 0;     // of digits; `value` is right up to kCountMax
  std::int64_t decimals = 0;  // negative: zeros are missing in front of the point

  // Zeros count only once another digit follows.
  void take(int digit, std::int64_t zeros_before) {
    count += zeros_before + 1;
    if (count <= kCountMax) {
      for (std::int64_t i = 0; i < zeros_before; ++i) {
        value *= 10;
      }
      value = value * 10 + digit;
    }
  }
};

Result<std::int64_t> parse_exponent(std::string_view text, std::string_view exponent) {
  if (exponent.starts_with('+') && exponent.size() > 1 && exponent[1] != '-') {
    exponent.remove_prefix(1);
  }
  std::int32_t value = 0;
  const char* const end = exponent.data() + exponent.size();
  const auto [stop, error] = std::from_chars(exponent.data(), end, value);
  if (error == std::errc::result_out_of_range) {
    return no_price(text, "has an exponent that is too large");
  }
  if (error != std::errc() || stop != end) {
    return no_price(text, "is no decimal number");
  }
  return std::int64_t{value};
}

Result<Digits> parse_digits(std::string_view text) {
  Digits result;
  const char* at = text.data();
  const char* const end = at + text.size();
  if (at != end && (*at == '-' || *at == '+')) {
    result.negative = *at++ == '-';
  }
  bool any = false;
  bool behind_point = false;
  std::int64_t zeros = 0;
  for (; at != end; ++at) {
    if (*at == '.' && !behind_point) {
      behind_point = true;
      continue;
    }
    if (*at < '0' || *at > '9') {
      break;
    }
    any = true;
    result.decimals += behind_point ? 1 : 0;
    if (*at != '0') {
      result.take(*at - '0', result.count == 0 ? 0 : zeros);
      zeros = 0;
    } else {
      ++zeros;
    }
  }
  result.decimals -= zeros;
  if (any && at != end && (*at == 'e' || *at == 'E')) {
    const auto exponent_at = static_cast<std::size_t>(at - text.data()) + 1;
    WEIR_TRY_ASSIGN(const std::int64_t exponent, parse_exponent(text, text.substr(exponent_at)));
    result.decimals -= exponent;
    at = end;
  }
  if (!any || at != end) {
    return no_price(text, text.empty() ? "is empty" : "is no decimal number");
  }
  return result;
}

// 192 bits by 64: the quotient in place, returns the remainder.
std::uint64_t divide(std::array<std::uint64_t, 3>& limbs, std::uint64_t by) {
  Unsigned128 rest = 0;
  for (std::uint64_t& limb : limbs) {
    rest = rest << kBits | limb;
    limb = static_cast<std::uint64_t>(rest / by);
    rest %= by;
  }
  return static_cast<std::uint64_t>(rest);
}

bool is_zero(const std::array<std::uint64_t, 3>& limbs) {
  return limbs[0] == 0 && limbs[1] == 0 && limbs[2] == 0;
}

std::array<std::uint64_t, 3> magnitude(const Mean& mean) {
  std::array<std::uint64_t, 3> limbs{static_cast<std::uint64_t>(mean.high), mean.middle, mean.low};
  if (mean.high < 0) {
    std::uint64_t carry = 1;
    for (std::size_t i = limbs.size(); i-- > 0;) {
      limbs[i] = ~limbs[i] + carry;
      carry = carry != 0 && limbs[i] == 0 ? 1 : 0;
    }
  }
  return limbs;
}

// Adds one to the last place of a decimal's digits.
void round_up(std::string& digits) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '9') {
      ++digits[i];
      return;
    }
    digits[i] = '0';
  }
  digits.insert(digits.begin(), '1');
}

// Places the point `decimals` digits from the end, without zeros that say nothing.
std::string with_point(std::string digits, std::size_t decimals, bool negative) {
  if (digits.size() <= decimals) {
    digits.insert(0, decimals + 1 - digits.size(), '0');
  }
  std::string text = digits.substr(0, digits.size() - decimals);
  const std::string_view behind = std::string_view(digits).substr(digits.size() - decimals);
  const std::size_t last = behind.find_last_not_of('0');
  if (last != std::string_view::npos) {
    text += fmt::format(".{}", behind.substr(0, last + 1));
  }
  const bool is_null = text.find_first_not_of("0.") == std::string::npos;
  return negative && !is_null ? "-" + text : text;
}

}  // namespace

Result<Price> parse_price(std::string_view text) {
  WEIR_TRY_ASSIGN(const Digits parsed, parse_digits(text));
  if (parsed.count == 0) {
    return Price{};
  }
  if (parsed.decimals > Price::kDecimals) {
    return no_price(text, fmt::format("has more than {} decimals", Price::kDecimals));
  }
  if (parsed.count - parsed.decimals > Price::kIntegerDigits) {
    return no_price(
        text, fmt::format("has more than {} digits in front of the point", Price::kIntegerDigits));
  }
  const Int128 units =
      parsed.value * kPowersOfTen[static_cast<std::size_t>(Price::kDecimals - parsed.decimals)];
  return Price{parsed.negative ? -units : units};
}

Mean add(Mean mean, const Price& price) {
  const auto units = static_cast<Unsigned128>(price.units);
  const Unsigned128 low = Unsigned128{mean.low} + static_cast<std::uint64_t>(units);
  const Unsigned128 middle = Unsigned128{mean.middle} + static_cast<std::uint64_t>(units >> kBits) +
                             static_cast<std::uint64_t>(low >> kBits);
  const std::uint64_t sign = price.units < 0 ? ~std::uint64_t{0} : 0;
  mean.high = static_cast<std::int64_t>(static_cast<std::uint64_t>(mean.high) + sign +
                                        static_cast<std::uint64_t>(middle >> kBits));
  mean.middle = static_cast<std::uint64_t>(middle);
  mean.low = static_cast<std::uint64_t>(low);
  ++mean.count;
  return mean;
}

std::string average_text(const Mean& mean) {
  const auto count = static_cast<std::uint64_t>(mean.count);
  std::array<std::uint64_t, 3> limbs = magnitude(mean);
  std::uint64_t rest = divide(limbs, count);
  std::string digits;  // units of 10^-18, without leading zeros
  while (!is_zero(limbs)) {
    digits.push_back(static_cast<char>('0' + divide(limbs, 10)));
  }
  std::reverse(digits.begin(), digits.end());
  std::size_t decimals = Price::kDecimals;
  if (rest == 0) {
    return with_point(std::move(digits), decimals, mean.high < 0);
  }
  // Long division goes on until there are enough digits, and one more.
  const auto next_digit = [&] {
    const Unsigned128 wide = Unsigned128{rest} * 10;
    rest = static_cast<std::uint64_t>(wide % count);
    const auto digit = static_cast<char>('0' + static_cast<int>(wide / count));
    ++decimals;
    if (digit != '0' || !digits.empty()) {
      digits.push_back(digit);
    }
  };
  while (digits.size() <= kSignificantDigits) {
    next_digit();
  }
  const std::size_t surplus =
      std::min(digits.size() - kSignificantDigits, decimals - kSignificantDigits);
  const std::string cut = digits.substr(digits.size() - surplus);
  digits.resize(digits.size() - surplus);
  decimals -= surplus;
  const bool above_half =
      cut.front() > '5' ||
      (cut.front() == '5' && (rest != 0 || cut.find_first_not_of('0', 1) != std::string::npos));
  const bool tie = cut.front() == '5' && !above_half;
  if (above_half || (tie && (digits.back() - '0') % 2 != 0)) {
    round_up(digits);
  }
  return with_point(std::move(digits), decimals, mean.high < 0);
}

}  // namespace weir::averages

namespace weir {

void Serde<averages::Price>::write(const averages::Price& price, std::string& out) {
  // As the average of one.
  out += averages::average_text(averages::add({}, price));
}

Result<averages::Price> Serde<averages::Price>::read(ByteView bytes) {
  Result<averages::Price> price = averages::parse_price(bytes);
  return price.ok() ? std::move(price)
                    : Result<averages::Price>(Error(Errc::kCorrupt, price.error().message()));
}

}  // namespace weir
