#include "runtime/io/io_workers.h"
#include "runtime/testing/memory_disk.h"

#include <weir/runtime/testing/memory_file_system.h>
#include <weir/runtime/thread_annotations.h>

#include <deque>
#include <utility>

namespace weir::testing {
namespace {

using internal::MemoryDisk;

// They share the disk, because a file may be closed after its file system is gone.
class MemoryFile final : public File {
 public:
  MemoryFile(std::shared_ptr<MemoryDisk> disk, MemoryDisk::Handle handle)
      : disk_(std::move(disk)), handle_(std::move(handle)) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() override { disk_->close(handle_); }

  Result<std::size_t> read_at(std::uint64_t position, std::span<char> out) override {
    return disk_->read(handle_, position, out);
  }
  Status write_at(std::uint64_t position, ByteView bytes) override {
    return disk_->write(handle_, position, bytes);
  }
  Status sync() override { return disk_->sync(handle_); }
  Result<std::uint64_t> size() override { return disk_->size(handle_); }
  Status truncate(std::uint64_t size) override { return disk_->truncate(handle_, size); }
  Status reserve(std::uint64_t size) override { return disk_->reserve(handle_, size); }
  const std::string& path() const override { return handle_.path; }

 private:
  const std::shared_ptr<MemoryDisk> disk_;
  const MemoryDisk::Handle handle_;
};

class MemoryLock final : public FileLock {
 public:
  MemoryLock(std::shared_ptr<MemoryDisk> disk, MemoryDisk::Handle handle)
      : disk_(std::move(disk)), handle_(std::move(handle)) {}
  MemoryLock(const MemoryLock&) = delete;
  MemoryLock& operator=(const MemoryLock&) = delete;
  ~MemoryLock() override { disk_->unlock(handle_); }

 private:
  const std::shared_ptr<MemoryDisk> disk_;
  const MemoryDisk::Handle handle_;
};

class MemoryMapping final : public SharedMapping {
 public:
  MemoryMapping(std::shared_ptr<MemoryDisk> disk, MemoryDisk::Mapping mapping)
      : disk_(std::move(disk)), mapping_(std::move(mapping)) {}
  MemoryMapping(const MemoryMapping&) = delete;
  MemoryMapping& operator=(const MemoryMapping&) = delete;
  ~MemoryMapping() override { disk_->close_mapping(mapping_); }

  char* data() override { return mapping_.data; }
  std::size_t size() const override { return mapping_.size; }

 private:
  const std::shared_ptr<MemoryDisk> disk_;
  const MemoryDisk::Mapping mapping_;
};

struct HeldRequest {
  IoRequest request;
  std::function<void(Status)> done;

  void complete() {
    Status status = weir::internal::perform(request);
    request = IoRequest();
    if (done) {
      done(std::move(status));
    }
  }
};

}  // namespace

struct MemoryFileSystem::State {
  explicit State(std::shared_ptr<MemoryDisk> the_disk) : disk(std::move(the_disk)) {}

