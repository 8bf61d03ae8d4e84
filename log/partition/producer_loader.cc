#include "log/partition/producer_loader.h"

#include "log/record/control_record.h"
#include "log/segment/batch_scanner.h"
#include "log/segment/segment_names.h"

#include <weir/runtime/logger.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace weir::log {
namespace {

class ProducerLoader {
 public:
  explicit ProducerLoader(const ProducerLoad& load)
      : load_(load), out_{ProducerState(load.limits)} {}

  Result<LoadedProducers> run() {
    find_snapshots();
    // Below it every transaction index is to be trusted; each one that is not moves it down.
    Offset limit = std::min(load_.trusted, load_.log_end);
    WEIR_TRY_ASSIGN(Offset from, choose(limit, true));
    for (bool sound = false; !sound;) {
      WEIR_TRY_ASSIGN(const std::optional<Offset> broken, check_indexes(from));
      sound = !broken;
      if (broken) {
        WEIR_TRY_ASSIGN(from, choose(*broken, false));
      }
    }
    WEIR_TRY(walk(from));
    out_.state.expire(load_.now);
    out_.has_snapshots = !snapshots_.empty();
    if (!load_.read_only) {
      WEIR_TRY(tidy());
    }
    return std::move(out_);
  }

 private:
  void find_snapshots() {
    for (const std::string& name : load_.names) {
      if (const std::optional<Offset> offset = parse_segment_file_name(name, kSnapshotSuffix)) {
        snapshots_.insert(*offset);
      }
    }
  }

  Offset first_base() const {
    return load_.segments.empty() ? load_.log_end : load_.segments.front()->base_offset();
  }

  // Sets the state to the newest one that is known at or below `limit`; returns where it stands.
  Result<Offset> choose(Offset limit, bool with_known) {
    out_.state = ProducerState(load_.limits);
    if (with_known && load_.known && load_.known->offset <= limit &&
        load_.known->offset >= first_base()) {
      Result<ProducerState> state = ProducerState::decode(load_.known->bytes, load_.limits);
      if (state.ok()) {
        known_ = *state;
        out_.state = *std::move(state);
        return load_.known->offset;
      }
      WEIR_WARN("producers not taken from the checkpoint partition={} error=\"{}\"",
                load_.name.to_string(), state.error().message());
    }
    if (!load_.clean && !load_.read_only && !load_.known) {
      // No checkpoint has kept its producers yet, so a snapshot may be that of a recovery, which
      // has one batch of each: all of the log is walked.
      return first_base();
    }
    for (auto at = snapshots_.upper_bound(limit); at != snapshots_.begin();) {
      --at;
      const std::string path = snapshot_path(load_.folder, *at);
      Result<std::string> file = read_file(load_.files, path);
      if (!file.ok() && file.error().code() != Errc::kNotFound) {
        return std::move(file).error();
      }
      const Result<std::vector<ProducerEntry>> entries =
          file.ok() ? parse_producer_snapshot(*file)
                    : Result<std::vector<ProducerEntry>>(file.error());
      if (entries.ok()) {
        out_.state = ProducerState::from_entries(*entries, load_.limits);
        return *at;
      }
      WEIR_WARN("producer snapshot not used file={} error=\"{}\"", path, entries.error().message());
      damaged_.insert(*at);
    }
    // Kafka's rule, too: a log without snapshots that was closed had no producers.
    return with_known && load_.clean && snapshots_.empty() ? load_.log_end : first_base();
  }

  // Whose file, of what is below `from`, is broken: the base of the first such segment.
  Result<std::optional<Offset>> check_indexes(Offset from) {
    out_.newest_abort = kNoOffset;
    for (const std::shared_ptr<Segment>& segment : load_.segments) {
      WEIR_TRY_ASSIGN(const bool sound, check_index(*segment, from));
      if (!sound) {
        return std::optional(segment->base_offset());
      }
    }
    return std::optional<Offset>();
  }

