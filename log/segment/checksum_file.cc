#include "log/segment/checksum_file.h"

#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>

#include <utility>

namespace weir::log {
namespace {

// A group, all big-endian:
//    0 magic "WCHK" | 4 crc u32 (CRC-32C of byte 8 to the end) | 8 base offset i64
//   16 next offset i64 | 24 position u32 | 28 length u32 | 32 count u32 | 36 zero u32
//   40 chain u64 | 48 count times {size u32, batch crc u32, header crc u32}
constexpr std::string_view kMagic = "WCHK";
constexpr std::size_t kHeadBytes = 48;
constexpr std::size_t kBatchBytes = 12;
constexpr std::size_t kCrcStart = 8;
constexpr std::uint32_t kGroupLogBytes = 64U << 10U;
constexpr std::uint32_t kCountMax = kGroupLogBytes / kBatchHeaderBytes + 1;
constexpr std::size_t kWriterBatchesMax = 4096;

std::uint64_t next_chain(std::uint64_t chain, std::uint32_t batch_crc, std::uint32_t header_crc) {
  std::uint64_t mixed = chain ^ (std::uint64_t{batch_crc} << 32U | header_crc);
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;  // splitmix64's finaliser
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31U);
}

// How many of `batches` go into one group.
std::size_t group_count(std::span<const BatchChecksum> batches) {
  std::uint64_t bytes = batches.front().size;
  std::size_t count = 1;
  while (count < batches.size() && bytes + batches[count].size <= kGroupLogBytes) {
    bytes += batches[count++].size;
  }
  return count;
}

std::string tmp_path(const std::string& path) {
  return path + ".tmp";
}

}  // namespace

std::uint32_t batch_head_crc(ByteView batch) {
  return crc32c(batch.substr(0, kBatchCrcStart));
}

BatchChecksum checksum_of(const BatchHeader& header, ByteView batch) {
  return {header.base_offset, header.next_offset(), static_cast<std::uint32_t>(header.size_bytes()),
          header.crc, batch_head_crc(batch)};
}

std::string encode_checksums(std::span<const BatchChecksum> batches, std::uint64_t position,
                             std::uint64_t& chain) {
  std::string out;
  while (!batches.empty()) {
    const std::span<const BatchChecksum> group = batches.first(group_count(batches));
    const std::size_t start = out.size();
    out.resize(start + kHeadBytes + group.size() * kBatchBytes);
    char* const head = out.data() + start;
    char* at = head + kHeadBytes;
    std::uint32_t length = 0;
    for (const BatchChecksum& batch : group) {
      store_be<std::uint32_t>(at, batch.size);
      store_be<std::uint32_t>(at + 4, batch.batch_crc);
      store_be<std::uint32_t>(at + 8, batch.header_crc);
      at += kBatchBytes;
      length += batch.size;
      chain = next_chain(chain, batch.batch_crc, batch.header_crc);
    }
    kMagic.copy(head, kMagic.size());
    store_be<std::int64_t>(head + 8, group.front().base.value());
    store_be<std::int64_t>(head + 16, group.back().next.value());
    store_be<std::uint32_t>(head + 24, static_cast<std::uint32_t>(position));
    store_be<std::uint32_t>(head + 28, length);
    store_be<std::uint32_t>(head + 32, static_cast<std::uint32_t>(group.size()));
    store_be<std::uint32_t>(head + 36, 0);
    store_be<std::uint64_t>(head + 40, chain);
    store_be<std::uint32_t>(head + 4, crc32c(ByteView(out).substr(start + kCrcStart)));
    position += length;
    batches = batches.subspan(group.size());
  }
  return out;
}

// --- ChecksumReader

Result<ChecksumReader> ChecksumReader::open(FileSystem& files, const std::string& path,
                                            Offset limit) {
  ChecksumReader reader;
  Result<std::shared_ptr<File>> file = files.open(path, OpenMode::kRead);
  if (!file.ok()) {
    return file.error().code() == Errc::kNotFound ? Result<ChecksumReader>(std::move(reader))
                                                  : std::move(file).error();
  }
  WEIR_TRY_ASSIGN(reader.size_, (*file)->size());
  reader.file_ = *std::move(file);
  reader.limit_ = limit;
  return reader;
}

// A group of one large batch, or of many small ones: its count says how long it is.
Result<bool> ChecksumReader::read_group() {
  if (file_ == nullptr || size_ - valid_bytes_ < kHeadBytes + kBatchBytes) {
    return false;
  }
  std::string bytes(kHeadBytes, '\0');
  WEIR_TRY_ASSIGN(std::size_t got, file_->read_at(valid_bytes_, bytes));
  const auto count = load_be<std::uint32_t>(bytes.data() + 32);
  if (got < kHeadBytes || !bytes.starts_with(kMagic) || count == 0 || count > kCountMax ||
      size_ - valid_bytes_ < kHeadBytes + count * kBatchBytes) {
    return false;
  }
  bytes.resize(kHeadBytes + count * kBatchBytes);
  WEIR_TRY_ASSIGN(got,
                  file_->read_at(valid_bytes_ + kHeadBytes, std::span(bytes).subspan(kHeadBytes)));
  if (got < count * kBatchBytes ||
      crc32c(ByteView(bytes).substr(kCrcStart)) != load_be<std::uint32_t>(bytes.data() + 4)) {
    return false;
  }
  return decode(bytes);
}

