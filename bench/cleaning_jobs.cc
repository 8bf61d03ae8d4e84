#include "bench/corpus.h"
#include "bench/jobs.h"
#include "bench/log_fixture.h"

#include <weir/log/embedded_log.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/rng.h>

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

// compaction: one pass over a partition of records of 200 bytes in batches of 64 KB, five versions
// of each key or one. Beside it: the same files copied and synced, which is the least that a pass
// over them reads and writes.

namespace weir::bench {
namespace {

constexpr const char* kTopic = "table";
constexpr std::uint64_t kRecords = 500'000;
constexpr std::size_t kValueBytes = 180;
constexpr std::uint64_t kSegmentBytesMax = 16U << 20U;

// Closed, so that nothing is left to be flushed.
Status fill(Run& run, std::uint64_t versions, Codec codec) {
  const std::uint64_t keys = std::max<std::uint64_t>(run.items() / versions, 1);
  // Several segments, however few the records are.
  const std::uint64_t segment_bytes = std::clamp<std::uint64_t>(
      run.items() * (codec == Codec::kNone ? 40 : 5), 10'000, kSegmentBytesMax);
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  WEIR_TRY(log->admin()
               .create_topic({kTopic,
                              1,
                              {{"cleanup.policy", "compact"},
                               {"weir.durability", "memory"},
                               {"min.cleanable.dirty.ratio", "1"},  // by request alone
                               {"segment.bytes", std::to_string(segment_bytes)}}})
               .status());
  SinkOptions options;
  options.batch_bytes = kBatchBytes;
  options.compression.codec = codec;
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSink> sink, log->make_sink(options));
  WEIR_TRY_ASSIGN(const SinkTopicInfo topic, sink->open_topic(kTopic));
  Rng rng(kSeed);
  std::string value(kValueBytes, ' ');
  const Timestamp now = system_clock().now();
  for (std::uint64_t i = 0; i < run.items(); ++i) {
    for (std::size_t at = 0; at < kValueBytes; at += 20) {
      value[at] = static_cast<char>('a' + rng.below(26));
    }
    const std::string key = fmt::format("customer-{:08}", i * 7919 % keys);
    const RecordRef record{
        ByteView(key), ByteView(value), now + static_cast<Timestamp>(i / 100), {}};
    WEIR_TRY(sink->send(topic.handle, PartitionId(0), std::span(&record, 1)));
  }
  WEIR_TRY(sink->flush().status());
  return log->close();
}

void note_throughput(Run& run, std::uint64_t bytes) {
  run.note("throughput", static_cast<double>(bytes) * 1e9 / std::max(run.wall_ns(), 1.0) / 1e6,
           "MB/s read");
}

Status compact(Run& run, std::uint64_t versions, Codec codec) {
  WEIR_TRY(fill(run, versions, codec));
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  run.start();
  WEIR_TRY(log->compact_topic(kTopic));
  run.stop();
  const log::CleanerProgress done = log->cleaner_progress();
  WEIR_TRY(expect_equal(done.passes, 1, "count of passes"));
  note_throughput(run, done.bytes_read);
  run.note("kept_share",
           static_cast<double>(done.bytes_written) /
               static_cast<double>(std::max<std::uint64_t>(done.bytes_read, 1)),
           "of bytes");
  return log->close();
}

Status copy_file(const std::string& from, const std::string& to, std::uint64_t* bytes) {
  FileSystem& files = posix_file_system();
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> source, files.open(from, OpenMode::kRead));
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> copy, files.open(to, OpenMode::kCreateTruncate));
  std::vector<char> buffer(256U << 10U);
  std::uint64_t at = 0;
  while (true) {
    WEIR_TRY_ASSIGN(const std::size_t got, source->read_at(at, buffer));
    if (got == 0) {
      break;
    }
    WEIR_TRY(copy->write_at(at, ByteView(buffer.data(), got)));
    at += got;
  }
  *bytes += at;
  return copy->sync();
}

Status copy(Run& run, std::uint64_t versions, Codec codec) {
  WEIR_TRY(fill(run, versions, codec));
  const std::string folder = join_path(run.folder(), fmt::format("data/log/{}-0", kTopic));
  WEIR_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, posix_file_system().list(folder));
  std::uint64_t bytes = 0;
  run.start();
  for (const DirectoryEntry& entry : entries) {
    if (entry.name.ends_with(".log")) {
      WEIR_TRY(
          copy_file(join_path(folder, entry.name), join_path(run.folder(), entry.name), &bytes));
    }
  }
  run.stop();
  note_throughput(run, bytes);
  return {};
}

Case case_of(std::string name, std::uint64_t versions, Codec codec) {
  Case one;
  one.name = std::move(name);
  one.unit = "record";
  one.items = kRecords;
  one.counted = 40'000;
  one.rounds = 3;
  one.contenders = {{"weir", [=](Run& run) { return compact(run, versions, codec); }},
                    {"copied files", [=](Run& run) { return copy(run, versions, codec); }}};
  return one;
}

}  // namespace

std::vector<Case> compaction_cases() {
  return {case_of("5.versions", 5, Codec::kNone), case_of("1.version", 1, Codec::kNone),
          case_of("5.versions.lz4", 5, Codec::kLz4)};
}

}  // namespace weir::bench
