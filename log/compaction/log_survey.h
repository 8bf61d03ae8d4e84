#pragma once

#include "log/compaction/batch_cleaner.h"
#include "log/partition/partition.h"

namespace weir::log {

// What a pass has to know of transactions and producers.
struct LogSurvey {
  AbortedTransactions aborted;
  LastOfProducers producers;  // that are not expired
};

// Errors: kNotFound (a segment was removed meanwhile), kCorrupt, kIo.
Result<LogSurvey> survey_log(Partition& partition, Timestamp now);

}  // namespace weir::log