  const std::shared_ptr<MemoryDisk> disk;
  Mutex mutex;
  bool hold WEIR_GUARDED_BY(mutex) = false;
  std::deque<HeldRequest> held WEIR_GUARDED_BY(mutex);
};

MemoryFileSystem::MemoryFileSystem() : MemoryFileSystem(Options()) {}

MemoryFileSystem::MemoryFileSystem(Options options)
    : state_(std::make_shared<State>(std::make_shared<MemoryDisk>(options))) {}

MemoryFileSystem::~MemoryFileSystem() {
  hold_submits(false);
  run_submitted();  // each request is answered once, also by a disk that goes away
}

void MemoryFileSystem::set_fault(Fault fault) {
  state_->disk->set_fault(std::move(fault));
}
void MemoryFileSystem::cut_power_at(std::uint64_t operation) {
  state_->disk->cut_power_at(operation);
}
bool MemoryFileSystem::power_is_off() const {
  return state_->disk->power_is_off();
}
std::uint64_t MemoryFileSystem::operations() const {
  return state_->disk->operations();
}
void MemoryFileSystem::power_cut() {
  state_->disk->power_cut();
}
void MemoryFileSystem::process_crash() {
  state_->disk->process_crash();
}
void MemoryFileSystem::set_capacity(std::uint64_t bytes) {
  state_->disk->set_capacity(bytes);
}
void MemoryFileSystem::flip_bit(const std::string& path, std::uint64_t position, int bit) {
  state_->disk->flip_bit(path, position, bit);
}

std::unique_ptr<MemoryFileSystem> MemoryFileSystem::clone(std::uint64_t seed) const {
  auto copy = std::make_unique<MemoryFileSystem>();
  copy->state_ = std::make_shared<State>(state_->disk->clone(seed));
  return copy;
}

void MemoryFileSystem::hold_submits(bool hold) {
  const MutexLock lock(state_->mutex);
  state_->hold = hold;
}

std::size_t MemoryFileSystem::run_submitted() {
  // Only what is held now: a completion that submits again would keep an endless loop going.
  std::deque<HeldRequest> held;
  {
    const MutexLock lock(state_->mutex);
    held.swap(state_->held);
  }
  for (HeldRequest& request : held) {
    request.complete();
  }
  return held.size();
}

void MemoryFileSystem::submit(IoRequest request, std::function<void(Status)> done) {
  HeldRequest one{std::move(request), std::move(done)};
  {
    const MutexLock lock(state_->mutex);
    if (state_->hold) {
      state_->held.push_back(std::move(one));
      return;
    }
  }
  run_submitted();  // what was held before hold_submits(false) came first
  one.complete();
}

Result<std::shared_ptr<File>> MemoryFileSystem::open(const std::string& path, OpenMode mode) {
  WEIR_TRY_ASSIGN(MemoryDisk::Handle handle, state_->disk->open(path, mode));
  return std::shared_ptr<File>(std::make_shared<MemoryFile>(state_->disk, std::move(handle)));
}
Status MemoryFileSystem::rename(const std::string& from, const std::string& to) {
  return state_->disk->rename(from, to);
}
Status MemoryFileSystem::remove_file(const std::string& path) {
  return state_->disk->remove_file(path);
}
Status MemoryFileSystem::remove_directory(const std::string& path) {
  return state_->disk->remove_directory(path);
}
Status MemoryFileSystem::create_directories(const std::string& path) {
  return state_->disk->create_directories(path);
}
Status MemoryFileSystem::sync_directory(const std::string& path) {
  return state_->disk->sync_directory(path);
}
Status MemoryFileSystem::sync_disk(const std::string& path) {
  return state_->disk->sync_disk(path);
}
Result<std::vector<DirectoryEntry>> MemoryFileSystem::list(const std::string& path) {
  return state_->disk->list(path);
}
Result<FileInfo> MemoryFileSystem::info(const std::string& path) {
  return state_->disk->info(path);
}
Result<DiskSpace> MemoryFileSystem::disk_space(const std::string& path) {
  return state_->disk->disk_space(path);
}

Result<std::unique_ptr<FileLock>> MemoryFileSystem::lock(const std::string& path,
                                                         std::string_view holder) {
  WEIR_TRY_ASSIGN(MemoryDisk::Handle handle, state_->disk->lock(path, holder));
  return std::unique_ptr<FileLock>(std::make_unique<MemoryLock>(state_->disk, std::move(handle)));
}

Result<std::unique_ptr<SharedMapping>> MemoryFileSystem::map(const std::string& path,
                                                             std::size_t size, bool writable) {
  WEIR_TRY_ASSIGN(MemoryDisk::Mapping mapping, state_->disk->map(path, size, writable));
  return std::unique_ptr<SharedMapping>(
      std::make_unique<MemoryMapping>(state_->disk, std::move(mapping)));
}

}  // namespace weir::testing
