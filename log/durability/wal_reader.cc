#include "log/durability/wal_reader.h"

#include <weir/runtime/crc32c.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace weir::log {
namespace {

// How far behind a bad frame a later one is looked for: more than the largest frame.
constexpr std::uint64_t kSearchBytes = 8U << 20U;

Result<SharedBytes> read_whole(FileSystem& files, const std::string& path) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, files.open(path, OpenMode::kRead));
  WEIR_TRY_ASSIGN(const std::uint64_t size, file->size());
  SharedBytes bytes = SharedBytes::allocate(static_cast<std::size_t>(size));
  bytes.resize(static_cast<std::size_t>(size));
  WEIR_TRY_ASSIGN(const std::size_t read, file->read_at(0, {bytes.data(), bytes.size()}));
  bytes.resize(read);
  return bytes;
}

// The file's header and its first frame's.
Result<ByteView> read_heads(FileSystem& files, const std::string& path, std::string& heads) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, files.open(path, OpenMode::kRead));
  heads.resize(kWalBlockBytes + kWalFrameHeaderBytes);
  WEIR_TRY_ASSIGN(const std::size_t read, file->read_at(0, heads));
  return ByteView(heads).substr(0, read);
}

// A header that cannot be read and is not that of a free file, but for zeros: what its first frame
// says of it. nullopt: there is no frame.
std::optional<WalFileHeader> header_from_frame(ByteView heads) {
  if (heads.size() < kWalBlockBytes + kWalFrameHeaderBytes ||
      heads.find_first_not_of('\0') >= kWalBlockBytes) {
    return std::nullopt;
  }
  const std::optional<WalFrameHeader> frame =
      read_wal_frame_header(heads.substr(kWalBlockBytes), std::nullopt);
  if (!frame) {
    return std::nullopt;
  }
  WalFileHeader header;
  header.wal_id = frame->wal_id;
  header.first_sequence = frame->sequence;
  header.previous_crc = frame->previous_crc;
  return header;
}

// The sequence behind the frames that stand in a file, by their headers.
Result<std::uint64_t> end_sequence(FileSystem& files, const WalFile& file) {
  WEIR_TRY_ASSIGN(const SharedBytes bytes, read_whole(files, file.path));
  std::uint64_t next = file.header.first_sequence;
  std::uint64_t position = kWalBlockBytes;
  while (position + kWalFrameHeaderBytes <= bytes.size()) {
    const std::optional<WalFrameHeader> frame = read_wal_frame_header(
        bytes.view().substr(static_cast<std::size_t>(position)), file.header.wal_id);
    if (!frame || frame->sequence != next) {
      break;
    }
    ++next;
    position += wal_blocks_up(kWalFrameHeaderBytes + frame->payload_bytes);
  }
  return next;
}

// Files of the log whose headers decayed. One whose frames end before those of the others was
// freed.
Status adopt_damaged(FileSystem& files, WalContents& contents, std::vector<WalFile> damaged) {
  for (WalFile& file : damaged) {
    bool is_of_log = contents.files.empty() || file.header.wal_id == contents.wal_id;
    if (is_of_log && !contents.files.empty()) {
      const std::uint64_t first = contents.files.front().header.first_sequence;
      WEIR_TRY_ASSIGN(const std::uint64_t end, end_sequence(files, file));
      is_of_log = file.header.first_sequence > first || end == first;
    }
    if (!is_of_log) {
      file.header = WalFileHeader();
      contents.spare.push_back(std::move(file));
      continue;
    }
    contents.wal_id = file.header.wal_id;
    contents.generation = std::max<std::uint64_t>(contents.generation, 1);
    file.header.generation = contents.generation;
    contents.headless.push_back(
        fmt::format("{}: its header cannot be read; its frames from {} on say what it is",
                    file.path, file.header.first_sequence));
    contents.files.push_back(std::move(file));
  }
  return {};
}

class Reader {
 public:
  Reader(FileSystem& files, WalContents contents) : files_(files), result_(std::move(contents)) {}

  Result<WalContents> run() {
    if (!result_.files.empty()) {
      result_.next_sequence = result_.files.front().header.first_sequence;
      result_.previous_crc = result_.files.front().header.previous_crc;
    }
    for (std::size_t i = 0; i < result_.files.size(); ++i) {
      WEIR_TRY(read_file(i));
    }
    if (!group_.empty() || part_) {
      drop_group();  // torn: it was never acknowledged
    }
    if (!result_.intact) {
      for (auto& [name, tail] : result_.tails) {
        tail.intact = false;
      }
    }
    return std::move(result_);
  }

