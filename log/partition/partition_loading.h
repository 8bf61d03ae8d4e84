#pragma once

#include "log/partition/partition_loader.h"

#include <set>
#include <string>
#include <vector>

namespace weir::log {

// A partition folder on its way to a LoadedLog: load_partition() in parts.
//
//   partition_loader.cc   the folder, its segments as they are, what is left of them
//   segment_recovery.cc   segments walked batch by batch, and where the log ends
//   wal_replay.cc         what the write-ahead log has instead
//   epoch_recovery.cc     leader epochs
class PartitionLoading {
 public:
  PartitionLoading(const Partition::Environment& environment,
                   const Partition::OpenOptions& options);
  Result<LoadedLog> run();

 private:
  // One segment on its way from a file name to a Segment.
  struct Candidate {
    Offset base;
    Offset next_base = kOffsetMax;
    std::uint64_t file_bytes = 0;
    std::shared_ptr<Segment> segment;
    bool scan = false;
    ScanResult result;
    SegmentIndexes indexes{Offset(0)};
    Status status;
  };

  bool recovering() const { return !options_.clean && !options_.read_only; }
  bool memory_log() const { return options_.settings.durability == DurabilityMode::kMemory; }
  bool replays() const { return recovering() && options_.wal_tail.has_value(); }
  // Above the recovery point files were not synced in their order: the first bad batch, or a hole
  // between two files, is the end of what a power cut left.
  bool loose_tail() const { return memory_log() || (replays() && options_.wal_tail->intact); }
  bool cuts_unlogged() const;
  std::string path_of(std::string_view name) const { return join_path(options_.path, name); }
  Status list_folder();
  Status check_metadata();

  // --- Segments
  Status load_segments();
  std::vector<Damage> known_damage(const Candidate& candidate) const;
  void scan_all();
  void scan(std::size_t i);
  ScanRange range_of(const Candidate& candidate) const;
  Result<bool> learn_damage(Candidate& candidate);
  Status walk(Candidate& candidate, bool last);
  Status walk_once(Candidate& candidate, bool last);
  Status resume(Candidate& candidate);
  Status resume_once(Candidate& candidate);
  std::size_t find_end();
  void damaged(std::string text);
  void note_damage(const Candidate& candidate);
  void note_cut(const Candidate& candidate, const std::string& why);
  Status remove_behind(std::size_t keep);
  Status adopt(Candidate& candidate, bool last);
  bool has(const Candidate& candidate, std::string_view suffix) const;
  Status adopt_walked(Candidate& candidate);
  Status sync_what_is_left();
  void finish_offsets();

  // --- The write-ahead log
  Status cut_at_difference(std::size_t& keep);
  Status cut_at(std::size_t& keep, std::size_t at, Offset base, const std::string& why);
  Status walk_again(Candidate& candidate, Offset stop_at);
  Status replay();
  Status sync_segments();
  Status append(const WalBatch& batch);

  // --- Producers
  Status load_producers();

  // --- Epochs
  Status load_epochs();
  bool lacks_beginning(const LeaderEpochCache& epochs) const;
  void note_walked_epochs();
  bool is_epoch(LeaderEpoch epoch) const;
  Status rebuild_epochs();

  const Partition::Environment& environment_;
  FileSystem& files_;
  const std::shared_ptr<SegmentResources> resources_;
  const Partition::OpenOptions& options_;
  Offset recovery_point_;
  bool replayed_producers_ = false;
  std::vector<Candidate> candidates_;
  std::set<std::string> names_;
  LoadedLog log_;
};

}  // namespace weir::log
