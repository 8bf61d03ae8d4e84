#include "tests/support/sanitizer.h"

#include <weir/runtime/file_system.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <deque>
#include <fcntl.h>
#include <future>
#include <signal.h>
#include <stdlib.h>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

// What the next system calls of this thread answer instead of what the kernel would.
namespace {

struct Answer {
  int error_number = 0;       // fail with it, or
  std::size_t bytes_max = 0;  // do only so much (pwrite, pread)
};
thread_local std::deque<Answer>* answers = nullptr;

bool take_answer(Answer& answer) {
  if (answers == nullptr || answers->empty()) {
    return false;
  }
  answer = answers->front();
  answers->pop_front();
  return true;
}

// Runs `call` or the next answer.
template <class Call>
auto answered(std::size_t count, Call call) -> decltype(call(count)) {
  Answer answer;
  if (!take_answer(answer)) {
    return call(count);
  }
  if (answer.error_number != 0) {
    errno = answer.error_number;
    return -1;
  }
  return call(std::min(count, answer.bytes_max));
}

}  // namespace

// Stand in front of the C library's for the whole test program.
extern "C" {
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t position) {
  return answered(count, [&](std::size_t part) {
    return static_cast<ssize_t>(::syscall(SYS_pwrite64, fd, bytes, part, position));
  });
}
ssize_t pread(int fd, void* bytes, size_t count, off_t position) {
  return answered(count, [&](std::size_t part) {
    return static_cast<ssize_t>(::syscall(SYS_pread64, fd, bytes, part, position));
  });
}
int fdatasync(int fd) {
  return answered(0, [&](std::size_t) { return static_cast<int>(::syscall(SYS_fdatasync, fd)); });
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
  return answered(0, [&](std::size_t) {
    return static_cast<int>(::syscall(SYS_fallocate, fd, mode, offset, length));
  });
}
}

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = ::testing::TempDir() + "weir-posix-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { EXPECT_TRUE(remove_tree(posix_file_system(), root_).ok()); }
  std::string path(const std::string& name) const { return join_path(root_, name); }

 private:
  std::string root_;
};

class ScriptedCalls {
 public:
  explicit ScriptedCalls(std::deque<Answer> script) : script_(std::move(script)) {
    answers = &script_;
  }
  ScriptedCalls(const ScriptedCalls&) = delete;
  ScriptedCalls& operator=(const ScriptedCalls&) = delete;
  ~ScriptedCalls() {
    answers = nullptr;
    EXPECT_TRUE(script_.empty()) << script_.size() << " answers were not asked for";
  }

 private:
  std::deque<Answer> script_;
};

// A child process that runs `body` and then waits to be told to end.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) {
    std::array<int, 2> to_parent{};
    std::array<int, 2> to_child{};
    EXPECT_EQ(::pipe(to_parent.data()), 0);
    EXPECT_EQ(::pipe(to_child.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(to_child[1]);
      const char answer = body() ? 'y' : 'n';
      const ssize_t written = ::write(to_parent[1], &answer, 1);
      char wait = 0;
      const ssize_t read = ::read(to_child[0], &wait, 1);
      ::_exit(written == 1 && read == 0 ? 0 : 1);
    }
    ::close(to_parent[1]);
    ::close(to_child[0]);
    from_child_ = to_parent[0];
    to_child_ = to_child[1];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(0); }

  bool said_yes() {
    char answer = 0;
    return ::read(from_child_, &answer, 1) == 1 && answer == 'y';
  }
  // Kills it with `signal`, or lets it end when that is 0.
  void end(int signal) {
    if (pid_ <= 0) {
      return;
    }
    if (signal != 0) {
      ::kill(pid_, signal);
    }
    ::close(to_child_);
    ::close(from_child_);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int from_child_ = -1;
  int to_child_ = -1;
};

TEST(PosixFileSystem, WritesAllBytesOverShortAndInterruptedWrites) {
  const TemporaryFolder folder;
  auto file = posix_file_system().open(folder.path("f"), OpenMode::kCreateNew);
  ASSERT_TRUE(file.ok());
  {
    const ScriptedCalls calls({{EINTR, 0}, {0, 3}, {0, 1}, {EINTR, 0}, {0, 2}});
    EXPECT_TRUE((*file)->write_at(5, "0123456789").ok());
  }

  EXPECT_EQ(*read_file(posix_file_system(), folder.path("f")), std::string(5, '\0') + "0123456789");
}

