#include "runtime/io/errno_error.h"
#include "runtime/testing/memory_disk.h"

#include <cerrno>
#include <utility>

// The operations of MemoryDisk on names, locks and mappings.

namespace weir::testing::internal {

using weir::internal::errno_error;

Status MemoryDisk::check_rename(const NameTree::Place& from, const NameTree::Place& to,
                                const std::string& path) const {
  if (from.node == nullptr) {
    return errno_error("rename", path, ENOENT);
  }
  if (from.folder == nullptr || to.folder == nullptr) {
    return errno_error("rename", path, EBUSY);
  }
  if (from.node->is_folder() && NameTree::is_below(to.folder.get(), from.node.get())) {
    return errno_error("rename", path, EINVAL);
  }
  if (to.node == nullptr) {
    return {};
  }
  if (from.node->is_folder() != to.node->is_folder()) {
    return errno_error("rename", path, to.node->is_folder() ? EISDIR : ENOTDIR);
  }
  if (!to.node->names.empty()) {
    return errno_error("rename", path, ENOTEMPTY);
  }
  return {};
}

Status MemoryDisk::rename(const std::string& from, const std::string& to) {
  WEIR_TRY(admit(Operation::kRename, from).status);
  const MutexLock lock(mutex_);
  WEIR_TRY(check_power(from));
  const std::string both = from + " to " + to;
  WEIR_TRY_ASSIGN(const NameTree::Place source, tree_->find("rename", from));
  WEIR_TRY_ASSIGN(const NameTree::Place target, tree_->find("rename", to));
  if (source.node != nullptr && source.node == target.node) {
    return {};
  }
  WEIR_TRY(check_rename(source, target, both));
  tree_->move(source, target);
  if (target.node != nullptr) {
    free_if_unused(*target.node);
  }
  return {};
}

Status MemoryDisk::remove_file(const std::string& path) {
  WEIR_TRY(admit(Operation::kRemove, path).status);
  const MutexLock lock(mutex_);
  WEIR_TRY(check_power(path));
  WEIR_TRY_ASSIGN(const NameTree::Place place, find_file("remove", path, true));
  tree_->remove(place);
  free_if_unused(*place.node);
  return {};
}

Status MemoryDisk::remove_directory(const std::string& path) {
  WEIR_TRY(admit(Operation::kRemove, path).status);
  const MutexLock lock(mutex_);
  WEIR_TRY(check_power(path));
  WEIR_TRY_ASSIGN(const NameTree::Place place, find_folder("remove folder", path));
  if (place.folder == nullptr) {
    return errno_error("remove folder", path, EBUSY);
  }
  if (!place.node->names.empty()) {
    return errno_error("remove folder", path, ENOTEMPTY);
  }
  tree_->remove(place);
  return {};
}

Status MemoryDisk::create_directories(const std::string& path) {
  for (std::size_t end = path.find_first_not_of('/'); end != std::string::npos;
       end = path.find_first_not_of('/', end)) {
    end = path.find('/', end);
    WEIR_TRY(create_folder(path.substr(0, end)));
  }
  return {};
}

Status MemoryDisk::create_folder(const std::string& path) {
  for (const bool admitted : {false, true}) {
    {
      const MutexLock lock(mutex_);
      WEIR_TRY(check_power(path));
      WEIR_TRY_ASSIGN(const NameTree::Place place, tree_->find("create folder", path));
      if (place.node != nullptr) {
        return place.node->is_folder() ? Status() : errno_error("create folder", path, ENOTDIR);
      }
      if (admitted) {
        const auto folder = std::make_shared<Node>(std::nullopt);
        tree_->add(place, folder);
        touch(*folder);
        return {};
      }
    }
    WEIR_TRY(admit(Operation::kCreate, path).status);
  }
  return {};
}

Status MemoryDisk::sync_directory(const std::string& path) {
  WEIR_TRY(admit(Operation::kSyncDirectory, path).status);
  const MutexLock lock(mutex_);
  WEIR_TRY(check_power(path));
  WEIR_TRY_ASSIGN(const NameTree::Place place, find_folder("sync folder", path));
  tree_->sync(place.node);
  return {};
}

Status MemoryDisk::sync_disk(const std::string& path) {
  Admission admission = admit(Operation::kSync, path);
  const MutexLock lock(mutex_);
  if (admission.verdict == Verdict::kFaulted) {
    for (const NodePointer& node : tree_->all()) {
      if (!node->is_folder()) {
        node->pull_mapped();
        node->content->fail_sync();
      }
    }
  }
  WEIR_TRY(std::move(admission.status));
  WEIR_TRY(check_power(path));
  WEIR_TRY(find_folder("sync the disk of", path).status());
  for (const NodePointer& node : tree_->all()) {
    if (node->is_folder()) {
      tree_->sync(node);
    } else {
      node->pull_mapped();
      node->content->sync();
    }
  }
  return {};
}

Result<std::vector<DirectoryEntry>> MemoryDisk::list(const std::string& path) {
  WEIR_TRY(admit(Operation::kRead, path).status);
  const MutexLock lock(mutex_);
  WEIR_TRY(check_power(path));
  WEIR_TRY_ASSIGN(const NameTree::Place place, find_folder("list", path));
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, node] : place.node->names) {
    entries.push_back({name, node->is_folder() ? FileKind::kDirectory : FileKind::kFile});
  }
  return entries;
}

