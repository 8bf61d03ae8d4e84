#include "apps/weir/record_text.h"

#include "apps/cli/json_text.h"
#include "apps/weir/serde_text.h"

#include <fmt/core.h>

namespace weir::cli {
namespace {

std::string text_of(const NullableBytes& bytes, const std::string& serde) {
  return bytes.is_null() ? "null" : value_text(serde, bytes.view());
}

std::string headers_text(const HeadersView& headers) {
  std::string text;
  for (const HeaderView& header : headers) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", header.name,
                        header.value.is_null() ? ByteView("null") : header.value.view());
  }
  return text.empty() ? "NO_HEADERS" : text;
}

}  // namespace

void print_record(Output& out, Format format, const RecordFormat& text,
                  const TopicPartition& partition, const RecordView& record) {
  if (format == Format::kJson) {
    out.line(json_record(partition, record));
    return;
  }
  if (text.print_timestamp) {
    out.write(fmt::format("CreateTime:{}{}", record.timestamp, text.separator));
  }
  if (text.print_offset) {
    out.write(fmt::format("Partition:{}{}Offset:{}{}", partition.partition.value(), text.separator,
                          record.offset.value(), text.separator));
  }
  if (text.print_headers) {
    out.write(headers_text(record.headers) + text.separator);
  }
  if (text.print_key) {
    out.write(text_of(record.key, text.key_format) + text.separator);
  }
  out.line(text_of(record.value, text.value_format));
}

}  // namespace weir::cli
