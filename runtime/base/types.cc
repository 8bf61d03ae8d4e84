#include <weir/runtime/types.h>

#include <fmt/core.h>

namespace weir {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kUuidTextSize = 22;

constexpr std::uint8_t kNotBase64 = 0xff;

constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  for (std::uint8_t& digit : digits) {
    digit = kNotBase64;
  }
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return digits;
}

constexpr std::array<std::uint8_t, 256> kDigits = make_digits();

}  // namespace

std::string Uuid::to_string() const {
  std::string text;
  text.reserve(kUuidTextSize);
  std::uint32_t pending = 0;
  unsigned pending_bits = 0;
  for (const std::uint8_t byte : bytes) {
    pending = (pending << 8U) | byte;
    pending_bits += 8;
    while (pending_bits >= 6) {
      pending_bits -= 6;
      text.push_back(kAlphabet[(pending >> pending_bits) & 0x3fU]);
    }
  }
  // 128 bits are 21 digits and 2 bits, which fill the high end of the last digit.
  text.push_back(kAlphabet[(pending << (6 - pending_bits)) & 0x3fU]);
  return text;
}

Result<Uuid> Uuid::parse(std::string_view text) {
  if (text.size() != kUuidTextSize) {
    return Error(Errc::kInvalidArgument,
                 fmt::format("id \"{}\" has {} characters; an id is 22 characters of URL-safe "
                             "Base64, as Kafka prints it",
                             text.substr(0, 64), text.size()));
  }
  Uuid id;
  std::size_t filled = 0;
  std::uint32_t pending = 0;
  unsigned pending_bits = 0;
  for (const char c : text) {
    const std::uint8_t digit = kDigits[static_cast<unsigned char>(c)];
    if (digit == kNotBase64) {
      return Error(
          Errc::kInvalidArgument,
          fmt::format("id \"{}\" is not URL-safe Base64; only A-Z a-z 0-9 - _ are legal", text));
    }
    pending = (pending << 6U) | digit;
    pending_bits += 6;
    if (pending_bits >= 8) {
      pending_bits -= 8;
      id.bytes[filled++] = static_cast<std::uint8_t>(pending >> pending_bits);
    }
  }
  // The last digit carries 4 unused bits. Java's decoder ignores them and so do we.
  WEIR_ASSERT(filled == id.bytes.size());
  return id;
}

std::string TopicPartition::to_string() const {
  return fmt::format("{}-{}", topic, partition.value());
}

}  // namespace weir
