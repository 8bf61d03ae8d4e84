#include "log/stored/stored_folder.h"

#include "log/partition/partition_folder.h"
#include "log/partition/partition_metadata.h"
#include "log/record/batch_header.h"
#include "log/record/sha256.h"
#include "log/segment/segment_names.h"
#include "log/stored/stored_metadata.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace weir::log {
namespace {

constexpr std::string_view kMetadataFolder = "__cluster_metadata-0";
constexpr std::int32_t kPartitionMax = 99'999;

bool is_segment_file(const DirectoryEntry& entry) {
  std::string_view name = entry.name;
  if (name.ends_with(".swap")) {
    name.remove_suffix(5);
  }
  return entry.kind == FileKind::kFile && parse_log_file_name(name).has_value();
}

// "a/b/" and "a/b/." -> "b".
std::string last_part(const std::string& path) {
  std::filesystem::path full = std::filesystem::absolute(path).lexically_normal();
  if (full.filename().empty()) {
    full = full.parent_path();
  }
  return full.filename().string();
}

// Id of the topic that the folder says it is of; zero when it says nothing.
Uuid folder_id(FileSystem& files, const std::string& folder) {
  const Result<std::string> text = read_file(files, join_path(folder, kPartitionMetadataName));
  const Result<Uuid> id = text.ok() ? parse_partition_metadata(*text) : Result<Uuid>(Uuid{});
  return id.ok() ? *id : Uuid{};
}

// The header of the first batch of a partition folder, as it stands; empty when there is none.
std::string first_header(FileSystem& files, const std::string& folder) {
  const Result<std::vector<DirectoryEntry>> entries = files.list(folder);
  if (!entries.ok()) {
    return {};
  }
  for (const DirectoryEntry& entry : *entries) {
    if (!is_segment_file(entry)) {
      continue;
    }
    std::array<char, kBatchHeaderBytes> header{};
    const Result<std::shared_ptr<File>> file =
        files.open(join_path(folder, entry.name), OpenMode::kRead);
    const Result<std::size_t> got =
        file.ok() ? (*file)->read_at(0, header) : Result<std::size_t>(0);
    if (got.ok() && *got > 0) {
      return {header.data(), *got};
    }
  }
  return {};
}

class FolderReader {
 public:
  FolderReader(FileSystem& files, const std::string& path) : files_(files) { out_.path = path; }

  Result<StoredFolder> run() {
    WEIR_TRY(check_is_folder());
    WEIR_TRY_ASSIGN(entries_, files_.list(out_.path));
    if (std::any_of(entries_.begin(), entries_.end(), is_segment_file)) {
      take_one_partition();
    } else {
      WEIR_TRY(take_directory());
    }
    for (auto& [name, topic] : out_.topics) {
      if (topic.id.is_zero()) {
        topic.id = made_id(name, topic);
      }
    }
    return std::move(out_);
  }

 private:
  Status check_is_folder() {
    const Result<FileInfo> info = files_.info(out_.path);
    if (!info.ok()) {
      return info.error().code() != Errc::kNotFound
                 ? info.status()
                 : Status(Error(Errc::kNotFound, fmt::format("there is no folder {}", out_.path)));
    }
    return info->kind == FileKind::kDirectory
               ? Status()
               : Status(Error(
                     Errc::kInvalidArgument,
                     fmt::format("{} is no folder; name the folder that holds it", out_.path)));
  }

  void take_one_partition() {
    const std::string folder = last_part(out_.path);
    const TopicPartition name =
        parse_partition_folder(folder).value_or(TopicPartition{folder, PartitionId(0)});
    add_folder(name, out_.path);
    if (out_.topics.empty()) {
      add_folder({folder, PartitionId(0)}, out_.path);  // the number is too large
    }
  }

  Status take_directory() {
    out_.log_starts = read_checkpoint("log-start-offset-checkpoint");
    out_.cleaned = read_checkpoint("cleaner-offset-checkpoint");
    if (has(kMetadataFolder)) {
      WEIR_TRY(read_metadata());
    }
    bool any = has(kMetadataFolder);
    for (const DirectoryEntry& entry : entries_) {
      const std::optional<TopicPartition> name = parse_partition_folder(entry.name);
      if (entry.kind != FileKind::kDirectory || !name || entry.name == kMetadataFolder) {
        continue;
      }
      any = true;
      take_folder(*name, join_path(out_.path, entry.name));
    }
    if (!any) {
      return nothing_here();
    }
    out_.may_be_in_use = has("meta.properties") && !has(".kafka_cleanshutdown");
    if (out_.may_be_in_use) {
      out_.notes.push_back(fmt::format(
          "{} was not closed cleanly, or its process still runs: each partition is read "
          "up to the last whole batch that is there now",
          out_.path));
    }
    return Status();
  }

