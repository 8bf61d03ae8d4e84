#include <weir/log/producer.h>
#include <weir/log/settings.h>

#include <fmt/core.h>

#include <array>

namespace weir::log {
namespace {

struct ProducerSettings : CompressionSettings {
  std::string acks = "all";
  std::int64_t batch_size = 16'384;
  std::int64_t linger_ms = 5;
  std::int64_t buffer_memory = 33'554'432;
  std::int64_t max_block_ms = 60'000;
  std::int64_t max_request_size = 1'048'576;
  std::int64_t delivery_timeout_ms = 120'000;
  std::string partitioner_class = "default";
  bool partitioner_ignore_keys = false;
  bool enable_idempotence = true;
  std::int64_t max_in_flight = 5;
};

using P = Property<ProducerSettings>;
const std::array kProperties{
    P{.name = "acks",
      .member = &ProducerSettings::acks,
      .one_of = "all,-1,1,0",
      .doc = "all: on disk (fsync topics). 1: appended. 0: not waited for, without offset."},
    P{.name = "batch.size",
      .member = &ProducerSettings::batch_size,
      .min = 0,
      .max = 64 << 20,
      .doc = "Bytes of a batch; 0 batches nothing."},
    P{.name = "linger.ms",
      .member = &ProducerSettings::linger_ms,
      .min = 0,
      .max = INT32_MAX,
      .doc = "How long a batch waits for more records."},
    P{.name = "buffer.memory",
      .member = &ProducerSettings::buffer_memory,
      .min = 1,
      .doc = "Bytes that are not acknowledged yet; more makes send() wait."},
    P{.name = "max.block.ms",
      .member = &ProducerSettings::max_block_ms,
      .min = 0,
      .max = INT32_MAX,
      .doc = "Longest wait of send()."},
    P{.name = "max.request.size",
      .member = &ProducerSettings::max_request_size,
      .min = 0,
      .max = INT32_MAX,
      .doc = "Largest record, as a batch of its own."},
    P{.name = "delivery.timeout.ms",
      .member = &ProducerSettings::delivery_timeout_ms,
      .min = 0,
      .max = INT32_MAX,
      .doc = "Longest time from a batch's first record to its acknowledgement."},
    P{.name = "enable.idempotence",
      .member = &ProducerSettings::enable_idempotence,
      .doc = "Batches carry a producer id and sequences; needs acks=all."},
    P{.name = "max.in.flight.requests.per.connection",
      .member = &ProducerSettings::max_in_flight,
      .min = 1,
      .max = INT32_MAX,
      .doc =
          "At most 5 with enable.idempotence. In process each batch is appended before the next."},
    P{.name = "partitioner.class",
      .member = &ProducerSettings::partitioner_class,
      .one_of = "default,round_robin,org.apache.kafka.clients.producer.RoundRobinPartitioner",
      .doc = "Who chooses the partition of a record that names none."},
    P{.name = "partitioner.ignore.keys",
      .member = &ProducerSettings::partitioner_ignore_keys,
      .doc = "Spread records with a key as those without one."},
    P{.name = "compression.type",
      .member = &ProducerSettings::type,
      .one_of = CompressionSettings::kTypes,
      .doc = "Codec of the batches; a topic's own compression.type overrides it."},
    P{.name = "compression.gzip.level",
      .member = &ProducerSettings::gzip_level,
      .one_of = CompressionSettings::kGzipLevels,
      .doc = "-1 is zlib's own choice."},
    P{.name = "compression.lz4.level",
      .member = &ProducerSettings::lz4_level,
      .min = CompressionSettings::kLz4LevelMin,
      .max = CompressionSettings::kLz4LevelMax,
      .doc = "Higher is smaller and slower."},
    P{.name = "compression.zstd.level",
      .member = &ProducerSettings::zstd_level,
      .min = CompressionSettings::kZstdLevelMin,
      .max = CompressionSettings::kZstdLevelMax,
      .doc = "Higher is smaller and slower."},
};

Acks acks_of(const std::string& text) {
  if (text == "1") {
    return Acks::kOne;
  }
  return text == "0" ? Acks::kNone : Acks::kAll;
}

// Kafka's rule: what contradicts it turns the default off, and is refused beside an explicit true
// (org.apache.kafka.clients.producer.ProducerConfig).
Result<bool> idempotence_of(const ProducerSettings& read,
                            const std::map<std::string, std::string>& settings) {
  constexpr std::int64_t kInFlightMax = 5;
  const bool all = acks_of(read.acks) == Acks::kAll;
  if (!read.enable_idempotence || (all && read.max_in_flight <= kInFlightMax)) {
    return read.enable_idempotence;
  }
  if (!settings.contains("enable.idempotence")) {
    return false;
  }
  return Error(
      Errc::kInvalidConfig,
      all ? fmt::format("producer: enable.idempotence=true allows at most {} for "
                        "max.in.flight.requests.per.connection, not {}",
                        kInFlightMax, read.max_in_flight)
          : fmt::format("producer: enable.idempotence=true needs acks=all, not {}", read.acks));
}

}  // namespace

Result<ProducerOptions> ProducerOptions::parse(const std::map<std::string, std::string>& settings) {
  WEIR_TRY_ASSIGN(const ProducerSettings read,
                  parse_settings<ProducerSettings>("producer", kProperties, settings));
  if (settings.contains("delivery.timeout.ms") && read.delivery_timeout_ms < read.linger_ms) {
    return Error(Errc::kInvalidConfig,
                 fmt::format("producer: delivery.timeout.ms ({}) is shorter than linger.ms ({}); a "
                             "batch would be given up before it is sent",
                             read.delivery_timeout_ms, read.linger_ms));
  }
  ProducerOptions options;
  WEIR_TRY_ASSIGN(options.enable_idempotence, idempotence_of(read, settings));
  options.acks = acks_of(read.acks);
  options.batch_size = read.batch_size;
  options.linger_ms = read.linger_ms;
  options.buffer_memory = read.buffer_memory;
  options.max_block_ms = read.max_block_ms;
  options.max_request_size = read.max_request_size;
  options.delivery_timeout_ms = read.delivery_timeout_ms;
  options.partitioner =
      read.partitioner_class == "default" ? Partitioner::kDefault : Partitioner::kRoundRobin;
  options.partitioner_ignore_keys = read.partitioner_ignore_keys;
  options.compression = read.compression();
  return options;
}

std::vector<SettingDescription> producer_settings() {
  return describe_settings<ProducerSettings>(kProperties);
}

}  // namespace weir::log