TEST(PosixFileSystem, ReadsAllBytesOverShortAndInterruptedReads) {
  const TemporaryFolder folder;
  ASSERT_TRUE(replace_file(posix_file_system(), folder.path("f"), "0123456789").ok());
  auto file = posix_file_system().open(folder.path("f"), OpenMode::kRead);
  ASSERT_TRUE(file.ok());
  std::string out(8, '?');
  {
    const ScriptedCalls calls({{0, 3}, {EINTR, 0}, {0, 1}});
    EXPECT_EQ(*(*file)->read_at(1, out), 8U);
  }

  EXPECT_EQ(out, "12345678");
}

TEST(PosixFileSystem, TellsAFullDiskFromABrokenOne) {
  const TemporaryFolder folder;
  auto file = posix_file_system().open(folder.path("f"), OpenMode::kCreateNew);
  ASSERT_TRUE(file.ok());
  const auto code_for = [&](int error_number) {
    const ScriptedCalls calls({{0, 2}, {error_number, 0}});
    const Status status = (*file)->write_at(0, "0123");
    return status.ok() ? Errc::kInternal : status.error().code();
  };

  EXPECT_EQ(code_for(ENOSPC), Errc::kNoSpace);
  EXPECT_EQ(code_for(EDQUOT), Errc::kNoSpace);
  EXPECT_EQ(code_for(EIO), Errc::kIo);
}

TEST(PosixFileSystem, ReportsAFullDeviceOfTheKernel) {
  auto file = posix_file_system().open("/dev/full", OpenMode::kReadWrite);
  ASSERT_TRUE(file.ok());

  const Status status = (*file)->write_at(0, "x");

  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::kNoSpace);
  EXPECT_THAT(
      status.error().message(),
      AllOf(HasSubstr("write /dev/full: No space left on device (errno 28); "), HasSubstr("free")));
}

TEST(PosixFileSystem, ReportsAFailedSyncAndDoesNotRepeatIt) {
  const TemporaryFolder folder;
  auto file = posix_file_system().open(folder.path("f"), OpenMode::kCreateNew);
  ASSERT_TRUE(file.ok());
  {
    const ScriptedCalls calls({{EINTR, 0}, {EIO, 0}});
    const Status status = (*file)->sync();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Errc::kIo);
    EXPECT_THAT(status.error().message(), HasSubstr("sync " + folder.path("f") + ": Input/output"));
  }
}

TEST(PosixFileSystem, ReservesAsAHintButReportsAFullDisk) {
  const TemporaryFolder folder;
  auto file = posix_file_system().open(folder.path("f"), OpenMode::kCreateNew);
  ASSERT_TRUE(file.ok());
  const auto reserve = [&](int error_number) {
    const ScriptedCalls calls({{EINTR, 0}, {error_number, 0}});
    return (*file)->reserve(1U << 20U);
  };

  EXPECT_TRUE(reserve(EOPNOTSUPP).ok());
  ASSERT_FALSE(reserve(ENOSPC).ok());
  EXPECT_EQ(reserve(ENOSPC).error().code(), Errc::kNoSpace);
}

