// The weir tool: topics, records, state and files of a data directory from the shell.
#include "apps/cli/exit_codes.h"
#include "apps/weir/commands.h"

#include <weir/runtime/settings.h>

#include <CLI/CLI.hpp>

#include <iterator>

namespace weir::cli {
namespace {

struct AllOptions {
  CommonOptions common;
  TopicCreateOptions create;
  std::string topic;
  ProduceOptions produce;
  ConsumeOptions consume;
  StateOptions state;
  std::string path;
  std::function<int()> run;
};

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
  list->callback([&all] { all.run = [&all] { return topic_list(all.common); }; });

  CLI::App* describe = topic->add_subcommand("describe", "Partitions, offsets and settings");
  describe->add_option("name,--topic", all.topic, "Topic; all without it");
  describe->callback(
      [&all] { all.run = [&all] { return topic_describe(all.common, all.topic); }; });

  CLI::App* remove = topic->add_subcommand(
      "delete", "Delete a topic, its records and every group's offsets for it");
  remove->add_option("name,--topic", all.topic, "Topic")->required();
  remove->callback([&all] { all.run = [&all] { return topic_delete(all.common, all.topic); }; });
  for (CLI::App* command : {create, list, describe, remove}) {
    command->fallthrough();
  }
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
      ->add_option("--producer-property,--config", all.produce.config,
                   "Producer setting by Kafka's name")
      ->type_name("K=V")
      ->expected(1)
      ->take_all();
  produce_app->footer(
      "Examples:\n  seq 10 | weir produce numbers\n"
      "  printf 'a=1\\nb=2\\n' | weir produce pairs --parse-key --key-separator =");
  produce_app->fallthrough();
  produce_app->callback([&all] { all.run = [&all] { return produce(all.common, all.produce); }; });
}

void add_consume_command(CLI::App& app, AllOptions& all) {
  ConsumeOptions& options = all.consume;
  CLI::App* consume_app =
      app.add_subcommand("consume", "Print records, from the beginning to the end as of the start");
  consume_app->add_option("topic,--topic", options.topic, "Topic")->required();
  consume_app->add_option("--partition", options.partition, "Only this partition");
  consume_app->add_option("--offset", options.offset,
                          "Start here; with several partitions name one");
  consume_app->add_option("--max-messages", options.max_messages, "Stop after this many");
  consume_app->add_flag("--follow", options.follow,
                        "Go on with what is written later; Ctrl-C ends");
  consume_app->add_flag("--print-key", options.print_key, "KEY SEPARATOR VALUE");
  consume_app->add_flag("--print-offset", options.print_offset, "Partition and offset in front");
  consume_app->add_flag("--print-timestamp", options.print_timestamp, "Timestamp in front");
  consume_app->add_flag("--print-headers", options.print_headers,
                        "Headers in front, name:value,...");
  consume_app->add_option("--separator,--key-separator", options.separator,
                          "Between the columns (default: tab)");
  const CLI::IsMember formats({"string", "hex", "short", "integer", "long", "float", "double"});
  consume_app
      ->add_option("--key-format", options.key_format,
                   "string, hex, short, integer, long, float, double")
      ->type_name("FORMAT")
      ->check(formats);
  consume_app->add_option("--value-format", options.value_format, "The same for values")
      ->type_name("FORMAT")
      ->check(formats);
  consume_app->footer(
      "Examples:\n  weir consume orders --partition 0 --offset 100 --max-messages 5\n"
      "  weir consume word-counts --print-key --value-format long\n"
      "  weir consume orders --follow -o json");
  consume_app->fallthrough();
  consume_app->callback([&all] { all.run = [&all] { return consume(all.common, all.consume); }; });
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

void add_log_commands(CLI::App& app, AllOptions& all) {
  CLI::App* log = app.add_subcommand("log", "Look into log files");
  log->require_subcommand(1);
  log->fallthrough();
  CLI::App* dump =
      log->add_subcommand("dump", "Batches, records and indexes; needs no data directory");
  dump->add_option("path", all.path, "A partition folder or a file in it")->required();
  dump->fallthrough();
  dump->footer("Example:\n  weir log dump weir-data/log/lines-0 -o json");
  dump->callback([&all] { all.run = [&all] { return log_dump(all.common, all.path); }; });
  CLI::App* version_app = app.add_subcommand("version", "Print the version");
  version_app->fallthrough();
  version_app->callback([&all] { all.run = [&all] { return version(all.common); }; });
}

}  // namespace

int run(int argc, char** argv) {
  AllOptions all;
  CLI::App app("Weir: topics, records, state and files of a data directory", kProgram);
  app.require_subcommand(1);
  add_common_options(app, all.common);
  add_topic_commands(app, all);
  add_produce_command(app, all);
  add_consume_command(app, all);
  add_state_commands(app, all);
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