 private:
  struct Piece {
    std::pair<Uuid, PartitionId> name;
    WalBatch batch;
  };

  Status read_file(std::size_t index) {
    const WalFile& file = result_.files[index];
    WEIR_TRY_ASSIGN(bytes_, read_whole(files_, file.path));
    if (index > 0 && file.header.first_sequence != result_.next_sequence) {
      damaged(fmt::format("{}: frames {} to {} before it cannot be read", file.path,
                          result_.next_sequence, file.header.first_sequence - 1));
      result_.next_sequence = file.header.first_sequence;
      result_.previous_crc = file.header.previous_crc;
    }
    const bool last = index + 1 == result_.files.size();
    std::uint64_t position = kWalBlockBytes;
    while (position + kWalFrameHeaderBytes <= bytes_.size()) {
      const std::optional<WalFrameHeader> frame = sound_frame(position);
      if (frame) {
        accept(*frame);
        position += wal_blocks_up(kWalFrameHeaderBytes + frame->payload_bytes);
        continue;
      }
      const std::optional<std::uint64_t> later = find_later(position);
      if (!later) {
        break;  // the end of this file, or torn
      }
      damaged(fmt::format("{}: frames from {} at position {} up to position {} cannot be read",
                          file.path, result_.next_sequence, position, *later));
      position = *later;
      const std::optional<WalFrameHeader> next = header_at(position);
      result_.next_sequence = next->sequence;
      result_.previous_crc = next->previous_crc;
    }
    if (last) {
      result_.end_position = position;
    }
    return Status();
  }

  std::optional<WalFrameHeader> header_at(std::uint64_t position) const {
    return read_wal_frame_header(bytes_.view().substr(static_cast<std::size_t>(position)),
                                 result_.wal_id);
  }

  // The next frame of the log, with all of its payload.
  std::optional<WalFrameHeader> sound_frame(std::uint64_t position) {
    const std::optional<WalFrameHeader> header = header_at(position);
    if (!header || header->sequence != result_.next_sequence ||
        header->previous_crc != result_.previous_crc || !parse(*header, position)) {
      return std::nullopt;
    }
    return header;
  }

  // Fills entries_ from the frame's payload. False when any of it is damaged.
  bool parse(const WalFrameHeader& header, std::uint64_t position) {
    entries_.clear();
    const std::size_t start = static_cast<std::size_t>(position) + kWalFrameHeaderBytes;
    if (header.payload_bytes > bytes_.size() - start) {
      return false;
    }
    ByteView rest = bytes_.view().substr(start, header.payload_bytes);
    std::uint32_t heads_crc = 0;
    for (std::uint32_t i = 0; i < header.entries; ++i) {
      if (rest.size() < kWalEntryHeadBytes) {
        return false;
      }
      heads_crc = crc32c_extend(heads_crc, rest.substr(0, kWalEntryHeadBytes));
      const WalEntryHead head = read_wal_entry_head(rest);
      rest.remove_prefix(kWalEntryHeadBytes);
      if (head.body_bytes > rest.size()) {
        return false;
      }
      const ByteView body = rest.substr(0, head.body_bytes);
      const bool part = head.has(WalEntryHead::kBodyPart);
      if (wal_body_check(body, part) != head.body_check || (!part && !verify_batch(body).ok())) {
        return false;
      }
      entries_.emplace_back(head, body);
      rest.remove_prefix(head.body_bytes);
    }
    return heads_crc == header.heads_crc && rest.empty();
  }

  // A sound header of a later frame behind a bad one: what is between was durable once.
  std::optional<std::uint64_t> find_later(std::uint64_t position) const {
    const std::uint64_t end = std::min<std::uint64_t>(bytes_.size(), position + kSearchBytes);
    for (position += kWalBlockBytes; position < end; position += kWalBlockBytes) {
      const std::optional<WalFrameHeader> header = header_at(position);
      if (header && header->sequence > result_.next_sequence) {
        return position;
      }
    }
    return std::nullopt;
  }

  void accept(const WalFrameHeader& frame) {
    result_.next_sequence = frame.sequence + 1;
    result_.previous_crc = frame.crc;
    result_.bytes += kWalFrameHeaderBytes + frame.payload_bytes;
    if (frame.begins) {
      drop_group();
    }
    for (const auto& [head, body] : entries_) {
      add_entry(head, body);
    }
  }

