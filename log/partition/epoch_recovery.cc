#include "log/partition/partition_loading.h"

#include <weir/runtime/logger.h>

namespace weir::log {

Status PartitionLoading::load_epochs() {
  std::string text;
  const bool exists = names_.contains(std::string(LeaderEpochCache::kFileName));
  if (exists) {
    WEIR_TRY_ASSIGN(text, read_file(files_, path_of(LeaderEpochCache::kFileName)));
  }
  Result<LeaderEpochCache> parsed = LeaderEpochCache::parse(text);
  if (parsed.ok() && !parsed->empty() && !lacks_beginning(*parsed)) {
    // An entry is written before the first batch of its epoch: the file knows every epoch.
    log_.epochs = *std::move(parsed);
  } else {
    if (!parsed.ok()) {
      WEIR_WARN("leader epochs rebuilt from the log partition={} reason=\"{}\"",
                options_.name.to_string(), parsed.error().message());
    }
    WEIR_TRY(rebuild_epochs());
  }
  if (replays()) {
    note_walked_epochs();
  }
  log_.epochs.truncate_from_end(log_.log_end);
  log_.epochs.truncate_from_start(log_.log_start);
  log_.epochs_changed = (exists || !log_.epochs.empty()) && log_.epochs.encode() != text;
  return Status();
}

// A deletion of records that was cut short: the file knew of it before the log start did.
bool PartitionLoading::lacks_beginning(const LeaderEpochCache& epochs) const {
  return recovering() && epochs.entries().front().start > log_.log_start;
}

// Above the recovery point the file may lack what the batches say.
void PartitionLoading::note_walked_epochs() {
  for (const Candidate& candidate : candidates_) {
    for (const EpochStart& epoch : candidate.result.epochs) {
      if (epoch.epoch > log_.epochs.latest() && is_epoch(epoch.epoch)) {
        log_.epochs.assign(epoch.epoch, epoch.start);
      }
    }
  }
}

// The field has no CRC: an epoch that the controller never gave is no epoch.
bool PartitionLoading::is_epoch(LeaderEpoch epoch) const {
  return options_.leader_epoch < LeaderEpoch(0) || epoch <= options_.leader_epoch;
}

Status PartitionLoading::rebuild_epochs() {
  std::vector<EpochStart> all;
  for (const Candidate& candidate : candidates_) {
    ScanResult result = candidate.result;
    if (!candidate.scan) {
      ScanRange range = range_of(candidate);
      range.durable_to = kOffsetMax;
      SegmentIndexes unused(candidate.base);
      WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, candidate.segment->file());
      WEIR_TRY_ASSIGN(result, scan_segment(*file, range, unused));
      candidate.segment->release();
    }
    for (const EpochStart& epoch : result.epochs) {
      BatchHeader header;
      header.base_offset = epoch.start;
      header.leader_epoch = epoch.epoch;
      note_epoch(all, header);
    }
  }
  for (const EpochStart& epoch : all) {
    if (is_epoch(epoch.epoch)) {
      log_.epochs.assign(epoch.epoch, epoch.start);
    }
  }
  return Status();
}

}  // namespace weir::log
