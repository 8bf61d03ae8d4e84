#include "apps/cli/exit_codes.h"
#include "apps/cli/json_text.h"
#include "apps/cli/line_reader.h"
#include "apps/weir/commands.h"

#include <weir/log/producer.h>

#include <fmt/core.h>

#include <charconv>
#include <optional>
#include <unistd.h>

namespace weir::cli {
namespace {

struct Totals {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint64_t refused = 0;
};

// A stdin of lines as records.
class Run {
 public:
  Run(const ProduceOptions& options, std::int64_t limit) : options_(options), limit_(limit) {}

  // Errors: kInvalidArgument.
  Status read_headers() {
    for (const std::string& header : options_.headers) {
      const std::size_t equals = header.find('=');
      if (equals == std::string::npos) {
        return Error(Errc::kInvalidArgument,
                     fmt::format("'{}' is no header; write it as name=value", header));
      }
      headers_.add(ByteView(header).substr(0, equals),
                   value_of(ByteView(header).substr(equals + 1)));
    }
    return {};
  }

  Status execute(log::Producer& producer) {
    LineReader reader(STDIN_FILENO, static_cast<std::size_t>(limit_));
    for (;;) {
      WEIR_TRY_ASSIGN(const std::optional<LineReader::Line> line, reader.next());
      if (!line) {
        return producer.flush();
      }
      WEIR_TRY(send(producer, *line));
    }
  }

  const Totals& totals() const { return totals_; }

 private:
  // A record, or a message that says which line was not written and why.
  Status send(log::Producer& producer, const LineReader::Line& line) {
    if (line.too_long) {
      return refuse(line,
                    fmt::format("it has {} bytes, max.request.size is {}", line.size, limit_));
    }
    log::ProducerRecord record;
    record.topic = options_.topic;
    record.headers = headers_.view();
    if (options_.partition) {
      record.partition = PartitionId(*options_.partition);
    }
    std::string_view rest = line.text;
    if (options_.parse_partition) {
      const std::optional<std::string_view> text = cut(rest);
      record.partition = text ? parse_partition(*text) : std::nullopt;
      if (!record.partition) {
        return refuse(line, fmt::format("it does not begin with a partition number and the "
                                        "separator '{}'",
                                        options_.key_separator));
      }
    }
    if (options_.parse_key) {
      const std::optional<std::string_view> key = cut(rest);
      if (!key) {
        return refuse(line, fmt::format("it has no key separator '{}'", options_.key_separator));
      }
      record.key = value_of(*key);
    }
    record.value = value_of(rest);
    return check(line, producer.send(record));
  }

  // Mistakes of the line are said, the others end the run.
  Status check(const LineReader::Line& line, Status sent) {
    if (!sent.ok()) {
      const Errc code = sent.error().code();
      const bool of_the_line = code == Errc::kRecordTooLarge ||
                               (code == Errc::kUnknownTopic && options_.parse_partition);
      return of_the_line ? refuse(line, sent.error().message()) : sent;
    }
    ++totals_.records;
    totals_.bytes += line.text.size();
    return {};
  }

  Status refuse(const LineReader::Line& line, const std::string& why) {
    fmt::print(stderr, "{}: line {} was not written: {}\n", kProgram, line.number, why);
    ++totals_.refused;
    return {};
  }

  // What stands in front of the separator, which is taken away too.
  std::optional<std::string_view> cut(std::string_view& rest) const {
    const std::size_t at = rest.find(options_.key_separator);
    if (at == std::string_view::npos) {
      return std::nullopt;
    }
    const std::string_view front = rest.substr(0, at);
    rest.remove_prefix(at + options_.key_separator.size());
    return front;
  }

  static std::optional<PartitionId> parse_partition(std::string_view text) {
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool ok = error == std::errc() && end == text.data() + text.size() && number >= 0;
    return ok ? std::optional(PartitionId(number)) : std::nullopt;
  }

  NullableBytes value_of(std::string_view text) const {
    return options_.null_marker && text == *options_.null_marker ? NullableBytes()
                                                                 : NullableBytes(text);
  }

  const ProduceOptions& options_;
  const std::int64_t limit_;
  Headers headers_;
  Totals totals_;
};

Result<log::ProducerOptions> read_options(const ProduceOptions& options) {
  if ((options.parse_key || options.parse_partition) && options.key_separator.empty()) {
    return Error(Errc::kInvalidArgument, "--key-separator cannot be empty");
  }
  WEIR_TRY_ASSIGN(auto settings, parse_pairs(options.config));
  settings.try_emplace("batch.size", "65536");
  if (options.acks) {
    settings["acks"] = *options.acks;
  }
  if (options.compression) {
    settings["compression.type"] = *options.compression;
  }
  return log::ProducerOptions::parse(settings);
}

Status send_all(log::EmbeddedLog& log, const ProduceOptions& options,
                const log::ProducerOptions& producer_options, Run& run) {
  if (Result<TopicDescription> topic = log.admin().describe_topic(options.topic); !topic.ok()) {
    return Error(topic.error().code(), fmt::format("{}; make it with: weir topic create {}",
                                                   topic.error().message(), options.topic));
  }
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::Producer> producer,
                  log::Producer::open(log, producer_options));
  return run.execute(*producer);
}

}  // namespace

int produce(const CommonOptions& common, const ProduceOptions& options) {
  const Result<log::ProducerOptions> producer_options = read_options(options);
  if (!producer_options.ok()) {
    return report(kProgram, producer_options.error());
  }
  Run run(options, producer_options->max_request_size);
  if (const Status headers = run.read_headers(); !headers.ok()) {
    return report(kProgram, headers.error());
  }
  const int code = with_log(common, Access::kWrite, [&](log::EmbeddedLog& log) {
    return send_all(log, options, *producer_options, run);
  });
  const Totals& totals = run.totals();
  if (code == kOk && common.format == Format::kJson) {
    Output out;
    out.line(fmt::format(R"({{"topic":{},"records":{},"bytes":{},"refused":{}}})",
                         json_string(options.topic), totals.records, totals.bytes, totals.refused));
  } else if (code == kOk && !common.quiet) {
    fmt::print(stderr, "{} records, {} bytes acknowledged by topic {}\n", totals.records,
               totals.bytes, options.topic);
  }
  return code == kOk && totals.refused > 0 ? static_cast<int>(kRuntimeFailure) : code;
}

}  // namespace weir::cli
