#include "bench/log_fixture.h"

#include "bench/harness.h"

#include <weir/runtime/file_system.h>

#include <fmt/core.h>

#include <chrono>

namespace weir::bench {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

}  // namespace

Result<std::unique_ptr<log::EmbeddedLog>> open_log(const std::string& folder,
                                                   std::size_t tail_cache_bytes) {
  log::EmbeddedLogOptions options;
  options.tail_cache_bytes = tail_cache_bytes;
  return log::EmbeddedLog::open(join_path(folder, "data"), options);
}

Status make_topic(Admin& admin, const std::string& name, const std::string& durability,
                  std::int32_t partitions) {
  return admin.create_topic({name, partitions, {{"weir.durability", durability}}}).status();
}

Result<std::unique_ptr<RecordSink>> open_sink(Backend& log) {
  return log.make_sink({.client_id = "bench", .batch_bytes = kBatchBytes, .transactional_id = {}});
}

Result<std::unique_ptr<RecordSource>> open_source(Backend& log, const std::string& topic) {
  WEIR_TRY_ASSIGN(std::unique_ptr<RecordSource> source, log.make_source({}));
  WEIR_TRY(source->assign({{topic, PartitionId(0)}}));
  WEIR_TRY(source->seek(0, Offset(0)));
  return source;
}

Status read_records(RecordSource& source, std::uint64_t records,
                    const std::function<void(const RecordBlock&)>& take) {
  std::uint64_t seen = 0;
  Offset next = source.position(0);
  while (seen < records) {
    WEIR_TRY_ASSIGN(const std::vector<RecordBlock> blocks, source.poll(kPatience));
    if (blocks.empty()) {
      return Error(Errc::kTimedOut, fmt::format("{} of {} records came", seen, records));
    }
    for (const RecordBlock& block : blocks) {
      WEIR_TRY(block.status);
      WEIR_TRY(expect(block.records.front().offset == next, "offsets have a gap"));
      next = block.next_offset;
      seen += block.records.size();
      take(block);
    }
  }
  return expect_equal(seen, records, "count of records read");
}

}  // namespace weir::bench
