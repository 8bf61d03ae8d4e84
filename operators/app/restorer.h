#pragma once

#include "operators/task/task.h"

#include <weir/runtime/backend.h>
#include <weir/state/key_value_store.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weir::internal {

// Brings the stores of a thread's tasks back: checkpoint, then the changelog's tail up to its high
// watermark as of prepare() (DESIGN D5, Restore). A checkpoint that is not valid is rebuilt from
// the changelog, a changelog that was lost is made again from the checkpoint; both say why.
//
// Threading: confined to the thread.
class Restorer {
 public:
  // Borrows all. `sink` writes changelogs that were lost.
  Restorer(Backend& backend, RecordSink& sink, const Clock& clock);

  // Judges one store's checkpoint and loads it. Errors: Admin's, the store's, the sink's.
  Status prepare(TaskStore& store);
  // Behind the last prepare(). Errors: RecordSource's.
  Status begin();
  // One poll; true when every store is restored. Errors: as RecordBlock::status, the store's.
  Result<bool> step(Duration timeout);
  std::uint64_t restored_records() const { return restored_; }

 private:
  struct Part {
    TaskStore* store = nullptr;
    Uuid topic_id;
    Offset start;
    Offset end;
    LeaderEpoch epoch = kNoLeaderEpoch;
    bool done = false;
  };
  Status rewrite(TaskStore& store, Uuid topic_id, const std::string& reason);
  Status apply(Part& part, const RecordBlock& block);
  Status finish(Part& part, Offset position, LeaderEpoch epoch);

  Backend& backend_;
  RecordSink& sink_;
  const Clock& clock_;
  std::unique_ptr<RecordSource> source_;
  std::vector<Part> parts_;
  std::size_t left_ = 0;
  std::uint64_t restored_ = 0;
};

}  // namespace weir::internal