TEST(PosixFileSystem, MapsAFullLengthFileWhereBlocksCannotBeReserved) {
  const TemporaryFolder folder;
  const ScriptedCalls calls({{EOPNOTSUPP, 0}});

  const auto mapping = posix_file_system().map(folder.path("m"), 10'000, true);

  ASSERT_TRUE(mapping.ok());
  EXPECT_EQ((*mapping)->data()[9999], '\0');
}

TEST(PosixFileSystem, RefusesToMapWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  const ScriptedCalls calls({{ENOSPC, 0}});

  const auto mapping = posix_file_system().map(folder.path("m"), 10'000, true);

  ASSERT_FALSE(mapping.ok());
  EXPECT_EQ(mapping.error().code(), Errc::kNoSpace);
}

TEST(PosixFileSystem, DoesNotPassItsFilesToProgramsThatItStarts) {
  const TemporaryFolder folder;
  FileSystem& files = posix_file_system();
  const auto file = files.open(folder.path("f"), OpenMode::kCreateNew);
  const auto lock = files.lock(folder.path("l"), "me");
  ASSERT_TRUE(file.ok() && lock.ok());

  int found = 0;
  for (int fd = 0; fd < 256; ++fd) {
    std::array<char, 4096> target{};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (::readlink(link.c_str(), target.data(), target.size() - 1) <= 0) {
      continue;
    }
    if (target.data() == folder.path("f") || target.data() == folder.path("l")) {
      ++found;
      EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << target.data();
    }
  }
  EXPECT_EQ(found, 2);
}

TEST(PosixFileSystem, TellsASecondProcessWhoHoldsTheLock) {
  const TemporaryFolder folder;
  const std::string path = folder.path(".lock");
  auto lock = posix_file_system().lock(path, "pid 4711 on host a");
  ASSERT_TRUE(lock.ok());

  Child child([&] {
    const auto second = posix_file_system().lock(path, "child");
    return !second.ok() && second.error().code() == Errc::kLocked &&
           second.error().message().find("'pid 4711 on host a'") != std::string::npos;
  });

  EXPECT_TRUE(child.said_yes());
}

TEST(PosixFileSystem, GivesTheLockUpWhenItsProcessIsKilled) {
  const TemporaryFolder folder;
  const std::string path = folder.path(".lock");
  Child child([&] {
    // Kept on purpose until the process ends.
    auto held = posix_file_system().lock(path, "child");
    return held.ok() && std::move(held).value().release() != nullptr;
  });
  ASSERT_TRUE(child.said_yes());
  const auto refused = posix_file_system().lock(path, "parent");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("'child'"));

  child.end(SIGKILL);

  EXPECT_TRUE(posix_file_system().lock(path, "parent").ok());
}

TEST(PosixFileSystem, SharesAMappingWithAnotherProcess) {
  const TemporaryFolder folder;
  auto mapping = posix_file_system().map(folder.path("m"), 4096, true);
  ASSERT_TRUE(mapping.ok());
  (*mapping)->data()[7] = 'p';

  Child child([&] {
    const auto own = posix_file_system().map(folder.path("m"), 4096, true);
    if (!own.ok() || (*own)->data()[7] != 'p') {
      return false;
    }
    (*own)->data()[8] = 'c';
    return true;
  });

  ASSERT_TRUE(child.said_yes());
  EXPECT_EQ((*mapping)->data()[8], 'c');
}

TEST(PosixFileSystem, TellsWhenAFileWasChangedInMilliseconds) {
  const TemporaryFolder folder;
  ASSERT_TRUE(replace_file(posix_file_system(), folder.path("f"), "x").ok());
  const std::array<timespec, 2> times{{{1'700'000'000, 0}, {1'700'000'001, 234'567'890}}};
  ASSERT_EQ(::utimensat(AT_FDCWD, folder.path("f").c_str(), times.data(), 0), 0);

  EXPECT_EQ(posix_file_system().info(folder.path("f"))->modified, 1'700'000'001'234);
}

TEST(PosixFileSystem, RemovesALinkAndNotWhatItPointsTo) {
  const TemporaryFolder folder;
  FileSystem& files = posix_file_system();
  ASSERT_TRUE(files.create_directories(folder.path("kept")).ok());
  ASSERT_TRUE(files.create_directories(folder.path("tree")).ok());
  ASSERT_TRUE(replace_file(files, folder.path("kept/f"), "x").ok());
  ASSERT_EQ(::symlink(folder.path("kept").c_str(), folder.path("tree/link").c_str()), 0);

  EXPECT_TRUE(remove_tree(files, folder.path("tree")).ok());

  EXPECT_TRUE(path_exists(files, folder.path("kept/f")));
}

// ThreadSanitizer refuses threads in the child of a process that had some.
#if !defined(WEIR_TEST_TSAN)
TEST(PosixFileSystem, StartsItsThreadsAnewInTheChildOfAFork) {
  const TemporaryFolder folder;
  const auto file = posix_file_system().open(folder.path("f"), OpenMode::kCreateNew);
  ASSERT_TRUE(file.ok());
  const auto sync = [&file] {
    std::promise<bool> done;
    posix_file_system().submit({IoRequest::Kind::kSync, *file, 0, {}},
                               [&done](const Status& status) { done.set_value(status.ok()); });
    return done.get_future().get();
  };
  ASSERT_TRUE(sync());

  Child child(sync);

  EXPECT_TRUE(child.said_yes());
  EXPECT_TRUE(sync());
}

TEST(PosixFileSystem, FinishesSubmittedWritesBeforeTheProcessEnds) {
  constexpr std::size_t kCount = 500;
  const TemporaryFolder folder;
  const auto file = posix_file_system().open(folder.path("f"), OpenMode::kCreateNew);
  ASSERT_TRUE(file.ok());

  const pid_t pid = ::fork();
  if (pid == 0) {
    for (std::size_t i = 0; i < kCount; ++i) {
      posix_file_system().submit({IoRequest::Kind::kWrite, *file, i, SharedBytes::copy_of("x")},
                                 nullptr);
    }
    std::exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);

  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(*read_file(posix_file_system(), folder.path("f")), std::string(kCount, 'x'));
}
#endif

}  // namespace
}  // namespace weir
