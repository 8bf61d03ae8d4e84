#pragma once

#include <weir/runtime/result.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

// How record batches are compressed: Kafka's codecs, levels and setting names, the same for the
// log, for operators' sinks and for a producer.

namespace weir {

// The numbers of a record batch's attributes.
enum class Codec : std::uint8_t { kNone = 0, kGzip = 1, kSnappy = 2, kLz4 = 3, kZstd = 4 };
std::string_view codec_name(Codec codec);  // Kafka's: none, gzip, snappy, lz4, zstd

// A codec and how hard it tries. The level leaves no mark in a batch: any reader reads any level.
struct Compression {
  Codec codec = Codec::kNone;
  // nullopt: Kafka's default. Ranges and defaults: CompressionSettings. Outside of its range a
  // level is the nearest in it; none and snappy have no level.
  std::optional<std::int32_t> level;

  // The level in force: within the codec's range; 0 for none and snappy.
  std::int32_t level_in_force() const;
  friend bool operator==(const Compression&, const Compression&) = default;
};

// The settings, as members for a part's own settings struct, and what its table of properties says
// about them.
struct CompressionSettings {
  std::string type = "none";      // compression.type
  std::string gzip_level = "-1";  // compression.gzip.level; -1 is zlib's own choice (6)
  std::int64_t lz4_level = 9;     // compression.lz4.level; 9 is the fast compressor, as in Kafka
  std::int64_t zstd_level = 3;    // compression.zstd.level

  static constexpr std::string_view kTypes = "none,gzip,snappy,lz4,zstd";
  static constexpr std::string_view kGzipLevels = "-1,1,2,3,4,5,6,7,8,9";
  static constexpr std::int64_t kLz4LevelMin = 1;
  static constexpr std::int64_t kLz4LevelMax = 17;
  static constexpr std::int64_t kZstdLevelMin = -131'072;
  static constexpr std::int64_t kZstdLevelMax = 22;

  // The codec that `type` names with its level. Requires: checked values. A `type` that names no
  // codec (a topic's "producer", "uncompressed") gives none.
  Compression compression() const;
};

// Reads the four settings by Kafka's names; `part` names the object in messages ("producer").
// Errors: kInvalidConfig that lists every unknown key and bad value.
Result<Compression> parse_compression(std::string_view part,
                                      const std::map<std::string, std::string>& settings);

}  // namespace weir
