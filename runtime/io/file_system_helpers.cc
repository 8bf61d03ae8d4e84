#include <weir/runtime/file_system.h>

#include <fmt/format.h>

#include <utility>

namespace weir {
namespace {

Status write_text(FileSystem& files, const std::string& path, ByteView text, bool durable) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, files.open(path, OpenMode::kCreateTruncate));
  WEIR_TRY(file->write_at(0, text));
  return durable ? file->sync() : Status();
}

Status replace_name(FileSystem& files, const std::string& path, ByteView text, bool durable) {
  const std::string temporary = path + ".tmp";
  Status status = write_text(files, temporary, text, durable);
  if (status.ok()) {
    status = files.rename(temporary, path);
  }
  if (!status.ok()) {
    files.remove_file(temporary).ignore("the first error says more; the next call empties it");
  }
  return status;
}

// Somebody else may have removed it first.
Status ok_when_absent(Status status) {
  return !status.ok() && status.error().code() == Errc::kNotFound ? Status() : std::move(status);
}

}  // namespace

bool path_exists(FileSystem& files, const std::string& path) {
  return files.info(path).ok();
}

Result<std::string> read_file(FileSystem& files, const std::string& path, std::size_t bytes_max) {
  WEIR_TRY_ASSIGN(const std::shared_ptr<File> file, files.open(path, OpenMode::kRead));
  WEIR_TRY_ASSIGN(const std::uint64_t size, file->size());
  if (size > bytes_max) {
    return Error(Errc::kCorrupt,
                 fmt::format("read {}: the file has {} bytes, at most {} are expected; it is "
                             "damaged or not the file that is meant, check it by hand",
                             path, size, bytes_max));
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  WEIR_TRY_ASSIGN(const std::size_t read, file->read_at(0, text));
  text.resize(read);
  return text;
}

Status replace_file(FileSystem& files, const std::string& path, ByteView text) {
  WEIR_TRY(replace_name(files, path, text, true));
  return files.sync_directory(parent_path(path));
}

Status replace_file_unsynced(FileSystem& files, const std::string& path, ByteView text) {
  return replace_name(files, path, text, false);
}

Status remove_tree(FileSystem& files, const std::string& path) {
  auto entries = files.list(path);
  if (!entries.ok()) {
    return ok_when_absent(entries.status());
  }
  for (const DirectoryEntry& entry : *entries) {
    const std::string child = join_path(path, entry.name);
    WEIR_TRY(entry.kind == FileKind::kDirectory ? remove_tree(files, child)
                                                : ok_when_absent(files.remove_file(child)));
  }
  return ok_when_absent(files.remove_directory(path));
}

std::string parent_path(const std::string& path) {
  const std::size_t name_end = path.find_last_not_of('/');
  if (name_end == std::string::npos) {
    return path.empty() ? "." : "/";
  }
  const std::size_t slash = path.find_last_of('/', name_end);
  if (slash == std::string::npos) {
    return ".";
  }
  const std::size_t parent_end = path.find_last_not_of('/', slash);
  return parent_end == std::string::npos ? "/" : path.substr(0, parent_end + 1);
}

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') {
    path += '/';
  }
  path += name;
  return path;
}

}  // namespace weir
