#include <weir/runtime/rng.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace weir::testing {
namespace {

using Operation = MemoryFileSystem::Operation;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<File> open(MemoryFileSystem& files, const std::string& path,
                           OpenMode mode = OpenMode::kCreateOrOpen) {
  auto file = files.open(path, mode);
  EXPECT_TRUE(file.ok()) << file.error().to_string();
  return *file;
}

void write(MemoryFileSystem& files, const std::string& path, ByteView text) {
  ASSERT_TRUE(open(files, path, OpenMode::kCreateTruncate)->write_at(0, text).ok());
}

void write_durably(MemoryFileSystem& files, const std::string& path, ByteView text) {
  write(files, path, text);
  ASSERT_TRUE(open(files, path)->sync().ok());
  ASSERT_TRUE(files.sync_directory(parent_path(path)).ok());
}

// Kinds of text: "-" when the file is absent.
std::string text_of(MemoryFileSystem& files, const std::string& path) {
  const auto text = read_file(files, path);
  return text.ok() ? *text : "-";
}

std::string names_of(MemoryFileSystem& files, const std::string& path) {
  const auto entries = files.list(path);
  EXPECT_TRUE(entries.ok());
  std::string names;
  for (const DirectoryEntry& entry : *entries) {
    names += entry.name;
  }
  return names;
}

// What a power cut makes of the present state, over many seeds.
template <class Look>
std::set<std::string> outcomes(const MemoryFileSystem& files, Look look) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto copy = files.clone(seed);
    copy->power_cut();
    seen.insert(look(*copy));
  }
  return seen;
}

Errc code_of(const Status& status) {
  EXPECT_FALSE(status.ok());
  return status.ok() ? Errc::kInternal : status.error().code();
}

MemoryFileSystem::Fault fail(Operation failing, Errc code) {
  return [failing, code](Operation operation, const std::string& path) {
    return operation == failing ? Status(Error(code, "fault at " + path)) : Status();
  };
}

TEST(MemoryFileSystem, KeepsWhatWasSyncedWithItsName) {
  MemoryFileSystem files;
  write_durably(files, "/f", "text");

  EXPECT_THAT(outcomes(files, [](auto& disk) { return text_of(disk, "/f"); }), ElementsAre("text"));
}

TEST(MemoryFileSystem, MayLoseTheNameOfASyncedFile) {
  MemoryFileSystem files;
  write(files, "/f", "text");
  ASSERT_TRUE(open(files, "/f")->sync().ok());

  EXPECT_THAT(outcomes(files, [](auto& disk) { return text_of(disk, "/f"); }),
              ElementsAre("-", "text"));
}

TEST(MemoryFileSystem, MayLoseTheBytesOfAFileWithADurableName) {
  MemoryFileSystem files;
  write(files, "/f", "text");
  ASSERT_TRUE(files.sync_directory("/").ok());

  const auto seen = outcomes(files, [](auto& disk) { return text_of(disk, "/f"); });

  EXPECT_TRUE(seen.contains("text"));
  EXPECT_TRUE(seen.contains(""));
  EXPECT_TRUE(seen.contains(std::string(4, '\0')));
  EXPECT_FALSE(seen.contains("-"));
}

TEST(MemoryFileSystem, KeepsOrLosesARename) {
  MemoryFileSystem files;
  write_durably(files, "/old", "old");
  write_durably(files, "/new", "new");
  ASSERT_TRUE(files.rename("/new", "/old").ok());
  const auto look = [](auto& disk) { return text_of(disk, "/old") + text_of(disk, "/new"); };

  EXPECT_THAT(outcomes(files, look), ElementsAre("new-", "oldnew"));
  ASSERT_TRUE(files.sync_directory("/").ok());
  EXPECT_THAT(outcomes(files, look), ElementsAre("new-"));
}

TEST(MemoryFileSystem, KeepsOrLosesARemoval) {
  MemoryFileSystem files;
  write_durably(files, "/f", "text");
  ASSERT_TRUE(files.remove_file("/f").ok());
  const auto look = [](auto& disk) { return text_of(disk, "/f"); };

  EXPECT_THAT(outcomes(files, look), ElementsAre("-", "text"));
  ASSERT_TRUE(files.sync_directory("/").ok());
  EXPECT_THAT(outcomes(files, look), ElementsAre("-"));
}

