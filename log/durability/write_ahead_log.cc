#include "log/durability/write_ahead_log.h"

#include "log/durability/wal_files.h"

#include <weir/runtime/assert.h>
#include <weir/runtime/crc32c.h>
#include <weir/runtime/logger.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/thread_annotations.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

namespace weir::log {
namespace {

constexpr std::size_t kFrameBytes = 1U << 20U;
constexpr std::size_t kLargeFrameBytes = 4U << 20U;
constexpr std::size_t kLargeFrameFrom = 8U << 20U;  // waiting bytes

}  // namespace

// One thread at a time drives the log: whoever finds it idle, then whoever completes the write.
// What is marked as the driver's is touched by that thread alone; running_ hands it on.
class WriteAheadLog::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(FileSystem& files, const std::string& folder, const WalOptions& options)
      : disk_(files), options_(options), files_(files, folder, options) {
    payload_max_ = std::min(kLargeFrameBytes, options.file_bytes_min / 2) - kWalFrameHeaderBytes;
  }

  Status open(const WalContents& contents, bool fresh, std::uint64_t seed) {
    if (fresh || contents.files.empty()) {
      Rng rng(seed + contents.generation);
      return files_.begin(contents, rng.next());
    }
    const MutexLock lock(mutex_);
    sequence_ = contents.next_sequence;
    previous_crc_ = contents.previous_crc;
    bytes_since_checkpoint_ = contents.bytes;
    return files_.adopt(contents);
  }

  void attach(WalHost host) { host_ = std::move(host); }

  Status admit();
  void add(std::span<Entry> group);
  void start();
  void note_unflushed(std::shared_ptr<DurableLog> log) {
    const MutexLock lock(mutex_);
    unflushed_.insert(std::move(log));
  }
  void drain();
  void stop();
  Status checkpoint();
  Metrics metrics() const {
    const MutexLock lock(mutex_);
    return metrics_;
  }

 private:
  struct Queued {
    Entry entry;
    bool group_goes_on = false;
    bool group_follows = false;
  };
  // What is durable and not told yet: the rest of its group is not.
  struct Held {
    std::shared_ptr<DurableLog> log;
    Offset end;
  };
  enum class Step { kSubmitted, kIdle, kStalled, kLost };

  // --- The driver
  void run();
  Step write_next(const std::shared_ptr<std::atomic<int>>& turns);
  bool take_frame();
  bool take_part();
  void encode(WalFrameHeader& header);
  char* encode_entry(char* out, const Queued& queued, WalFrameHeader& header) const;
  void finish_write(const Status& status);
  std::size_t tell_durable();
  bool fits(std::size_t payload, std::size_t limit) const WEIR_REQUIRES(mutex_);
  void stop_driving(bool stalled);

  void tell_late_losers();
  bool begin_driving();
  // Frees files by a checkpoint. Whether the driver can go on.
  bool relieve();
  Status flush(const std::vector<std::shared_ptr<DurableLog>>& logs);
  enum class Loser { kDriver, kCheckpoint };
  void lose(const Error& error, Loser who = Loser::kDriver);
  void ask_for_checkpoint();

  FileSystem& disk_;
  const WalOptions options_;
  WalHost host_;
  std::size_t payload_max_ = 0;

  // The driver's.
  WalFiles files_;
  WalBuffer buffer_;
  std::vector<Queued> frame_;    // what the present or next write holds
  std::optional<Queued> split_;  // a batch larger than a frame, written in parts
  std::size_t split_done_ = 0;   // bytes of it in frames before this one
  std::size_t split_part_ = 0;   // bytes of it in this frame; 0: frame_ is whole batches
  bool frame_ready_ = false;     // taken, not written yet
  std::size_t frame_bytes_ = 0;  // as written
  std::uint32_t previous_crc_ = 0;
  bool begins_ = true;  // nothing was written since the start
  std::vector<Held> held_;

