#include <weir/runtime/file_system.h>
#include <weir/runtime/rng.h>
#include <weir/runtime/testing/memory_file_system.h>
#include <weir/runtime/thread_annotations.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <stdlib.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// What every FileSystem must do: the machine's disk and its twin in memory alike.

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A file system and an empty folder in it.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual FileSystem& files() = 0;
  virtual std::string path(const std::string& name) const = 0;
};

class PosixDisk final : public Disk {
 public:
  PosixDisk() {
    std::string pattern = ::testing::TempDir() + "weir-files-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  PosixDisk(const PosixDisk&) = delete;
  PosixDisk& operator=(const PosixDisk&) = delete;
  ~PosixDisk() override { EXPECT_TRUE(remove_tree(files(), root_).ok()); }
  FileSystem& files() override { return posix_file_system(); }
  std::string path(const std::string& name) const override { return join_path(root_, name); }

 private:
  std::string root_;
};

class MemoryDisk final : public Disk {
 public:
  MemoryDisk() { EXPECT_TRUE(files_.create_directories("/disk/root").ok()); }
  FileSystem& files() override { return files_; }
  std::string path(const std::string& name) const override { return join_path("/disk/root", name); }

 private:
  testing::MemoryFileSystem files_;
};

struct Kind {
  const char* name;
  std::unique_ptr<Disk> (*make)();

  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};

class FileSystemTest : public ::testing::TestWithParam<Kind> {
 protected:
  FileSystemTest() : disk_(GetParam().make()), files_(disk_->files()) {}

  std::string path(const std::string& name) const { return disk_->path(name); }
  std::shared_ptr<File> open(const std::string& name, OpenMode mode) {
    auto file = files_.open(path(name), mode);
    EXPECT_TRUE(file.ok()) << file.error().to_string();
    return file.ok() ? *file : nullptr;
  }
  void make_file(const std::string& name, ByteView text) {
    EXPECT_TRUE(open(name, OpenMode::kCreateTruncate)->write_at(0, text).ok());
  }
  std::string text_of(const std::string& name) {
    auto text = read_file(files_, path(name));
    return text.ok() ? *text : text.error().to_string();
  }

  std::unique_ptr<Disk> disk_;
  FileSystem& files_;
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, FileSystemTest,
    ::testing::Values(
        Kind{"Posix", []() -> std::unique_ptr<Disk> { return std::make_unique<PosixDisk>(); }},
        Kind{"Memory", []() -> std::unique_ptr<Disk> { return std::make_unique<MemoryDisk>(); }}),
    [](const auto& param) { return std::string(param.param.name); });

std::string read_at(File& file, std::uint64_t position, std::size_t count) {
  std::string out(count, '?');
  auto read = file.read_at(position, out);
  EXPECT_TRUE(read.ok());
  out.resize(*read);
  return out;
}

Errc code_of(const Status& status) {
  EXPECT_FALSE(status.ok());
  return status.ok() ? Errc::kInternal : status.error().code();
}

TEST_P(FileSystemTest, OpensByModeWhenAbsentAndWhenPresent) {
  EXPECT_EQ(code_of(files_.open(path("f"), OpenMode::kRead).status()), Errc::kNotFound);
  EXPECT_EQ(code_of(files_.open(path("f"), OpenMode::kReadWrite).status()), Errc::kNotFound);
  EXPECT_TRUE(files_.open(path("f"), OpenMode::kCreateNew).ok());
  EXPECT_EQ(code_of(files_.open(path("f"), OpenMode::kCreateNew).status()), Errc::kExists);
  make_file("f", "text");
  EXPECT_EQ(read_at(*open("f", OpenMode::kRead), 0, 9), "text");
  EXPECT_EQ(read_at(*open("f", OpenMode::kReadWrite), 0, 9), "text");
  EXPECT_EQ(read_at(*open("f", OpenMode::kCreateOrOpen), 0, 9), "text");
  EXPECT_EQ(read_at(*open("f", OpenMode::kCreateTruncate), 0, 9), "");
  EXPECT_TRUE(files_.open(path("g"), OpenMode::kCreateOrOpen).ok());
}

TEST_P(FileSystemTest, NamesThePathTheCauseAndTheNextStepInErrors) {
  const Error error = files_.open(path("none/f"), OpenMode::kCreateNew).error();

  EXPECT_EQ(error.code(), Errc::kNotFound);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("open " + path("none/f") + ": No such file or directory (errno 2); "),
                    HasSubstr("correct the path")));
}