Result<FileInfo> MemoryDisk::info(const std::string& path) {
  WEIR_TRY(admit(Operation::kRead, path).status);
  const MutexLock lock(mutex_);
  WEIR_TRY(check_power(path));
  WEIR_TRY_ASSIGN(const NameTree::Place place, tree_->find("stat", path));
  if (place.node == nullptr) {
    return errno_error("stat", path, ENOENT);
  }
  FileInfo info;
  info.kind = place.node->is_folder() ? FileKind::kDirectory : FileKind::kFile;
  info.size = place.node->is_folder() ? 0 : place.node->content->size();
  info.modified = place.node->modified;
  return info;
}

Result<DiskSpace> MemoryDisk::disk_space(const std::string& path) {
  const MutexLock lock(mutex_);
  WEIR_TRY(check_power(path));
  WEIR_TRY_ASSIGN(const NameTree::Place place, tree_->find("statvfs", path));
  if (place.node == nullptr) {
    return errno_error("statvfs", path, ENOENT);
  }
  return DiskSpace{.capacity_bytes = options_.capacity_bytes,
                   .available_bytes = free_blocks() * options_.block_bytes};
}

Status MemoryDisk::check_unlocked(const Handle& handle) {
  WEIR_TRY(check_alive(handle));
  if (!handle.node->locked) {
    return {};
  }
  std::string text(4096, '\0');
  text.resize(handle.node->content->read(0, text));
  return weir::internal::locked_error(handle.path, text);
}

Result<MemoryDisk::Handle> MemoryDisk::lock(const std::string& path, std::string_view holder) {
  WEIR_TRY_ASSIGN(const Handle handle, open(path, OpenMode::kCreateOrOpen));
  Status status;
  {
    const MutexLock lock(mutex_);
    status = check_unlocked(handle);
    handle.node->locked = handle.node->locked || status.ok();
  }
  const bool locked = status.ok();
  if (locked) {
    status = truncate(handle, 0);
  }
  if (status.ok()) {
    status = write(handle, 0, holder);
  }
  if (status.ok()) {
    return handle;
  }
  if (locked) {
    unlock(handle);
  } else {
    close(handle);
  }
  return std::move(status).error();
}

void MemoryDisk::unlock(const Handle& handle) {
  const MutexLock lock(mutex_);
  if (handle.generation == generation_) {
    handle.node->locked = false;
  }
  close_locked(handle);
}

Status MemoryDisk::extend_for_mapping(const Handle& handle, std::size_t size) {
  {
    const MutexLock lock(mutex_);
    WEIR_TRY(check_alive(handle));
    if (handle.node->content->size() >= size) {
      return {};
    }
  }
  WEIR_TRY(admit(Operation::kTruncate, handle).status);
  const MutexLock lock(mutex_);
  WEIR_TRY(check_alive(handle));
  WEIR_TRY(reserve_blocks(*handle.node, "map", handle.path, size));
  if (handle.node->content->size() < size) {
    set_size(*handle.node, size);
  }
  return {};
}

Result<MemoryDisk::Mapping> MemoryDisk::map(const std::string& path, std::size_t size,
                                            bool writable) {
  if (size == 0) {
    return errno_error("map 0 bytes of", path, EINVAL);
  }
  WEIR_TRY_ASSIGN(Handle handle, open(path, writable ? OpenMode::kCreateOrOpen : OpenMode::kRead));
  const Status extended = writable ? extend_for_mapping(handle, size) : Status();
  const Result<char*> data =
      extended.ok() ? attach_mapping(handle, size) : Result<char*>(extended.error());
  if (!data.ok()) {
    close(handle);
    return data.error();
  }
  return Mapping{std::move(handle), *data, size};
}

Result<char*> MemoryDisk::attach_mapping(const Handle& handle, std::size_t size) {
  const MutexLock lock(mutex_);
  WEIR_TRY(check_alive(handle));
  Node& node = *handle.node;
  if (node.content->size() < size) {
    return weir::internal::short_mapping_error(
        handle.path, static_cast<std::size_t>(node.content->size()), size);
  }
  if (node.region == nullptr) {
    WEIR_TRY_ASSIGN(node.region, MappedRegion::create(handle.path));
  }
  node.pull_mapped();
  WEIR_TRY(node.region->grow(handle.path, size));
  node.push_mapped();
  WEIR_TRY_ASSIGN(char* const data, node.region->map(handle.path, size));
  ++node.mappings;
  return data;
}

void MemoryDisk::close_mapping(const Mapping& mapping) {
  {
    const MutexLock lock(mutex_);
    Node& node = *mapping.handle.node;
    if (mapping.handle.generation == generation_ && --node.mappings == 0) {
      node.pull_mapped();
      node.region.reset();
    }
    close_locked(mapping.handle);
  }
  MappedRegion::unmap(mapping.data, mapping.size);
}

}  // namespace weir::testing::internal