  Mutex checkpoint_mutex_;  // one checkpoint at a time; taken before mutex_

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Queued> queue_ WEIR_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ WEIR_GUARDED_BY(mutex_) = 0;
  std::uint64_t added_ WEIR_GUARDED_BY(mutex_) = 0;    // entries
  std::uint64_t settled_ WEIR_GUARDED_BY(mutex_) = 0;  // durable or lost, and told
  bool running_ WEIR_GUARDED_BY(mutex_) = false;
  bool stalled_ WEIR_GUARDED_BY(mutex_) = false;        // no file for the next frame
  std::optional<Error> stall_ WEIR_GUARDED_BY(mutex_);  // why the last checkpoint made no room
  std::atomic<bool> trouble_{false};                    // stalled or failed
  std::optional<Error> failure_ WEIR_GUARDED_BY(mutex_);
  std::unordered_set<std::shared_ptr<DurableLog>> unflushed_ WEIR_GUARDED_BY(mutex_);
  // Of the frame that is taken: a checkpoint may have flushed them, yet they wait for its write.
  std::vector<std::shared_ptr<DurableLog>> writing_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t sequence_ WEIR_GUARDED_BY(mutex_) = 0;  // of the next frame
  // The first frame of the group of which only a part is written: it must stay.
  std::optional<std::uint64_t> group_sequence_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t trim_ WEIR_GUARDED_BY(mutex_) = 0;
  std::uint64_t bytes_since_checkpoint_ WEIR_GUARDED_BY(mutex_) = 0;
  bool checkpoint_asked_ WEIR_GUARDED_BY(mutex_) = false;
  Metrics metrics_ WEIR_GUARDED_BY(mutex_);
};

// --- Adding

Status WriteAheadLog::Core::admit() {
  if (!trouble_.load(std::memory_order_acquire)) {
    return Status();
  }
  start();  // the disk may have room again
  const MutexLock lock(mutex_);
  if (failure_) {
    return *failure_;
  }
  if (stalled_) {
    return stall_.value_or(
        Error(Errc::kNoSpace,
              "disk full: the write-ahead log has no room until its checkpoint can be written; "
              "free space and try again"));
  }
  return Status();
}

void WriteAheadLog::Core::add(std::span<Entry> group) {
  const MutexLock lock(mutex_);
  for (Entry& entry : group) {
    if (failure_) {  // admitted before the failure
      unflushed_.insert(std::move(entry.log));
      continue;
    }
    ++added_;
    waiting_bytes_ += entry.batch.size();
    const bool goes_on = &entry != &group.back();
    const bool follows = &entry != &group.front();
    queue_.push_back({std::move(entry), goes_on, follows});
  }
}

void WriteAheadLog::Core::start() {
  if (begin_driving()) {
    run();
  }
  tell_late_losers();
  const MutexLock lock(mutex_);
  while (waiting_bytes_ > options_.waiting_bytes_max && running_) {
    changed_.wait(mutex_);
  }
}

void WriteAheadLog::Core::drain() {
  start();
  const MutexLock lock(mutex_);
  const std::uint64_t end = added_;
  while (running_ && (settled_ < end || failure_)) {
    changed_.wait(mutex_);
  }
}

// Nothing of the driver is under way afterwards: it calls its host even behind the last entry.
void WriteAheadLog::Core::stop() {
  drain();
  const MutexLock lock(mutex_);
  while (running_) {
    changed_.wait(mutex_);
  }
}

// Logs that were added after the failure.
void WriteAheadLog::Core::tell_late_losers() {
  if (!trouble_.load(std::memory_order_acquire)) {
    return;
  }
  std::unordered_set<std::shared_ptr<DurableLog>> logs;
  std::optional<Error> failure;
  {
    const MutexLock lock(mutex_);
    failure = failure_;
    if (failure) {
      logs.swap(unflushed_);
    }
  }
  for (const std::shared_ptr<DurableLog>& log : logs) {
    log->on_durability_lost(*failure);
  }
}

bool WriteAheadLog::Core::begin_driving() {
  bool stalled = false;
  {
    const MutexLock lock(mutex_);
    if (running_ || failure_ || (queue_.empty() && !frame_ready_ && !split_)) {
      return false;
    }
    stalled = stalled_;
    running_ = !stalled;
  }
  return !stalled || relieve();
}