TEST(MemoryFileSystem, KeepsAPrefixOfTheNameChangesOfEachFolder) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.create_directories("/a").ok());
  ASSERT_TRUE(files.create_directories("/b").ok());
  ASSERT_TRUE(files.sync_directory("/").ok());
  for (const char* path : {"/a/1", "/b/1", "/a/2", "/b/2"}) {
    write(files, path, "x");
  }
  ASSERT_TRUE(files.remove_file("/a/1").ok());

  const auto seen =
      outcomes(files, [](auto& disk) { return names_of(disk, "/a") + "|" + names_of(disk, "/b"); });

  EXPECT_EQ(seen, (std::set<std::string>{"|", "|1", "|12", "1|", "1|1", "1|12", "12|", "12|1",
                                         "12|12", "2|", "2|1", "2|12"}));
}

TEST(MemoryFileSystem, LosesWhatIsInAFolderThatLosesItsName) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.create_directories("/a/b").ok());
  write_durably(files, "/a/b/f", "text");
  ASSERT_TRUE(files.sync_directory("/a").ok());
  const auto look = [](auto& disk) { return text_of(disk, "/a/b/f"); };

  EXPECT_THAT(outcomes(files, look), ElementsAre("-", "text"));
  ASSERT_TRUE(files.sync_directory("/").ok());
  EXPECT_THAT(outcomes(files, look), ElementsAre("text"));
}

TEST(MemoryFileSystem, MovesBetweenFoldersInBothOrInNeither) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.create_directories("/a").ok());
  ASSERT_TRUE(files.create_directories("/b").ok());
  ASSERT_TRUE(files.sync_directory("/").ok());
  write_durably(files, "/a/f", "1");
  write_durably(files, "/b/g", "2");
  ASSERT_TRUE(files.rename("/a/f", "/b/f").ok());
  ASSERT_TRUE(files.rename("/b/g", "/a/g").ok());
  const auto look = [](auto& disk) {
    return text_of(disk, "/a/f") + text_of(disk, "/b/f") + text_of(disk, "/a/g") +
           text_of(disk, "/b/g");
  };

  EXPECT_THAT(outcomes(files, look), ElementsAre("-1-2", "-12-", "1--2"));
  ASSERT_TRUE(files.sync_directory("/a").ok());
  EXPECT_THAT(outcomes(files, look), ElementsAre("-12-"));
}

TEST(MemoryFileSystem, SurvivesFoldersThatSwapTheirPlaces) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.create_directories("/a/b").ok());
  ASSERT_TRUE(files.sync_directory("/a").ok());
  ASSERT_TRUE(files.sync_directory("/").ok());
  ASSERT_TRUE(files.rename("/a/b", "/b").ok());
  ASSERT_TRUE(files.rename("/a", "/b/a").ok());
  const auto look = [](auto& disk) {
    return std::string(path_exists(disk, "/a/b") ? "a/b " : "") +
           (path_exists(disk, "/a") ? "a " : "") + (path_exists(disk, "/b") ? "b " : "") +
           (path_exists(disk, "/b/a") ? "b/a" : "");
  };

  EXPECT_THAT(outcomes(files, look), ElementsAre("a b ", "a/b a ", "b b/a"));
}

TEST(MemoryFileSystem, KeepsOpenFilesOutOfItAfterAPowerCut) {
  MemoryFileSystem files;
  write_durably(files, "/f", "text");
  const auto file = open(files, "/f");
  const auto lock = files.lock("/lock", "holder");
  ASSERT_TRUE(lock.ok());

  files.power_cut();

  EXPECT_EQ(code_of(file->write_at(0, "x")), Errc::kIo);
  EXPECT_EQ(code_of(file->sync()), Errc::kIo);
  EXPECT_EQ(code_of(file->size().status()), Errc::kIo);
  EXPECT_EQ(code_of(file->truncate(0)), Errc::kIo);
  EXPECT_EQ(code_of(file->reserve(1)), Errc::kIo);
  std::string out(1, '?');
  EXPECT_EQ(code_of(file->read_at(0, out).status()), Errc::kIo);
  EXPECT_EQ(text_of(files, "/f"), "text");
  EXPECT_TRUE(files.lock("/lock", "next").ok());
}

TEST(MemoryFileSystem, DoesNotTakeANewLockAwayWhenAnOldOneIsDestroyed) {
  MemoryFileSystem files;
  auto old_lock = files.lock("/lock", "old");
  ASSERT_TRUE(old_lock.ok());
  files.process_crash();
  const auto new_lock = files.lock("/lock", "new");
  ASSERT_TRUE(new_lock.ok());

  old_lock->reset();

  EXPECT_EQ(code_of(files.lock("/lock", "third").status()), Errc::kLocked);
}

