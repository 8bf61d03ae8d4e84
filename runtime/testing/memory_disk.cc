#include "runtime/testing/memory_disk.h"

#include "runtime/io/errno_error.h"

#include <weir/runtime/assert.h>

#include <fmt/format.h>

#include <cerrno>
#include <utility>

namespace weir::testing::internal {

using weir::internal::errno_error;

namespace {

bool creates(OpenMode mode) {
  return mode == OpenMode::kCreateOrOpen || mode == OpenMode::kCreateNew ||
         mode == OpenMode::kCreateTruncate;
}

// As direct I/O would refuse it, and as an extension would not be durable.
Status check_durable_write(const MemoryDisk::Handle& handle, std::uint64_t position,
                           ByteView bytes) {
  const bool aligned = position % kDurableAlignment == 0 && bytes.size() % kDurableAlignment == 0 &&
                       reinterpret_cast<std::uintptr_t>(bytes.data()) % kDurableAlignment == 0;
  if (!aligned || position + bytes.size() > handle.node->content->size()) {
    return errno_error("write durably", handle.path, EINVAL);
  }
  return {};
}

}  // namespace

MemoryDisk::MemoryDisk(Options options)
    : options_(options), rng_(options.seed), tree_(std::make_unique<NameTree>()) {
  WEIR_ASSERT(options.block_bytes != 0 && options.block_bytes % 512 == 0);
}

void MemoryDisk::set_fault(Fault fault) {
  auto shared = fault ? std::make_shared<const Fault>(std::move(fault)) : nullptr;
  const MutexLock lock(mutex_);
  fault_.swap(shared);
}

void MemoryDisk::cut_power_at(std::uint64_t operation) {
  const MutexLock lock(mutex_);
  cut_at_ = operations_ + operation;
}

bool MemoryDisk::power_is_off() const {
  const MutexLock lock(mutex_);
  return power_off_;
}

std::uint64_t MemoryDisk::operations() const {
  const MutexLock lock(mutex_);
  return operations_;
}

void MemoryDisk::set_capacity(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  options_.capacity_bytes = bytes;
}

void MemoryDisk::power_cut() {
  const MutexLock lock(mutex_);
  end_processes();
  tree_->power_cut(rng_);
  power_off_ = false;
  cut_at_.reset();
  count_used_blocks();
}

void MemoryDisk::process_crash() {
  const MutexLock lock(mutex_);
  end_processes();
  power_off_ = false;
  cut_at_.reset();
  count_used_blocks();
}

void MemoryDisk::end_processes() {
  ++generation_;
  for (const NodePointer& node : tree_->all()) {
    node->pull_mapped();
    node->region.reset();
    node->mappings = 0;
    node->locked = false;
    node->open_handles = 0;
  }
}

void MemoryDisk::count_used_blocks() {
  used_blocks_ = 0;
  for (const NodePointer& node : tree_->cached()) {
    used_blocks_ += node->is_folder() ? 0 : node->content->allocated_blocks();
  }
}

void MemoryDisk::flip_bit(const std::string& path, std::uint64_t position, int bit) {
  const MutexLock lock(mutex_);
  auto place = tree_->find("flip a bit of", path);
  WEIR_ASSERT(place.ok() && place->node != nullptr && !place->node->is_folder());
  Node& node = *place->node;
  node.pull_mapped();
  const std::uint64_t before = node.content->allocated_blocks();
  node.content->flip_bit(position, bit);
  used_blocks_ += node.content->allocated_blocks() - before;
  node.push_mapped();
}

std::shared_ptr<MemoryDisk> MemoryDisk::clone(std::uint64_t seed) {
  const MutexLock lock(mutex_);
  for (const NodePointer& node : tree_->all()) {
    node->pull_mapped();
  }
  Options options = options_;
  options.seed = seed;
  auto copy = std::make_shared<MemoryDisk>(options);
  const MutexLock copy_lock(copy->mutex_);
  copy->tree_ = tree_->clone();
  copy->power_off_ = power_off_;
  copy->count_used_blocks();
  return copy;
}

MemoryDisk::Admission MemoryDisk::admit(Operation operation, const std::string& path) {
  return admit(operation, path, std::nullopt);
}

MemoryDisk::Admission MemoryDisk::admit(Operation operation, const Handle& handle) {
  return admit(operation, handle.path, handle.generation);
}

MemoryDisk::Admission MemoryDisk::admit(Operation operation, const std::string& path,
                                        std::optional<std::uint64_t> generation) {
  std::shared_ptr<const Fault> fault;
  {
    const MutexLock lock(mutex_);
    Status alive = check_power(path);
    if (alive.ok() && generation.has_value()) {
      alive = check_generation(*generation, path);
    }
    if (!alive.ok()) {
      return {Verdict::kDead, std::move(alive)};
    }
    if (operation != Operation::kRead) {
      power_off_ = cut_at_.has_value() && operations_ >= *cut_at_;
      ++operations_;
      if (power_off_) {
        return {Verdict::kPowerCut, check_power(path)};
      }
    }
    fault = fault_;
  }
  if (fault != nullptr) {
    if (Status status = (*fault)(operation, path); !status.ok()) {
      return {Verdict::kFaulted, std::move(status)};
    }
  }
  return {};
}

Status MemoryDisk::check_power(const std::string& path) const {
  if (power_off_) {
    return Error(Errc::kIo,
                 fmt::format("use {}: the simulated power is off; call power_cut() first", path));
  }
  return {};
}

Status MemoryDisk::check_alive(const Handle& handle) const {
  WEIR_TRY(check_power(handle.path));
  return check_generation(handle.generation, handle.path);
}

Status MemoryDisk::check_generation(std::uint64_t generation, const std::string& path) const {
  if (generation != generation_) {
    return Error(Errc::kIo, fmt::format("use {}: the simulated process that opened it has ended; "
                                        "open it again",
                                        path));
  }
  return {};
}

Result<NameTree::Place> MemoryDisk::find_file(std::string_view action, const std::string& path,
                                              bool must_exist) {
  WEIR_TRY_ASSIGN(NameTree::Place place, tree_->find(action, path));
  if (place.node == nullptr && must_exist) {
    return errno_error(action, path, ENOENT);
  }
  if (place.node != nullptr && place.node->is_folder()) {
    return errno_error(action, path, EISDIR);
  }
  return place;
}

Result<NameTree::Place> MemoryDisk::find_folder(std::string_view action, const std::string& path) {
  WEIR_TRY_ASSIGN(NameTree::Place place, tree_->find(action, path));
  if (place.node == nullptr) {
    return errno_error(action, path, ENOENT);
  }
  if (!place.node->is_folder()) {
    return errno_error(action, path, ENOTDIR);
  }
  return place;
}

Result<std::optional<MemoryDisk::Operation>> MemoryDisk::plan_open(const std::string& path,
                                                                   OpenMode mode) {
  const MutexLock lock(mutex_);
  WEIR_TRY(check_power(path));
  WEIR_TRY_ASSIGN(const NameTree::Place place, tree_->find("open", path));
  if (place.node != nullptr && mode == OpenMode::kCreateNew) {
    return errno_error("open", path, EEXIST);
  }
  const bool must_exist = !creates(mode);
  WEIR_TRY(find_file("open", path, must_exist).status());
  if (place.node == nullptr) {
    return std::optional(Operation::kCreate);
  }
  if (mode == OpenMode::kCreateTruncate) {
    return std::optional(Operation::kTruncate);
  }
  return std::optional<Operation>();
}

Result<MemoryDisk::Handle> MemoryDisk::open(const std::string& path, OpenMode mode) {
  WEIR_TRY_ASSIGN(const std::optional<Operation> operation, plan_open(path, mode));
  if (operation.has_value()) {
    WEIR_TRY(admit(*operation, path).status);
  }
  const MutexLock lock(mutex_);
  WEIR_TRY(check_power(path));
  // Another thread may have made or removed the name since the plan.
  WEIR_TRY_ASSIGN(NameTree::Place place, find_file("open", path, !creates(mode)));
  if (place.node != nullptr && mode == OpenMode::kCreateNew) {
    return errno_error("open", path, EEXIST);
  }
  if (place.node == nullptr) {
    place.node = std::make_shared<Node>(FileContent(options_.block_bytes));
    tree_->add(place, place.node);
    touch(*place.node);
  } else if (mode == OpenMode::kCreateTruncate) {
    set_size(*place.node, 0);
  }
  ++place.node->open_handles;
  return Handle{place.node, generation_, mode != OpenMode::kRead,
                mode == OpenMode::kReadWriteDurable, path};
}

void MemoryDisk::close(const Handle& handle) {
  const MutexLock lock(mutex_);
  close_locked(handle);
}

void MemoryDisk::close_locked(const Handle& handle) {
  if (handle.generation == generation_) {
    --handle.node->open_handles;
    free_if_unused(*handle.node);
  }
}

void MemoryDisk::free_if_unused(const Node& node) {
  if (!node.is_folder() && !node.linked && node.open_handles == 0) {
    used_blocks_ -= node.content->allocated_blocks();
  }
}

// There is no clock here; a later change has a later time.
void MemoryDisk::touch(Node& node) const {
  node.modified = static_cast<Timestamp>(operations_);
}

Result<std::size_t> MemoryDisk::read(const Handle& handle, std::uint64_t position,
                                     std::span<char> out) {
  WEIR_TRY(admit(Operation::kRead, handle).status);
  const MutexLock lock(mutex_);
  WEIR_TRY(check_alive(handle));
  handle.node->pull_mapped();
  return handle.node->content->read(position, out);
}

std::uint64_t MemoryDisk::free_blocks() const {
  const std::uint64_t capacity = options_.capacity_bytes / options_.block_bytes;
  return capacity > used_blocks_ ? capacity - used_blocks_ : 0;
}

Status MemoryDisk::store(Node& node, const std::string& path, std::uint64_t position,
                         ByteView bytes) {
  if (position > FileContent::kSizeMax || bytes.size() > FileContent::kSizeMax - position) {
    return errno_error("write", path, EFBIG);
  }
  FileContent& content = *node.content;
  node.pull_mapped();
  const std::uint64_t fits = content.writable_bytes(position, bytes.size(), free_blocks());
  const std::uint64_t before = content.allocated_blocks();
  content.write(position, bytes.substr(0, static_cast<std::size_t>(fits)));
  used_blocks_ += content.allocated_blocks() - before;
  node.push_mapped();
  touch(node);
  if (fits < bytes.size()) {
    return errno_error("write", path, ENOSPC);
  }
  return {};
}

Status MemoryDisk::write(const Handle& handle, std::uint64_t position, ByteView bytes) {
  if (!handle.writable) {
    return weir::internal::read_only_error("write", handle.path);
  }
  Admission admission = admit(Operation::kWrite, handle);
  const MutexLock lock(mutex_);
  if (admission.verdict == Verdict::kPowerCut && handle.generation == generation_) {
    const ByteView part = bytes.substr(0, static_cast<std::size_t>(rng_.below(bytes.size() + 1)));
    store(*handle.node, handle.path, position, part).ignore("the power cut is the error");
  }
  if (!admission.ok()) {
    return std::move(admission.status);
  }
  WEIR_TRY(check_alive(handle));
  if (handle.durable) {
    WEIR_TRY(check_durable_write(handle, position, bytes));
  }
  WEIR_TRY(store(*handle.node, handle.path, position, bytes));
  if (handle.durable) {
    handle.node->content->sync();
  }
  return {};
}

Status MemoryDisk::sync(const Handle& handle) {
  Admission admission = admit(Operation::kSync, handle);
  const MutexLock lock(mutex_);
  Status alive = check_alive(handle);
  if (alive.ok()) {
    handle.node->pull_mapped();
    if (admission.ok()) {
      handle.node->content->sync();
    } else if (admission.verdict == Verdict::kFaulted) {
      handle.node->content->fail_sync();
    }
  }
  return admission.ok() ? std::move(alive) : std::move(admission.status);
}

Result<std::uint64_t> MemoryDisk::size(const Handle& handle) {
  const MutexLock lock(mutex_);
  WEIR_TRY(check_alive(handle));
  return handle.node->content->size();
}

void MemoryDisk::set_size(Node& node, std::uint64_t size) {
  node.pull_mapped();
  const std::uint64_t before = node.content->allocated_blocks();
  node.content->truncate(size);
  used_blocks_ -= before - node.content->allocated_blocks();
  node.push_mapped();
  touch(node);
}

Status MemoryDisk::truncate(const Handle& handle, std::uint64_t size) {
  if (!handle.writable) {
    return weir::internal::read_only_error("truncate", handle.path);
  }
  WEIR_TRY(admit(Operation::kTruncate, handle).status);
  const MutexLock lock(mutex_);
  WEIR_TRY(check_alive(handle));
  if (size > FileContent::kSizeMax) {
    return errno_error("truncate", handle.path, EFBIG);
  }
  set_size(*handle.node, size);
  return {};
}

Status MemoryDisk::reserve_blocks(Node& node, std::string_view action, const std::string& path,
                                  std::uint64_t size) {
  if (size > FileContent::kSizeMax) {
    return errno_error(action, path, EFBIG);
  }
  const std::uint64_t needed = node.content->blocks_to_reserve(size);
  if (needed > free_blocks()) {
    return errno_error(action, path, ENOSPC);
  }
  node.content->reserve(size);
  used_blocks_ += needed;
  return {};
}

Status MemoryDisk::reserve(const Handle& handle, std::uint64_t size) {
  if (!handle.writable) {
    return weir::internal::read_only_error("reserve", handle.path);
  }
  WEIR_TRY(admit(Operation::kTruncate, handle).status);
  const MutexLock lock(mutex_);
  WEIR_TRY(check_alive(handle));
  return reserve_blocks(*handle.node, "reserve", handle.path, size);
}

}  // namespace weir::testing::internal