bool WriteAheadLog::Core::relieve() {
  if (Status done = checkpoint(); !done.ok()) {
    WEIR_WARN("write-ahead log waits for room error=\"{}\"", done.error().message());
    const MutexLock lock(mutex_);
    stall_ = Error(done.error().code(),
                   fmt::format("the write-ahead log waits for room until its checkpoint can be "
                               "written, then append again: {}",
                               done.error().message()));
    return false;
  }
  const MutexLock lock(mutex_);
  if (running_ || failure_) {
    return false;
  }
  running_ = true;
  return true;
}

// --- The driver

void WriteAheadLog::Core::run() {
  while (true) {
    // The starter of a write and its completion; the second one to arrive goes on, so that writes
    // that complete inside submit() never nest.
    const auto turns = std::make_shared<std::atomic<int>>(2);
    switch (write_next(turns)) {
      case Step::kSubmitted:
        if (turns->fetch_sub(1) != 1) {
          return;
        }
        break;
      case Step::kStalled:
        if (!relieve()) {
          return;
        }
        break;
      case Step::kIdle:
      case Step::kLost:
        return;
    }
  }
}

WriteAheadLog::Core::Step WriteAheadLog::Core::write_next(
    const std::shared_ptr<std::atomic<int>>& turns) {
  std::uint64_t trim = 0;
  {
    const MutexLock lock(mutex_);
    if (failure_) {
      running_ = false;
      changed_.notify_all();
      return Step::kLost;
    }
    trim = trim_;
    trim_ = 0;
  }
  if (trim != 0) {
    if (Status trimmed = files_.trim(trim); !trimmed.ok()) {
      lose(trimmed.error());
      return Step::kLost;
    }
  }
  if (!take_frame()) {
    return Step::kIdle;
  }
  WalFrameHeader header;
  header.wal_id = files_.wal_id();
  header.previous_crc = previous_crc_;
  header.begins = begins_;
  WalFileHeader next;
  next.previous_crc = previous_crc_;
  {
    const MutexLock lock(mutex_);
    header.sequence = sequence_;
  }
  next.first_sequence = header.sequence;
  Result<WalFiles::Place> place = files_.place(frame_bytes_, next);
  if (!place.ok() && !is_shortage(place.error().code())) {
    lose(place.error());
    return Step::kLost;
  }
  if (!place.ok() || place->file == nullptr) {
    stop_driving(true);
    return Step::kStalled;
  }
  encode(header);
  IoRequest request;
  request.kind = IoRequest::Kind::kWrite;
  request.file = place->file;
  request.position = place->position;
  request.bytes.bytes = {buffer_.data(), frame_bytes_};
  disk_.submit(std::move(request), [self = shared_from_this(), turns](const Status& status) {
    self->finish_write(status);
    if (turns->fetch_sub(1) == 1 && status.ok()) {
      self->run();
    }
  });
  return Step::kSubmitted;
}

// Fills frame_ with what goes out next. False when nothing waits; the driver has stopped then.
bool WriteAheadLog::Core::take_frame() {
  if (frame_ready_) {
    return true;
  }
  if (split_) {
    return take_part();
  }
  std::size_t payload = 0;
  {
    const MutexLock lock(mutex_);
    const std::size_t wish = waiting_bytes_ > kLargeFrameFrom ? kLargeFrameBytes : kFrameBytes;
    const std::size_t limit = std::min(payload_max_, wish);
    while (!queue_.empty()) {
      Queued& front = queue_.front();
      const std::size_t bytes = kWalEntryHeadBytes + front.entry.batch.size();
      if (!frame_.empty() && !fits(payload, limit)) {
        break;
      }
      if (frame_.empty() || frame_.back().entry.log != front.entry.log) {
        unflushed_.insert(front.entry.log);
        writing_.push_back(front.entry.log);
      }
      payload += bytes;
      frame_.push_back(std::move(front));
      queue_.pop_front();
      if (payload > limit) {
        break;
      }
    }
    if (frame_.empty()) {
      running_ = false;
      changed_.notify_all();
      return false;
    }
  }
  if (payload > payload_max_) {  // a single batch
    split_ = std::move(frame_.front());
    frame_.clear();
    split_done_ = 0;
    return take_part();
  }
  frame_bytes_ = wal_blocks_up(kWalFrameHeaderBytes + payload);
  frame_ready_ = true;
  return true;
}

