#include <weir/runtime/testing/manual_clock.h>
#include <weir/runtime/testing/memory_backend.h>

#include <array>
#include <cstdio>

// Creates a topic in the in-memory log, writes a record and prints what the log holds.
namespace {

weir::Status write_one(weir::Backend& backend) {
  WEIR_TRY(backend.admin().create_topic({.name = "lines"}));
  WEIR_TRY_ASSIGN(auto sink, backend.make_sink({}));
  WEIR_TRY_ASSIGN(const auto topic, sink->open_topic("lines"));
  weir::RecordRef record;
  record.key = weir::ByteView("key");
  record.value = weir::ByteView("value");
  WEIR_TRY(sink->send(topic.handle, weir::PartitionId(0), std::array{record}));
  WEIR_TRY(sink->flush());
  return {};
}

}  // namespace

int main() {
  weir::testing::ManualClock clock;
  weir::testing::MemoryBackend backend(clock);
  const weir::Status written = write_one(backend);
  if (!written.ok()) {
    std::puts(written.error().message().c_str());
    return 1;
  }
  for (const auto& record : backend.records({"lines", weir::PartitionId(0)})) {
    std::printf("%s=%s\n", record.key.value_or("null").c_str(),
                record.value.value_or("null").c_str());
  }
  return 0;
}