TEST(MemoryFileSystem, KeepsTheCacheOverAProcessCrash) {
  MemoryFileSystem files;
  write(files, "/f", "text");
  const auto file = open(files, "/f");
  const auto lock = files.lock("/lock", "holder");

  files.process_crash();

  EXPECT_EQ(code_of(file->write_at(0, "x")), Errc::kIo);
  EXPECT_EQ(text_of(files, "/f"), "text");
  EXPECT_EQ(code_of(files.open("/f", OpenMode::kCreateNew).status()), Errc::kExists);
  EXPECT_TRUE(files.lock("/lock", "next").ok());
}

TEST(MemoryFileSystem, FailsFromTheGivenOperationOnUntilThePowerReturns) {
  MemoryFileSystem files;
  write_durably(files, "/f", "text");
  const auto file = open(files, "/f");
  const std::uint64_t before = files.operations();
  files.cut_power_at(2);

  EXPECT_TRUE(file->write_at(0, "T").ok());
  std::string out(4, '?');
  EXPECT_TRUE(file->read_at(0, out).ok());
  EXPECT_TRUE(file->sync().ok());
  EXPECT_FALSE(files.power_is_off());
  EXPECT_EQ(code_of(files.rename("/f", "/g")), Errc::kIo);
  EXPECT_TRUE(files.power_is_off());
  EXPECT_EQ(code_of(file->sync()), Errc::kIo);
  EXPECT_EQ(code_of(file->read_at(0, out).status()), Errc::kIo);
  EXPECT_EQ(code_of(files.open("/f", OpenMode::kRead).status()), Errc::kIo);
  EXPECT_EQ(code_of(files.list("/").status()), Errc::kIo);
  EXPECT_EQ(code_of(files.lock("/l", "x").status()), Errc::kIo);
  EXPECT_EQ(files.operations(), before + 3);

  files.power_cut();

  EXPECT_FALSE(files.power_is_off());
  EXPECT_EQ(text_of(files, "/f"), "Text");
  EXPECT_EQ(text_of(files, "/g"), "-");
}

TEST(MemoryFileSystem, CountsEachChangeAndNoRead) {
  MemoryFileSystem files;
  std::vector<std::uint64_t> counts;
  const auto count = [&] { counts.push_back(files.operations()); };

  ASSERT_TRUE(files.create_directories("/a/b").ok());
  count();
  const auto file = open(files, "/a/f");
  count();
  ASSERT_TRUE(file->write_at(0, "x").ok() && file->sync().ok() && file->truncate(0).ok());
  count();
  ASSERT_TRUE(file->size().ok() && files.info("/a").ok() && files.list("/a").ok());
  open(files, "/a/f");
  count();
  open(files, "/a/f", OpenMode::kCreateTruncate);
  ASSERT_TRUE(files.rename("/a/f", "/a/g").ok() && files.remove_file("/a/g").ok());
  ASSERT_TRUE(files.sync_directory("/a").ok() && files.remove_directory("/a/b").ok());
  count();

  EXPECT_THAT(counts, ElementsAre(2, 3, 6, 6, 11));
}

TEST(MemoryFileSystem, MayHaveAPartOfTheInterruptedWrite) {
  const std::string text(9000, 'n');
  std::set<std::size_t> lengths;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    MemoryFileSystem files({.seed = seed});
    write_durably(files, "/f", "");
    const auto file = open(files, "/f");
    files.cut_power_at(0);
    ASSERT_EQ(code_of(file->write_at(0, text)), Errc::kIo);
    files.power_cut();
    lengths.insert(text_of(files, "/f").size());
  }

  EXPECT_EQ(*lengths.begin(), 0U);
  EXPECT_GT(*lengths.rbegin(), 6000U);
  EXPECT_GT(lengths.size(), 20U);
}

