#include "log/broker/scrubber.h"

#include <weir/runtime/logger.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

namespace weir::log {
namespace {

constexpr std::uint64_t kStepBytesMax = 1U << 20U;
constexpr std::uint64_t kStepBytesMin = 64U << 10U;
constexpr std::int64_t kRememberEveryMs = 60'000;
// A look at the clock when nothing else is to be done; a clock may be set.
constexpr auto kIdleWait = std::chrono::hours(1);
constexpr std::size_t kDamageMax = 100'000;  // ranges that are remembered over a restart

bool parse(std::string_view text, std::int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string_view take(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return part;
}

bool parse_partition(std::string_view topic, std::string_view index, TopicPartition* name) {
  std::int64_t partition = 0;
  if (topic.empty() || !parse(index, &partition) || partition < 0 || partition > INT32_MAX) {
    return false;
  }
  *name = {std::string(topic), PartitionId(static_cast<std::int32_t>(partition))};
  return true;
}

// "<topic id> <partition> <segment> <position> <end> <from> <to> <what>"
bool parse_damage(std::string_view line, ScrubMemory& memory) {
  const Result<Uuid> id = Uuid::parse(take(line, ' '));
  std::int64_t partition = 0;
  if (!id.ok() || !parse(take(line, ' '), &partition) || partition < 0 || partition > INT32_MAX) {
    return false;
  }
  std::int64_t numbers[5] = {};
  for (std::int64_t& number : numbers) {
    if (!parse(take(line, ' '), &number) || number < 0) {
      return false;
    }
  }
  memory.damage[{*id, PartitionId(static_cast<std::int32_t>(partition))}].push_back(
      {Offset(numbers[0]),
       {static_cast<std::uint64_t>(numbers[1]), static_cast<std::uint64_t>(numbers[2]),
        Offset(numbers[3]), Offset(numbers[4]), std::string(line)}});
  return numbers[1] < numbers[2] && numbers[3] <= numbers[4];
}

// Text: "0", "<pass began> [<topic> <partition>]", count, lines of damage.
Result<ScrubMemory> parse_scrub_memory(std::string_view text, const std::string& path) {
  const auto corrupt = [&path](std::string_view what) {
    return Error(Errc::kCorrupt, fmt::format("{}: {}; the next scrub makes it anew", path, what));
  };
  ScrubMemory memory;
  if (take(text, '\n') != "0") {
    return corrupt("does not start with version 0");
  }
  std::string_view pass = take(text, '\n');
  if (!parse(take(pass, ' '), &memory.pass_began)) {
    return corrupt("its second line is no time");
  }
  if (!pass.empty()) {
    TopicPartition cursor;
    const std::string_view topic = take(pass, ' ');
    if (!parse_partition(topic, pass, &cursor)) {
      return corrupt("its second line names no partition");
    }
    memory.cursor = std::move(cursor);
  }
  std::int64_t count = 0;
  if (!parse(take(text, '\n'), &count)) {
    return corrupt("its third line is no number");
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (text.find('\n') == std::string_view::npos || !parse_damage(take(text, '\n'), memory)) {
      return corrupt(fmt::format("line {} is no damaged range", i + 4));
    }
  }
  return memory;
}

}  // namespace

Result<ScrubMemory> read_scrub_memory(FileSystem& files, const std::string& path) {
  const Result<std::string> text = read_file(files, path);
  if (!text.ok()) {
    return text.error().code() == Errc::kNotFound ? Result<ScrubMemory>(ScrubMemory())
                                                  : text.error();
  }
  return text->empty() ? Result<ScrubMemory>(ScrubMemory()) : parse_scrub_memory(*text, path);
}

std::string encode_scrub_memory(const ScrubMemory& memory) {
  std::string lines;
  std::size_t count = 0;
  for (const auto& [key, ranges] : memory.damage) {
    for (const auto& [segment, range] : ranges) {
      if (count == kDamageMax) {
        break;
      }
      ++count;
      std::string what = range.what;
      std::replace(what.begin(), what.end(), '\n', ' ');
      lines += fmt::format("{} {} {} {} {} {} {} {}\n", key.first.to_string(), key.second.value(),
                           segment.value(), range.position, range.end_position, range.from.value(),
                           range.to.value(), what);
    }
  }
  const std::string cursor =
      memory.cursor ? fmt::format(" {} {}", memory.cursor->topic, memory.cursor->partition.value())
                    : std::string();
  return fmt::format("0\n{}{}\n{}\n{}", memory.pass_began, cursor, count, lines);
}

Scrubber::Scrubber(FileSystem& files, const Clock& clock, std::string memory_path,
                   ScrubOptions options, ScrubMemory memory, Host host)
    : files_(files),
      clock_(clock),
      memory_path_(std::move(memory_path)),
      options_(options),
      host_(std::move(host)),
      pass_began_(memory.pass_began),
      cursor_(std::move(memory.cursor)) {}

Duration Scrubber::step() {
  const MutexLock one(step_mutex_);
  if (stopped_ || options_.bytes_per_second == 0) {
    return kIdleWait;
  }
  if (scrub_ == nullptr && todo_.empty()) {
    if (!cursor_) {
      if (const Duration wait = until_next_pass(); wait > Duration::zero()) {
        return wait;
      }
      pass_began_ = clock_.now();
    }
    todo_ = host_.partitions();
    std::erase_if(todo_, [this](const TopicPartition& name)
                             WEIR_NO_THREAD_SAFETY_ANALYSIS { return cursor_ && name < *cursor_; });
    std::reverse(todo_.begin(), todo_.end());
  }
  const std::uint64_t budget = std::clamp(static_cast<std::uint64_t>(options_.bytes_per_second) / 4,
                                          kStepBytesMin, kStepBytesMax);
  std::uint64_t bytes = 0;
  while (bytes < budget) {
    if (scrub_ == nullptr && !next_partition()) {
      const MutexLock lock(mutex_);
      ++progress_.passes;
      break;
    }
    const PartitionScrub::Progress progress = scrub_->step(budget - bytes);
    bytes += progress.bytes;
    count(progress);
    if (progress.is_done) {
      scrub_.reset();
    }
  }
  return time_for(bytes);
}

Duration Scrubber::time_for(std::uint64_t bytes) const {
  const double seconds =
      static_cast<double>(bytes) / static_cast<double>(options_.bytes_per_second);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

Duration Scrubber::until_next_pass() {
  if (pass_began_ == kNoTimestamp) {
    return Duration::zero();
  }
  const Timestamp now = clock_.now();
  // A clock that was set back is no reason to wait for it.
  const std::int64_t waited = std::max<std::int64_t>(now - pass_began_, 0);
  const Duration left =
      std::chrono::milliseconds(std::max<std::int64_t>(options_.interval_ms - waited, 0));
  return std::min<Duration>(left, kIdleWait);
}

// False at the end of the pass.
bool Scrubber::next_partition() {
  while (!todo_.empty()) {
    cursor_ = std::move(todo_.back());
    todo_.pop_back();
    if (remembered_ == kNoTimestamp || clock_.now() - remembered_ >= kRememberEveryMs) {
      remember();
    }
    if (std::shared_ptr<Partition> partition = host_.open(*cursor_)) {
      scrub_ = std::make_unique<PartitionScrub>(files_, std::move(partition));
      return true;
    }
  }
  cursor_.reset();
  remember();
  return false;
}

void Scrubber::count(const PartitionScrub::Progress& progress) {
  {
    const MutexLock lock(mutex_);
    progress_.bytes += progress.bytes;
    progress_.damaged_ranges += progress.news.size();
  }
  if (progress.damage_changed) {
    remember();
  }
}

void Scrubber::remember() {
  const std::string text = encode_scrub_memory({pass_began_, cursor_, host_.damage()});
  remembered_ = clock_.now();
  Status written = files_.create_directories(parent_path(memory_path_));
  if (written.ok()) {
    written = replace_file(files_, memory_path_, text);
  }
  if (!written.ok()) {
    WEIR_WARN("scrub not remembered file={} error=\"{}\"", memory_path_, written.error().message());
  }
}

void Scrubber::stop() {
  const MutexLock one(step_mutex_);
  stopped_ = true;
  scrub_.reset();
}

ScrubProgress Scrubber::progress() const {
  const MutexLock lock(mutex_);
  return progress_;
}

}  // namespace weir::log
