#include "log/partition/partition.h"
#include "log/partition/replay.h"
#include "log/record/batch_builder.h"
#include "log/segment/segment_scan.h"
#include "tests/fuzz/fuzz.h"

#include <weir/log/log_dump.h>
#include <weir/runtime/assert.h>
#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <nlohmann/json.hpp>

#include <string>

// A partition folder in which one file is hostile: the first byte says which, and whether the
// folder is opened or dumped; the rest are its bytes. Whatever it holds, opening, reading, looking
// up and dumping end with an answer; and where the segment is healthy no index, epoch file or
// metadata file hides a record of it or moves it.
namespace weir::log {
namespace {

constexpr std::int64_t kBatches = 6;
constexpr std::int64_t kRecordsPerBatch = 3;
constexpr std::int64_t kEnd = kBatches * kRecordsPerBatch;
constexpr Timestamp kFirstTime = 1'700'000'000'000;
constexpr std::int64_t kIndexInterval = 150;
const std::string kFolder = "t-0";
constexpr const char* kFiles[] = {"00000000000000000000.log",
                                  "00000000000000000000.index",
                                  "00000000000000000000.timeindex",
                                  "00000000000000000000.txnindex",
                                  "00000000000000000000.snapshot",
                                  "leader-epoch-checkpoint",
                                  "partition.metadata"};

// Batches of three records whose timestamps are 10 ms apart.
std::string healthy_segment() {
  std::string segment;
  for (std::int64_t i = 0; i < kBatches; ++i) {
    BatchBuilder builder(1000);
    for (std::int64_t j = 0; j < kRecordsPerBatch; ++j) {
      WEIR_ASSERT(builder.append(RecordRef{ByteView("key"),
                                           ByteView("some value"),
                                           kFirstTime + 10 * (i * kRecordsPerBatch + j),
                                           {}}));
    }
    const SharedBytes batch = [&] {
      SharedBytes sealed = builder.seal();
      stamp_offset(sealed.data(), Offset(i * kRecordsPerBatch), LeaderEpoch(0));
      return sealed;
    }();
    segment += batch.view();
  }
  return segment;
}

void put(FileSystem& files, const std::string& name, ByteView bytes) {
  const auto file = files.open(join_path(kFolder, name), OpenMode::kCreateTruncate);
  WEIR_ASSERT(file.ok());
  WEIR_ASSERT((*file)->write_at(0, bytes).ok());
}

ScanResult scan(FileSystem& files, std::uint64_t size, Offset durable_to, SegmentIndexes& indexes) {
  const auto file = files.open(join_path(kFolder, kFiles[0]), OpenMode::kRead);
  WEIR_ASSERT(file.ok());
  ScanRange range;
  range.end = size;
  range.verify_from = Offset(0);
  range.durable_to = durable_to;
  range.offset_end = segment_offset_end(Offset(0), kOffsetMax);
  range.index_interval_bytes = kIndexInterval;
  Result<ScanResult> result = scan_segment(**file, range, indexes);
  if (!result.ok()) {
    WEIR_ASSERT(result.error().code() == Errc::kUnsupported);  // message sets of old magic
    return {};
  }
  return *std::move(result);
}

// A walk ends inside the file; ranges of damage are in order and between whole batches; what is
// left of a torn file is whole.
void check_scans(FileSystem& files, std::uint64_t size) {
  for (const Offset durable_to : {Offset(0), kOffsetMax}) {
    SegmentIndexes indexes{Offset(0)};
    const ScanResult result = scan(files, size, durable_to, indexes);
    WEIR_ASSERT(result.valid_bytes <= size);
    std::uint64_t behind = 0;
    for (const Damage& damage : result.damage) {
      WEIR_ASSERT(behind <= damage.position && damage.position <= damage.end_position);
      WEIR_ASSERT(damage.end_position <= size && damage.from <= damage.to);
      behind = damage.end_position;
    }
    if (durable_to == Offset(0) && result.damage.empty()) {
      SegmentIndexes again{Offset(0)};
      const ScanResult cut = scan(files, result.valid_bytes, durable_to, again);
      WEIR_ASSERT(cut.valid_bytes == result.valid_bytes && cut.stop_reason.empty());
      WEIR_ASSERT(cut.next_offset == result.next_offset && cut.epochs == result.epochs);
    }
  }
}

std::shared_ptr<Partition> open(FileSystem& files, const Clock& clock, bool clean) {
  Partition::OpenOptions options;
  options.name = {"t", PartitionId(0)};
  options.path = kFolder;
  options.read_only = true;
  options.clean = clean;
  options.settings.index_interval_bytes = kIndexInterval;
  Result<std::shared_ptr<Partition>> partition =
      Partition::open(Partition::Environment{files, clock, nullptr, 0}, options);
  if (!partition.ok()) {
    WEIR_ASSERT(!partition.error().message().empty());
    return nullptr;
  }
  WEIR_ASSERT((*partition)->refresh(Offset(0), (*partition)->offsets().log_end).ok());
  return *std::move(partition);
}

// From every offset that damage lets the reading go on at; each step goes forward.
void read_what_is_there(Partition& partition) {
  Offset next(0);
  for (int batches = 0; batches < 100 && next < partition.offsets().high_watermark; ++batches) {
    const Result<FetchResult> read = partition.read(next, 1);
    if (!read.ok() || read->batches.empty()) {
      break;
    }
    WEIR_ASSERT(read->batches.front().header.last_offset() >= next);
    WEIR_ASSERT(read->next_offset > next);
    next = read->next_offset;
  }
  replay_records(partition, Offset(0), [](const RecordView&) { return Status(); })
      .status()
      .ignore("damage is an answer");
  for (const Timestamp time : {Timestamp(0), kFirstTime + 15, Timestamp(INT64_MAX)}) {
    partition.offset_for_time(time).status().ignore("damage is an answer");
  }
}

void check_all_is_served(Partition& partition) {
  WEIR_ASSERT(partition.offsets().log_end == Offset(kEnd));
  for (std::int64_t offset = 0; offset < kEnd; ++offset) {
    const Result<FetchResult> read = partition.read(Offset(offset), 1);
    WEIR_ASSERT(read.ok() && !read->batches.empty());
    const BatchHeader& header = read->batches.front().header;
    WEIR_ASSERT(header.base_offset <= Offset(offset) && Offset(offset) <= header.last_offset());
    const auto found = partition.offset_for_time(kFirstTime + 10 * offset);
    WEIR_ASSERT(found.ok() && *found == Offset(offset));
  }
  WEIR_ASSERT(!partition.offset_for_time(kFirstTime + 10 * kEnd)->has_value());
}

void check_partition(FileSystem& files, bool is_segment_hostile) {
  const testing::ManualClock clock;
  for (const bool clean : {true, false}) {
    const std::shared_ptr<Partition> partition = open(files, clock, clean);
    if (partition == nullptr) {
      WEIR_ASSERT(is_segment_hostile);
      continue;
    }
    if (is_segment_hostile) {
      read_what_is_there(*partition);
    } else {
      check_all_is_served(*partition);
    }
    WEIR_ASSERT(partition->close().ok());
  }
}

void check_dumps(FileSystem& files, const std::string& path) {
  for (const bool json : {false, true}) {
    std::string text;
    const Status dumped = dump_log(files, path, DumpOptions{.json = json},
                                   [&text](std::string_view piece) { text += piece; });
    WEIR_ASSERT(!json || !dumped.ok() || nlohmann::json::accept(text));
  }
}

}  // namespace

void check_folder(std::uint8_t choice, ByteView bytes) {
  static const std::string healthy = healthy_segment();
  const std::size_t hostile = choice % std::size(kFiles);
  const bool is_dumped = choice / std::size(kFiles) % 2 == 1;
  testing::MemoryFileSystem files;
  WEIR_ASSERT(files.create_directories(kFolder).ok());
  put(files, kFiles[0], hostile == 0 ? bytes : ByteView(healthy));
  SegmentIndexes indexes{Offset(0)};
  if (hostile != 0) {
    scan(files, healthy.size(), Offset(0), indexes);
    indexes.finish();
  }
  put(files, kFiles[1], indexes.offsets().encode());
  put(files, kFiles[2], indexes.times().encode());
  put(files, kFiles[hostile], bytes);
  if (!is_dumped) {
    check_partition(files, hostile == 0);
    return;
  }
  if (hostile == 0) {
    check_scans(files, bytes.size());
  }
  if (hostile < 5) {
    check_dumps(files, join_path(kFolder, kFiles[hostile]));
  }
  check_dumps(files, kFolder);
}

}  // namespace weir::log

std::size_t weir::fuzz::allocation_max(std::size_t input) {
  return small_allocation_max(input) + (8U << 20U);  // the records of a batch, decompressed
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0) {
    weir::log::check_folder(data[0], {reinterpret_cast<const char*>(data + 1), size - 1});
  }
  return 0;
}