TEST_P(FileSystemTest, RefusesToOpenAFolder) {
  ASSERT_TRUE(files_.create_directories(path("d")).ok());

  for (const OpenMode mode : {OpenMode::kRead, OpenMode::kReadWrite, OpenMode::kCreateOrOpen,
                              OpenMode::kCreateTruncate}) {
    EXPECT_EQ(code_of(files_.open(path("d"), mode).status()), Errc::kIo);
  }
  EXPECT_EQ(code_of(files_.open(path("d"), OpenMode::kCreateNew).status()), Errc::kExists);
}

TEST_P(FileSystemTest, RefusesAPathThatLeadsThroughAFile) {
  make_file("f", "x");

  EXPECT_EQ(code_of(files_.open(path("f/g"), OpenMode::kCreateOrOpen).status()), Errc::kIo);
  EXPECT_EQ(code_of(files_.create_directories(path("f/g"))), Errc::kIo);
  EXPECT_EQ(code_of(files_.create_directories(path("f"))), Errc::kIo);
  EXPECT_EQ(code_of(files_.list(path("f")).status()), Errc::kIo);
  EXPECT_FALSE(path_exists(files_, path("f/g")));
}

TEST_P(FileSystemTest, ReadsFewerBytesOnlyAtTheEnd) {
  make_file("f", "0123456789");
  const auto file = open("f", OpenMode::kRead);

  EXPECT_EQ(read_at(*file, 0, 10), "0123456789");
  EXPECT_EQ(read_at(*file, 7, 10), "789");
  EXPECT_EQ(read_at(*file, 10, 10), "");
  EXPECT_EQ(read_at(*file, 1000, 10), "");
  EXPECT_EQ(read_at(*file, UINT64_MAX, 10), "");
  EXPECT_EQ(read_at(*file, 3, 0), "");
}

