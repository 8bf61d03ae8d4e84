#pragma once

#include "log/segment/batch_scanner.h"
#include "log/segment/segment_scan.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace weir::log {

struct WalkedBatch {
  std::uint64_t position = 0;
  BatchHeader header;
  ByteView bytes;  // valid until the walk's next step
};

// Bytes [position, end_position) that are no readable batch of magic 2.
struct DamagedRange {
  std::uint64_t position = 0;
  std::uint64_t end_position = 0;
  Offset first_offset;                // the offset that was to come next
  std::optional<Offset> next_offset;  // that the log goes on with; none when nothing is behind
  std::string reason;
  bool is_zero = false;        // zeroes up to the end of the file
  bool is_old_format = false;  // message sets of magic 0 or 1
  // Of the batch that starts here, if it fills the range; and whether its CRC is right.
  std::optional<BatchHeader> header;
  bool is_crc_right = false;
  bool is_message_set = false;  // of magic 0 or 1, whole
};

// A whole batch whose records cannot be decoded.
DamagedRange undecodable(const WalkedBatch& batch, const std::string& reason);

// nothing: the end of the segment.
using WalkItem = std::variant<std::monostate, WalkedBatch, DamagedRange>;

// Walks all of a segment file for people: every batch that is whole (header, CRC, offsets that go
// on without reaching back or into the next segment), and what stands between them. Unlike
// scan_segment(), it never stops before the end of the file, and knows message sets of magic 0 and
// 1 when it sees them. A batch that is cut off by the end is no damage when the file has grown
// since: it was being appended.
//
// Threading: confined to its owner. Ownership: borrows `file`. Bounds: as BatchScanner.
class SegmentWalk {
 public:
  // The file's first `size` bytes; offsets in [base, offset_end). `known`: what is known to be
  // damaged, whatever it looks like; rising.
  SegmentWalk(File& file, std::uint64_t size, Offset base, Offset offset_end,
              std::vector<Damage> known = {});

  // Errors: kIo.
  Result<WalkItem> next();
  // Position behind the last whole batch so far.
  std::uint64_t valid_bytes() const { return valid_bytes_; }

 private:
  struct Fault {
    std::string what;
    std::optional<BatchHeader> header;
    bool is_crc_right = false;
  };

  // The whole batch at the scanner's position; or a fault; or neither at the end.
  struct Step {
    std::optional<WalkedBatch> batch;
    std::optional<Fault> fault;
  };
  Result<Step> step();
  Result<std::optional<Fault>> check(const BatchHeader& header);
  Result<bool> lies_about_offset(const BatchHeader& header);
  // Remembers that the bytes at the scanner's position are damaged and goes on behind them.
  Status pass_over(Fault fault);
  Result<bool> pass_over_message_sets();
  bool pass_over_known();
  WalkItem finish_range(std::optional<Offset> next_offset);
  Result<WalkItem> finish();
  Result<bool> is_being_appended(const DamagedRange& range);

  File& file_;
  std::uint64_t size_;
  Offset offset_end_;
  std::vector<Damage> known_;
  BatchScanner scanner_;
  Offset next_offset_;
  std::uint64_t valid_bytes_ = 0;
  std::optional<DamagedRange> range_;  // what has been passed over and not been given yet
};

}  // namespace weir::log
