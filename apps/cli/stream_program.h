#pragma once

#include "apps/cli/options.h"

#include <weir/log/producer.h>
#include <weir/operators/topology.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// What programs such as word_count and averages share: an input is fed to a topic, an application
// works on it, and what it wrote to another topic is shown as a table.

namespace weir::cli {

struct StreamOptions {
  CommonOptions common;
  std::string application_id;
  std::string input;
  std::string output;
  std::int32_t partitions = 1;
  std::int64_t threads = 1;
  std::string from_dir;  // of the input topic; empty: the data directory
  bool until_end = false;
  std::optional<std::size_t> top;
  std::vector<std::string> config;  // of the application, "k=v"
};

// Adds the options above, whose present values are the defaults. `rows`: what --top counts.
void add_stream_options(CLI::App& app, StreamOptions& options, const std::string& rows);

// Sends an input to a topic. Threading: run() on one thread; stop() from any.
class Feeder {
 public:
  virtual ~Feeder() = default;
  // Until the end of the input or stop(); returns when all of it is acknowledged.
  virtual Status run(log::Producer& producer, const std::string& topic) = 0;
  virtual void stop() = 0;
  // Whether something of the input was not sent: the program then ends with exit code 1.
  virtual bool refused() const { return false; }
};

// What the output topic says. Threading: confined to its owner.
class ResultTable {
 public:
  virtual ~ResultTable() = default;
  // Takes what is there. True when something changed.
  virtual Result<bool> update() = 0;
  // Reads up to the end as of now.
  virtual Status update_to_end() = 0;
  // `top`: at most so many lines.
  virtual std::string text(std::optional<std::size_t> top, Format format) const = 0;
};

struct StreamProgram {
  std::string name;
  Topology topology;
  TopicConfig input_config;  // of the topics when they are made
  TopicConfig output_config;
  // Null: nothing is fed.
  std::function<Result<std::unique_ptr<Feeder>>(log::EmbeddedLog&)> open_feeder;
  std::function<Result<std::unique_ptr<ResultTable>>(Backend&)> open_table;
};

// Runs the program until its end (StreamOptions::until_end), a signal or an error, drains it and
// prints the table; on a terminal the table is drawn anew while it works. Returns the exit code.
int run_stream_program(StreamProgram program, const StreamOptions& options);

}  // namespace weir::cli
