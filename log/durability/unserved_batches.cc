#include "log/durability/unserved_batches.h"

#include <weir/runtime/crc32c.h>
#include <weir/runtime/endian.h>

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <optional>

namespace weir::log {
namespace {

constexpr std::string_view kMagic = "WEIRKEPT";
constexpr std::size_t kHeadBytes = kMagic.size() + 4;
constexpr std::size_t kIdLength = 22;

// "<topic id>-<partition>"; nullopt for a file of somebody else.
std::optional<UnservedBatches::Name> parse_name(std::string_view text) {
  if (text.size() < kIdLength + 2 || text[kIdLength] != '-') {
    return std::nullopt;
  }
  const Result<Uuid> id = Uuid::parse(text.substr(0, kIdLength));
  std::int32_t partition = 0;
  const std::string_view number = text.substr(kIdLength + 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), partition);
  if (!id.ok() || error != std::errc() || end != number.data() + number.size() || partition < 0) {
    return std::nullopt;
  }
  return UnservedBatches::Name(*id, PartitionId(partition));
}

Result<std::vector<WalBatch>> parse_batches(const SharedBytes& file, const std::string& path) {
  const auto corrupt = [&path](std::string_view what) {
    return Error(Errc::kCorrupt, fmt::format("{}: {}", path, what));
  };
  ByteView rest = file.view();
  if (!rest.starts_with(kMagic) || rest.size() < kHeadBytes) {
    return corrupt("is no file of kept batches");
  }
  if (load_be<std::uint32_t>(rest.data() + kMagic.size()) != crc32c(rest.substr(kHeadBytes))) {
    return corrupt("its checksum is wrong");
  }
  rest.remove_prefix(kHeadBytes);
  std::vector<WalBatch> batches;
  while (!rest.empty()) {
    if (rest.size() < kBatchHeaderBytes) {
      return corrupt("ends inside a batch");
    }
    WEIR_TRY_ASSIGN(const BatchHeader head, read_batch_header(rest));
    if (head.size_bytes() > rest.size()) {
      return corrupt("ends inside a batch");
    }
    const ByteView bytes = rest.substr(0, head.size_bytes());
    WEIR_TRY_ASSIGN(const BatchHeader header, verify_batch(bytes));
    batches.push_back({{file, bytes}, header});
    rest.remove_prefix(head.size_bytes());
  }
  return batches;
}

}  // namespace

std::string UnservedBatches::path_of(const Name& name) const {
  return join_path(folder_, fmt::format("{}-{}", name.first.to_string(), name.second.value()));
}

Status UnservedBatches::add_to(WalContents& contents) {
  const Result<std::vector<DirectoryEntry>> entries = files_.list(folder_);
  if (!entries.ok()) {
    return entries.error().code() == Errc::kNotFound ? Status() : entries.status();
  }
  for (const DirectoryEntry& entry : *entries) {
    const std::optional<Name> name = parse_name(entry.name);
    if (!name) {
      continue;  // what a crash left of a file that was being written
    }
    const std::string path = path_of(*name);
    WEIR_TRY_ASSIGN(const std::string text, read_file(files_, path));
    WalTail& tail = contents.tails[*name];
    Result<std::vector<WalBatch>> kept = parse_batches(SharedBytes::copy_of(text), path);
    if (!kept.ok()) {
      contents.damaged.push_back(kept.error().message());
      tail.intact = false;
      continue;
    }
    kept_.insert(*name);
    // The write-ahead log's own frames of it were written later, behind these.
    if (!tail.batches.empty()) {
      const Offset next = tail.batches.front().header.base_offset;
      std::erase_if(*kept,
                    [next](const WalBatch& batch) { return batch.header.base_offset >= next; });
    }
    tail.batches.insert(tail.batches.begin(), std::make_move_iterator(kept->begin()),
                        std::make_move_iterator(kept->end()));
  }
  return {};
}

Status UnservedBatches::keep(const Name& name, const std::vector<WalBatch>& batches) {
  std::string text(kMagic);
  text.resize(kHeadBytes);
  for (const WalBatch& batch : batches) {
    text += batch.bytes.bytes;
  }
  store_be<std::uint32_t>(text.data() + kMagic.size(), crc32c(ByteView(text).substr(kHeadBytes)));
  WEIR_TRY(files_.create_directories(folder_));
  WEIR_TRY(files_.sync_directory(parent_path(folder_)));
  WEIR_TRY(replace_file(files_, path_of(name), text));
  kept_.insert(name);
  served_.erase(name);
  return {};
}

void UnservedBatches::served(const Name& name) {
  if (kept_.contains(name)) {
    served_.insert(name);
  }
}

Status UnservedBatches::forget_served() {
  while (!served_.empty()) {
    const Name name = *served_.begin();
    WEIR_TRY(files_.remove_file(path_of(name)));
    kept_.erase(name);
    served_.erase(name);
  }
  return {};
}

}  // namespace weir::log
