#include "apps/cli/columns.h"
#include "apps/cli/json_text.h"
#include "apps/weir/commands.h"

#include <weir/operators/dead_letters.h>

#include <fmt/core.h>

namespace weir::cli {
namespace {

DeadLetterFilter filter_of(const DlqOptions& options) {
  return {.session = options.session, .reason = options.reason};
}

std::string printable(std::string_view bytes) {
  return is_utf8(bytes) ? std::string(bytes) : "0x" + hex_text(bytes);
}

std::string session_text(const StoredDeadLetter& letter) {
  return letter.session.is_null() ? "(null)" : printable(letter.session.view());
}

std::string place_text(const StoredDeadLetter& letter) {
  return letter.source.has_value()
             ? fmt::format("{}/{}", letter.source->to_string(), letter.source_offset)
             : std::string();
}

std::string letter_json(const StoredDeadLetter& letter) {
  return fmt::format(
      R"({{"topic":{},"partition":{},"offset":{},"session":{},"reason":{},"attempts":{},)"
      R"("eventId":{},"source":{},"errorClass":{},"errorMessage":{},"redriveCount":{},)"
      R"("valueOmitted":{},"redriven":{}}})",
      json_string(letter.partition.topic), letter.partition.partition.value(),
      letter.record.offset.value(), json_bytes(letter.session), json_string(letter.reason),
      json_string(letter.attempts), json_string(letter.event_id), json_string(place_text(letter)),
      json_string(letter.error_class), json_string(letter.error_message), letter.redrive_count,
      letter.is_value_omitted, letter.is_redriven);
}

Status show(log::EmbeddedLog& log, const CommonOptions& common, const DlqOptions& options) {
  bool is_found = false;
  Output out;
  WEIR_TRY(read_dead_letters(log, options.topic, {}, [&](const StoredDeadLetter& letter) -> Status {
    if (letter.partition.partition.value() != options.partition ||
        letter.record.offset.value() != options.offset) {
      return {};
    }
    is_found = true;
    if (common.format == Format::kJson) {
      out.line(json_record(letter.partition, letter.record));
      return {};
    }
    const auto text = [](const NullableBytes& bytes) {
      return bytes.is_null() ? std::string("(null)") : printable(bytes.view());
    };
    out.line(fmt::format("key        {}", text(letter.record.key)));
    out.line(fmt::format("value      {}", text(letter.record.value)));
    out.line(fmt::format("timestamp  {}", letter.record.timestamp));
    out.line(fmt::format("redriven   {}", letter.is_redriven ? "yes" : "no"));
    for (const HeaderView& header : letter.record.headers) {
      out.line(fmt::format("header     {} = {}", printable(header.name), text(header.value)));
    }
    return {};
  }));
  if (!is_found) {
    return Error(Errc::kNotFound,
                 fmt::format("{} has no letter {} in partition {}; `weir dlq list {}` has them",
                             options.topic, options.offset, options.partition, options.topic));
  }
  return {};
}

Status list(log::EmbeddedLog& log, const CommonOptions& common, const DlqOptions& options) {
  Output out;
  Columns columns(
      {"PARTITION", "OFFSET", "SESSION", "REASON", "ATTEMPTS", "SOURCE", "REDRIVEN", "ERROR"});
  WEIR_TRY(read_dead_letters(
      log, options.topic, filter_of(options), [&](const StoredDeadLetter& letter) -> Status {
        if (common.format == Format::kJson) {
          out.line(letter_json(letter));
        } else {
          columns.add({std::to_string(letter.partition.partition.value()),
                       std::to_string(letter.record.offset.value()), session_text(letter),
                       std::string(letter.reason), std::string(letter.attempts), place_text(letter),
                       letter.is_redriven ? "yes" : "no", printable(letter.error_message)});
        }
        return {};
      }));
  if (common.format == Format::kText) {
    columns.print(out);
  }
  return {};
}

Status redrive(log::EmbeddedLog& log, const CommonOptions& common, const DlqOptions& options) {
  Output out;
  const RedriveOptions redriving{.topic = options.topic,
                                 .filter = filter_of(options),
                                 .redrives_max = options.redrives_max,
                                 .executes = options.execute};
  WEIR_TRY_ASSIGN(const RedriveResult result,
                  redrive_dead_letters(
                      log, redriving, [&](const StoredDeadLetter& letter, std::string_view held) {
                        if (!held.empty()) {
                          fmt::print(
                              stderr, "{}: letter {} of partition {} stays (session {}): {}\n",
                              kProgram, letter.record.offset.value(),
                              letter.partition.partition.value(), session_text(letter), held);
                        }
                      }));
  if (common.format == Format::kJson) {
    out.line(fmt::format(R"({{"topic":{},"redriven":{},"already":{},"held":{},"executed":{}}})",
                         json_string(options.topic), result.redriven, result.already, result.held,
                         options.execute));
    return {};
  }
  out.line(fmt::format("{} {}, {} were before, {} stay", result.redriven,
                       options.execute ? "letters were sent back" : "letters would be sent back",
                       result.already, result.held));
  if (!options.execute) {
    out.line("Nothing was changed; --execute does it.");
  }
  if (!common.quiet && result.redriven > 0) {
    fmt::print(stderr,
               "{}: a letter comes behind records of its session that were handled meanwhile, "
               "unless the session was in quarantine\n",
               kProgram);
  }
  return {};
}

}  // namespace

int dlq_list(const CommonOptions& common, const DlqOptions& options) {
  return with_log(common, Access::kRead,
                  [&](log::EmbeddedLog& log) { return list(log, common, options); });
}

int dlq_show(const CommonOptions& common, const DlqOptions& options) {
  return with_log(common, Access::kRead,
                  [&](log::EmbeddedLog& log) { return show(log, common, options); });
}

int dlq_redrive(const CommonOptions& common, const DlqOptions& options) {
  return with_log(common, options.execute ? Access::kWrite : Access::kRead,
                  [&](log::EmbeddedLog& log) { return redrive(log, common, options); });
}

}  // namespace weir::cli
