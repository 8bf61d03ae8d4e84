#pragma once

#include "log/segment/batch_scanner.h"
#include "log/segment/checksum_file.h"
#include "log/segment/segment_scan.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::log {

enum class ScrubDepth {
  kHeads,  // the heads of the batches that the side-car knows, and of nothing else
  kAll,    // every batch with its CRC
};

// What of a segment to compare: bytes that are written and, below `stop_at`, durable.
struct ScrubRange {
  Offset base;
  Offset offset_end = kOffsetMax;  // base of the next segment
  std::uint64_t end_position = 0;
  Offset end_offset;  // behind the last batch in front of end_position; kOffsetMax: unknown
  Offset stop_at = kOffsetMax;  // batches from it on are not judged
  ScrubDepth depth = ScrubDepth::kAll;
};

// Compares the batches of a segment with their CRCs, their order and the side-car, in steps. With a
// side-car it is known which of two batches lies about its offset, where a batch ends whose length
// is wrong, and what its leader epoch was. A side-car that speaks of other batches than those that
// are there, whole, is not this segment's: it is left aside.
//
// Threading: confined to its owner. Ownership: shares the file. Bounds: as BatchScanner.
class SegmentScrub {
 public:
  SegmentScrub(std::shared_ptr<File> log, const ScrubRange& range, ChecksumReader known)
      : log_(std::move(log)),
        range_(range),
        scanner_(*log_, 0, range.end_position),
        known_(std::move(known)),
        expected_(range.base) {}

  // What was found damaged before: it stays so unless the side-car shows that it is right again.
  void suspect(std::vector<Damage> earlier) { suspects_ = std::move(earlier); }
  // Goes on for about `bytes`. False at the end. Errors: kIo.
  Result<bool> step(std::uint64_t bytes);
  std::uint64_t position() const { return scanner_.position(); }
  // Found so far, in order. The last one may grow as long as step() goes on.
  const std::vector<Damage>& damage() const { return damage_; }
  bool side_car_is_foreign() const { return is_foreign_; }
  // Told each sound batch, with kAll. Borrowed; may be null.
  void build(ChecksumWriter* side_car) { writer_ = side_car; }
  // The writer's failure; what was built is of no use then.
  const Status& build_status() const { return build_status_; }

 private:
  struct Verdict {
    std::optional<BatchHeader> header;  // of the batch that stands here
    std::string fault;                  // what is wrong with it; empty when nothing is
  };

  Status check_one();
  Status pass_unknown();
  void start_without_side_car();
  Result<Verdict> judge();
  Result<std::string> compare_head(const BatchHeader& header, const KnownBatch& known);
  Result<std::string> order_fault(const BatchHeader& header);
  Result<std::string> body_fault(const BatchHeader& header);
  Status accept(const BatchHeader& header);
  const Damage* suspect_at(std::uint64_t position) const;
  Status pass_over(std::string fault, const std::optional<KnownBatch>& known);
  void pass_over_to(std::uint64_t end, std::string fault);
  void finish();
  bool is_over() const;

  std::shared_ptr<File> log_;
  const ScrubRange range_;
  BatchScanner scanner_;
  ChecksumReader known_;
  std::optional<KnownBatch> at_;  // the known batch at or behind the scanner's position
  Offset expected_;
  bool in_damage_ = false;  // damage_.back() goes on to the scanner's position
  bool is_foreign_ = false;
  std::vector<Damage> damage_;
  std::vector<Damage> suspects_;
  ChecksumWriter* writer_ = nullptr;
  Status build_status_;
};

}  // namespace weir::log
