#include "log/partition/producers_file.h"

#include "log/record/wire.h"

#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>

#include <fmt/format.h>

namespace weir::log {
namespace {

constexpr ByteView kMagic = "WEIRPS01";
constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kFileBytesMax = std::size_t{1} << 30U;

}  // namespace

std::string encode_producers_file(const ProducersOfPartitions& partitions) {
  WireWriter out;
  out.integer(static_cast<std::uint32_t>(partitions.size()));
  for (const auto& [name, producers] : partitions) {
    out.uuid(name.first);
    out.integer(name.second.value());
    out.integer(producers.offset.value());
    out.integer(static_cast<std::uint32_t>(producers.bytes.size()));
    out.raw(producers.bytes);
  }
  std::string file(kHeaderBytes, '\0');
  file.replace(0, kMagic.size(), kMagic);
  store_be(file.data() + kMagic.size(), crc32c(out.bytes()));
  return file + out.bytes();
}

Result<ProducersOfPartitions> parse_producers_file(ByteView file) {
  if (file.size() < kHeaderBytes || !file.starts_with(kMagic)) {
    return Error(Errc::kCorrupt, fmt::format("it does not start with {}", kMagic));
  }
  const ByteView body = file.substr(kHeaderBytes);
  if (crc32c(body) != load_be<std::uint32_t>(file.data() + kMagic.size())) {
    return Error(Errc::kCorrupt, "its crc is wrong");
  }
  ProducersOfPartitions partitions;
  WireReader in(body);
  const auto count = in.integer<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const Uuid topic_id = in.uuid();
    const PartitionId partition(in.integer<std::int32_t>());
    ProducersAt producers;
    producers.offset = Offset(in.integer<std::int64_t>());
    producers.bytes = std::string(in.raw(in.integer<std::uint32_t>()));
    partitions[{topic_id, partition}] = std::move(producers);
  }
  if (!in.ok()) {
    return Error(Errc::kCorrupt, "it ends inside a partition");
  }
  return partitions;
}

Result<ProducersOfPartitions> read_producers_file(FileSystem& files, const std::string& path) {
  Result<std::string> file = read_file(files, path, kFileBytesMax);
  if (!file.ok()) {
    return file.error().code() == Errc::kNotFound
               ? Result<ProducersOfPartitions>(ProducersOfPartitions())
               : std::move(file).error();
  }
  Result<ProducersOfPartitions> partitions = parse_producers_file(*file);
  return partitions.ok() ? std::move(partitions) : std::move(partitions).error().with_context(path);
}

}  // namespace weir::log
