#include "apps/cli/data_directory.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/line_reader.h"
#include "apps/weir/commands.h"

#include <weir/log/producer.h>

#include <fmt/core.h>

#include <unistd.h>

namespace weir::cli {
namespace {

struct Totals {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint64_t refused = 0;
};

// One line: a record, or a message that says which line was not written and why.
Status send_line(log::Producer& producer, const ProduceOptions& options,
                 const LineReader::Line& line, std::int64_t limit, Totals& totals) {
  const auto refuse = [&](const std::string& why) {
    fmt::print(stderr, "{}: line {} was not written: {}\n", kProgram, line.number, why);
    ++totals.refused;
    return Status();
  };
  if (line.too_long) {
    return refuse(fmt::format("it has {} bytes, max.request.size is {}", line.size, limit));
  }
  log::ProducerRecord record;
  record.topic = options.topic;
  if (options.partition) {
    record.partition = PartitionId(*options.partition);
  }
  record.value = line.text;
  if (options.parse_key) {
    const std::size_t at = line.text.find(options.key_separator);
    if (at == std::string_view::npos) {
      return refuse(fmt::format("it has no key separator '{}'", options.key_separator));
    }
    record.key = line.text.substr(0, at);
    record.value = line.text.substr(at + options.key_separator.size());
  }
  Status sent = producer.send(record);
  if (!sent.ok() && sent.error().code() == Errc::kRecordTooLarge) {
    return refuse(sent.error().message());
  }
  WEIR_TRY(sent);
  ++totals.records;
  totals.bytes += line.text.size();
  return {};
}

Status send_all(log::Producer& producer, const ProduceOptions& options, std::int64_t limit,
                Totals& totals) {
  LineReader reader(STDIN_FILENO, static_cast<std::size_t>(limit));
  for (;;) {
    WEIR_TRY_ASSIGN(const std::optional<LineReader::Line> line, reader.next());
    if (!line) {
      return producer.flush();
    }
    WEIR_TRY(send_line(producer, options, *line, limit, totals));
  }
}

}  // namespace

int produce(const CommonOptions& common, const ProduceOptions& options) {
  if (options.parse_key && options.key_separator.empty()) {
    return report(kProgram, Error(Errc::kInvalidArgument, "--key-separator cannot be empty"));
  }
  Result<std::map<std::string, std::string>> settings = parse_pairs(options.config);
  if (!settings.ok()) {
    return report(kProgram, settings.error());
  }
  settings->try_emplace("batch.size", "65536");
  Result<log::ProducerOptions> producer_options = log::ProducerOptions::parse(*settings);
  if (!producer_options.ok()) {
    return report(kProgram, producer_options.error());
  }
  auto log = open_for_writing(common.data);
  if (!log.ok()) {
    return report(kProgram, log.error());
  }
  Totals totals;
  Status sent;
  if (Result<TopicDescription> topic = (*log)->admin().describe_topic(options.topic); !topic.ok()) {
    sent = Error(topic.error().code(), fmt::format("{}; make it with: weir topic create {}",
                                                   topic.error().message(), options.topic));
  } else {
    Result<std::unique_ptr<log::Producer>> producer = log::Producer::open(**log, *producer_options);
    sent = producer.ok() ? send_all(**producer, options, producer_options->max_request_size, totals)
                         : producer.status();
  }
  const Status closed = (*log)->close();
  if (!sent.ok()) {
    return report(kProgram, sent.error());
  }
  if (!closed.ok()) {
    return report(kProgram, closed.error());
  }
  if (!common.quiet) {
    fmt::print(stderr, "{} records, {} bytes acknowledged by topic {}\n", totals.records,
               totals.bytes, options.topic);
  }
  return totals.refused == 0 ? kOk : kRuntimeFailure;
}

}  // namespace weir::cli
