#include <weir/runtime/file_system.h>
#include <weir/runtime/testing/memory_file_system.h>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace weir {
namespace {

using testing::MemoryFileSystem;
using Operation = MemoryFileSystem::Operation;

TEST(ParentPath, IsWhatStandsBeforeTheLastName) {
  EXPECT_EQ(parent_path("/a/b"), "/a");
  EXPECT_EQ(parent_path("a/b/c"), "a/b");
  EXPECT_EQ(parent_path("a/b/"), "a");
  EXPECT_EQ(parent_path("a//b"), "a");
  EXPECT_EQ(parent_path("/a"), "/");
  EXPECT_EQ(parent_path("//a"), "/");
  EXPECT_EQ(parent_path("/"), "/");
  EXPECT_EQ(parent_path("a"), ".");
  EXPECT_EQ(parent_path(""), ".");
}

TEST(JoinPath, PutsOneSlashBetween) {
  EXPECT_EQ(join_path("/a", "b"), "/a/b");
  EXPECT_EQ(join_path("/a/", "b"), "/a/b");
  EXPECT_EQ(join_path("/", "b"), "/b");
  EXPECT_EQ(join_path("", "b"), "b");
}

TEST(ReplaceFile, WritesSyncsRenamesAndSyncsTheFolderInThisOrder) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.create_directories("/d").ok());
  std::vector<Operation> seen;
  std::vector<std::string> paths;
  files.set_fault([&](Operation operation, const std::string& path) {
    seen.push_back(operation);
    paths.push_back(path);
    return Status();
  });

  ASSERT_TRUE(replace_file(files, "/d/f", "text").ok());

  EXPECT_EQ(seen, (std::vector<Operation>{Operation::kCreate, Operation::kWrite, Operation::kSync,
                                          Operation::kRename, Operation::kSyncDirectory}));
  EXPECT_EQ(paths,
            (std::vector<std::string>{"/d/f.tmp", "/d/f.tmp", "/d/f.tmp", "/d/f.tmp", "/d"}));
}

TEST(ReplaceFile, HasTheOldOrTheNewTextWhereverThePowerGoes) {
  const std::string old_text(6000, 'o');
  const std::string new_text(9000, 'n');
  std::set<std::string> outcomes;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (std::uint64_t operation = 0; operation <= 5; ++operation) {
      MemoryFileSystem files({.seed = seed});
      ASSERT_TRUE(files.create_directories("/d").ok());
      ASSERT_TRUE(files.sync_directory("/").ok());
      ASSERT_TRUE(replace_file(files, "/d/f", old_text).ok());

      files.cut_power_at(operation);
      const bool replaced = replace_file(files, "/d/f", new_text).ok();
      files.power_cut();

      const auto text = read_file(files, "/d/f");
      ASSERT_TRUE(text.ok()) << "seed " << seed << " operation " << operation;
      ASSERT_TRUE(*text == old_text || *text == new_text)
          << "seed " << seed << " operation " << operation;
      ASSERT_EQ(replaced, operation == 5);
      ASSERT_TRUE(!replaced || *text == new_text);
      outcomes.insert(text->substr(0, 1) + (replaced ? " replaced" : " interrupted"));
    }
  }
  EXPECT_EQ(outcomes, (std::set<std::string>{"n replaced", "n interrupted", "o interrupted"}));
}

TEST(ReplaceFile, KeepsTheOldTextAndRemovesTheNewOneWhenAStepFails) {
  for (const Operation failing : {Operation::kWrite, Operation::kSync, Operation::kRename}) {
    MemoryFileSystem files;
    ASSERT_TRUE(replace_file(files, "/f", "old").ok());
    files.set_fault([failing](Operation operation, const std::string&) {
      return operation == failing ? Status(Error(Errc::kNoSpace, "full")) : Status();
    });

    const Status status = replace_file(files, "/f", "new");

    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Errc::kNoSpace);
    EXPECT_EQ(*read_file(files, "/f"), "old");
    EXPECT_FALSE(path_exists(files, "/f.tmp"));
  }
}

TEST(RemoveTree, StopsAtTheFirstErrorAndNamesIt) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.create_directories("/t/a").ok());
  ASSERT_TRUE(replace_file(files, "/t/a/f", "x").ok());
  files.set_fault([](Operation operation, const std::string& path) {
    return operation == Operation::kRemove ? Status(Error(Errc::kIo, "bad " + path)) : Status();
  });

  const Status status = remove_tree(files, "/t");

  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "bad /t/a/f");
  EXPECT_TRUE(path_exists(files, "/t/a/f"));
}

}  // namespace
}  // namespace weir
