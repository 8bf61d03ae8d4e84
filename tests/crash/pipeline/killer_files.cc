#include "tests/crash/pipeline/killer_files.h"

#include <optional>
#include <utility>

namespace weir::crash {
namespace {

bool is_partition_log(const std::string& path) {
  return path.ends_with(".log") && path.find("/log/") != std::string::npos;
}

bool is_wal(const std::string& path) {
  return path.ends_with(".wal");
}

bool is_table(const std::string& path) {
  return path.ends_with(".ingest") || path.ends_with(".sst");
}

std::optional<Point> point_of_write(const std::string& path) {
  if (is_partition_log(path)) {
    return Point::kAppend;
  }
  if (is_wal(path)) {
    return Point::kSync;
  }
  if (is_table(path)) {
    return Point::kSstBuild;
  }
  return path.find("/MANIFEST-") != std::string::npos ? std::optional(Point::kIngest)
                                                      : std::nullopt;
}

std::optional<Point> point_of_rename(const std::string& from, const std::string& to) {
  if (is_table(to)) {
    return Point::kIngest;
  }
  if (from.ends_with(".swap") || to.ends_with(".swap")) {
    return Point::kSwap;
  }
  return to.ends_with("-offset-checkpoint") ? std::optional(Point::kCheckpointFile) : std::nullopt;
}

std::optional<Point> point_of_removal(const std::string& path) {
  if (path.ends_with(".sst")) {
    return Point::kOldRemoved;
  }
  return is_partition_log(path) || path.ends_with(".deleted")
             ? std::optional(Point::kSegmentRemoved)
             : std::nullopt;
}

// Runs a change of the disk; dies before or behind it when it is due.
template <class Call>
auto guarded(KillSwitch& kill, std::optional<Point> point, Call call) {
  const bool is_due = kill.is_due(point, true);
  if (is_due && kill.moment() == Moment::kBefore) {
    kill.die();
  }
  auto result = call();
  if (is_due) {
    kill.die();
  }
  return result;
}

class KillerFile final : public File {
 public:
  KillerFile(std::shared_ptr<File> inner, KillSwitch& kill)
      : inner_(std::move(inner)), kill_(kill) {}

  Result<std::size_t> read_at(std::uint64_t position, std::span<char> out) override {
    return inner_->read_at(position, out);
  }
  Status write_at(std::uint64_t position, ByteView bytes) override {
    if (kill_.is_due(point_of_write(path()), true)) {
      const Moment moment = kill_.moment();
      std::size_t arrives = moment == Moment::kBefore   ? 0
                            : moment == Moment::kWithin ? bytes.size() / 2
                                                        : bytes.size();
      arrives -= is_wal(path()) ? arrives % kDurableAlignment : 0;
      inner_->write_at(position, bytes.substr(0, arrives)).ignore("nobody is left to be told");
      kill_.die();
    }
    return inner_->write_at(position, bytes);
  }
  Status sync() override {
    return guarded(kill_, is_partition_log(path()) ? std::optional(Point::kFlush) : std::nullopt,
                   [&] { return inner_->sync(); });
  }
  Result<std::uint64_t> size() override { return inner_->size(); }
  Status truncate(std::uint64_t size) override {
    return guarded(kill_, std::nullopt, [&] { return inner_->truncate(size); });
  }
  Status reserve(std::uint64_t size) override { return inner_->reserve(size); }
  const std::string& path() const override { return inner_->path(); }

 private:
  std::shared_ptr<File> inner_;
  KillSwitch& kill_;
};

}  // namespace

Result<std::shared_ptr<File>> KillerFiles::open(const std::string& path, OpenMode mode) {
  const auto open_inner = [&]() -> Result<std::shared_ptr<File>> {
    WEIR_TRY_ASSIGN(std::shared_ptr<File> file, inner_.open(path, mode));
    return std::shared_ptr<File>(std::make_shared<KillerFile>(std::move(file), kill_));
  };
  const bool makes = mode == OpenMode::kCreateNew || mode == OpenMode::kCreateTruncate ||
                     (mode == OpenMode::kCreateOrOpen && !path_exists(inner_, path));
  if (!makes) {
    return open_inner();
  }
  return guarded(kill_, is_partition_log(path) ? std::optional(Point::kRoll) : std::nullopt,
                 open_inner);
}

Status KillerFiles::rename(const std::string& from, const std::string& to) {
  return guarded(kill_, point_of_rename(from, to), [&] { return inner_.rename(from, to); });
}

Status KillerFiles::remove_file(const std::string& path) {
  return guarded(kill_, point_of_removal(path), [&] { return inner_.remove_file(path); });
}

Status KillerFiles::remove_directory(const std::string& path) {
  return guarded(kill_, std::nullopt, [&] { return inner_.remove_directory(path); });
}

Status KillerFiles::create_directories(const std::string& path) {
  return guarded(kill_, std::nullopt, [&] { return inner_.create_directories(path); });
}

Status KillerFiles::sync_directory(const std::string& path) {
  return guarded(kill_, std::nullopt, [&] { return inner_.sync_directory(path); });
}

Status KillerFiles::sync_disk(const std::string& path) {
  return guarded(kill_, Point::kFlush, [&] { return inner_.sync_disk(path); });
}

Result<std::vector<DirectoryEntry>> KillerFiles::list(const std::string& path) {
  return inner_.list(path);
}

Result<FileInfo> KillerFiles::info(const std::string& path) {
  return inner_.info(path);
}

Result<DiskSpace> KillerFiles::disk_space(const std::string& path) {
  return inner_.disk_space(path);
}

Result<std::unique_ptr<FileLock>> KillerFiles::lock(const std::string& path,
                                                    std::string_view holder) {
  return inner_.lock(path, holder);
}

Result<std::unique_ptr<SharedMapping>> KillerFiles::map(const std::string& path, std::size_t size,
                                                        bool writable) {
  return inner_.map(path, size, writable);
}

// The request's file is one of ours, so that what the workers do passes the switch too.
void KillerFiles::submit(IoRequest request, std::function<void(Status)> done) {
  inner_.submit(std::move(request), std::move(done));
}

}  // namespace weir::crash
