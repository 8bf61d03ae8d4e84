#include <weir/log/embedded_log.h>
#include <weir/log/settings.h>

#include <array>

namespace weir::log {
namespace {

using P = Property<EmbeddedLogOptions>;
const std::array kProperties{
    P{.name = "log.cleaner.backoff.ms",
      .member = &EmbeddedLogOptions::cleaner_backoff_ms,
      .min = 0,
      .doc = "Wait before compaction looks again when nothing was due."},
    P{.name = "log.cleaner.dedupe.buffer.size",
      .member = &EmbeddedLogOptions::cleaner_dedupe_buffer_bytes,
      .min = 4096,
      .max = std::int64_t{32} << 30,
      .doc = "Memory of a compaction for the keys of what it compacts."},
    P{.name = "log.cleaner.enable",
      .member = &EmbeddedLogOptions::cleaner_enable,
      .doc = "Whether topics with cleanup.policy=compact are compacted."},
    P{.name = "log.cleaner.io.max.bytes.per.second",
      .member = &EmbeddedLogOptions::cleaner_io_bytes_per_second,
      .min = 1024,
      .doc = "Rate at which compaction reads and writes."},
    P{.name = "log.initial.task.delay.ms",
      .member = &EmbeddedLogOptions::initial_task_delay_ms,
      .min = 0,
      .max = INT32_MAX,
      .doc = "From a start to the first look for old records, compaction and damage."},
    P{.name = "log.retention.check.interval.ms",
      .member = &EmbeddedLogOptions::retention_check_interval_ms,
      .min = 1,
      .doc = "How often partitions are looked through for segments that are too old or too many."},
    P{.name = "metadata.log.max.record.bytes.between.snapshots",
      .member = &EmbeddedLogOptions::metadata_snapshot_bytes,
      .min = 1,
      .doc = "How much the log of topics grows before a snapshot of it is written."},
    P{.name = "producer.id.expiration.ms",
      .member = &EmbeddedLogOptions::producer_id_expiration_ms,
      .min = 1,
      .doc = "How long a partition knows a producer that writes nothing."},
    P{.name = "transaction.abort.timed.out.transaction.cleanup.interval.ms",
      .member = &EmbeddedLogOptions::transaction_abort_interval_ms,
      .min = 1,
      .doc = "How often transactions that are open for too long are looked for."},
    P{.name = "transaction.max.timeout.ms",
      .member = &EmbeddedLogOptions::transaction_max_timeout_ms,
      .min = 1,
      .max = INT32_MAX,
      .doc = "The longest transaction.timeout.ms that a producer may ask for."},
    P{.name = "transactional.id.expiration.ms",
      .member = &EmbeddedLogOptions::transactional_id_expiration_ms,
      .min = 1,
      .doc = "How long a transactional id that is not used is known."},
    P{.name = "weir.scrub.bytes.per.second",
      .member = &EmbeddedLogOptions::scrub_bytes_per_second,
      .min = 0,
      .max = std::int64_t{1} << 40,
      .doc = "Rate at which durable bytes are read again and checked; 0 turns it off."},
    P{.name = "weir.scrub.interval.ms",
      .member = &EmbeddedLogOptions::scrub_interval_ms,
      .min = 0,
      .doc = "From the start of one pass over the log to that of the next."},
    P{.name = "group.initial.rebalance.delay.ms",
      .member = &EmbeddedLogOptions::group_initial_rebalance_delay_ms,
      .min = 0,
      .max = INT32_MAX,
      .doc = "How long the first member of an empty group waits for others."},
    P{.name = "group.max.size",
      .member = &EmbeddedLogOptions::group_max_size,
      .min = 1,
      .max = INT32_MAX,
      .doc = "Members that a group has at most."},
    P{.name = "group.min.session.timeout.ms",
      .member = &EmbeddedLogOptions::group_min_session_timeout_ms,
      .min = 1,
      .max = INT32_MAX,
      .doc = "Smallest session.timeout.ms that a member may ask for."},
    P{.name = "group.max.session.timeout.ms",
      .member = &EmbeddedLogOptions::group_max_session_timeout_ms,
      .min = 1,
      .max = INT32_MAX,
      .doc = "Largest session.timeout.ms that a member may ask for."},
    P{.name = "offsets.retention.minutes",
      .member = &EmbeddedLogOptions::offsets_retention_minutes,
      .min = 1,
      .max = INT32_MAX,
      .doc = "How long committed offsets are kept that nobody uses."},
    P{.name = "offsets.retention.check.interval.ms",
      .member = &EmbeddedLogOptions::offsets_check_interval_ms,
      .min = 1,
      .max = INT32_MAX,
      .doc = "Time between two looks for such offsets."},
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
