#include "bench/corpus.h"
#include "bench/jobs.h"
#include "bench/log_fixture.h"
#include "log/record/batch_builder.h"
#include "log/record/compression.h"

#include <weir/runtime/clock.h>
#include <weir/runtime/file_system.h>
#include <weir/runtime/rng.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>

// compression: records of some 250 bytes as programs write them (JSON with words and numbers), 64
// KB batches, one `memory` partition, every codec at its default level. Beside each: the codec
// alone over the same bytes, in blocks as large.

namespace weir::bench {
namespace {

constexpr const char* kTopic = "records";
constexpr std::size_t kPayloads = 16'384;  // no batch is like another for 4 MB
constexpr std::size_t kSpan = 512;
constexpr std::uint64_t kRecords = 500'000;

class Payloads {
 public:
  Payloads() : keys_(kPayloads), values_(kPayloads), records_(kPayloads) {
    constexpr std::array kPages{"/checkout/basket", "/products/shoes/running", "/account/orders",
                                "/search",          "/products/books/new",     "/help/delivery"};
    constexpr std::array kAgents{"Mozilla/5.0 (X11; Linux x86_64)", "okhttp/4.12.0",
                                 "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4)"};
    Rng rng(kSeed);
    const Timestamp now = system_clock().now();
    for (std::size_t i = 0; i < kPayloads; ++i) {
      keys_[i] = fmt::format("user-{}", rng.below(100'000));
      values_[i] = fmt::format(
          R"({{"event":"page_view","session":"{:016x}","user":"{}","page":"{}","referrer":"{}",)"
          R"("agent":"{}","duration_ms":{},"status":200,"cart":{}.{:02},"currency":"EUR"}})",
          rng.next(), keys_[i], kPages[rng.below(kPages.size())], kPages[rng.below(kPages.size())],
          kAgents[rng.below(kAgents.size())], rng.below(20'000), rng.below(300), rng.below(100));
      records_[i] = {.key = ByteView(keys_[i]),
                     .value = ByteView(values_[i]),
                     .timestamp = now + static_cast<Timestamp>(i / 8),
                     .headers = {}};
    }
  }
  Payloads(const Payloads&) = delete;
  Payloads& operator=(const Payloads&) = delete;

  std::span<const RecordRef> next(std::uint64_t at, std::uint64_t most) const {
    const std::size_t begin = at % kPayloads;
    return std::span(records_).subspan(begin,
                                       std::min<std::uint64_t>({most, kSpan, kPayloads - begin}));
  }
  const RecordRef& at(std::uint64_t i) const { return records_[i % kPayloads]; }

 private:
  std::vector<std::string> keys_;
  std::vector<std::string> values_;
  std::vector<RecordRef> records_;
};

const Payloads& payloads() {
  static const Payloads all;
  return all;
}

// The batches that `records` records fill, not compressed.
std::vector<SharedBytes> plain_batches(std::uint64_t records) {
  std::vector<SharedBytes> batches;
  log::BatchBuilder builder(kBatchBytes);
  for (std::uint64_t i = 0; i < records; ++i) {
    if (!builder.append(payloads().at(i))) {
      batches.push_back(builder.seal());
      builder.append(payloads().at(i));
    }
  }
  batches.push_back(builder.seal());
  return batches;
}

std::uint64_t total_bytes(const std::vector<SharedBytes>& batches) {
  std::uint64_t bytes = 0;
  for (const SharedBytes& batch : batches) {
    bytes += batch.size();
  }
  return bytes;
}

ByteView records_of(const SharedBytes& batch) {
  return batch.view().substr(log::kBatchHeaderBytes);
}

// What the log's segments hold.
Result<std::uint64_t> stored_bytes(const std::string& folder) {
  const std::string partition = join_path(folder, fmt::format("data/log/{}-0", kTopic));
  WEIR_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, posix_file_system().list(partition));
  std::uint64_t bytes = 0;
  for (const DirectoryEntry& entry : entries) {
    if (entry.name.ends_with(".log")) {
      WEIR_TRY_ASSIGN(const FileInfo info,
                      posix_file_system().info(join_path(partition, entry.name)));
      bytes += info.size;
    }
  }
  return bytes;
}

void note_throughput(Run& run, std::uint64_t plain) {
  run.note("throughput", static_cast<double>(plain) * 1e9 / std::max(run.wall_ns(), 1.0) / 1e6,
           "MB/s");
}

Status fill(const std::string& folder, Codec codec, std::uint64_t records, Run* measured) {
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(folder));
  WEIR_TRY(make_topic(log->admin(), kTopic, "memory"));
  SinkOptions options;
  options.batch_bytes = kBatchBytes;
  options.compression.codec = codec;
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSink> sink, log->make_sink(options));
  WEIR_TRY_ASSIGN(const SinkTopicInfo topic, sink->open_topic(kTopic));
  if (measured != nullptr) {
    measured->start();
  }
  for (std::uint64_t sent = 0; sent < records;) {
    const std::span<const RecordRef> next = payloads().next(sent, records - sent);
    WEIR_TRY(sink->send(topic.handle, PartitionId(0), next));
    sent += next.size();
  }
  WEIR_TRY(sink->flush().status());
  if (measured != nullptr) {
    measured->stop();
  }
  return log->close();
}

// Every record, in order. `measured`: with a look at each value's ends only.
Status read_back(Run& run, bool measured) {
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  std::uint64_t at = 0;
  std::uint64_t wrong = 0;
  if (measured) {
    run.start();
  }
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, open_source(*log, kTopic));
  WEIR_TRY(read_records(*source, run.items(), [&](const RecordBlock& block) {
    for (const RecordView& record : block.records) {
      const ByteView sent = payloads().at(at++).value.view();
      const ByteView value = record.value.view();
      const bool same =
          measured ? value.size() == sent.size() && value.back() == sent.back() : value == sent;
      wrong += same ? 0U : 1U;
    }
  }));
  if (measured) {
    run.stop();
  }
  WEIR_TRY(expect_equal(wrong, 0, "count of records that differ from what was sent"));
  return log->close();
}

Status write_log(Run& run, Codec codec) {
  payloads();
  WEIR_TRY(fill(run.folder(), codec, run.items(), &run));
  const std::uint64_t plain = total_bytes(plain_batches(run.items()));
  note_throughput(run, plain);
  WEIR_TRY_ASSIGN(const std::uint64_t stored, stored_bytes(run.folder()));
  run.note("stored_share", static_cast<double>(stored) / static_cast<double>(plain), "of plain");
  return read_back(run, false);
}

Status read_log(Run& run, Codec codec) {
  WEIR_TRY(fill(run.folder(), codec, run.items(), nullptr));
  WEIR_TRY(read_back(run, true));
  note_throughput(run, total_bytes(plain_batches(run.items())));
  return {};
}

Status compress_alone(Run& run, Codec codec) {
  const std::vector<SharedBytes> batches = plain_batches(run.items());
  std::uint64_t bytes = 0;
  run.start();
  for (const SharedBytes& batch : batches) {
    bytes += log::compress({codec, {}}, records_of(batch)).size();
  }
  run.stop();
  return expect(bytes > 0, "nothing was compressed");
}

Status decompress_alone(Run& run, Codec codec) {
  const std::vector<SharedBytes> batches = plain_batches(run.items());
  std::vector<SharedBytes> compressed;
  for (const SharedBytes& batch : batches) {
    compressed.push_back(log::compress({codec, {}}, records_of(batch)));
  }
  std::uint64_t bytes = 0;
  run.start();
  for (const SharedBytes& stream : compressed) {
    WEIR_TRY_ASSIGN(const SharedBytes plain,
                    log::decompress(static_cast<std::uint8_t>(codec), stream.view(), 1U << 20U));
    bytes += plain.size() + log::kBatchHeaderBytes;
  }
  run.stop();
  return expect_equal(bytes, total_bytes(batches), "bytes decompressed");
}

}  // namespace

std::vector<Case> compression_cases() {
  std::vector<Case> cases;
  for (const Codec codec :
       {Codec::kNone, Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd}) {
    Case& write = cases.emplace_back();
    write.name = fmt::format("{}_write", codec_name(codec));
    write.contenders = {{"weir", [codec](Run& run) { return write_log(run, codec); }},
                        {"codec_alone", [codec](Run& run) { return compress_alone(run, codec); }}};
    Case& read = cases.emplace_back();
    read.name = fmt::format("{}_read", codec_name(codec));
    read.contenders = {{"weir", [codec](Run& run) { return read_log(run, codec); }},
                       {"codec_alone", [codec](Run& run) { return decompress_alone(run, codec); }}};
  }
  for (Case& one : cases) {
    one.unit = "record";
    one.items = kRecords;
    one.rounds = 3;
  }
  return cases;
}

}  // namespace weir::bench