  Result<bool> check_index(Segment& segment, Offset from) {
    AbortedTransactions entries;
    std::size_t in_file = 0;
    const bool is_needed = segment.base_offset() < from;
    if (load_.names.contains(segment_file_name(segment.base_offset(), kTransactionIndexSuffix))) {
      const std::string path = segment.path(kTransactionIndexSuffix);
      Result<std::string> file = read_file(load_.files, path);
      if (!file.ok() && file.error().code() != Errc::kNotFound) {
        return std::move(file).error();
      }
      Result<AbortedTransactions> read =
          file.ok() ? parse_transaction_index(*file, segment.base_offset(),
                                              std::max(segment.next_offset(), load_.log_end))
                    : Result<AbortedTransactions>(file.error());
      if (read.ok()) {
        entries = *std::move(read);
        in_file = entries.size();
      } else if (is_needed) {
        WEIR_WARN("transaction index made anew file={} error=\"{}\"", path, read.error().message());
        return false;
      }
    }
    // What stands behind `from` is found anew.
    std::erase_if(entries, [from](const auto& entry) { return entry.last_offset >= from; });
    if (!entries.empty()) {
      out_.newest_abort = std::max(out_.newest_abort, entries.back().last_offset);
    }
    segment.set_aborted(std::move(entries), in_file);
    return true;
  }

  // --- The batches from `from` on

  Status walk(Offset from) {
    if (known_ && load_.known->offset <= from) {
      known_.reset();  // it begins there
    }
    for (const std::shared_ptr<Segment>& segment : load_.segments) {
      reach(segment->base_offset());
      if (segment == load_.segments.back() && segment->base_offset() >= from) {
        out_.at_last_segment = {segment->base_offset(), out_.state.encode()};
      }
      if (!load_.read_only && !load_.clean && segment->base_offset() >= load_.trusted) {
        WEIR_TRY(renew_snapshot(segment->base_offset()));
      }
      const bool is_behind = std::min(segment->next_offset(), load_.log_end) <= from;
      WEIR_TRY_ASSIGN(AbortedTransactions entries, segment->aborted_transactions());
      if (!is_behind && !load_.plain.contains(segment->base_offset())) {
        WEIR_TRY(walk_segment(*segment, from, entries));
      }
      WEIR_TRY(finish_index(*segment, std::move(entries)));
      segment->release();
    }
    reach(load_.log_end);
    return Status();
  }

  // A walk that began early, for the sake of a transaction index, finds fewer batches of each
  // producer than were known.
  void reach(Offset at) {
    if (known_ && at >= load_.known->offset) {
      out_.state = *std::exchange(known_, std::nullopt);
    }
  }

  // In front of a segment that was not flushed when the last process ended: a power cut may have
  // torn or lost it.
  Status renew_snapshot(Offset at) {
    if (load_.segments.front()->base_offset() == at) {
      return Status();
    }
    const std::string path = snapshot_path(load_.folder, at);
    const std::string wanted = encode_producer_snapshot(out_.state.entries());
    const Result<std::string> is = read_file(load_.files, path);
    damaged_.erase(at);
    if (is.ok() && *is == wanted) {
      return Status();
    }
    Status written = replace_file(load_.files, path, wanted);
    if (written.ok()) {
      snapshots_.insert(at);
    }
    return without_full_disk(std::move(written), path);
  }

  Status walk_segment(Segment& segment, Offset from, AbortedTransactions& aborted) {
    WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, segment.file());
    const std::vector<Damage> damage = segment.damage();
    Offset expected = segment.base_offset();
    BatchScanner scanner(*file, start_of(segment, from), segment.size_bytes());
    while (true) {
      const auto known = std::find_if(damage.begin(), damage.end(), [&](const Damage& range) {
        return range.position <= scanner.position() && scanner.position() < range.end_position;
      });
      if (known != damage.end()) {
        scanner.seek(known->end_position);
        continue;
      }
      Result<std::optional<BatchHeader>> header = scanner.peek();
      if (!header.ok() && header.error().code() == Errc::kCorrupt) {
        WEIR_TRY_ASSIGN(const std::optional<std::uint64_t> next,
                        scanner.find_next(scanner.position() + 1, segment.base_offset(),
                                          std::max(segment.next_offset(), load_.log_end)));
        if (!next) {
          return Status();
        }
        scanner.seek(*next);
        continue;
      }
      if (!header.ok() && header.error().code() == Errc::kUnsupported) {
        return Status();  // readers say so
      }
      WEIR_TRY(header.status());
      if (!*header || (*header)->base_offset >= load_.log_end) {
        return Status();
      }
      const bool goes_on = (*header)->base_offset >= expected;  // else it lies
      if (goes_on) {
        reach((*header)->base_offset);
      }
      if (goes_on && (*header)->producer_id.value() >= 0 && (*header)->base_offset >= from) {
        WEIR_TRY(take(scanner, **header, aborted));
      }
      expected = std::max(expected, (*header)->next_offset());
      scanner.skip(**header);
    }
  }

  // Where a batch at or in front of `from` begins.
  static std::uint64_t start_of(Segment& segment, Offset from) {
    if (from <= segment.base_offset()) {
      return 0;
    }
    const Result<std::optional<std::uint64_t>> position = segment.locate(from);
    return position.ok() ? position->value_or(0) : 0;
  }

