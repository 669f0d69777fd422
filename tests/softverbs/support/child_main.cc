#include <gtest/gtest.h>

#include "tests/softverbs/support/child.h"

int main(int argc, char** argv) {
  if (argc == 2) {
    const int exit_code = softverbs::RunRole(argv[1]);
    if (exit_code >= 0) return exit_code;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
