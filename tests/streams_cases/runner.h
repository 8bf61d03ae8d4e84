#pragma once

#include "tests/streams_cases/case_file.h"

#include <string>

namespace weir::streams_cases {

enum class Outcome {
  kPassed,
  kDifferent,  // does what differences.jsonl says, which is not what Kafka does
  kSkipped,
  kFailed,
};

struct CaseResult {
  Outcome outcome = Outcome::kPassed;
  // kSkipped: the reason. kFailed: the first event that is wrong, with what was expected and what
  // came, or what is wrong at the end; several lines.
  std::string text;
};

// Builds the topology, pipes each event and compares outputs, internal records (where recorded),
// drops, errors, and at the end drops, stores, topics. Of an error only that there is one is
// compared: Kafka's classes and messages are Java's. What a failing event had sent before is not
// compared (a real producer may or may not have sent it).
CaseResult run_case(const Case& c);

// Encodes the value and decodes the bytes.
CaseResult check_bytes(const BytesRow& row);

}  // namespace weir::streams_cases
