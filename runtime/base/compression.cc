#include <weir/runtime/compression.h>
#include <weir/runtime/settings.h>

#include <algorithm>
#include <array>

namespace weir {
namespace {

using S = CompressionSettings;
using P = Property<CompressionSettings>;

const std::array kProperties{
    P{.name = "compression.type", .member = &S::type, .one_of = S::kTypes, .doc = "Codec."},
    P{.name = "compression.gzip.level",
      .member = &S::gzip_level,
      .one_of = S::kGzipLevels,
      .doc = "Level of gzip; -1 is zlib's own choice."},
    P{.name = "compression.lz4.level",
      .member = &S::lz4_level,
      .min = S::kLz4LevelMin,
      .max = S::kLz4LevelMax,
      .doc = "Level of lz4; 9 is the fast compressor."},
    P{.name = "compression.zstd.level",
      .member = &S::zstd_level,
      .min = S::kZstdLevelMin,
      .max = S::kZstdLevelMax,
      .doc = "Level of zstd."},
};

std::int32_t in_range(std::int32_t level, std::int64_t min, std::int64_t max) {
  return std::clamp(level, static_cast<std::int32_t>(min), static_cast<std::int32_t>(max));
}

}  // namespace

std::string_view codec_name(Codec codec) {
  switch (codec) {
    case Codec::kNone:
      return "none";
    case Codec::kGzip:
      return "gzip";
    case Codec::kSnappy:
      return "snappy";
    case Codec::kLz4:
      return "lz4";
    case Codec::kZstd:
      return "zstd";
  }
  return "unknown";
}

std::int32_t Compression::level_in_force() const {
  constexpr std::int32_t kGzipDefault = -1;
  constexpr std::int32_t kLz4Default = 9;
  constexpr std::int32_t kZstdDefault = 3;
  switch (codec) {
    case Codec::kGzip: {
      const std::int32_t asked = level.value_or(kGzipDefault);
      return asked == kGzipDefault ? asked : in_range(asked, 1, 9);
    }
    case Codec::kLz4:
      return in_range(level.value_or(kLz4Default), S::kLz4LevelMin, S::kLz4LevelMax);
    case Codec::kZstd:
      return in_range(level.value_or(kZstdDefault), S::kZstdLevelMin, S::kZstdLevelMax);
    default:
      return 0;
  }
}

Compression CompressionSettings::compression() const {
  if (type == codec_name(Codec::kGzip)) {
    return {Codec::kGzip, std::stoi(gzip_level)};
  }
  if (type == codec_name(Codec::kLz4)) {
    return {Codec::kLz4, static_cast<std::int32_t>(lz4_level)};
  }
  if (type == codec_name(Codec::kZstd)) {
    return {Codec::kZstd, static_cast<std::int32_t>(zstd_level)};
  }
  return {type == codec_name(Codec::kSnappy) ? Codec::kSnappy : Codec::kNone, std::nullopt};
}

Result<Compression> parse_compression(std::string_view part,
                                      const std::map<std::string, std::string>& settings) {
  WEIR_TRY_ASSIGN(const CompressionSettings read,
                  parse_settings<CompressionSettings>(part, kProperties, settings));
  return read.compression();
}

}  // namespace weir