TEST(MemoryFileSystem, AsksTheFaultHookBeforeItDoesAnything) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.create_directories("/d").ok());
  write_durably(files, "/f", "text");
  const auto file = open(files, "/f");
  std::string out(4, '?');

  files.set_fault(fail(Operation::kWrite, Errc::kIo));
  EXPECT_EQ(file->write_at(0, "x").error().message(), "fault at /f");
  files.set_fault(fail(Operation::kTruncate, Errc::kIo));
  EXPECT_FALSE(file->truncate(0).ok());
  EXPECT_FALSE(files.open("/f", OpenMode::kCreateTruncate).ok());
  files.set_fault(fail(Operation::kRename, Errc::kIo));
  EXPECT_FALSE(files.rename("/f", "/g").ok());
  files.set_fault(fail(Operation::kRemove, Errc::kIo));
  EXPECT_FALSE(files.remove_file("/f").ok());
  EXPECT_FALSE(files.remove_directory("/d").ok());
  files.set_fault(fail(Operation::kCreate, Errc::kNoSpace));
  EXPECT_EQ(code_of(files.open("/g", OpenMode::kCreateNew).status()), Errc::kNoSpace);
  EXPECT_EQ(code_of(files.create_directories("/e")), Errc::kNoSpace);
  files.set_fault(fail(Operation::kRead, Errc::kIo));
  EXPECT_FALSE(file->read_at(0, out).ok());
  files.set_fault(fail(Operation::kSyncDirectory, Errc::kIo));
  EXPECT_FALSE(files.sync_directory("/").ok());
  files.set_fault(nullptr);

  EXPECT_EQ(names_of(files, "/"), "df");
  EXPECT_EQ(text_of(files, "/f"), "text");
}

TEST(MemoryFileSystem, LetsTheFaultHookUseTheFileSystem) {
  MemoryFileSystem files;
  std::uint64_t seen = 0;
  files.set_fault([&](Operation, const std::string&) {
    seen = files.operations();
    return Status();
  });

  write(files, "/f", "x");

  EXPECT_EQ(seen, 2U);
}

TEST(MemoryFileSystem, SyncsInVainAfterASyncThatFailed) {
  MemoryFileSystem files;
  write_durably(files, "/f", "old");
  const auto file = open(files, "/f");
  ASSERT_TRUE(file->write_at(0, "new").ok());
  files.set_fault(fail(Operation::kSync, Errc::kIo));
  ASSERT_EQ(code_of(file->sync()), Errc::kIo);
  files.set_fault(nullptr);

  ASSERT_TRUE(file->sync().ok());

  EXPECT_EQ(text_of(files, "/f"), "new");
  EXPECT_THAT(outcomes(files, [](auto& disk) { return text_of(disk, "/f"); }), ElementsAre("old"));
}

TEST(MemoryFileSystem, WritesWhatFitsAndThenReportsAFullDisk) {
  MemoryFileSystem files({.capacity_bytes = 10 * 4096});
  write(files, "/f", std::string(6 * 4096, 'f'));
  const auto file = open(files, "/g");

  EXPECT_EQ(code_of(file->write_at(0, std::string(5 * 4096, 'g'))), Errc::kNoSpace);
  EXPECT_EQ(*file->size(), 4U * 4096);
  EXPECT_EQ(files.disk_space("/")->available_bytes, 0U);
  EXPECT_TRUE(file->write_at(0, std::string(4 * 4096, 'h')).ok());
  EXPECT_EQ(code_of(file->reserve(5 * 4096)), Errc::kNoSpace);

  ASSERT_TRUE(files.remove_file("/f").ok());
  EXPECT_EQ(files.disk_space("/")->available_bytes, 6U * 4096);
  EXPECT_TRUE(file->reserve(10 * 4096).ok());
  EXPECT_EQ(files.disk_space("/")->available_bytes, 0U);
  files.set_capacity(11 * 4096);
  EXPECT_EQ(files.disk_space("/")->available_bytes, 4096U);
}

TEST(MemoryFileSystem, FreesTheSpaceOfARemovedFileWhenItIsClosed) {
  MemoryFileSystem files({.capacity_bytes = 10 * 4096});
  write(files, "/f", std::string(8 * 4096, 'f'));
  write(files, "/g", "g");
  auto file = open(files, "/f");

  ASSERT_TRUE(files.rename("/g", "/f").ok());
  EXPECT_EQ(files.disk_space("/")->available_bytes, 1U * 4096);
  file.reset();

  EXPECT_EQ(files.disk_space("/")->available_bytes, 9U * 4096);
}

TEST(MemoryFileSystem, CountsTheSpaceAnewAfterACrash) {
  MemoryFileSystem files({.capacity_bytes = 10 * 4096});
  write_durably(files, "/f", std::string(4 * 4096, 'f'));
  const auto removed = open(files, "/f");
  ASSERT_TRUE(files.remove_file("/f").ok());
  ASSERT_TRUE(files.sync_directory("/").ok());
  write_durably(files, "/g", std::string(2 * 4096, 'g'));
  EXPECT_EQ(files.disk_space("/")->available_bytes, 4U * 4096);

  files.process_crash();
  EXPECT_EQ(files.disk_space("/")->available_bytes, 8U * 4096);
  files.power_cut();
  EXPECT_EQ(files.disk_space("/")->available_bytes, 8U * 4096);
}

