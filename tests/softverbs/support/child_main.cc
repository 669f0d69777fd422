#include <gtest/gtest.h>

#include "tests/softverbs/support/child.h"
#include "tests/softverbs/support/seed.h"

int main(int argc, char** argv) {
  if (argc == 2) {
    const int exit_code = softverbs::RunRole(argv[1]);
    if (exit_code >= 0) return exit_code;
  }
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (!softverbs::ParseSeed(argv[i])) return 2;
  }
  return RUN_ALL_TESTS();
}