// Whether the next entry does; the first one of a group takes all of it along if a frame can hold
// it.
bool WriteAheadLog::Core::fits(std::size_t payload, std::size_t limit) const {
  std::size_t bytes = kWalEntryHeadBytes + queue_.front().entry.batch.size();
  if (payload + bytes > limit || queue_.front().group_follows) {
    return payload + bytes <= limit;
  }
  for (std::size_t i = 0; queue_[i].group_goes_on && bytes <= limit; ++i) {
    bytes += kWalEntryHeadBytes + queue_[i + 1].entry.batch.size();
  }
  return bytes > limit || payload + bytes <= limit;
}

bool WriteAheadLog::Core::take_part() {
  const std::size_t room = payload_max_ - kWalEntryHeadBytes;
  split_part_ = std::min(room, split_->entry.batch.size() - split_done_);
  frame_bytes_ = wal_blocks_up(kWalFrameHeaderBytes + kWalEntryHeadBytes + split_part_);
  frame_ready_ = true;
  return true;
}

char* WriteAheadLog::Core::encode_entry(char* out, const Queued& queued,
                                        WalFrameHeader& header) const {
  const DurableLog::Identity identity = queued.entry.log->identity();
  const ByteView whole = queued.entry.batch.view();
  const bool part = split_part_ != 0;
  const ByteView body = part ? whole.substr(split_done_, split_part_) : whole;
  WalEntryHead head;
  head.topic_id = identity.topic_id;
  head.partition = identity.partition;
  const auto set_flag = [&head](std::uint8_t flag, bool on) {
    head.flags = static_cast<std::uint8_t>(head.flags | (on ? flag : 0));
  };
  set_flag(WalEntryHead::kGroupGoesOn, queued.group_goes_on);
  set_flag(WalEntryHead::kGroupFollows, queued.group_follows);
  set_flag(WalEntryHead::kBodyPart, part);
  set_flag(WalEntryHead::kBodyGoesOn, part && split_done_ + split_part_ < whole.size());
  head.body_bytes = static_cast<std::uint32_t>(body.size());
  head.body_check = wal_body_check(body, part);
  write_wal_entry_head(out, head);
  header.heads_crc = crc32c_extend(header.heads_crc, {out, kWalEntryHeadBytes});
  ++header.entries;
  std::memcpy(out + kWalEntryHeadBytes, body.data(), body.size());
  return out + kWalEntryHeadBytes + body.size();
}

void WriteAheadLog::Core::encode(WalFrameHeader& header) {
  char* const start = buffer_.reserve(frame_bytes_);
  char* out = start + kWalFrameHeaderBytes;
  if (split_part_ != 0) {
    out = encode_entry(out, *split_, header);
  } else {
    for (const Queued& queued : frame_) {
      out = encode_entry(out, queued, header);
    }
  }
  header.payload_bytes =
      static_cast<std::uint32_t>(out - start) - static_cast<std::uint32_t>(kWalFrameHeaderBytes);
  std::memset(out, 0, static_cast<std::size_t>(start + frame_bytes_ - out));
  previous_crc_ = write_wal_frame_header(start, header);
}

