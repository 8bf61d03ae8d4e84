#include <weir/log/embedded_log.h>
#include <weir/log/settings.h>

#include <array>

namespace weir::log {
namespace {

using P = Property<EmbeddedLogOptions>;
const std::array kProperties{
    P{.name = "producer.id.expiration.ms",
      .member = &EmbeddedLogOptions::producer_id_expiration_ms,
      .min = 1,
      .doc = "How long a partition knows a producer that writes nothing."},
    P{.name = "weir.scrub.bytes.per.second",
      .member = &EmbeddedLogOptions::scrub_bytes_per_second,
      .min = 0,
      .max = std::int64_t{1} << 40,
      .doc = "Rate at which durable bytes are read again and checked; 0 turns it off."},
    P{.name = "weir.scrub.interval.ms",
      .member = &EmbeddedLogOptions::scrub_interval_ms,
      .min = 0,
      .doc = "From the start of one pass over the log to that of the next."},
};

}  // namespace

Status EmbeddedLogOptions::set(const std::map<std::string, std::string>& settings) {
  WEIR_TRY_ASSIGN(*this, parse_settings<EmbeddedLogOptions>("log", kProperties, settings, *this));
  return Status();
}

std::vector<SettingDescription> log_settings() {
  return describe_settings<EmbeddedLogOptions>(kProperties);
}

}  // namespace weir::log