  Error nothing_here() const {
    const std::string inside = join_path(out_.path, "log");
    const std::string hint =
        path_exists(files_, join_path(inside, "meta.properties"))
            ? fmt::format("; {} looks like what you mean", inside)
            : std::string(
                  "; name a Kafka data directory, a folder with partition folders such as "
                  "orders-0, or one partition folder");
    return {Errc::kInvalidArgument, fmt::format("{} holds no partition{}", out_.path, hint)};
  }

  bool has(std::string_view name) const {
    return std::any_of(entries_.begin(), entries_.end(),
                       [name](const DirectoryEntry& entry) { return entry.name == name; });
  }

  // Without them the files tell where each log begins and whether it was compacted.
  OffsetCheckpoint read_checkpoint(std::string_view name) {
    Result<OffsetCheckpoint> read = read_offset_checkpoint(files_, join_path(out_.path, name));
    if (read.ok()) {
      return *std::move(read);
    }
    out_.notes.push_back(fmt::format("not used: {}", read.error().message()));
    return {};
  }

  Status read_metadata() {
    Result<StoredMetadata> read =
        read_stored_metadata(files_, join_path(out_.path, kMetadataFolder));
    if (!read.ok()) {
      if (read.error().code() == Errc::kIo) {
        return read.status();
      }
      out_.notes.push_back(
          fmt::format("topics come from the names of the folders, the metadata "
                      "cannot be read: {}",
                      read.error().message()));
      return Status();
    }
    image_ = std::move(read->image);
    for (std::string& note : read->notes) {
      out_.notes.push_back(std::move(note));
    }
    for (const auto& [name, image] : image_.topics()) {
      StoredTopic topic;
      topic.id = image.id;
      topic.partitions = static_cast<std::int32_t>(image.leader_epochs.size());
      topic.config = image.config;
      topic.leader_epochs = image.leader_epochs;
      out_.topics.emplace(name, std::move(topic));
    }
    return Status();
  }

  void take_folder(const TopicPartition& name, const std::string& path) {
    const TopicImage* image = image_.find(name.topic);
    const Uuid id = folder_id(files_, path);
    if (!id.is_zero() && image_.was_removed(id)) {
      out_.notes.push_back(fmt::format("left out: {} is of a topic that was deleted", path));
      return;
    }
    if (image == nullptr && !image_.topics().empty() && !id.is_zero()) {
      out_.notes.push_back(
          fmt::format("{} is of topic id {}, which the metadata does not have: a "
                      "deletion that was cut short, or a copy",
                      path, id.to_string()));
    }
    add_folder(name, path);
  }

  void add_folder(const TopicPartition& name, const std::string& path) {
    if (name.partition.value() > kPartitionMax) {
      out_.notes.push_back(fmt::format("left out: {} has too high a partition number", path));
      return;
    }
    StoredTopic& topic = out_.topics[name.topic];
    const Uuid id = folder_id(files_, path);
    if (topic.id.is_zero()) {
      topic.id = id;
    }
    if (!id.is_zero() && id != topic.id) {
      out_.notes.push_back(fmt::format("left out: {} is of topic id {}, not of {}", path,
                                       id.to_string(), topic.id.to_string()));
      return;
    }
    topic.partitions = std::max(topic.partitions, name.partition.value() + 1);
    topic.folders[name.partition] = path;
  }

  Uuid made_id(const std::string& name, const StoredTopic& topic) {
    std::string text = name;
    for (const auto& [partition, folder] : topic.folders) {
      text += fmt::format("/{}/", partition.value()) + first_header(files_, folder);
    }
    const std::array<std::uint8_t, 32> hash = sha256(text);
    Uuid id;
    std::copy_n(hash.begin(), id.bytes.size(), id.bytes.begin());
    return id;
  }

  FileSystem& files_;
  std::vector<DirectoryEntry> entries_;
  MetadataImage image_;
  StoredFolder out_;
};

}  // namespace

Result<StoredFolder> read_stored_folder(FileSystem& files, const std::string& path) {
  return FolderReader(files, path).run();
}

}  // namespace weir::log