void WriteAheadLog::Core::finish_write(const Status& status) {
  if (!status.ok()) {
    lose(status.error());
    return;
  }
  files_.written(frame_bytes_);
  begins_ = false;
  frame_ready_ = false;
  if (split_part_ != 0) {
    split_done_ += std::exchange(split_part_, 0);
    if (split_done_ == split_->entry.batch.size()) {
      frame_.push_back(std::move(*split_));
      split_.reset();
    }
  }
  const std::size_t bytes = tell_durable();
  bool ask = false;
  {
    const MutexLock lock(mutex_);
    const bool is_torn =
        !held_.empty() || (split_ && (split_->group_goes_on || split_->group_follows));
    if (!is_torn) {
      group_sequence_.reset();
    } else if (!group_sequence_) {
      group_sequence_ = sequence_;
    }
    ++sequence_;
    if (!split_ && held_.empty()) {
      writing_.clear();
    }
    if (!failure_) {
      settled_ += frame_.size();
      waiting_bytes_ -= bytes;
    }
    bytes_since_checkpoint_ += frame_bytes_;
    ++metrics_.writes;
    metrics_.bytes += frame_bytes_;
    metrics_.entries += frame_.size();
    metrics_.files = files_.count();
    metrics_.file_bytes = files_.total_bytes();
    ask = host_.checkpoint_due && !checkpoint_asked_ &&
          bytes_since_checkpoint_ >= options_.checkpoint_bytes;
    checkpoint_asked_ |= ask;
    changed_.notify_all();
  }
  frame_.clear();
  if (ask) {
    host_.checkpoint_due();
  }
}

// A group is told of as a whole. Returns the bytes that were written.
std::size_t WriteAheadLog::Core::tell_durable() {
  std::size_t bytes = 0;
  std::vector<Held> ready;
  for (const Queued& queued : frame_) {
    bytes += queued.entry.batch.size();
    held_.push_back({queued.entry.log, queued.entry.end});
    if (!queued.group_goes_on) {
      ready.insert(ready.end(), std::make_move_iterator(held_.begin()),
                   std::make_move_iterator(held_.end()));
      held_.clear();
    }
  }
  const auto last =
      std::unique(ready.rbegin(), ready.rend(),
                  [](const Held& later, const Held& held) { return later.log == held.log; });
  ready.erase(ready.begin(), last.base());  // of neighbours of one log the last one
  for (const Held& held : ready) {
    held.log->on_durable(held.end);
  }
  for (const Held& held : ready) {
    held.log->wake_waiters();
  }
  return bytes;
}