  Status take(BatchScanner& scanner, const BatchHeader& header, AbortedTransactions& aborted) {
    if (!header.is_control()) {
      out_.state.add(header);
      return Status();
    }
    WEIR_TRY_ASSIGN(const ByteView batch, scanner.whole(header));
    const Result<std::optional<ControlRecord>> marker = read_end_transaction_marker(header, batch);
    if (!marker.ok() || !*marker) {
      return Status();  // damage that readers meet, too; or what compaction left of a marker
    }
    const std::optional<EndedTransaction> ended = out_.state.add_marker(header, **marker);
    if (ended && ended->aborted) {
      aborted.push_back(index_entry_of(*ended, out_.state));
    }
    return Status();
  }

  Status finish_index(Segment& segment, AbortedTransactions entries) {
    if (!entries.empty()) {
      out_.newest_abort = std::max(out_.newest_abort, entries.back().last_offset);
    }
    const std::size_t count = entries.size();
    if (load_.read_only) {
      segment.set_aborted(std::move(entries), count);
      return Status();
    }
    const std::string wanted = encode_transaction_index(entries);
    std::string is;
    const std::string path = segment.path(kTransactionIndexSuffix);
    const bool has_file =
        load_.names.contains(segment_file_name(segment.base_offset(), kTransactionIndexSuffix)) &&
        path_exists(load_.files, path);
    if (has_file) {
      WEIR_TRY_ASSIGN(is, read_file(load_.files, path));
    }
    // Zeroes of a preallocated file are cut off, too: entries are written behind the last one.
    segment.set_aborted(std::move(entries), is == wanted ? count : 0);
    if (is == wanted) {
      return Status();
    }
    names_changed_ = true;
    return count == 0 ? load_.files.remove_file(path)
                      : without_full_disk(segment.write_aborted(true), path);
  }

  // What cannot be written now is written by the next flush, or found anew by the next start.
  static Status without_full_disk(Status status, const std::string& path) {
    if (status.ok() || status.error().code() != Errc::kNoSpace) {
      return status;
    }
    WEIR_WARN("not written file={} error=\"{}\"", path, status.error().message());
    return Status();
  }

  // --- Snapshot files

  Status tidy() {
    if (!load_.clean) {
      for (const Offset at : snapshots_) {  // what a power cut tore and nobody had to read
        const Result<std::string> file = read_file(load_.files, snapshot_path(load_.folder, at));
        if (file.ok() && !parse_producer_snapshot(*file).ok()) {
          damaged_.insert(at);
        }
      }
    }
    std::set<Offset> bases;
    for (const std::shared_ptr<Segment>& segment : load_.segments) {
      bases.insert(segment->base_offset());
    }
    if (!load_.clean && (!out_.state.empty() || !snapshots_.empty())) {
      const std::string path = snapshot_path(load_.folder, load_.log_end);
      Status written =
          replace_file(load_.files, path, encode_producer_snapshot(out_.state.entries()));
      if (written.ok()) {
        snapshots_.insert(load_.log_end);
        damaged_.erase(load_.log_end);
        out_.has_snapshots = true;
      }
      WEIR_TRY(without_full_disk(std::move(written), path));
    }
    std::optional<Offset> newest;
    for (const Offset at : snapshots_) {
      if (at <= load_.log_end && !bases.contains(at) && !damaged_.contains(at)) {
        newest = at;
      }
    }
    bool removed = names_changed_;
    for (const Offset at : snapshots_) {
      const bool stays =
          at <= load_.log_end && !damaged_.contains(at) && (bases.contains(at) || at == newest);
      if (!stays) {
        WEIR_TRY(load_.files.remove_file(snapshot_path(load_.folder, at)));
        removed = true;
      }
    }
    // Else a power cut brings one back that knows what was cut off.
    return removed ? load_.files.sync_directory(load_.folder) : Status();
  }

  const ProducerLoad& load_;
  LoadedProducers out_;
  std::set<Offset> snapshots_;
  std::optional<ProducerState> known_;  // as of load_.known, until the walk comes there
  std::set<Offset> damaged_;
  bool names_changed_ = false;
};

}  // namespace

std::string snapshot_path(const std::string& folder, Offset offset) {
  return join_path(folder, segment_file_name(offset, kSnapshotSuffix));
}

Result<LoadedProducers> load_producers(const ProducerLoad& load) {
  return ProducerLoader(load).run();
}

}  // namespace weir::log
