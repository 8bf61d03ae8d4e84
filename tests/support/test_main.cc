#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <unistd.h>

// main() of every test program. Tests find tests/data and the programs by paths from the project's
// root (WEIR_TEST_DATA, WEIR_BIN_DIR), wherever they are started: absolute paths in the compile
// line would make a clone in another folder compile every test again.
int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (chdir(WEIR_SOURCE_DIR) != 0) {
    std::perror("cannot enter " WEIR_SOURCE_DIR);
    return 1;
  }
  return RUN_ALL_TESTS();
}