  void add_entry(const WalEntryHead& head, ByteView body) {
    if (head.kind != WalEntryHead::kBatch) {
      return;
    }
    SharedSlice slice{bytes_, body};
    if (head.has(WalEntryHead::kBodyPart)) {
      if (!join_part(head, body, slice)) {
        return;
      }
    }
    const Result<BatchHeader> header = verify_batch(slice.bytes);
    if (!header.ok()) {
      drop_group();  // its beginning is among the frames that are lost
      return;
    }
    // The rest of a group of which the beginning is lost is nothing by itself.
    const bool follows = head.has(WalEntryHead::kGroupFollows);
    if (follows == group_.empty()) {
      group_.clear();
      if (follows) {
        return;
      }
    }
    group_.push_back({{head.topic_id, head.partition}, {std::move(slice), *header}});
    if (head.has(WalEntryHead::kGroupGoesOn)) {
      return;
    }
    for (Piece& piece : group_) {
      result_.tails[piece.name].batches.push_back(std::move(piece.batch));
      ++result_.batches;
    }
    group_.clear();
  }

  // True when the body is whole.
  bool join_part(const WalEntryHead& head, ByteView body, SharedSlice& whole) {
    if (!part_) {
      part_.emplace();
    }
    part_->append(body);
    if (head.has(WalEntryHead::kBodyGoesOn)) {
      return false;
    }
    whole.owner = SharedBytes::copy_of(*part_);
    whole.bytes = whole.owner.view();
    part_.reset();
    return true;
  }

  void damaged(std::string text) {
    result_.intact = false;
    result_.damaged.push_back(std::move(text));
    drop_group();
  }

  void drop_group() {
    group_.clear();
    part_.reset();
  }

  FileSystem& files_;
  WalContents result_;
  SharedBytes bytes_;
  std::vector<std::pair<WalEntryHead, ByteView>> entries_;
  std::vector<Piece> group_;
  std::optional<std::string> part_;
};

}  // namespace

WalTail WalContents::tail(const Uuid& topic_id, PartitionId partition) {
  const auto found = tails.find({topic_id, partition});
  WalTail result;
  if (found != tails.end()) {
    result = std::move(found->second);
    tails.erase(found);
  }
  result.intact = result.intact && intact;
  return result;
}

Result<WalContents> read_wal_files(FileSystem& files, const std::string& folder) {
  WalContents contents;
  Result<std::vector<DirectoryEntry>> entries = files.list(folder);
  if (!entries.ok()) {
    return entries.error().code() == Errc::kNotFound ? Result<WalContents>(std::move(contents))
                                                     : Result<WalContents>(entries.error());
  }
  std::string heads;
  std::vector<WalFile> damaged;
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.name.ends_with(kWalSuffix) || entry.kind != FileKind::kFile) {
      continue;
    }
    WalFile file;
    file.path = join_path(folder, entry.name);
    WEIR_TRY_ASSIGN(const ByteView bytes, read_heads(files, file.path, heads));
    const std::optional<WalFileHeader> header = read_wal_file_header(bytes);
    if (!header) {
      if (const std::optional<WalFileHeader> told = header_from_frame(bytes)) {
        file.header = *told;
        damaged.push_back(std::move(file));
        continue;
      }
    }
    if (!header || header->generation < contents.generation) {
      contents.spare.push_back(std::move(file));
      continue;
    }
    file.header = *header;
    if (header->generation > contents.generation) {
      contents.spare.insert(contents.spare.end(), contents.files.begin(), contents.files.end());
      contents.files.clear();
      contents.generation = header->generation;
      contents.wal_id = header->wal_id;
    }
    contents.files.push_back(std::move(file));
  }
  const auto by_sequence = [](const WalFile& a, const WalFile& b) {
    return a.header.first_sequence < b.header.first_sequence;
  };
  std::sort(contents.files.begin(), contents.files.end(), by_sequence);
  WEIR_TRY(adopt_damaged(files, contents, std::move(damaged)));
  std::sort(contents.files.begin(), contents.files.end(), by_sequence);
  return contents;
}

Result<WalContents> read_wal(FileSystem& files, const std::string& folder) {
  WEIR_TRY_ASSIGN(WalContents contents, read_wal_files(files, folder));
  return Reader(files, std::move(contents)).run();
}

}  // namespace weir::log