TEST(MemoryFileSystem, MapsMemoryThatOnlyASyncMakesDurable) {
  MemoryFileSystem files;
  write_durably(files, "/m", std::string(100, 'o'));
  auto mapping = files.map("/m", 100, true);
  ASSERT_TRUE(mapping.ok());
  const auto look = [](auto& disk) { return text_of(disk, "/m").substr(0, 1); };

  (*mapping)->data()[0] = 'n';
  EXPECT_THAT(outcomes(files, look), ElementsAre("n", "o"));
  ASSERT_TRUE(open(files, "/m")->sync().ok());
  EXPECT_THAT(outcomes(files, look), ElementsAre("n"));
  files.power_cut();
  (*mapping)->data()[0] = 'x';

  EXPECT_EQ(look(files), "n");
}

TEST(MemoryFileSystem, KeepsMappedBytesOverAProcessCrashButNotItsMapping) {
  MemoryFileSystem files;
  auto mapping = files.map("/m", 100, true);
  ASSERT_TRUE(mapping.ok());
  (*mapping)->data()[0] = 'n';

  files.process_crash();
  (*mapping)->data()[0] = 'x';

  EXPECT_EQ(text_of(files, "/m").substr(0, 1), "n");
  EXPECT_EQ((*files.map("/m", 100, false))->data()[0], 'n');
}

TEST(MemoryFileSystem, FlipsABitThatStaysFlipped) {
  MemoryFileSystem files;
  write_durably(files, "/f", "aaaa");

  files.flip_bit("/f", 2, 1);

  EXPECT_THAT(outcomes(files, [](auto& disk) { return text_of(disk, "/f"); }), ElementsAre("aaca"));
}

TEST(MemoryFileSystem, ClonesWithoutSharingLaterChanges) {
  MemoryFileSystem files({.capacity_bytes = 100 * 4096});
  ASSERT_TRUE(files.create_directories("/d").ok());
  write(files, "/d/f", "text");
  const auto file = open(files, "/d/f");
  const auto lock = files.lock("/lock", "holder");
  ASSERT_TRUE(lock.ok());

  const auto copy = files.clone(7);
  ASSERT_TRUE(file->write_at(0, "TEXT").ok());
  ASSERT_TRUE(copy->remove_file("/d/f").ok());

  EXPECT_EQ(text_of(files, "/d/f"), "TEXT");
  EXPECT_EQ(names_of(*copy, "/d"), "");
  EXPECT_TRUE(copy->lock("/lock", "other").ok());
  EXPECT_EQ(copy->disk_space("/")->available_bytes, 99U * 4096);
}

