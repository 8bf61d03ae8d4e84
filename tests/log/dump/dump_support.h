#pragma once

#include <weir/log/log_dump.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

// Partition folders of tests/data/log, on the machine's disk and copied into memory.

namespace weir::log::testing {

using Json = nlohmann::ordered_json;

inline std::string dump_data_folder(const std::string& name) {
  return WEIR_TEST_DATA "/log/dump/" + name;
}

inline std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::string dump_text(FileSystem& files, const std::string& path, bool records = true) {
  std::string text;
  const Status status =
      dump_log(files, path, {.json = false, .records = records, .decoder = RecordDecoder::kByTopic},
               [&](std::string_view piece) { text += piece; });
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  return text;
}

inline Json dump_json(FileSystem& files, const std::string& path, bool records = true) {
  std::string text;
  const Status status =
      dump_log(files, path, {.json = true, .records = records, .decoder = RecordDecoder::kByTopic},
               [&](std::string_view piece) { text += piece; });
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_TRUE(text.ends_with("}\n")) << text.substr(0, 100);
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "one object, one line";
  return Json::parse(text);
}

inline void put_file(FileSystem& files, const std::string& path, std::string_view bytes) {
  const auto file = files.open(path, OpenMode::kCreateTruncate);
  ASSERT_TRUE(file.ok()) << path;
  ASSERT_TRUE((*file)->write_at(0, bytes).ok());
}

inline std::string get_file(FileSystem& files, const std::string& path) {
  const Result<std::string> bytes = read_file(files, path);
  EXPECT_TRUE(bytes.ok()) << path;
  return bytes.ok() ? *bytes : std::string();
}

// A folder of tests/data/log/dump, copied to "/copy/<name>" of a disk in memory.
class CopiedFolder {
 public:
  explicit CopiedFolder(const std::string& name) : path_("/copy/" + name) {
    EXPECT_TRUE(files.create_directories(path_).ok());
    const auto entries = posix_file_system().list(dump_data_folder(name));
    EXPECT_TRUE(entries.ok());
    for (const DirectoryEntry& entry : *entries) {
      put_file(files, join_path(path_, entry.name),
               get_file(posix_file_system(), join_path(dump_data_folder(name), entry.name)));
    }
  }

  std::string path_of(const std::string& file) const { return join_path(path_, file); }
  std::string read(const std::string& file) { return get_file(files, path_of(file)); }
  void write(const std::string& file, std::string_view bytes) {
    put_file(files, path_of(file), bytes);
  }
  Json json() { return dump_json(files, path_); }
  std::string text() { return dump_text(files, path_); }
  const std::string& path() const { return path_; }

  weir::testing::MemoryFileSystem files;

 private:
  std::string path_;
};

}  // namespace weir::log::testing
