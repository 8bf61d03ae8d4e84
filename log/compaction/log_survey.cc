#include "log/compaction/log_survey.h"

#include "log/segment/batch_scanner.h"
#include "log/segment/segment.h"
#include "log/segment/segment_names.h"

#include <map>
#include <utility>

namespace weir::log {
namespace {

class Survey {
 public:
  Status walk(File& file, std::uint64_t size) {
    BatchScanner scanner(file, 0, size);
    while (true) {
      WEIR_TRY_ASSIGN(const std::optional<BatchHeader> header, scanner.peek());
      if (!header) {
        return Status();
      }
      if (header->producer_id != kNoProducerId) {
        if (header->is_control()) {
          WEIR_TRY_ASSIGN(const ByteView batch, scanner.whole(*header));
          WEIR_TRY(add_marker(*header, batch));
        } else {
          add_data(*header);
        }
      }
      scanner.skip(*header);
    }
  }
  LogSurvey take() { return std::move(result_); }

 private:
  void add_data(const BatchHeader& header) {
    result_.producers[header.producer_id] = {header.producer_epoch, header.last_offset()};
    if (header.is_transactional()) {
      open_.try_emplace(header.producer_id, header.base_offset);
    }
  }

  Status add_marker(const BatchHeader& header, ByteView batch) {
    WEIR_TRY_ASSIGN(const std::optional<ControlType> type, marker_type(header, batch));
    result_.producers[header.producer_id] = {header.producer_epoch, kNoOffset};
    const auto open = open_.find(header.producer_id);
    if (type && open != open_.end()) {
      if (*type == ControlType::kAbort) {
        AbortedTransaction aborted;
        aborted.producer_id = header.producer_id;
        aborted.first_offset = open->second;
        aborted.last_offset = header.last_offset();
        result_.aborted.push_back(aborted);
      }
      open_.erase(open);
    }
    return Status();
  }

  LogSurvey result_;
  std::map<ProducerId, Offset> open_;
};

}  // namespace

Result<LogSurvey> survey_log(FileSystem& files, Partition& partition) {
  Survey survey;
  for (const std::shared_ptr<Segment>& segment : partition.segments()) {
    const auto [size, end] = segment->published_end();
    WEIR_TRY_ASSIGN(const std::shared_ptr<File> file,
                    files.open(segment->path(kLogSuffix), OpenMode::kRead));
    WEIR_TRY(survey.walk(*file, size));
  }
  return survey.take();
}

}  // namespace weir::log
