#pragma once

#include "apps/cli/output.h"

#include <weir/runtime/record.h>

#include <string>

namespace weir::cli {

// How a record is printed as text.
struct RecordFormat {
  bool print_key = false;
  bool print_headers = false;
  bool print_offset = false;
  bool print_timestamp = false;
  std::string separator = "\t";
  std::string key_format = "string";  // a serde's name, or hex
  std::string value_format = "string";
};

// One line: as text by `text`, or as JSON.
void print_record(Output& out, Format format, const RecordFormat& text,
                  const TopicPartition& partition, const RecordView& record);

}  // namespace weir::cli