void WriteAheadLog::Core::stop_driving(bool stalled) {
  const MutexLock lock(mutex_);
  running_ = false;
  stalled_ = stalled;
  if (stalled) {
    trouble_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
}

// Called by the driver, or by a checkpoint while the driver may be at work: the driver then finds
// failure_ when its write ends.
void WriteAheadLog::Core::lose(const Error& error, Loser who) {
  std::vector<std::shared_ptr<DurableLog>> logs;
  Error lost(Errc::kIo,
             fmt::format("the write-ahead log failed, restart to recover: {}", error.message()));
  {
    const MutexLock lock(mutex_);
    if (failure_) {
      running_ = running_ && who != Loser::kDriver;
      changed_.notify_all();
      return;
    }
    failure_ = lost;
    trouble_.store(true, std::memory_order_release);
    for (const Queued& queued : queue_) {
      logs.push_back(queued.entry.log);
    }
    logs.insert(logs.end(), unflushed_.begin(), unflushed_.end());
    logs.insert(logs.end(), writing_.begin(), writing_.end());
    unflushed_.clear();
    queue_.clear();
    waiting_bytes_ = 0;
  }
  WEIR_ERROR("write-ahead log lost error=\"{}\"", error.message());
  for (const std::shared_ptr<DurableLog>& log : logs) {
    log->on_durability_lost(lost);
  }
  const MutexLock lock(mutex_);
  settled_ = added_;
  running_ = running_ && who != Loser::kDriver;
  changed_.notify_all();
}

// --- Checkpoints

Status WriteAheadLog::Core::flush(const std::vector<std::shared_ptr<DurableLog>>& logs) {
  std::size_t count = 0;
  for (const auto& log : logs) {
    count += log->unflushed_count();
  }
  const FlushMode mode =
      count > options_.flush_by_file_max ? FlushMode::kByDisk : FlushMode::kByFile;
  std::vector<DurableLog::Unflushed> parts;
  parts.reserve(logs.size());
  for (const auto& log : logs) {
    WEIR_TRY_ASSIGN(DurableLog::Unflushed part, log->prepare_flush(mode));
    parts.push_back(std::move(part));
  }
  if (mode == FlushMode::kByDisk) {
    WEIR_TRY(disk_.sync_disk(host_.log_folder));
  }
  std::set<std::string> synced;
  for (const DurableLog::Unflushed& part : parts) {
    for (const std::shared_ptr<File>& file : part.files) {
      WEIR_TRY(file->sync());
    }
    for (const std::string& folder : part.folders) {
      if (!synced.insert(folder).second) {
        continue;
      }
      Status status = disk_.sync_directory(folder);
      if (!status.ok() && status.error().code() != Errc::kNotFound) {  // the topic was deleted
        return status;
      }
    }
  }
  for (std::size_t i = 0; i < logs.size(); ++i) {
    logs[i]->on_flushed(parts[i].end);
  }
  return Status();
}

Status WriteAheadLog::Core::checkpoint() {
  const MutexLock one(checkpoint_mutex_);
  std::vector<std::shared_ptr<DurableLog>> logs;
  std::uint64_t mark = 0;
  {
    const MutexLock lock(mutex_);
    if (failure_) {
      return *failure_;
    }
    logs.assign(unflushed_.begin(), unflushed_.end());
    // What is being written is not told durable yet, and may stay above its log's recovery point.
    unflushed_.clear();
    unflushed_.insert(writing_.begin(), writing_.end());
    mark = std::min(sequence_, group_sequence_.value_or(sequence_));
    bytes_since_checkpoint_ = 0;
    checkpoint_asked_ = false;
  }
  // What is in frames below `mark` was in its log's file before: it is flushed now.
  const auto attempt = [&] {
    Status status = flush(logs);
    return status.ok() && host_.write_recovery_points ? host_.write_recovery_points() : status;
  };
  Status done = attempt();
  if (!done.ok() && done.error().code() == Errc::kNoSpace && host_.make_room && host_.make_room()) {
    done = attempt();
  }
  if (!done.ok()) {
    {
      const MutexLock lock(mutex_);
      unflushed_.insert(logs.begin(), logs.end());
    }
    if (!is_shortage(done.error().code())) {
      lose(done.error(), Loser::kCheckpoint);
    }
    return done;
  }
  const MutexLock lock(mutex_);
  trim_ = mark;
  if (stalled_) {
    stalled_ = false;
    trouble_.store(failure_.has_value(), std::memory_order_release);
  }
  ++metrics_.checkpoints;
  return Status();
}

// --- WriteAheadLog

Result<std::unique_ptr<WriteAheadLog>> WriteAheadLog::open(FileSystem& files,
                                                           const std::string& folder,
                                                           WalOptions options,
                                                           const WalContents& contents, bool fresh,
                                                           std::uint64_t seed) {
  WEIR_ASSERT(options.file_bytes_min % kWalBlockBytes == 0 &&
              options.file_bytes_min >= 4 * kWalBlockBytes &&
              options.file_bytes_max >= options.file_bytes_min);
  auto core = std::make_shared<Core>(files, folder, options);
  WEIR_TRY(core->open(contents, fresh, seed));
  return std::unique_ptr<WriteAheadLog>(new WriteAheadLog(std::move(core)));
}

WriteAheadLog::~WriteAheadLog() {
  core_->stop();
}

void WriteAheadLog::attach(WalHost host) {
  core_->attach(std::move(host));
}
Status WriteAheadLog::admit() const {
  return core_->admit();
}
void WriteAheadLog::add(std::shared_ptr<DurableLog> log, SharedBytes batch, Offset end) {
  Entry entry{std::move(log), std::move(batch), end};
  core_->add({&entry, 1});
}
void WriteAheadLog::add_group(std::vector<Entry> group) {
  WEIR_ASSERT(!group.empty());
  core_->add(group);
}
void WriteAheadLog::start() {
  core_->start();
}
void WriteAheadLog::note_unflushed(std::shared_ptr<DurableLog> log) {
  core_->note_unflushed(std::move(log));
}
void WriteAheadLog::drain() {
  core_->drain();
}
Status WriteAheadLog::checkpoint() {
  Status done = core_->checkpoint();
  core_->start();  // what waited for the room that it made
  return done;
}
WriteAheadLog::Metrics WriteAheadLog::metrics() const {
  return core_->metrics();
}

}  // namespace weir::log