TEST_P(FileSystemTest, ReadsZerosWhereNothingWasWritten) {
  const auto file = open("f", OpenMode::kCreateNew);
  ASSERT_TRUE(file->write_at(10'000, "end").ok());
  ASSERT_TRUE(file->write_at(0, "start").ok());

  EXPECT_EQ(*file->size(), 10'003U);
  EXPECT_EQ(read_at(*file, 0, 20'000), "start" + std::string(9995, '\0') + "end");
}

TEST_P(FileSystemTest, DoesNotGrowByAnEmptyWrite) {
  const auto file = open("f", OpenMode::kCreateNew);

  EXPECT_TRUE(file->write_at(100, "").ok());

  EXPECT_EQ(*file->size(), 0U);
}

TEST_P(FileSystemTest, ForgetsCutBytesWhenItGrowsAgain) {
  make_file("f", std::string(9000, 'x'));
  const auto file = open("f", OpenMode::kReadWrite);

  ASSERT_TRUE(file->truncate(100).ok());
  EXPECT_EQ(*file->size(), 100U);
  ASSERT_TRUE(file->truncate(9000).ok());

  EXPECT_EQ(read_at(*file, 0, 10'000), std::string(100, 'x') + std::string(8900, '\0'));
}

TEST_P(FileSystemTest, KeepsItsSizeWhenSpaceIsReserved) {
  const auto file = open("f", OpenMode::kCreateNew);
  ASSERT_TRUE(file->write_at(0, "abc").ok());

  EXPECT_TRUE(file->reserve(1U << 20U).ok());
  EXPECT_TRUE(file->reserve(0).ok());

  EXPECT_EQ(*file->size(), 3U);
  EXPECT_EQ(read_at(*file, 0, 10), "abc");
}

TEST_P(FileSystemTest, RefusesToChangeAFileOpenedForReading) {
  make_file("f", "abc");
  const auto file = open("f", OpenMode::kRead);

  EXPECT_EQ(code_of(file->write_at(0, "x")), Errc::kReadOnly);
  EXPECT_EQ(code_of(file->truncate(0)), Errc::kReadOnly);
  EXPECT_EQ(code_of(file->reserve(100)), Errc::kReadOnly);
  EXPECT_TRUE(file->sync().ok());
  EXPECT_EQ(text_of("f"), "abc");
}

TEST_P(FileSystemTest, RefusesAPositionBehindTheLargestFile) {
  const auto file = open("f", OpenMode::kCreateNew);

  EXPECT_EQ(code_of(file->write_at(UINT64_MAX - 1, "x")), Errc::kIo);
  EXPECT_EQ(code_of(file->truncate(UINT64_MAX)), Errc::kIo);
  EXPECT_EQ(code_of(file->reserve(UINT64_MAX)), Errc::kIo);
  EXPECT_EQ(*file->size(), 0U);
}

TEST_P(FileSystemTest, ReplacesAndKeepsTheOldFileForWhoHasItOpen) {
  make_file("old", "old text");
  make_file("new", "new text");
  const auto old_file = open("old", OpenMode::kReadWrite);
  const auto new_file = open("new", OpenMode::kReadWrite);

  ASSERT_TRUE(files_.rename(path("new"), path("old")).ok());

  EXPECT_EQ(text_of("old"), "new text");
  EXPECT_FALSE(path_exists(files_, path("new")));
  EXPECT_EQ(read_at(*old_file, 0, 20), "old text");
  ASSERT_TRUE(new_file->write_at(0, "NEW").ok());
  EXPECT_EQ(text_of("old"), "NEW text");
}

TEST_P(FileSystemTest, RefusesImpossibleRenames) {
  ASSERT_TRUE(files_.create_directories(path("full/sub")).ok());
  ASSERT_TRUE(files_.create_directories(path("d")).ok());
  make_file("f", "x");

  EXPECT_EQ(code_of(files_.rename(path("none"), path("g"))), Errc::kNotFound);
  EXPECT_EQ(code_of(files_.rename(path("f"), path("none/f"))), Errc::kNotFound);
  EXPECT_EQ(code_of(files_.rename(path("f"), path("d"))), Errc::kIo);
  EXPECT_EQ(code_of(files_.rename(path("d"), path("f"))), Errc::kIo);
  EXPECT_EQ(code_of(files_.rename(path("full"), path("full/sub/below"))), Errc::kIo);
  EXPECT_FALSE(files_.rename(path("d"), path("full")).ok());
  EXPECT_TRUE(files_.rename(path("f"), path("f")).ok());
  EXPECT_EQ(text_of("f"), "x");
}

TEST_P(FileSystemTest, MovesFoldersWithAllThatIsInThem) {
  ASSERT_TRUE(files_.create_directories(path("a/b")).ok());
  ASSERT_TRUE(files_.create_directories(path("empty")).ok());
  ASSERT_TRUE(files_.create_directories(path("other")).ok());
  make_file("a/b/f", "x");
  const auto file = open("a/b/f", OpenMode::kReadWrite);

  ASSERT_TRUE(files_.rename(path("a"), path("empty")).ok());
  ASSERT_TRUE(files_.rename(path("empty/b"), path("other/c")).ok());
  ASSERT_TRUE(file->write_at(1, "y").ok());

  EXPECT_EQ(text_of("other/c/f"), "xy");
  EXPECT_FALSE(path_exists(files_, path("a")));
  EXPECT_TRUE(files_.list(path("empty"))->empty());
}

TEST_P(FileSystemTest, KeepsARemovedFileForWhoHasItOpen) {
  make_file("f", "text");
  const auto file = open("f", OpenMode::kReadWrite);

  ASSERT_TRUE(files_.remove_file(path("f")).ok());
  make_file("f", "other");

  ASSERT_TRUE(file->write_at(4, "!").ok());
  EXPECT_TRUE(file->sync().ok());
  EXPECT_EQ(read_at(*file, 0, 20), "text!");
  EXPECT_EQ(text_of("f"), "other");
}

TEST_P(FileSystemTest, RefusesImpossibleRemovals) {
  ASSERT_TRUE(files_.create_directories(path("d/e")).ok());
  make_file("f", "x");

  EXPECT_EQ(code_of(files_.remove_file(path("none"))), Errc::kNotFound);
  EXPECT_EQ(code_of(files_.remove_file(path("d"))), Errc::kIo);
  EXPECT_EQ(code_of(files_.remove_directory(path("none"))), Errc::kNotFound);
  EXPECT_EQ(code_of(files_.remove_directory(path("f"))), Errc::kIo);
  EXPECT_EQ(code_of(files_.remove_directory(path("d"))), Errc::kIo);
  EXPECT_TRUE(files_.remove_directory(path("d/e")).ok());
  EXPECT_TRUE(files_.remove_directory(path("d")).ok());
}

TEST_P(FileSystemTest, MakesFoldersWithParentsAndIsContentWhenTheyExist) {
  EXPECT_TRUE(files_.create_directories(path("a//b/c/")).ok());
  EXPECT_TRUE(files_.create_directories(path("a/b/c")).ok());
  EXPECT_TRUE(files_.create_directories("/").ok());

  EXPECT_EQ(files_.info(path("a/b/c"))->kind, FileKind::kDirectory);
}

TEST_P(FileSystemTest, ListsSortedWithKinds) {
  make_file("b", "x");
  make_file("a10", "x");
  ASSERT_TRUE(files_.create_directories(path("a2")).ok());

  const auto entries = files_.list(disk_->path(""));

  ASSERT_TRUE(entries.ok());
  std::vector<std::pair<std::string, FileKind>> seen;
  for (const DirectoryEntry& entry : *entries) {
    seen.emplace_back(entry.name, entry.kind);
  }
  EXPECT_EQ(seen,
            (std::vector<std::pair<std::string, FileKind>>{
                {"a10", FileKind::kFile}, {"a2", FileKind::kDirectory}, {"b", FileKind::kFile}}));
  EXPECT_EQ(code_of(files_.list(path("none")).status()), Errc::kNotFound);
}

TEST_P(FileSystemTest, TellsKindSizeAndSpace) {
  make_file("f", "12345");
  ASSERT_TRUE(files_.create_directories(path("d")).ok());

  EXPECT_EQ(files_.info(path("f"))->kind, FileKind::kFile);
  EXPECT_EQ(files_.info(path("f"))->size, 5U);
  EXPECT_EQ(files_.info(path("d"))->size, 0U);
  EXPECT_EQ(code_of(files_.info(path("none")).status()), Errc::kNotFound);
  const auto space = files_.disk_space(path("d"));
  ASSERT_TRUE(space.ok());
  EXPECT_GT(space->available_bytes, 0U);
  EXPECT_GE(space->capacity_bytes, space->available_bytes);
  EXPECT_EQ(code_of(files_.disk_space(path("none")).status()), Errc::kNotFound);
}

TEST_P(FileSystemTest, SyncsFilesAndFolders) {
  make_file("f", "x");

  EXPECT_TRUE(open("f", OpenMode::kReadWrite)->sync().ok());
  EXPECT_TRUE(files_.sync_directory(path("")).ok());
  EXPECT_EQ(code_of(files_.sync_directory(path("none"))), Errc::kNotFound);
  EXPECT_EQ(code_of(files_.sync_directory(path("f"))), Errc::kIo);
}

TEST_P(FileSystemTest, LocksOnceAndNamesTheHolder) {
  make_file(".lock", "an old and much longer text of a holder that is gone");
  auto first = files_.lock(path(".lock"), "pid 17");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(text_of(".lock"), "pid 17");

  const auto second = files_.lock(path(".lock"), "pid 18");
  ASSERT_EQ(code_of(second.status()), Errc::kLocked);
  EXPECT_THAT(second.error().message(),
              AllOf(HasSubstr(path(".lock")), HasSubstr("'pid 17'"), Not(HasSubstr("pid 18"))));
  EXPECT_EQ(text_of(".lock"), "pid 17");

  first->reset();
  const auto third = files_.lock(path(".lock"), "pid 19");
  EXPECT_TRUE(third.ok());
  EXPECT_EQ(text_of(".lock"), "pid 19");
}

TEST_P(FileSystemTest, SharesMappedBytesWithFileReadersAndOtherMappings) {
  auto writer = files_.map(path("m"), 5000, true);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ((*writer)->size(), 5000U);
  EXPECT_EQ(files_.info(path("m"))->size, 5000U);
  EXPECT_EQ(text_of("m"), std::string(5000, '\0'));
  auto reader = files_.map(path("m"), 4096, false);
  ASSERT_TRUE(reader.ok());
  const auto file = open("m", OpenMode::kReadWrite);

  (*writer)->data()[4000] = 'w';
  ASSERT_TRUE(file->write_at(100, "file").ok());

  EXPECT_EQ((*reader)->data()[4000], 'w');
  EXPECT_EQ(std::string((*reader)->data() + 100, 4), "file");
  EXPECT_EQ(read_at(*file, 4000, 1), "w");
}

TEST_P(FileSystemTest, GrowsAMappedFileAndKeepsOldMappingsGood) {
  auto small = files_.map(path("m"), 100, true);
  ASSERT_TRUE(small.ok());
  (*small)->data()[50] = 'a';

  auto large = files_.map(path("m"), 100'000, true);
  ASSERT_TRUE(large.ok());
  EXPECT_EQ((*large)->data()[50], 'a');
  (*large)->data()[99'999] = 'z';
  (*small)->data()[51] = 'b';

  EXPECT_EQ((*large)->data()[51], 'b');
  small->reset();
  large->reset();
  EXPECT_EQ(text_of("m").substr(50, 2), "ab");
  EXPECT_EQ(text_of("m").size(), 100'000U);
  EXPECT_EQ(text_of("m").back(), 'z');
}

TEST_P(FileSystemTest, RefusesMappingsThatCannotBe) {
  make_file("short", "1234");

  EXPECT_EQ(code_of(files_.map(path("none"), 10, false).status()), Errc::kNotFound);
  EXPECT_EQ(code_of(files_.map(path("short"), 5, false).status()), Errc::kCorrupt);
  EXPECT_EQ(code_of(files_.map(path("short"), 0, false).status()), Errc::kIo);
  EXPECT_EQ(code_of(files_.map(path(""), 5, false).status()), Errc::kIo);
  EXPECT_TRUE(files_.map(path("short"), 4, false).ok());
}

// Waits for completions that run on other threads.
class Completions {
 public:
  std::function<void(Status)> next() {
    return [this](const Status& status) {
      const MutexLock lock(mutex_);
      ++done_;
      failed_ += status.ok() ? 0 : 1;
      changed_.notify_all();
    };
  }
  void wait_for(int count) {
    const MutexLock lock(mutex_);
    while (done_ < count) {
      changed_.wait(mutex_);
    }
    EXPECT_EQ(done_, count);
  }
  int failed() {
    const MutexLock lock(mutex_);
    return failed_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int done_ = 0;
  int failed_ = 0;
};

TEST_P(FileSystemTest, CompletesMoreSubmittedWritesThanItsQueueHolds) {
  constexpr int kCount = 3000;
  const auto file = open("f", OpenMode::kCreateNew);
  Completions completions;

  for (int i = 0; i < kCount; ++i) {
    const std::string text = std::to_string(10'000 + i);
    files_.submit({IoRequest::Kind::kWrite, file, static_cast<std::uint64_t>(i) * 5,
                   SharedBytes::copy_of(text)},
                  completions.next());
  }
  completions.wait_for(kCount);
  files_.submit({IoRequest::Kind::kSync, file, 0, {}}, completions.next());
  completions.wait_for(kCount + 1);

  EXPECT_EQ(completions.failed(), 0);
  const std::string text = text_of("f");
  ASSERT_EQ(text.size(), 5U * kCount);
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(text.substr(static_cast<std::size_t>(i) * 5, 5), std::to_string(10'000 + i));
  }
}

TEST_P(FileSystemTest, PassesTheErrorOfASubmittedWrite) {
  make_file("f", "x");
  Completions completions;

  files_.submit({IoRequest::Kind::kWrite, open("f", OpenMode::kRead), 0, SharedBytes::copy_of("y")},
                completions.next());
  completions.wait_for(1);

  EXPECT_EQ(completions.failed(), 1);
}

TEST_P(FileSystemTest, LetsCompletionsSubmit) {
  const auto file = open("f", OpenMode::kCreateNew);
  Completions completions;
  std::atomic<int> left{2000};
  std::function<void(Status)> again = [&](const Status& status) {
    if (left.fetch_sub(1) > 1) {
      files_.submit({IoRequest::Kind::kWrite, file, 0, SharedBytes::copy_of("x")}, again);
    } else {
      completions.next()(status);
    }
  };

  files_.submit({IoRequest::Kind::kSync, file, 0, {}}, again);
  completions.wait_for(1);

  EXPECT_EQ(text_of("f"), "x");
}

TEST_P(FileSystemTest, AgreesWithAStringPerFileUnderRandomOperations) {
  const std::uint64_t seed = 20'260'101;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  std::map<std::string, std::string> model;
  const auto some_name = [&] { return std::string(1, static_cast<char>('a' + rng.below(5))); };
  for (int step = 0; step < 3000; ++step) {
    const std::string name = some_name();
    const std::uint64_t position = rng.below(20'000);
    switch (rng.below(6)) {
      case 0:
      case 1: {
        const std::string text(1 + rng.below(9000), static_cast<char>('A' + rng.below(26)));
        std::string& content = model[name];
        ASSERT_TRUE(open(name, OpenMode::kCreateOrOpen)->write_at(position, text).ok());
        content.resize(std::max(content.size(), position + text.size()), '\0');
        content.replace(position, text.size(), text);
        break;
      }
      case 2:
        ASSERT_TRUE(open(name, OpenMode::kCreateOrOpen)->truncate(position).ok());
        model[name].resize(position, '\0');
        break;
      case 3: {
        const std::string target = some_name();
        ASSERT_EQ(files_.rename(path(name), path(target)).ok(), model.contains(name));
        if (model.contains(name) && name != target) {
          model[target] = std::move(model[name]);
          model.erase(name);
        }
        break;
      }
      case 4:
        ASSERT_EQ(files_.remove_file(path(name)).ok(), model.erase(name) == 1);
        break;
      default:
        ASSERT_EQ(path_exists(files_, path(name)), model.contains(name));
        if (model.contains(name)) {
          ASSERT_TRUE(text_of(name) == model[name]) << "step " << step;
        }
    }
  }
  ASSERT_EQ(files_.list(path(""))->size(), model.size());
}

TEST_P(FileSystemTest, ServesManyThreadsAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 150;
  make_file("shared", std::string(64 << 10, 's'));
  const auto shared = open("shared", OpenMode::kRead);
  std::atomic<int> failures{0};
  const auto check = [&failures](bool good) { failures += good ? 0 : 1; };
  const auto work = [&](int id) {
    const std::string name = path("t" + std::to_string(id));
    for (int i = 0; i < kRounds; ++i) {
      auto file = files_.open(name, OpenMode::kCreateTruncate);
      check(file.ok() && (*file)->write_at(0, std::string(5000, 'x')).ok());
      std::array<char, 4096> out{};
      auto read = shared->read_at(static_cast<std::uint64_t>(i) * 100, out);
      check(read.ok() && *read == out.size() && out[0] == 's' && out[4095] == 's');
      check(files_.rename(name, name + ".done").ok());
      check(files_.list(path("")).ok());
      check((*file)->sync().ok() && files_.sync_directory(path("")).ok());
      check(files_.remove_file(name + ".done").ok());
    }
  };

  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back(work, id);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(files_.list(path(""))->size(), 1U);
}

TEST_P(FileSystemTest, ReplacesAFileAndLeavesNoTemporaryOne) {
  EXPECT_TRUE(replace_file(files_, path("f"), "first").ok());
  EXPECT_TRUE(replace_file(files_, path("f"), "2nd").ok());

  EXPECT_EQ(text_of("f"), "2nd");
  EXPECT_EQ(files_.list(path(""))->size(), 1U);
  EXPECT_EQ(code_of(replace_file(files_, path("none/f"), "x")), Errc::kNotFound);
}

TEST_P(FileSystemTest, ReadsAFileOnlyUpToTheGivenBound) {
  make_file("f", "12345");

  EXPECT_EQ(*read_file(files_, path("f"), 5), "12345");
  EXPECT_EQ(code_of(read_file(files_, path("f"), 4).status()), Errc::kCorrupt);
  EXPECT_EQ(code_of(read_file(files_, path("none")).status()), Errc::kNotFound);
}

TEST_P(FileSystemTest, RemovesATreeAndIsContentWhenItIsAbsent) {
  ASSERT_TRUE(files_.create_directories(path("t/a/b")).ok());
  make_file("t/f", "x");
  make_file("t/a/g", "x");

  EXPECT_TRUE(remove_tree(files_, path("t")).ok());
  EXPECT_TRUE(remove_tree(files_, path("t")).ok());

  EXPECT_FALSE(path_exists(files_, path("t")));
}

}  // namespace
}  // namespace weir
