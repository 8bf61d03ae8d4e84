#include <weir/operators/app.h>

#include <array>

namespace weir {

namespace {

constexpr std::int64_t kDayMs = 86'400'000;

const std::array kProperties{
    Property<AppOptions>{.name = "application.id",
                         .member = &AppOptions::application_id,
                         .one_of = {},
                         .doc = "Consumer group, prefix of internal topics, folder of the state."},
    Property<AppOptions>{.name = "num.stream.threads",
                         .member = &AppOptions::num_stream_threads,
                         .min = 1,
                         .max = 1024,
                         .one_of = {},
                         .doc = "Threads over which the tasks are spread."},
    Property<AppOptions>{.name = "commit.interval.ms",
                         .member = &AppOptions::commit_interval_ms,
                         .min = 0,
                         .max = kDayMs,
                         .one_of = {},
                         .doc = "How often results, changelogs and offsets are committed."},
    Property<AppOptions>{.name = "statestore.cache.max.bytes",
                         .member = &AppOptions::statestore_cache_max_bytes,
                         .min = 0,
                         .one_of = {},
                         .doc = "Results that wait for a later one of their key; all threads."},
    Property<AppOptions>{.name = "state.dir",
                         .member = &AppOptions::state_dir,
                         .one_of = {},
                         .doc = "Folder that holds a folder for each application id."},
    Property<AppOptions>{.name = "buffered.records.per.partition",
                         .member = &AppOptions::buffered_records_per_partition,
                         .min = 1,
                         .one_of = {},
                         .doc = "A partition with more waiting records is paused."},
    Property<AppOptions>{.name = "poll.ms",
                         .member = &AppOptions::poll_ms,
                         .min = 0,
                         .max = kDayMs,
                         .one_of = {},
                         .doc = "How long a thread waits for records when it has nothing to do."},
    Property<AppOptions>{.name = "task.timeout.ms",
                         .member = &AppOptions::task_timeout_ms,
                         .min = 0,
                         .one_of = {},
                         .doc = "How long a log or disk that fails is tried again."},
    Property<AppOptions>{.name = "repartition.purge.interval.ms",
                         .member = &AppOptions::repartition_purge_interval_ms,
                         .min = 0,
                         .one_of = {},
                         .doc = "How often committed records of repartition topics are deleted."},
    Property<AppOptions>{.name = "auto.offset.reset",
                         .member = &AppOptions::auto_offset_reset,
                         .one_of = "earliest,latest,none",
                         .doc = "Where to read when there is no valid committed offset."},
    Property<AppOptions>{.name = "deserialization.exception.handler",
                         .member = &AppOptions::deserialization_exception_handler,
                         .one_of = "fail,continue",
                         .doc = "A record whose bytes are no key or value: stop, or skip it."},
    Property<AppOptions>{.name = "processing.exception.handler",
                         .member = &AppOptions::processing_exception_handler,
                         .one_of = "fail,continue",
                         .doc = "A function that throws: stop, or skip the record."},
    Property<AppOptions>{.name = "production.exception.handler",
                         .member = &AppOptions::production_exception_handler,
                         .one_of = "fail,continue",
                         .doc = "A result that cannot be written: stop, or skip it."},
    Property<AppOptions>{.name = "default.timestamp.extractor",
                         .member = &AppOptions::timestamp_extractor,
                         .one_of = "FailOnInvalidTimestamp,LogAndSkipOnInvalidTimestamp,"
                                   "UsePartitionTimeOnInvalidTimestamp",
                         .doc = "What a record with a negative timestamp is."},
    Property<AppOptions>{.name = "errors.dead.letter.queue.topic.name",
                         .member = &AppOptions::dead_letter_topic,
                         .one_of = {},
                         .doc = "Topic for records with such errors; empty: none."},
    Property<AppOptions>{.name = "weir.store.mode",
                         .member = &AppOptions::store_mode,
                         .one_of = "hot,direct,memory",
                         .doc = "Where stores live: memory over RocksDB, RocksDB, memory."},
    Property<AppOptions>{.name = "weir.store.hot.max.bytes",
                         .member = &AppOptions::store_hot_max_bytes,
                         .min = 1,
                         .one_of = {},
                         .doc = "Memory of one store partition."},
    Property<AppOptions>{.name = "weir.checkpoint.interval.ms",
                         .member = &AppOptions::checkpoint_interval_ms,
                         .min = 0,
                         .one_of = {},
                         .doc = "How often a store is checkpointed to disk."},
    Property<AppOptions>{.name = "weir.checkpoint.changelog.bytes",
                         .member = &AppOptions::checkpoint_changelog_bytes,
                         .min = 1,
                         .one_of = {},
                         .doc = "Changelog after which a store is checkpointed earlier."},
    Property<AppOptions>{.name = "weir.durability",
                         .member = &AppOptions::internal_durability,
                         .one_of = "fsync,memory",
                         .doc = "Durability of changelog and repartition topics."},
};

}  // namespace

std::span<const Property<AppOptions>> app_properties() {
  return kProperties;
}

Result<AppOptions> AppOptions::parse(const std::map<std::string, std::string>& given) {
  return parse_settings<AppOptions>("application", kProperties, given);
}

ErrorPolicies error_policies_of(const AppOptions& options) {
  const auto response = [](const std::string& text) {
    return text == "continue" ? ErrorResponse::kContinue : ErrorResponse::kFail;
  };
  return {.deserialization = response(options.deserialization_exception_handler),
          .processing = response(options.processing_exception_handler),
          .production = response(options.production_exception_handler),
          .invalid_timestamp = options.timestamp_extractor.starts_with("LogAndSkip")
                                   ? InvalidTimestamp::kSkip
                               : options.timestamp_extractor.starts_with("UsePartitionTime")
                                   ? InvalidTimestamp::kUsePartitionTime
                                   : InvalidTimestamp::kFail,
          .dead_letter_topic = options.dead_letter_topic};
}

std::string_view app_state_name(AppState state) {
  switch (state) {
    case AppState::kCreated:
      return "CREATED";
    case AppState::kRebalancing:
      return "REBALANCING";
    case AppState::kRunning:
      return "RUNNING";
    case AppState::kPendingShutdown:
      return "PENDING_SHUTDOWN";
    case AppState::kNotRunning:
      return "NOT_RUNNING";
    case AppState::kError:
      return "ERROR";
  }
  return "UNKNOWN";
}

}  // namespace weir
