#include "log/compaction/log_survey.h"

#include "log/segment/segment.h"

namespace weir::log {

Result<LogSurvey> survey_log(Partition& partition, Timestamp now) {
  LogSurvey survey;
  for (const std::shared_ptr<Segment>& segment : partition.segments()) {
    WEIR_TRY_ASSIGN(const AbortedTransactions aborted, segment->aborted_transactions());
    survey.aborted.insert(survey.aborted.end(), aborted.begin(), aborted.end());
  }
  ProducerState state = partition.producers();
  state.expire(now);
  for (const ProducerEntry& producer : state.entries()) {
    survey.producers[producer.id] = {producer.epoch, producer.last_offset};
  }
  return survey;
}

}  // namespace weir::log
