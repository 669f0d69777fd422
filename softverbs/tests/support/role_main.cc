#include <gtest/gtest.h>

#include "softverbs/tests/support/role_process.h"

int main(int argc, char** argv) {
  if (const auto exit_code = test_support::RunRole(argc, argv)) return *exit_code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