bool ChecksumReader::decode(ByteView bytes) {
  const char* const head = bytes.data();
  const Offset next(load_be<std::int64_t>(head + 16));
  const std::uint64_t position = load_be<std::uint32_t>(head + 24);
  const auto count = load_be<std::uint32_t>(head + 32);
  if (next > limit_ || position < group_.end_position) {
    return false;
  }
  std::uint64_t chain = position == group_.end_position ? group_.chain : 0;
  std::vector<KnownBatch> batches;
  batches.reserve(count);
  std::uint64_t at = position;
  for (const char* batch = head + kHeadBytes; batch < head + bytes.size(); batch += kBatchBytes) {
    batches.push_back({at, load_be<std::uint32_t>(batch), load_be<std::uint32_t>(batch + 4),
                       load_be<std::uint32_t>(batch + 8)});
    chain = next_chain(chain, batches.back().batch_crc, batches.back().header_crc);
    at += batches.back().size;
  }
  if (at != position + load_be<std::uint32_t>(head + 28) ||
      chain != load_be<std::uint64_t>(head + 40)) {
    return false;
  }
  group_ = {Offset(load_be<std::int64_t>(head + 8)), next, position, at, chain, std::move(batches)};
  valid_bytes_ += bytes.size();
  next_in_group_ = 0;
  return true;
}

Result<const ChecksumGroup*> ChecksumReader::next_group() {
  WEIR_TRY_ASSIGN(const bool is_there, read_group());
  return is_there ? &group_ : static_cast<const ChecksumGroup*>(nullptr);
}

Result<std::optional<KnownBatch>> ChecksumReader::find(std::uint64_t position) {
  while (true) {
    while (next_in_group_ < group_.batches.size()) {
      if (group_.batches[next_in_group_].position >= position) {
        return std::optional(group_.batches[next_in_group_]);
      }
      ++next_in_group_;
    }
    WEIR_TRY_ASSIGN(const bool is_there, read_group());
    if (!is_there) {
      return std::optional<KnownBatch>();
    }
  }
}

Result<ChecksumEnd> find_checksum_end(FileSystem& files, const std::string& path, Offset offset,
                                      std::uint64_t position) {
  WEIR_TRY_ASSIGN(ChecksumReader reader, ChecksumReader::open(files, path, offset));
  ChecksumEnd end;
  while (true) {
    WEIR_TRY_ASSIGN(const ChecksumGroup* const group, reader.next_group());
    if (group == nullptr) {
      end.has_more = reader.has_more();
      return end;
    }
    if (group->end_position > position) {
      end.has_more = true;
      return end;
    }
    end.bytes = reader.valid_bytes();
    end.end_position = group->end_position;
    end.chain = group->chain;
  }
}

// --- ChecksumWriter

Result<ChecksumWriter> ChecksumWriter::create(FileSystem& files, std::string path) {
  WEIR_TRY(files.create_directories(parent_path(path)));
  WEIR_TRY_ASSIGN(std::shared_ptr<File> file,
                  files.open(tmp_path(path), OpenMode::kCreateTruncate));
  return ChecksumWriter(files, std::move(path), std::move(file));
}

Status ChecksumWriter::add(const BatchChecksum& batch, std::uint64_t position) {
  if (batches_.size() == kWriterBatchesMax || position != end_position_) {
    WEIR_TRY(write());
    position_ = position;
    chain_ = position == end_position_ ? chain_ : 0;
  }
  batches_.push_back(batch);
  end_position_ = position + batch.size;
  return Status();
}

Status ChecksumWriter::write() {
  const std::string text = encode_checksums(batches_, position_, chain_);
  batches_.clear();
  if (text.empty()) {
    return Status();
  }
  WEIR_TRY(file_->write_at(bytes_, text));
  bytes_ += text.size();
  return Status();
}

Status ChecksumWriter::finish() {
  WEIR_TRY(write());
  WEIR_TRY(file_->sync());
  file_.reset();
  WEIR_TRY(files_->rename(tmp_path(path_), path_));
  return files_->sync_directory(parent_path(path_));
}

void ChecksumWriter::abandon() {
  file_.reset();
  files_->remove_file(tmp_path(path_)).ignore("it is emptied when it is used again");
}

}  // namespace weir::log
