#include "bench/plain_file.h"

#include "bench/log_fixture.h"

#include <weir/runtime/crc32c.h>
#include <weir/runtime/file_system.h>

#include <algorithm>
#include <cstring>

namespace weir::bench {
namespace {

Result<std::shared_ptr<File>> open_file(const Run& run) {
  return posix_file_system().open(join_path(run.folder(), "plain"), OpenMode::kCreateOrOpen);
}

Status write_blocks(File& file, std::uint64_t records, std::uint64_t record_bytes) {
  const std::string record(record_bytes, 'x');
  SharedBytes block = SharedBytes::allocate(kBatchBytes);
  std::uint64_t position = 0;
  std::size_t used = 0;
  for (std::uint64_t i = 0; i < records; ++i) {
    if (used + record_bytes > kBatchBytes) {
      WEIR_TRY(file.write_at(position, ByteView(block.data(), used)));
      position += used;
      used = 0;
    }
    std::memcpy(block.data() + used, record.data(), record_bytes);
    used += record_bytes;
  }
  return file.write_at(position, ByteView(block.data(), used));
}

}  // namespace

Status write_plain_file(Run& run, std::uint64_t record_bytes) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, open_file(run));
  run.start();
  WEIR_TRY(file->reserve(run.items() * record_bytes));
  WEIR_TRY(write_blocks(*file, run.items(), record_bytes));
  run.stop();
  WEIR_TRY_ASSIGN(const std::uint64_t size, file->size());
  return expect_equal(size, run.items() * record_bytes, "size of the file");
}

Status read_plain_file(Run& run, std::uint64_t record_bytes) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, open_file(run));
  WEIR_TRY(write_blocks(*file, run.items(), record_bytes));
  const std::uint64_t size = run.items() * record_bytes;
  SharedBytes block = SharedBytes::allocate(kBatchBytes);
  std::uint32_t crc = 0;
  run.start();
  for (std::uint64_t position = 0; position < size; position += kBatchBytes) {
    const std::size_t count = std::min<std::uint64_t>(kBatchBytes, size - position);
    WEIR_TRY(file->read_at(position, {block.data(), count}).status());
    crc = crc32c_extend(crc, ByteView(block.data(), count));
  }
  run.stop();
  std::uint32_t expected = 0;
  const std::string part(record_bytes, 'x');
  for (std::uint64_t i = 0; i < run.items(); ++i) {
    expected = crc32c_extend(expected, part);
  }
  return expect_equal(crc, expected, "CRC of the file");
}

}  // namespace weir::bench