TEST(MemoryFileSystem, RepeatsAPowerCutForTheSameSeed) {
  MemoryFileSystem files;
  for (int i = 0; i < 20; ++i) {
    write(files, "/f" + std::to_string(i), std::string(20'000, 'x'));
  }
  const auto state_after = [&](std::uint64_t seed) {
    const auto copy = files.clone(seed);
    copy->power_cut();
    std::string state = names_of(*copy, "/");
    const auto entries = copy->list("/");
    for (const DirectoryEntry& entry : *entries) {
      state += text_of(*copy, "/" + entry.name);
    }
    return state;
  };

  EXPECT_EQ(state_after(1), state_after(1));
  EXPECT_NE(state_after(1), state_after(2));
}

TEST(MemoryFileSystem, HoldsSubmittedRequestsUntilTheyAreRunInOrder) {
  MemoryFileSystem files;
  const auto file = open(files, "/f");
  std::string order;
  const auto submit = [&](const std::string& text) {
    files.submit({IoRequest::Kind::kWrite, file, 0, {SharedBytes::copy_of(text), {}}},
                 [&order, text](const Status& status) { order += status.ok() ? text : "!"; });
  };

  submit("a");
  files.hold_submits(true);
  submit("b");
  submit("c");
  EXPECT_EQ(order, "a");
  EXPECT_EQ(text_of(files, "/f"), "a");
  EXPECT_EQ(files.run_submitted(), 2U);
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(files.run_submitted(), 0U);
  submit("d");
  files.hold_submits(false);
  submit("e");

  EXPECT_EQ(order, "abcde");
  EXPECT_EQ(text_of(files, "/f"), "e");
}

TEST(MemoryFileSystem, FailsHeldRequestsAfterAPowerCut) {
  MemoryFileSystem files;
  files.hold_submits(true);
  Status seen;
  files.submit({IoRequest::Kind::kSync, open(files, "/f"), 0, {}},
               [&seen](const Status& status) { seen = status; });

  files.power_cut();
  EXPECT_EQ(files.run_submitted(), 1U);

  EXPECT_EQ(code_of(seen), Errc::kIo);
}

TEST(MemoryFileSystem, AnswersHeldRequestsWhenItIsDestroyed) {
  int answered = 0;
  {
    MemoryFileSystem files;
    files.hold_submits(true);
    files.submit({IoRequest::Kind::kSync, open(files, "/f"), 0, {}},
                 [&answered](const Status&) { ++answered; });
  }

  EXPECT_EQ(answered, 1);
}

TEST(MemoryFileSystem, LetsAFileOutliveIt) {
  std::shared_ptr<File> file;
  {
    MemoryFileSystem files;
    file = open(files, "/f");
  }

  EXPECT_TRUE(file->write_at(0, "x").ok());
}

TEST(MemoryFileSystem, GivesLaterChangesLaterTimes) {
  MemoryFileSystem files;
  write(files, "/a", "x");
  write(files, "/b", "x");

  EXPECT_LT(files.info("/a")->modified, files.info("/b")->modified);
}

TEST(MemoryFileSystem, TakesRelativeAndUntidyPathsFromItsRoot) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.create_directories("a/b").ok());
  write(files, "a/b/../f", "x");

  EXPECT_EQ(text_of(files, "/./a//f"), "x");
  EXPECT_TRUE(path_exists(files, "."));
  EXPECT_FALSE(path_exists(files, ""));
}

// An append-only log with a sync now and then: what was synced is there after any power cut, and
// what follows it is a sector-wise mix of new bytes and zeros.
TEST(MemoryFileSystem, KeepsTheSyncedPartOfALogOverManyPowerCuts) {
  std::uint64_t longer = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    MemoryFileSystem files({.seed = seed});
    write_durably(files, "/log", "");
    const auto file = open(files, "/log");
    files.cut_power_at(rng.below(400));
    std::string text;
    std::size_t synced = 0;
    for (bool alive = true; alive;) {
      const std::string record(1 + rng.below(3000), static_cast<char>('a' + rng.below(26)));
      alive = file->write_at(text.size(), record).ok();
      text += record;
      if (alive && rng.chance(1, 10)) {
        alive = file->sync().ok();
        synced = alive ? text.size() : synced;
      }
    }

    files.power_cut();

    const std::string after = text_of(files, "/log");
    ASSERT_GE(after.size(), synced);
    ASSERT_LE(after.size(), text.size());
    ASSERT_TRUE(after.compare(0, synced, text, 0, synced) == 0);
    for (std::size_t i = synced; i < after.size(); ++i) {
      ASSERT_TRUE(after[i] == text[i] || after[i] == '\0') << i;
    }
    longer += after.size() > synced ? 1U : 0U;
  }
  EXPECT_GT(longer, 50U);
}

TEST(MemoryFileSystem, IsCutAndClonedWhileOthersUseIt) {
  MemoryFileSystem files;
  std::atomic<bool> stop{false};
  std::atomic<int> bad{0};
  const auto work = [&](int id) {
    const std::string path = "/t" + std::to_string(id);
    while (!stop.load()) {
      auto file = files.open(path, OpenMode::kCreateOrOpen);
      if (!file.ok()) {
        continue;
      }
      // A file that failed once never works again.
      const bool consistent = (*file)->write_at(0, "12345").ok() || !(*file)->write_at(0, "").ok();
      bad += consistent ? 0 : 1;
      (*file)->sync().ignore("the power may be off");
      files.rename(path, path + "x").ignore("the power may be off");
    }
  };
  std::thread first(work, 1);
  std::thread second(work, 2);

  for (int i = 0; i < 200; ++i) {
    files.cut_power_at(5);
    const auto copy = files.clone(static_cast<std::uint64_t>(i));
    copy->power_cut();
    files.power_cut();
    files.process_crash();
  }
  stop.store(true);
  first.join();
  second.join();

  EXPECT_EQ(bad.load(), 0);
  EXPECT_TRUE(files.list("/").ok());
}

}  // namespace
}  // namespace weir::testing
