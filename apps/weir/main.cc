// The weir tool: topics, records, state and files of a data directory from the shell.
#include "apps/cli/exit_codes.h"
#include "apps/weir/commands.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

namespace weir::cli {
namespace {

struct AllOptions {
  CommonOptions common;
  TopicCreateOptions create;
  std::string topic;
  ProduceOptions produce;
  ConsumeOptions consume;
  ReplayOptions replay;
  TopicAlterOptions alter;
  DeleteRecordsOptions delete_records;
  std::string group;
  GroupDescribeOptions group_describe;
  GroupResetOptions group_reset;
  std::string application;
  AppResetOptions app_reset;
  DlqOptions dlq;
  std::string config_kind;
  StateOptions state;
  LogDumpOptions log_dump;
  std::string path;
  std::vector<std::string> paths;
  std::function<int()> run;
};

// The options that name a target; one of them at most.
void add_offset_target(CLI::App& command, OffsetTargetOptions& target) {
  command.add_flag("--to-earliest", target.to_earliest, "To the first record that is there");
  command.add_flag("--to-latest", target.to_latest, "Behind the last record");
  command.add_option("--to-offset", target.to_offset, "To this offset");
  command
      .add_option("--to-time,--to-datetime", target.to_time,
                  "To the first record at or after a time: 2026-03-01T12:30:00Z, or milliseconds "
                  "since 1970")
      ->type_name("TIME");
}

void add_topic_changes(CLI::App& topic, AllOptions& all) {
  CLI::App* alter = topic.add_subcommand("alter", "Add partitions, change settings");
  alter->add_option("name,--topic", all.alter.name, "Topic")->required();
  alter->add_option("--partitions", all.alter.partitions, "New number of partitions, a larger one");
  alter->add_flag("--force", all.alter.force,
                  "Also a topic with weir.ordered=true, whose keys then change partitions");
  alter->add_option("--config", all.alter.config, "Setting by Kafka's name, repeatable")
      ->type_name("K=V")
      ->expected(1)
      ->take_all();
  alter
      ->add_option("--delete-config", all.alter.delete_config,
                   "Setting that goes back to its default, repeatable")
      ->type_name("K")
      ->expected(1)
      ->take_all();
  alter->footer(
      "Examples:\n  weir topic alter orders --partitions 8\n"
      "  weir topic alter orders --config retention.ms=86400000 --delete-config segment.ms");
  alter->callback([&all] { all.run = [&all] { return topic_alter(all.common, all.alter); }; });

  CLI::App* records =
      topic.add_subcommand("delete-records", "Move the start of a partition: what is before goes");
  records->add_option("name,--topic", all.delete_records.name, "Topic")->required();
  records->add_option("--partition", all.delete_records.partition, "Partition")->required();
  records
      ->add_option("--before", all.delete_records.before,
                   "New first offset; -1: everything that is acknowledged")
      ->required();
  records->footer("Example:\n  weir topic delete-records orders --partition 0 --before 1000");
  records->callback([&all] {
    all.run = [&all] { return topic_delete_records(all.common, all.delete_records); };
  });
  CLI::App* compact =
      topic.add_subcommand("compact", "Keep the last record of every key of what is rolled");
  compact->add_option("name,--topic", all.topic, "Topic with cleanup.policy=compact")->required();
  compact->footer("Example:\n  weir topic compact profiles");
  compact->callback([&all] { all.run = [&all] { return topic_compact(all.common, all.topic); }; });
  for (CLI::App* command : {alter, records, compact}) {
    command->fallthrough();
  }
}

void add_topic_commands(CLI::App& app, AllOptions& all) {
  CLI::App* topic = app.add_subcommand("topic", "Make, list, describe and delete topics");
  topic->require_subcommand(1);
  topic->fallthrough();

  CLI::App* create = topic->add_subcommand("create", "Make a topic");
  create->add_option("name,--topic", all.create.name, "Name: 1 to 249 of A-Z a-z 0-9 . _ -")
      ->required();
  create->add_option("--partitions", all.create.partitions, "Number of partitions")
      ->capture_default_str();
  create->add_option("--config", all.create.config, "Setting by Kafka's name, repeatable")
      ->type_name("K=V")
      ->expected(1)
      ->take_all();
  create->footer(
      "Examples:\n  weir topic create orders --partitions 4\n"
      "  weir topic create metrics --config weir.durability=memory --config segment.bytes=1048576");
  create->callback([&all] { all.run = [&all] { return topic_create(all.common, all.create); }; });

  CLI::App* list = topic->add_subcommand("list", "One topic a line");
  list->footer("Example:\n  weir topic list -o json");
  list->callback([&all] { all.run = [&all] { return topic_list(all.common); }; });

  CLI::App* describe = topic->add_subcommand("describe", "Partitions, offsets and settings");
  describe->add_option("name,--topic", all.topic, "Topic; all without it");
  describe->footer("Example:\n  weir topic describe orders");
  describe->callback(
      [&all] { all.run = [&all] { return topic_describe(all.common, all.topic); }; });

  CLI::App* remove = topic->add_subcommand(
      "delete", "Delete a topic, its records and every group's offsets for it");
  remove->add_option("name,--topic", all.topic, "Topic")->required();
  remove->footer("Example:\n  weir topic delete orders");
  remove->callback([&all] { all.run = [&all] { return topic_delete(all.common, all.topic); }; });
  for (CLI::App* command : {create, list, describe, remove}) {
    command->fallthrough();
  }
  add_topic_changes(*topic, all);
}

void add_produce_command(CLI::App& app, AllOptions& all) {
  CLI::App* produce_app = app.add_subcommand("produce", "Write a record for each line of stdin");
  produce_app->add_option("topic,--topic", all.produce.topic, "Topic")->required();
  produce_app->add_flag("--parse-key", all.produce.parse_key, "Each line is KEY SEPARATOR VALUE");
  produce_app->add_option("--key-separator", all.produce.key_separator,
                          "Separator of --parse-key (default: tab)");
  produce_app->add_option("--partition", all.produce.partition,
                          "Partition (default: by the key, else spread)");
  produce_app
      ->add_flag("--parse-partition", all.produce.parse_partition,
                 "Each line is PARTITION SEPARATOR and what else it is")
      ->excludes("--partition");
  produce_app->add_option("--null-marker", all.produce.null_marker,
                          "Key, value or header value that is written as null");
  produce_app->add_option("--header", all.produce.headers, "Header of every record, repeatable")
      ->type_name("K=V")
      ->expected(1)
      ->take_all();
  produce_app->add_option("--acks", all.produce.acks,
                          "all: on disk; 1: appended; 0: not waited for (default all)");
  produce_app
      ->add_option("--compression,--compression-codec", all.produce.compression,
                   "Codec of the batches: none, gzip, snappy, lz4 or zstd (default none)")
      ->type_name("CODEC");
  produce_app
      ->add_option("--producer-property,--config", all.produce.config,
                   "Producer setting by Kafka's name")
      ->type_name("K=V")
      ->expected(1)
      ->take_all();
  produce_app->footer(
      "Examples:\n  seq 10 | weir produce numbers\n"
      "  printf 'a=1\\nb=2\\n' | weir produce pairs --parse-key --key-separator =\n"
      "  printf 'a=-\\n' | weir produce pairs --parse-key --key-separator = --null-marker -");
  produce_app->fallthrough();
  produce_app->callback([&all] { all.run = [&all] { return produce(all.common, all.produce); }; });
}

// How records are printed.
void add_record_format(CLI::App& command, RecordFormat& format) {
  const CLI::Validator formats =
      CLI::IsMember({"string", "hex", "short", "integer", "long", "float", "double"})
          .description("");
  command.add_flag("--print-key", format.print_key, "KEY SEPARATOR VALUE");
  command.add_flag("--print-offset", format.print_offset, "Partition and offset in front");
  command.add_flag("--print-timestamp", format.print_timestamp, "Timestamp in front");
  command.add_flag("--print-headers", format.print_headers, "Headers in front, name:value,...");
  command.add_option("--separator,--key-separator", format.separator,
                     "Between the columns (default: tab)");
  command
      .add_option("--key-format", format.key_format,
                  "string, hex, short, integer, long, float, double")
      ->type_name("FORMAT")
      ->check(formats);
  command.add_option("--value-format", format.value_format, "The same for values")
      ->type_name("FORMAT")
      ->check(formats);
}

void add_consume_command(CLI::App& app, AllOptions& all) {
  ConsumeOptions& options = all.consume;
  CLI::App* consume_app =
      app.add_subcommand("consume", "Print records, from the beginning to the end as of the start");
  consume_app->add_option("topic,--topic", options.topic, "Topic")->required();
  consume_app->add_option("--partition", options.partition, "Only this partition");
  consume_app->add_option("--offset", options.offset,
                          "Start here; with several partitions name one");
  consume_app
      ->add_option("--time", options.time,
                   "Start at the first record at or after this time: 2026-03-01T12:30:00Z, "
                   "or milliseconds since 1970")
      ->type_name("TIME");
  consume_app->add_flag("--latest", options.latest, "Start behind the last record: with --follow");
  consume_app->add_option("--group", options.group,
                          "Start at this group's committed offsets, and commit what was printed");
  consume_app->add_option("--max-messages", options.max_messages, "Stop after this many");
  consume_app
      ->add_option(
          "--isolation-level", options.isolation_level,
          "read_committed leaves out what was aborted and ends where a transaction is open")
      ->check(CLI::IsMember({"read_uncommitted", "read_committed"}))
      ->capture_default_str();
  consume_app->add_flag("--follow", options.follow,
                        "Go on with what is written later; Ctrl-C ends");
  add_record_format(*consume_app, options.format);
  consume_app->footer(
      "Examples:\n  weir consume orders --partition 0 --offset 100 --max-messages 5\n"
      "  weir consume word-counts --print-key --value-format long\n"
      "  weir consume orders --follow -o json\n"
      "  weir consume orders --time 2026-03-01\n"
      "  weir consume orders --group audit      # goes on where it stopped");
  consume_app->fallthrough();
  consume_app->callback([&all] { all.run = [&all] { return consume(all.common, all.consume); }; });
}

void add_replay_command(CLI::App& app, AllOptions& all) {
  ReplayOptions& options = all.replay;
  CLI::App* replay_app = app.add_subcommand(
      "replay", "Print or copy the records of a folder that Kafka or Weir left, without an import");
  replay_app
      ->add_option("--from-dir", options.from_dir,
                   "Kafka's data directory, the log folder of Weir's, any folder with partition "
                   "folders, or one partition folder; never written to")
      ->type_name("FOLDER")
      ->required();
  replay_app->add_option("--topic", options.topic,
                         "Topic of the folder; not needed if there is one");
  replay_app->add_option("--to", options.to,
                         "Append to this topic of the data directory; printed without it");
  replay_app->add_option("--partition", options.partition, "Only this partition");
  replay_app
      ->add_option("--from-time", options.from_time,
                   "Start at the first record at or after this time: 2026-03-01T12:30:00Z, or "
                   "milliseconds since 1970")
      ->type_name("TIME");
  replay_app->add_flag("--uncommitted", options.uncommitted,
                       "Also records of aborted and unfinished transactions");
  add_record_format(*replay_app, options.format);
  replay_app->footer(
      "Every intact record is read once, each partition in the order of its offsets, up to the end "
      "as of\nthe start; damage is stepped over, reported, and makes the exit code 6.\n"
      "With --to: key, value, headers and timestamp stay, the partition's number too; offsets are "
      "new, "
      "behind\nwhat the topic holds. A topic that is absent is made with as many partitions and "
      "retention.ms=-1.\nRunning it again appends all of it again; after an interruption delete "
      "the topic "
      "first.\n"
      "Examples:\n  weir replay --from-dir /var/lib/kafka/data --topic orders --print-key\n"
      "  weir replay --from-dir backup/orders-0 -o json\n"
      "  weir replay --from-dir backup --topic orders --to orders --from-time 2026-03-01");
  replay_app->fallthrough();
  replay_app->callback([&all] { all.run = [&all] { return replay(all.common, all.replay); }; });
}

void add_group_commands(CLI::App& app, AllOptions& all) {
  CLI::App* group = app.add_subcommand("group", "Consumer groups and their committed offsets");
  group->require_subcommand(1);
  group->fallthrough();
  CLI::App* list =
      group->add_subcommand("list", "Groups with members or committed offsets, one a line");
  list->footer(
      "Examples:\n  weir group list\n  weir group list -o json    # with state and generation");
  list->callback([&all] { all.run = [&all] { return group_list(all.common); }; });

  CLI::App* describe =
      group->add_subcommand("describe", "Offsets, ends and lags of a group, or its members");
  describe->add_option("group,--group", all.group, "Group")->required();
  describe->add_flag("--members", all.group_describe.members,
                     "State, generation and members instead of offsets");
  describe->footer("Examples:\n  weir group describe audit\n  weir group describe audit --members");
  describe->callback([&all] {
    all.run = [&all] { return group_describe(all.common, all.group, all.group_describe); };
  });

  CLI::App* remove =
      group->add_subcommand("delete", "Delete a group without members, and its offsets");
  remove->add_option("group,--group", all.group, "Group")->required();
  remove->footer("Example:\n  weir group delete audit");
  remove->callback([&all] { all.run = [&all] { return group_delete(all.common, all.group); }; });

  CLI::App* reset = group->add_subcommand(
      "reset", "Move a group's offsets; without --execute only say what would change");
  reset->add_option("group,--group", all.group_reset.group, "Group; a new one is made")->required();
  reset->add_option("--topic", all.group_reset.topics, "Topic, repeatable")
      ->required()
      ->expected(1)
      ->take_all();
  reset
      ->add_option("--partition", all.group_reset.partitions,
                   "Only this partition of the topic, repeatable")
      ->expected(1)
      ->take_all();
  add_offset_target(*reset, all.group_reset.target);
  reset->add_flag("--execute", all.group_reset.execute, "Do it");
  reset->footer(
      "Examples:\n  weir group reset audit --topic orders --to-earliest\n"
      "  weir group reset audit --topic orders --to-time 2026-03-01 --partition 0 --execute");
  reset->callback(
      [&all] { all.run = [&all] { return group_reset(all.common, all.group_reset); }; });
  for (CLI::App* command : {list, describe, remove, reset}) {
    command->fallthrough();
  }
}

void add_app_commands(CLI::App& app, AllOptions& all) {
  CLI::App* apps = app.add_subcommand("app", "Applications that keep state in this directory");
  apps->require_subcommand(1);
  apps->fallthrough();
  CLI::App* list = apps->add_subcommand("list", "Applications, whether they run, their stores");
  list->footer("Example:\n  weir app list");
  list->callback([&all] { all.run = [&all] { return app_list(all.common); }; });

  CLI::App* describe =
      apps->add_subcommand("describe", "Sub-topologies, stores, topics and committed offsets");
  describe->add_option("application", all.application, "Application id")->required();
  describe->footer("Example:\n  weir app describe word-count");
  describe->callback(
      [&all] { all.run = [&all] { return app_describe(all.common, all.application); }; });

  CLI::App* reset = apps->add_subcommand(
      "reset",
      "Take an application back to the start: deletes its internal topics, its offsets and its "
      "state; without --execute only say what would go");
  reset->add_option("application", all.app_reset.application, "Application id")->required();
  add_offset_target(*reset, all.app_reset.target);
  reset->add_flag("--execute", all.app_reset.execute, "Do it");
  reset->footer(
      "Its output topics stay as they are. Without a target it begins with the first record that\n"
      "is there.\n"
      "Examples:\n  weir app reset word-count\n"
      "  weir app reset word-count --to-time 2026-03-01 --execute");
  reset->callback([&all] { all.run = [&all] { return app_reset(all.common, all.app_reset); }; });
  for (CLI::App* command : {list, describe, reset}) {
    command->fallthrough();
  }
}

void add_config_commands(CLI::App& app, AllOptions& all) {
  CLI::App* config = app.add_subcommand("config", "Settings and what they mean");
  config->require_subcommand(1);
  config->fallthrough();
  CLI::App* list = config->add_subcommand(
      "list", "Every setting with default, range and meaning; needs no data");
  list->add_option("kind", all.config_kind, "Only these: log, topic, producer, consumer or app")
      ->check(CLI::IsMember({"log", "topic", "producer", "consumer", "app"}).description(""))
      ->type_name("KIND");
  list->footer("Example:\n  weir config list topic");
  list->fallthrough();
  list->callback([&all] { all.run = [&all] { return config_list(all.common, all.config_kind); }; });
}

void add_state_commands(CLI::App& app, AllOptions& all) {
  StateOptions& options = all.state;
  CLI::App* state = app.add_subcommand("state", "Read an application's stores, also while it runs");
  state->require_subcommand(1);
  state->fallthrough();
  CLI::App* get = state->add_subcommand("get", "The committed value of a key");
  CLI::App* scan = state->add_subcommand("scan", "All keys of a store in order of their bytes");
  for (CLI::App* command : {get, scan}) {
    command->add_option("application", options.application, "Application id")->required();
    command->add_option("store", options.store, "Store")->required();
    command->fallthrough();
  }
  get->add_option("key", options.key, "Key, as text of the store's key type")->required();
  scan->add_option("--from", options.from, "First key, inclusive");
  scan->add_option("--to", options.to, "End, exclusive");
  get->footer("Example:\n  weir state get word-count counts the");
  scan->footer("Example:\n  weir state scan word-count counts --from a --to b");
  get->callback([&all] { all.run = [&all] { return state_get(all.common, all.state); }; });
  scan->callback([&all] { all.run = [&all] { return state_scan(all.common, all.state); }; });
}

void add_log_dump_command(CLI::App& log, AllOptions& all) {
  CLI::App* dump =
      log.add_subcommand("dump", "What stands in the files of a log; needs no data directory");
  LogDumpOptions& options = all.log_dump;
  dump->add_option("path", options.path,
                   "A partition folder, a file in it, or a log directory for its checkpoints")
      ->required();
  dump->add_flag("--skip-records", options.skip_records, "Batches only");
  dump->add_flag("--offsets-decoder", options.offsets_decoder,
                 "Records are those of __consumer_offsets");
  dump->add_flag("--transaction-log-decoder", options.transaction_log_decoder,
                 "Records are those of __transaction_state");
  dump->add_flag("--cluster-metadata-decoder", options.cluster_metadata_decoder,
                 "Records are those of __cluster_metadata");
  dump->add_flag("--no-decoder", options.no_decoder,
                 "Records as bytes; without any of these the folder's topic decides");
  dump->fallthrough();
  dump->footer(
      "Examples:\n  weir log dump weir-data/log/lines-0 -o json\n"
      "  weir log dump copy-of-offsets --offsets-decoder");
  dump->callback([&all] { all.run = [&all] { return log_dump(all.common, all.log_dump); }; });
}

void add_log_commands(CLI::App& app, AllOptions& all) {
  CLI::App* log = app.add_subcommand("log", "Look into log files, check and close them");
  log->require_subcommand(1);
  log->fallthrough();
  add_log_dump_command(*log, all);
  CLI::App* verify = log->add_subcommand(
      "verify", "Check batches, indexes, snapshots and checkpoints; 6 when something is damaged");
  verify
      ->add_option("path", all.paths,
                   "Partition folders, .log files, log directories or data directories")
      ->required();
  verify->fallthrough();
  verify->footer(
      "Examples:\n  weir log verify weir-data\n  weir log verify copy/lines-0 copy/lines-1 -o "
      "json");
  verify->callback([&all] { all.run = [&all] { return log_verify(all.common, all.paths); }; });
  CLI::App* seal = log->add_subcommand(
      "seal", "Make log/ complete by itself: open as the holder, recover if needed, close cleanly");
  CLI::App* recover = log->add_subcommand(
      "recover", "Open after a crash, say what was found in each partition, close cleanly");
  for (CLI::App* command : {seal, recover}) {
    command->add_option("dir", all.path, "Data directory; else --data");
    command->fallthrough();
  }
  seal->footer("Example:\n  weir log seal weir-data");
  recover->footer("Example:\n  weir log recover weir-data");
  seal->callback([&all] { all.run = [&all] { return log_seal(all.common, all.path); }; });
  recover->callback([&all] { all.run = [&all] { return log_recover(all.common, all.path); }; });
  CLI::App* version_app = app.add_subcommand("version", "Print the version");
  version_app->fallthrough();
  version_app->footer("Example:\n  weir version -o json");
  version_app->callback([&all] { all.run = [&all] { return version(all.common); }; });
}

}  // namespace

void add_dlq_commands(CLI::App& app, AllOptions& all) {
  CLI::App* dlq = app.add_subcommand("dlq", "Dead letters of sessions");
  dlq->require_subcommand(1);
  dlq->fallthrough();
  CLI::App* list = dlq->add_subcommand("list", "One letter a line, a session's in order");
  list->footer(
      "Examples:\n  weir dlq list chat.dlq\n"
      "  weir dlq list chat.dlq --session 1-17 --reason permanent -o json");
  list->callback([&all] { all.run = [&all] { return dlq_list(all.common, all.dlq); }; });

  CLI::App* show = dlq->add_subcommand("show", "One letter whole: key, value, every header");
  show->add_option("--partition", all.dlq.partition, "Partition of the letter")->required();
  show->add_option("--offset", all.dlq.offset, "Offset of the letter")->required();
  show->footer("Example:\n  weir dlq show chat.dlq --partition 0 --offset 12");
  show->callback([&all] { all.run = [&all] { return dlq_show(all.common, all.dlq); }; });

  CLI::App* redrive = dlq->add_subcommand(
      "redrive",
      "Send letters back where they came from, each session in order; without --execute only say "
      "what would be sent");
  redrive
      ->add_option("--max-redrives", all.dlq.redrives_max, "A letter that came back so often stays")
      ->check(CLI::Range(std::uint32_t{1}, std::uint32_t{1'000}).description(""))
      ->capture_default_str();
  redrive->add_flag("--execute", all.dlq.execute, "Do it");
  redrive->footer(
      "Examples:\n  weir dlq redrive chat.dlq\n"
      "  weir dlq redrive chat.dlq --reason exhausted --execute");
  redrive->callback([&all] { all.run = [&all] { return dlq_redrive(all.common, all.dlq); }; });

  for (CLI::App* command : {list, show, redrive}) {
    command->add_option("topic,--topic", all.dlq.topic, "Topic of dead letters")->required();
    command->fallthrough();
  }
  for (CLI::App* command : {list, redrive}) {
    command->add_option("--session", all.dlq.session, "Only letters of this session");
    command
        ->add_option("--reason", all.dlq.reason,
                     "Only letters with this reason: permanent, exhausted, gap_timeout, "
                     "quarantined")
        ->check(CLI::IsMember({"permanent", "exhausted", "gap_timeout", "quarantined"}));
  }
}

int run(int argc, char** argv) {
  AllOptions all;
  CLI::App app("Weir: topics, records, state and files of a data directory", kProgram);
  app.require_subcommand(1);
  add_common_options(app, all.common);
  add_topic_commands(app, all);
  add_produce_command(app, all);
  add_consume_command(app, all);
  add_replay_command(app, all);
  add_group_commands(app, all);
  add_app_commands(app, all);
  add_dlq_commands(app, all);
  add_state_commands(app, all);
  add_config_commands(app, all);
  add_log_commands(app, all);
  app.footer(
      "Examples:\n  weir topic create lines\n  weir produce lines < FILE\n  weir consume lines\n"
      "Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 timed out, 5 drain deadline, 6 damaged "
      "data");
  int code = 0;
  if (!parse(app, argc, argv, all.common, &code)) {
    return code;
  }
  return all.run();
}

}  // namespace weir::cli

int main(int argc, char** argv) {
  return weir::cli::run(argc, argv);
}
